//! Which pods are alike? Pods that ask for the same are one class; a class is tried in the same ways.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{HostPort, Pod, PodShape, Quantity, Requirements, Resources, Toleration};

use super::relaxation::{Rules, Stage, stages};
use crate::index::{AskIx, DemandIx, GroupIx, Interner, KeyIx, PodClassIx, Table, TolerationsIx, ViewIx, fixed_hash};
use crate::resources::{Columns, Row};
use crate::topology::{Build, Group, Key, Kind, Meanings, NodeFilter, Relevant, View};

/// All classes, and the ways to try their pods.
#[derive(Debug, Default)]
pub(crate) struct PodClasses {
    pub(crate) classes: Table<PodClassIx, PodClass>,
    pub(crate) asks: Table<AskIx, Arc<Ask>>,
    pub(crate) demands: Table<DemandIx, Requirements>,
    pub(crate) tolerations: Table<TolerationsIx, Vec<Toleration>>,
}

/// Pods that ask for the same.
#[derive(Debug)]
pub(crate) struct PodClass {
    /// The ways to try them: with all wishes first, then with fewer and fewer.
    pub(crate) steps: Vec<Step>,
    /// By size: pods of a lower rank are tried first.
    pub(crate) rank: u32,
    /// What other pods know them by.
    namespace: String,
    labels: BTreeMap<String, String>,
    /// Groups that count them once they are placed.
    pub(crate) counted_in: Vec<GroupIx>,
    /// Groups of pods that must stay away once they are placed.
    pub(crate) repels: Vec<GroupIx>,
}

/// One way to try a pod: what it asks of a node, and which constraints hold.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) ask: AskIx,
    /// The same for each place where the volumes of the pod can be used; none if that is anywhere.
    pub(crate) at_volumes: Vec<AskIx>,
    strict: DemandIx,
    owned: Vec<GroupIx>,
    /// Constraints by label; of each, a spread that was written first comes first.
    pub(crate) keys: Vec<(KeyIx, Vec<ViewIx>)>,
    /// Constraints on host names.
    pub(crate) hosts: Vec<ViewIx>,
}

/// What is asked of a node.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ask {
    pub(crate) demand: DemandIx,
    pub(crate) tolerations: TolerationsIx,
    pub(crate) row: Row,
    pub(crate) ports: Vec<HostPort>,
}

/// Pods by class, the columns of what they ask for not known yet.
#[derive(Debug)]
pub(crate) struct Sorted<'r> {
    relevant: &'r Relevant,
    shapes: Interner<PodClassIx, Shape>,
    /// Classes by the place of a shape that pods of one workload share, and by namespace.
    known: BTreeMap<(usize, &'r str), PodClassIx>,
}

/// What decides how a pod is tried, and what others know it by. The latter is left out where nobody looks.
#[derive(Debug, Default)]
struct Shape {
    pod: Arc<PodShape>,
    namespace: String,
    labels: BTreeMap<String, String>,
    /// Where its volumes can be used.
    volumes: Vec<Requirements>,
}

impl<'r> Sorted<'r> {
    pub(crate) fn new(relevant: &'r Relevant) -> Sorted<'r> {
        Sorted { relevant, shapes: Interner::default(), known: BTreeMap::new() }
    }

    /// The class of a pod.
    pub(crate) fn class_of(&mut self, pod: &'r Pod) -> PodClassIx {
        let has_places = pod.storage.volumes().is_some_and(|known| !known.alternatives.is_empty());
        if has_places || Arc::strong_count(&pod.shape) == 1 {
            return self.read(pod);
        }
        let place = (Arc::as_ptr(&pod.shape).addr(), &*pod.key.namespace);
        if let Some(known) = self.known.get(&place) {
            return *known;
        }
        let class = self.read(pod);
        self.known.insert(place, class);
        class
    }

    fn read(&mut self, pod: &Pod) -> PodClassIx {
        let PodShape { requests, alternatives, preferred, tolerations, host_ports, .. } = &*pod.shape;
        let hash = fixed_hash(&(requests, alternatives, preferred, tolerations, host_ports));
        let volumes = pod.storage.volumes().map(|known| known.alternatives.as_slice()).unwrap_or_default();
        let hash = if volumes.is_empty() { hash } else { fixed_hash(&(hash, volumes)) };
        let is_one = |known: &Shape| Arc::ptr_eq(&known.pod, &pod.shape);
        let is_alike =
            |known: &Shape| known.volumes == volumes && (is_one(known) || asks_the_same(&known.pod, &pod.shape));
        if !self.relevant.is_used {
            let make = || Shape { pod: pod.shape.clone(), volumes: volumes.to_vec(), ..Shape::default() };
            return self.shapes.number_of(hash, is_alike, make);
        }
        let labels = self.relevant.labels(&pod.shape.labels);
        let namespace = &*pod.key.namespace;
        let terms = (&pod.shape.spreads, &pod.shape.pod_affinity, &pod.shape.pod_anti_affinity);
        let wishes = (&pod.shape.preferred_pod_affinity, &pod.shape.preferred_pod_anti_affinity);
        let hash = fixed_hash(&(hash, namespace, &labels, terms, wishes));
        let is_same = |known: &Shape| {
            let is_known_by = || known.labels.iter().map(|(label, value)| (label.as_str(), value.as_str()));
            let is_known = || is_known_by().eq(labels.iter().copied());
            known.namespace == namespace
                && is_alike(known)
                && (is_one(known) || (is_known() && is_constrained_the_same(&known.pod, &pod.shape)))
        };
        self.shapes.number_of(hash, is_same, || Shape {
            pod: pod.shape.clone(),
            namespace: namespace.to_owned(),
            labels: labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect(),
            volumes: volumes.to_vec(),
        })
    }

    /// What the classes ask for.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &Resources> {
        self.shapes.things().iter().map(|shape| &shape.pod.requests)
    }

    /// The ways to try the pods of each class.
    pub(crate) fn classes(self, columns: &Columns, rules: &Rules<'_>, build: &mut Build<'_>) -> PodClasses {
        let shapes = self.shapes.into_things();
        let ranks = ranks(&shapes);
        let mut known = Known::default();
        let classes = shapes.iter().zip(ranks).map(|(shape, rank)| {
            let row = columns.requested(&shape.pod.requests);
            let stages = stages(&shape.pod, rules);
            let steps = stages.iter().map(|stage| known.step(stage, (shape, &row), build)).collect();
            let apart = shape.pod.pod_anti_affinity.iter();
            let repels = apart.map(|term| build.term(Kind::Inverse, term, NodeFilter::default())).collect();
            let (namespace, labels) = (shape.namespace.clone(), shape.labels.clone());
            PodClass { steps, rank, namespace, labels, counted_in: Vec::new(), repels }
        });
        let classes = classes.collect();
        let Known { asks, demands, tolerations } = known;
        let asks = asks.into_things().into_iter().map(Arc::new).collect();
        PodClasses { classes, asks, demands: demands.into_things(), tolerations: tolerations.into_things() }
    }
}

fn asks_the_same(one: &PodShape, other: &PodShape) -> bool {
    one.requests == other.requests
        && one.alternatives == other.alternatives
        && one.preferred == other.preferred
        && one.tolerations == other.tolerations
        && one.host_ports == other.host_ports
}

fn is_constrained_the_same(one: &PodShape, other: &PodShape) -> bool {
    one.spreads == other.spreads
        && one.pod_affinity == other.pod_affinity
        && one.pod_anti_affinity == other.pod_anti_affinity
        && one.preferred_pod_affinity == other.preferred_pod_affinity
        && one.preferred_pod_anti_affinity == other.preferred_pod_anti_affinity
}

#[derive(Default)]
struct Known {
    asks: Interner<AskIx, Ask>,
    demands: Interner<DemandIx, Requirements>,
    tolerations: Interner<TolerationsIx, Vec<Toleration>>,
}

impl Known {
    fn step(&mut self, stage: &Stage<'_>, (shape, row): (&Shape, &Row), build: &mut Build<'_>) -> Step {
        let tolerations = self.tolerations.number(stage.tolerations());
        let mut ask = |demand: Requirements| {
            let (demand, row, ports) = (self.demands.number(demand), row.clone(), shape.pod.host_ports.clone());
            self.asks.number(Ask { demand, tolerations, row, ports })
        };
        let (plain, wanted) = (ask(stage.demand()), stage.demand());
        let joined = |place: &Requirements| {
            let mut joined = wanted.clone();
            joined.join(place);
            joined
        };
        let at_volumes = shape.volumes.iter().map(|place| ask(joined(place))).collect();
        let strict = self.demands.number(stage.strict());
        let mut owned: Vec<GroupIx> = Vec::new();
        for spread in &stage.spreads {
            let honours = (spread.nodes.that_are_wanted, spread.nodes.that_are_tolerated);
            // As they were written: nodes count the same whatever was given up.
            let alternatives = &shape.pod.alternatives;
            let is_anywhere = alternatives.iter().any(Requirements::is_empty);
            let demands = (honours.0 && !is_anywhere)
                .then(|| alternatives.iter().map(|wanted| self.demands.number(wanted.clone())).collect());
            let tolerations = honours.1.then_some(tolerations);
            let filter = NodeFilter { demands, tolerations, domains_tolerated: tolerations };
            owned.push(build.spread(spread, &shape.namespace, filter));
        }
        let domains_tolerated = build.has_taints.then_some(tolerations);
        let filter = NodeFilter { domains_tolerated, ..NodeFilter::default() };
        // A wish is judged alone: kube-scheduler weighs each by itself.
        owned.extend(build.together(&shape.pod.pod_affinity, &filter));
        owned.extend(stage.wished_near().map(|term| build.term(Kind::Affinity, term, filter.clone())));
        owned.extend(stage.apart().map(|term| build.term(Kind::AntiAffinity, term, filter.clone())));
        Step { ask: plain, at_volumes, strict, owned, keys: Vec::new(), hosts: Vec::new() }
    }
}

impl Step {
    /// What is asked of a planned node: one after the other, until it says yes.
    pub(crate) fn asks(&self) -> &[AskIx] {
        if self.at_volumes.is_empty() { std::slice::from_ref(&self.ask) } else { &self.at_volumes }
    }
}

impl PodClass {
    /// Learns which groups count its pods, and what each step is allowed by its own groups and by pods that must not be with it.
    pub(crate) fn see(
        &mut self,
        (keys, groups): (&Table<KeyIx, Key>, &Table<GroupIx, Group>),
        meanings: Meanings<'_>,
        views: &mut Interner<ViewIx, View>,
    ) {
        let selecting = groups.pairs().filter(|(_, group)| group.selects(&self.namespace, &self.labels));
        let (inverse, counting): (Vec<_>, Vec<_>) = selecting.partition(|(_, group)| group.kind == Kind::Inverse);
        self.counted_in = counting.into_iter().map(|(number, _)| number).collect();
        for step in &mut self.steps {
            let owned = std::mem::take(&mut step.owned);
            for group in owned.into_iter().chain(inverse.iter().map(|(number, _)| *number)) {
                let (number, key) = (groups[group].key, &keys[groups[group].key]);
                let (strict, selects_self) = (step.strict, self.counted_in.contains(&group));
                let pod_domains = key.left_by(&meanings.demands[strict]);
                let view = views.number(View { group, selects_self, strict, pod_domains });
                match step.keys.iter_mut().find(|(known, _)| *known == number) {
                    _ if key.is_hostname => step.hosts.push(view),
                    Some((_, views)) => views.push(view),
                    None => step.keys.push((number, vec![view])),
                }
            }
        }
    }
}

/// Large ones first, because small ones fit into what they leave: by CPU, then by memory.
fn ranks(shapes: &Table<PodClassIx, Shape>) -> Vec<u32> {
    let size = |shape: &Shape| {
        let amount = |resource| -> Quantity { shape.pod.requests.get(resource) };
        Reverse((amount(tenon_model::resources::CPU), amount(tenon_model::resources::MEMORY)))
    };
    let mut sizes: Vec<_> = shapes.iter().map(size).collect();
    let each = sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let rank = |size| sizes.binary_search(size).map_or(u32::MAX, |rank| u32::try_from(rank).unwrap_or(u32::MAX));
    each.iter().map(rank).collect()
}
