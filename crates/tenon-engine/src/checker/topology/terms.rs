//! Which pods does a term choose? Asked once for each kind of pod, and once for equal terms.

use std::collections::BTreeMap;

use tenon_model::{NamespaceChoice, Operator, PodAffinityTerm, PodShape, Selector, Snapshot};

use super::placed::{Class, Domains, Placed};

/// Pods by their labels.
pub(super) struct Chooser<'p, 'a> {
    snapshot: &'a Snapshot,
    classes: &'p [Class<'a>],
    by_label: BTreeMap<(&'a str, &'a str), Vec<usize>>,
}

impl<'p, 'a> Chooser<'p, 'a> {
    pub(super) fn of(placed: &'p Placed<'a>) -> Chooser<'p, 'a> {
        let mut by_label: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        for (index, class) in placed.classes.iter().enumerate() {
            for (label, value) in class.shape.labels.iter() {
                by_label.entry((label, value)).or_default().push(index);
            }
        }
        Chooser { snapshot: placed.snapshot, classes: &placed.classes, by_label }
    }

    /// The classes in these namespaces that a selector chooses. Without a selector there are none.
    pub(super) fn chosen(&self, selector: Option<&Selector>, is_in: impl Fn(&str) -> bool) -> Vec<usize> {
        let Some(selector) = selector else { return Vec::new() };
        let is_chosen = |index: &usize| {
            let class = &self.classes[*index];
            is_in(class.namespace) && selector.chooses(&class.shape.labels)
        };
        let mut chosen: Vec<usize> = self.candidates(selector).into_iter().filter(is_chosen).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }

    /// Classes that meet a first demand of the selector, where it names values.
    fn candidates(&self, selector: &Selector) -> Vec<usize> {
        match selector.requirements.iter().find(|demand| demand.operator == Operator::In) {
            Some(demand) => {
                let found = demand.values.iter().filter_map(|value| self.by_label.get(&(&*demand.label, &**value)));
                found.flatten().copied().collect()
            }
            None => (0..self.classes.len()).collect(),
        }
    }

    /// Whether a term looks into a namespace. One that is not known has no labels.
    fn is_in(&self, choice: &NamespaceChoice, namespace: &str) -> bool {
        let none = BTreeMap::new();
        let labels = self.snapshot.namespaces.get(namespace).unwrap_or(&none);
        choice.names.contains(namespace) || choice.selector.as_ref().is_some_and(|selector| selector.chooses(labels))
    }
}

/// Which required terms of pods are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Only pods that all terms of their owner choose count for one of them.
    Affinity,
    /// Each term stands alone.
    AntiAffinity,
}

/// Required terms of one kind, each once.
pub(super) struct Terms<'p, 'a> {
    pub(super) all: Vec<Term<'p, 'a>>,
    /// By class: the terms its pods have.
    pub(super) own: Vec<Vec<usize>>,
    /// By class: the terms that choose its pods.
    pub(super) choosing: Vec<Vec<usize>>,
}

pub(super) struct Term<'p, 'a> {
    pub(super) term: &'a PodAffinityTerm,
    /// Terms that have to choose a pod that counts, this one among them.
    together: &'a [PodAffinityTerm],
    pub(super) domains: &'p Domains<'p>,
}

impl Kind {
    fn of(self, shape: &PodShape) -> &[PodAffinityTerm] {
        match self {
            Kind::Affinity => &shape.pod_affinity,
            Kind::AntiAffinity => &shape.pod_anti_affinity,
        }
    }
}

impl<'p, 'a> Terms<'p, 'a> {
    /// The terms that the first of all classes have.
    pub(super) fn of(
        placed: &'p Placed<'a>,
        domains: &'p BTreeMap<&'a str, Domains<'p>>,
        owners: usize,
        kind: Kind,
    ) -> Terms<'p, 'a> {
        let chooser = Chooser::of(placed);
        let count = placed.classes.len();
        let mut terms = Terms { all: Vec::new(), own: vec![Vec::new(); count], choosing: vec![Vec::new(); count] };
        let mut known: BTreeMap<(&PodAffinityTerm, &[PodAffinityTerm]), usize> = BTreeMap::new();
        for (class, owner) in placed.classes.iter().enumerate().take(owners) {
            let own = kind.of(owner.shape);
            for term in own {
                let Some(domains) = domains.get(term.label.as_str()) else { continue };
                let together = if kind == Kind::Affinity { own } else { std::slice::from_ref(term) };
                let index = *known.entry((term, together)).or_insert_with(|| {
                    terms.all.push(Term { term, together, domains });
                    terms.all.len() - 1
                });
                terms.own[class].push(index);
            }
        }
        for (index, term) in terms.all.iter().enumerate() {
            for class in term.chosen(&chooser) {
                terms.choosing[class].push(index);
            }
        }
        terms
    }
}

impl Term<'_, '_> {
    /// Classes whose pods count.
    fn chosen(&self, chooser: &Chooser<'_, '_>) -> Vec<usize> {
        let of = |term: &PodAffinityTerm| {
            chooser.chosen(term.selector.as_ref(), |namespace| chooser.is_in(&term.namespaces, namespace))
        };
        let mut chosen = of(self.term);
        for other in self.together.iter().filter(|other| *other != self.term) {
            let others = of(other);
            chosen.retain(|class| others.binary_search(class).is_ok());
        }
        chosen
    }

    /// What has to be chosen, as people read it.
    pub(super) fn words(&self) -> String {
        let mut named: Vec<String> = Vec::new();
        for what in self.together.iter().map(|term| words(term.selector.as_ref())) {
            if !named.contains(&what) {
                named.push(what);
            }
        }
        named.join(" and to ")
    }
}

/// A selector as people read it.
pub(super) fn words(selector: Option<&Selector>) -> String {
    match selector {
        None => "no pod".to_owned(),
        Some(selector) if selector.requirements.is_empty() => "every pod".to_owned(),
        Some(selector) => selector.requirements.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// A number of pods.
pub(super) fn pods(count: usize, kind: &str) -> String {
    format!("{count} {kind}pod{}", if count == 1 { "" } else { "s" })
}
