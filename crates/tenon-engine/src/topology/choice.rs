//! Which of the allowed domains is taken on a node? All constraints on a label have to agree.
//!
//! Karpenter lets every constraint choose alone and refuses when they differ. Here their domains are intersected first: the same
//! choice where Karpenter has one, and one where it has none.

use tenon_model::{Operator, Requirement, Requirements};

use super::counts::Count;
use super::domains::Key;
use super::groups::Kind;
use super::valid::Valid;
use crate::index::{Bits, ChoiceIx, DomainIx, Id, Interner, KeyIx, Table};

/// At most so many choices are tried on a node: they differ only in which of equally good domains is taken.
const MOST_TRIED: usize = 32;

/// A constraint, and what it allows now.
pub(crate) struct Allowed<'a> {
    pub(crate) kind: Kind,
    pub(crate) count: &'a Count,
    pub(crate) valid: &'a Valid,
}

/// The sets of domains of one label that may be taken on a node, the best first. Empty if there is none.
///
/// A spread takes the domain with the fewest pods, of equal ones the first that can be had. Pods that want to be together found
/// one domain. Who only stays away from others keeps every domain that is left.
pub(crate) fn of_key(constraints: &[Allowed<'_>], node: &Bits<DomainIx>) -> Vec<Bits<DomainIx>> {
    let mut left = node.clone();
    constraints.iter().for_each(|allowed| left.keep(&allowed.valid.domains));
    if left.is_empty() {
        return Vec::new();
    }
    let spread = constraints.iter().find(|allowed| matches!(allowed.kind, Kind::Spread { .. }));
    if let Some(Allowed { count, .. }) = spread {
        let fewest = left.iter().map(|domain| count.of(domain)).min();
        let emptiest = left.iter().filter(|domain| Some(count.of(*domain)) == fewest);
        return emptiest.map(|domain| left.only(domain)).collect();
    }
    if constraints.iter().any(|allowed| allowed.valid.founds) {
        return left.iter().map(|domain| left.only(domain)).collect();
    }
    vec![left]
}

/// Domains taken for several labels.
pub(crate) type Picked = Vec<(KeyIx, Bits<DomainIx>)>;

/// All ways to take domains for several labels, the best first; none if one label has none.
pub(crate) fn combined(keys: Vec<(KeyIx, Vec<Bits<DomainIx>>)>) -> Vec<Picked> {
    let mut all: Vec<Picked> = vec![Vec::new()];
    for (key, ways) in keys {
        let longer = all.iter().flat_map(|picked| {
            ways.iter().map(|way| picked.iter().cloned().chain([(key, way.clone())]).collect::<Picked>())
        });
        all = longer.take(MOST_TRIED).collect();
    }
    all
}

/// Choices of domains by number, and what they demand of a node.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    choices: Interner<ChoiceIx, Picked>,
    demands: Table<ChoiceIx, Requirements>,
}

impl Choices {
    /// The number of a choice.
    pub(crate) fn number(&mut self, keys: &Table<KeyIx, Key>, picked: Picked) -> ChoiceIx {
        let choice = self.choices.number(picked);
        if choice.position() == self.demands.len() {
            let demands = self.choices.things()[choice].iter().map(|(key, domains)| {
                let values = domains.iter().map(|domain| keys[*key].values[domain].clone());
                let demand = Requirement::new(Operator::In, values).unwrap_or_else(Requirement::absent);
                (keys[*key].label.clone(), demand)
            });
            self.demands.push(demands.collect());
        }
        choice
    }

    /// What a choice demands of a node.
    pub(crate) fn demand(&self, choice: ChoiceIx) -> &Requirements {
        &self.demands[choice]
    }
}
