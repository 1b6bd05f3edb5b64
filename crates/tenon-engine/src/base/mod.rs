//! A snapshot, indexed: everything a plan is made with and that no plan changes.

mod advance;
mod daemon_overhead;
mod eligibility;
mod movable;
mod node_pools;
mod nodes;
mod pod_classes;
mod relaxation;

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use tenon_model::{Effect, Options, Pod, PodKey, Pool, Reason, ReservedMode, Snapshot, Unplaced};

pub(crate) use self::eligibility::refused;
pub(crate) use self::movable::Movable;
pub(crate) use self::node_pools::{SIMULATED, Template, is_out_of_use};
pub(crate) use self::nodes::Nodes;
pub(crate) use self::pod_classes::{Ask, PodClass, PodClasses, Step};

use self::advance::Ground;
use self::movable::Unbound;
use self::node_pools::Supplies;
use self::pod_classes::Sorted;
use self::relaxation::Rules;
use crate::capacity::{Attachments, HostChoice, Hosts, Reserved, Turns};
use crate::index::{CatalogIx, HostIx, OfferingIx, PodClassIx, PodIx, Table, TemplateIx};
use crate::instance_types::CatalogIndex;
use crate::resources::Columns;
use crate::topology::{Build, Meanings, Provider, Relevant, Topology, World};

/// A snapshot, indexed.
#[derive(Debug, Default)]
pub(crate) struct Base {
    pub(crate) options: Options,
    pub(crate) columns: Columns,
    pub(crate) catalogs: Table<CatalogIx, Arc<CatalogIndex>>,
    pub(crate) hosts: Hosts,
    /// How the host of a new node is chosen.
    pub(crate) host_choices: Table<TemplateIx, HostChoice>,
    /// The host of each offering, if it is one that is known.
    pub(crate) offered_on: Table<CatalogIx, Table<OfferingIx, Option<HostIx>>>,
    pub(crate) reserved: Reserved,
    /// Volumes that can be attached.
    pub(crate) attachments: Attachments,
    /// Every pool, the first to be asked first, and its template if new nodes can be made from it.
    pub(crate) pools: Vec<(Arc<Pool>, Option<TemplateIx>)>,
    pub(crate) templates: Table<TemplateIx, Arc<Template>>,
    pub(crate) classes: PodClasses,
    /// Pods to be placed, in the order they are tried, with their class.
    pub(crate) pods: Table<PodIx, (Arc<Pod>, PodClassIx)>,
    /// The place of each pod in the order of their keys; empty where few pods are placed at a time.
    by_key: Table<PodIx, u32>,
    /// Pods that have no node or lose theirs, in the order they are tried.
    pub(crate) waiting: Vec<PodIx>,
    /// Pods that need a node only if theirs goes.
    pub(crate) movable: Movable,
    /// The same pods, as they would be without their nodes.
    unbound: Unbound,
    /// Pods that are not tried, and why.
    pub(crate) refused: Vec<Unplaced>,
    /// How many pods there are, those included that are not tried.
    pub(crate) pending: usize,
    pub(crate) nodes: Arc<Nodes>,
    /// What nodes and templates were made from.
    ground: Ground,
    /// Where pods may go because of other pods.
    pub(crate) topology: Topology,
}

/// What a snapshot is read for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Plans for pods that need a node. Those that are on nodes stay, unless their node leaves anyway.
    #[default]
    Plans,
    /// What would be if nodes were gone: pods that are on nodes may have to be placed again.
    WhatIfs,
    /// The same for disruption: where capacity that was set aside is used up, other capacity is taken.
    Scans,
}

impl Purpose {
    /// Options of a snapshot as they are for this.
    fn options(self, options: &Options) -> Options {
        let mut options = options.clone();
        if self == Purpose::Scans && options.reserved == ReservedMode::Strict {
            options.reserved = ReservedMode::Fallback;
        }
        options
    }
}

impl Base {
    /// Reads a snapshot. Catalogues, pools and nodes that are the same as before are not read again; `before` is used up.
    pub(crate) fn of(snapshot: &Snapshot, mut before: Base, purpose: Purpose) -> Base {
        let options = &purpose.options(&snapshot.options);
        let is_judged = |daemon: &&Arc<Pod>| !options.ignore_resource_claims || daemon.resource_claims.is_empty();
        let shared: Vec<Arc<Pod>> = snapshot.daemons.iter().filter(is_judged).cloned().collect();
        let daemons: Vec<&Pod> = shared.iter().map(AsRef::as_ref).collect();
        let (pods, refused) = sorted_out(snapshot);
        let unbound = match purpose {
            Purpose::Plans => Unbound::default(),
            Purpose::WhatIfs | Purpose::Scans => Unbound::of(snapshot, std::mem::take(&mut before.unbound)),
        };
        let on_nodes = unbound.on_nodes(snapshot);
        let movable = on_nodes.iter().filter(|on_node| on_node.is_tried()).map(|on_node| &on_node.pod);
        let relevant = Relevant::of(snapshot, movable.clone().map(|pod| &*pod.shape));
        let mut sorted = Sorted::new(&relevant);
        let pods: Vec<(Arc<Pod>, PodClassIx)> =
            pods.into_iter().chain(movable).map(|pod| (pod.clone(), sorted.class_of(pod))).collect();
        let columns = Columns::of(sorted.requests().chain(daemons.iter().map(|daemon| &daemon.requests)));
        let (catalogs, hosts) = (catalogs(snapshot, &before), Hosts::new(&snapshot.hosts));
        let ground = Ground {
            daemons: shared.clone(),
            columns: columns.clone(),
            options: options.clone(),
            nodes: snapshot.nodes.clone(),
        };
        let supplies = Supplies { daemons: &daemons, columns: &columns, options, hosts: &hosts, ground: &ground };
        let (pools, templates) = templates(snapshot, &catalogs, (&supplies, &before));
        // A pool whose demands leave nothing to make nodes of still has nodes that are there.
        let in_use = pools.iter().map(|(pool, _)| pool).filter(|pool| !is_out_of_use(pool));
        let has_advice = in_use.flat_map(|pool| &pool.taints).any(|taint| taint.effect == Effect::PreferNoSchedule);
        let mut build = Build::new(snapshot);
        let mut classes = sorted.classes(&columns, &Rules { options, has_advice }, &mut build);
        let (pods, origins) = in_order(&pods, &classes);
        let nodes = before.nodes_now(&ground, &daemons);
        let (movable, waiting) = Movable::new(on_nodes, &origins, &nodes);
        let attachments = Attachments::new(&pods, &nodes.nodes, &catalogs);
        let topology = match relevant.is_used {
            true => topology(build, &mut classes, (&nodes, &templates, &catalogs)),
            false => Topology::default(),
        };
        Base {
            nodes,
            ground,
            topology,
            reserved: Reserved::new(snapshot, options.clone()),
            attachments,
            offered_on: catalogs.iter().map(|catalog| offered_on(catalog, &hosts)).collect(),
            host_choices: host_choices(snapshot, &templates, &hosts),
            by_key: if purpose == Purpose::Plans { by_key(&pods) } else { Table::default() },
            waiting,
            movable,
            unbound,
            pods,
            options: options.clone(),
            pending: snapshot.pods.len(),
            columns,
            catalogs,
            hosts,
            pools,
            templates,
            classes,
            refused,
        }
    }

    /// The order of two pods by key.
    pub(crate) fn order(&self, one: PodIx, other: PodIx) -> Ordering {
        match self.by_key.is_empty() {
            true => self.pods[one].0.key.cmp(&self.pods[other].0.key),
            false => self.by_key[one].cmp(&self.by_key[other]),
        }
    }

    /// Which host is next for each pool. Where there are no hosts, there is nothing to be remembered.
    pub(crate) fn turns(&self) -> Turns {
        self.host_choices.iter().map(HostChoice::turn).collect()
    }

    /// The catalogue of a template.
    pub(crate) fn catalog_of(&self, template: TemplateIx) -> &CatalogIndex {
        &self.catalogs[self.templates[template].catalog]
    }
}

type Made<'m> = (&'m Nodes, &'m Table<TemplateIx, Arc<Template>>, &'m Table<CatalogIx, Arc<CatalogIndex>>);

/// What constraints allow pods, and where pods are.
fn topology<'m>(build: Build<'m>, classes: &'m mut PodClasses, (nodes, templates, catalogs): Made<'m>) -> Topology {
    let provider = |template: &'m Arc<Template>| Provider {
        taints: &template.pool.taints,
        demands: &template.demands,
        types: catalogs[template.catalog].catalog.types().iter().map(|size| &size.requirements).collect(),
    };
    let meanings = Meanings { demands: &classes.demands, tolerations: &classes.tolerations };
    let world = World { nodes: &nodes.nodes, providers: templates.iter().map(provider).collect(), meanings };
    Topology::new(build, &mut classes.classes, &world)
}

fn catalogs(snapshot: &Snapshot, before: &Base) -> Table<CatalogIx, Arc<CatalogIndex>> {
    let mut catalogs: Table<CatalogIx, Arc<CatalogIndex>> = Table::default();
    for catalog in snapshot.pools.iter().map(|pool| &pool.catalog) {
        let is_it = |known: &&Arc<CatalogIndex>| Arc::ptr_eq(&known.catalog, catalog);
        if catalogs.iter().any(|known| is_it(&known)) {
            continue;
        }
        let known = before.catalogs.iter().find(is_it).cloned();
        catalogs.push(known.unwrap_or_else(|| Arc::new(CatalogIndex::new(catalog))));
    }
    catalogs
}

fn offered_on(catalog: &CatalogIndex, hosts: &Hosts) -> Table<OfferingIx, Option<HostIx>> {
    let place = |offering| catalog.way(offering).place.as_ref();
    catalog.offerings.ids().map(|offering| hosts.at(place(offering)?)).collect()
}

fn host_choices(
    snapshot: &Snapshot,
    templates: &Table<TemplateIx, Arc<Template>>,
    hosts: &Hosts,
) -> Table<TemplateIx, HostChoice> {
    let choice = |template: &Arc<Template>| match snapshot.host_rules.get(&template.pool.name) {
        Some(rules) => HostChoice::new(rules, hosts),
        None => HostChoice::default(),
    };
    templates.iter().map(choice).collect()
}

type Templates = (Vec<(Arc<Pool>, Option<TemplateIx>)>, Table<TemplateIx, Arc<Template>>);

/// Makes a template of each pool that can be used.
fn templates(
    snapshot: &Snapshot,
    catalogs: &Table<CatalogIx, Arc<CatalogIndex>>,
    (supplies, before): (&Supplies<'_>, &Base),
) -> Templates {
    let mut pools: Vec<&Arc<Pool>> = snapshot.pools.iter().collect();
    pools.sort_by_key(|pool| Reverse((pool.weight, &pool.name)));
    let (mut numbered, mut templates) = (Vec::new(), Table::default());
    for pool in pools {
        let mut known = catalogs.pairs().filter(|(_, known)| Arc::ptr_eq(&known.catalog, &pool.catalog));
        let catalog = known.next().filter(|_| !is_out_of_use(pool));
        let template = catalog.and_then(|(number, index)| {
            let known = before.same_template(pool, (number, index), supplies);
            known.or_else(|| Template::new(pool, (number, index), supplies).map(Arc::new))
        });
        numbered.push((pool.clone(), template.map(|template| templates.push(template))));
    }
    (numbered, templates)
}

/// Pods to be placed, and the others with the reason why they are not.
fn sorted_out(snapshot: &Snapshot) -> (Vec<&Arc<Pod>>, Vec<Unplaced>) {
    let invalid =
        |(key, why): &(Arc<PodKey>, String)| Unplaced { pod: key.clone(), reason: Reason::Invalid(why.clone()) };
    let (mut pods, mut unplaced) = (Vec::new(), snapshot.invalid.iter().map(invalid).collect::<Vec<_>>());
    for pod in &snapshot.pods {
        match reason_to_wait(snapshot, pod) {
            Some(reason) => unplaced.push(Unplaced { pod: pod.key.clone(), reason }),
            None => pods.push(pod),
        }
    }
    (pods, unplaced)
}

/// Why a pod is not tried, if it is not.
fn reason_to_wait(snapshot: &Snapshot, pod: &Pod) -> Option<Reason> {
    let ignores = || snapshot.options.ignore_resource_claims && !pod.resource_claims.is_empty();
    refused(snapshot, pod).or_else(|| ignores().then_some(Reason::ResourceClaims))
}

/// A pod and its class.
type Classed = (Arc<Pod>, PodClassIx);

/// Large pods first; of equal ones the oldest. And where each of them stood.
fn in_order(pods: &[Classed], classes: &PodClasses) -> (Table<PodIx, Classed>, Vec<usize>) {
    // The start of the uid tells nearly all pods apart, and comparing it costs no look at the pod.
    let place = |(origin, (pod, class)): (usize, &(Arc<Pod>, PodClassIx))| {
        (classes.classes[*class].rank, pod.created, start_of(&pod.key.uid), origin)
    };
    let mut places: Vec<_> = pods.iter().enumerate().map(place).collect();
    places.sort_unstable_by(|one, other| {
        let known = (one.0, one.1, one.2).cmp(&(other.0, other.1, other.2));
        known.then_with(|| {
            let (one_key, other_key) = (&pods[one.3].0.key, &pods[other.3].0.key);
            let names = one_key.uid.cmp(&other_key.uid).then_with(|| one_key.cmp(other_key));
            names.then(one.3.cmp(&other.3))
        })
    });
    let origins: Vec<usize> = places.into_iter().map(|(.., origin)| origin).collect();
    (origins.iter().map(|origin| pods[*origin].clone()).collect(), origins)
}

/// The first bytes of a text as a number: of two texts that differ there, the numbers stand in the same order.
fn start_of(text: &str) -> u128 {
    let mut start = [0; 16];
    start.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    u128::from_be_bytes(start)
}

fn by_key(pods: &Table<PodIx, (Arc<Pod>, PodClassIx)>) -> Table<PodIx, u32> {
    let mut sorted: Vec<(PodIx, &PodKey)> = pods.pairs().map(|(number, (pod, _))| (number, &*pod.key)).collect();
    sorted.sort_by_key(|(_, key)| *key);
    let mut by_key: Table<PodIx, u32> = pods.iter().map(|_| 0).collect();
    for ((number, _), place) in sorted.into_iter().zip(0..) {
        by_key[number] = place;
    }
    by_key
}
