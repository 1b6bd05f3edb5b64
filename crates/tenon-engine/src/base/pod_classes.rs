//! Which pods are alike? Pods that ask for the same are one class; a class is tried in the same ways.

use std::cmp::Reverse;

use tenon_model::{
    Effect, HostPort, Options, Pod, PodShape, PreferencePolicy, Preferred, Quantity, Requirements, Resources,
    Tolerated, Toleration,
};

use crate::index::{AskIx, DemandIx, Interner, PodClassIx, Table, TolerationsIx, fixed_hash};
use crate::resources::{Columns, Row};

/// All classes, and the ways to try their pods.
#[derive(Debug, Default)]
pub(crate) struct PodClasses {
    pub(crate) classes: Table<PodClassIx, PodClass>,
    pub(crate) asks: Table<AskIx, Ask>,
    pub(crate) demands: Table<DemandIx, Requirements>,
    pub(crate) tolerations: Table<TolerationsIx, Vec<Toleration>>,
}

/// Pods that ask for the same.
#[derive(Debug)]
pub(crate) struct PodClass {
    /// The ways to try them: with all wishes first, then with one given up after the other.
    pub(crate) asks: Vec<AskIx>,
    /// By size: pods of a lower rank are tried first.
    pub(crate) rank: u32,
}

/// One way to try a pod.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    pub(crate) demand: DemandIx,
    pub(crate) tolerations: TolerationsIx,
    pub(crate) row: Row,
    pub(crate) ports: Vec<HostPort>,
}

/// What decides how pods are tried.
pub(crate) struct Rules<'r> {
    pub(crate) options: &'r Options,
    /// Whether some pool has a taint that only advises; it counts until everything else was given up.
    pub(crate) has_advice: bool,
}

/// Pods by class, the columns of what they ask for not known yet.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    shapes: Interner<PodClassIx, Shape>,
}

/// What decides how a pod is tried.
#[derive(Debug)]
struct Shape {
    requests: Resources,
    alternatives: Vec<Requirements>,
    preferred: Vec<Preferred>,
    tolerations: Vec<Toleration>,
    host_ports: Vec<HostPort>,
}

impl Sorted {
    /// The class of a pod.
    pub(crate) fn class_of(&mut self, pod: &Pod) -> PodClassIx {
        let PodShape { requests, alternatives, preferred, tolerations, host_ports, .. } = &*pod.shape;
        let hash = fixed_hash(&(requests, alternatives, preferred, tolerations, host_ports));
        let is_same = |known: &Shape| {
            known.requests == *requests
                && known.alternatives == *alternatives
                && known.preferred == *preferred
                && known.tolerations == *tolerations
                && known.host_ports == *host_ports
        };
        self.shapes.number_of(hash, is_same, || Shape {
            requests: requests.clone(),
            alternatives: alternatives.clone(),
            preferred: preferred.clone(),
            tolerations: tolerations.clone(),
            host_ports: host_ports.clone(),
        })
    }

    /// What the classes ask for.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &Resources> {
        self.shapes.things().iter().map(|shape| &shape.requests)
    }

    /// The ways to try the pods of each class.
    pub(crate) fn classes(self, columns: &Columns, rules: &Rules<'_>) -> PodClasses {
        let shapes = self.shapes.into_things();
        let ranks = ranks(&shapes);
        let mut known = Known::default();
        let classes = shapes.iter().zip(ranks).map(|(shape, rank)| {
            let row = columns.requested(&shape.requests);
            let asks = chain(shape, rules).into_iter().map(|step| known.ask(step, &row, &shape.host_ports));
            PodClass { asks: asks.collect(), rank }
        });
        let classes = classes.collect();
        let Known { asks, demands, tolerations } = known;
        let (asks, demands, tolerations) = (asks.into_things(), demands.into_things(), tolerations.into_things());
        PodClasses { classes, asks, demands, tolerations }
    }
}

#[derive(Default)]
struct Known {
    asks: Interner<AskIx, Ask>,
    demands: Interner<DemandIx, Requirements>,
    tolerations: Interner<TolerationsIx, Vec<Toleration>>,
}

impl Known {
    fn ask(&mut self, (demand, tolerations): Step, row: &Row, ports: &[HostPort]) -> AskIx {
        let (demand, tolerations) = (self.demands.number(demand), self.tolerations.number(tolerations));
        self.asks.number(Ask { demand, tolerations, row: row.clone(), ports: ports.to_vec() })
    }
}

/// Large ones first, because small ones fit into what they leave: by CPU, then by memory.
fn ranks(shapes: &Table<PodClassIx, Shape>) -> Vec<u32> {
    let size = |shape: &Shape| {
        let amount = |resource| -> Quantity { shape.requests.get(resource) };
        Reverse((amount(tenon_model::resources::CPU), amount(tenon_model::resources::MEMORY)))
    };
    let mut sizes: Vec<_> = shapes.iter().map(size).collect();
    let each = sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let rank = |size| sizes.binary_search(size).map_or(u32::MAX, |rank| u32::try_from(rank).unwrap_or(u32::MAX));
    each.iter().map(rank).collect()
}

/// What is demanded and tolerated in one step.
type Step = (Requirements, Vec<Toleration>);

/// The steps in which a pod is tried.
fn chain(shape: &Shape, rules: &Rules<'_>) -> Vec<Step> {
    let demands = demands_of(shape, rules.options.preferences);
    let mut chain: Vec<Step> = demands.into_iter().map(|wanted| (wanted, shape.tolerations.clone())).collect();
    if let Some((last, _)) = chain.last().filter(|_| rules.has_advice) {
        let more = Toleration { key: None, value: Tolerated::Exists, effect: Some(Effect::PreferNoSchedule) };
        let patient = shape.tolerations.iter().cloned().chain([more]).collect();
        chain.push((last.clone(), patient));
    }
    chain
}

/// Demands in the order they are tried: the alternatives one after the other, each with the heaviest wish; then the last
/// alternative with one wish after the other given up.
fn demands_of(shape: &Shape, policy: PreferencePolicy) -> Vec<Requirements> {
    let mut wishes: Vec<&Preferred> = shape.preferred.iter().collect();
    // Stable: of equal ones the first that was written is given up first.
    wishes.sort_by_key(|wish| Reverse(wish.weight));
    if policy == PreferencePolicy::Ignore {
        wishes.clear();
    }
    let anything = [Requirements::default()];
    let alternatives = if shape.alternatives.is_empty() { anything.as_slice() } else { shape.alternatives.as_slice() };
    let joined = |wanted: &Requirements, wish: Option<&&Preferred>| {
        let mut joined = wanted.clone();
        wish.into_iter().for_each(|wish| joined.join(&wish.requirements));
        joined
    };
    let mut demands: Vec<Requirements> = alternatives.iter().map(|wanted| joined(wanted, wishes.first())).collect();
    if let Some(last) = alternatives.last() {
        let later = wishes.iter().skip(1).map(Some).chain((!wishes.is_empty()).then_some(None));
        demands.extend(later.map(|wish| joined(last, wish)));
    }
    demands
}
