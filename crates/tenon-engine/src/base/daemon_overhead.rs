//! What do daemons take? On a new node, by its size; nodes that are there are looked at in `nodes`.

use tenon_model::{HostPort, Pod, Requirements, Resources, Taint};

use crate::index::{Bits, Id, TypeIx};
use crate::instance_types::CatalogIndex;

/// What daemons need on new nodes of a pool. Sizes with the same daemons form a group.
#[derive(Debug)]
pub(crate) struct DaemonGroups {
    of_type: Vec<usize>,
    groups: Vec<DaemonGroup>,
}

/// What the daemons of some sizes need.
#[derive(Debug)]
pub(crate) struct DaemonGroup {
    pub(crate) requests: Resources,
    pub(crate) ports: Vec<HostPort>,
}

/// What every new node of a pool has, whatever its size.
#[derive(Clone, Copy)]
pub(crate) struct NodeSpec<'t> {
    pub(crate) requirements: &'t Requirements,
    pub(crate) taints: &'t [Taint],
}

impl DaemonGroups {
    /// Finds for each size the daemons that run on a new node of it.
    pub(crate) fn new(catalog: &CatalogIndex, spec: NodeSpec<'_>, daemons: &[&Pod]) -> DaemonGroups {
        let types = catalog.catalog.types().len();
        let running: Vec<Bits<TypeIx>> = daemons.iter().map(|daemon| types_running(catalog, spec, daemon)).collect();
        let (mut sets, mut of_type): (Vec<Vec<usize>>, Vec<usize>) = (Vec::new(), Vec::with_capacity(types));
        for type_ix in (0..types).map(TypeIx::of) {
            let here = running.iter().enumerate().filter(|(_, types)| types.has(type_ix));
            let set: Vec<usize> = here.map(|(daemon, _)| daemon).collect();
            let group = sets.iter().position(|known| *known == set).unwrap_or_else(|| {
                sets.push(set);
                sets.len() - 1
            });
            of_type.push(group);
        }
        let groups = sets.iter().map(|set| DaemonGroup::of(set.iter().filter_map(|n| daemons.get(*n).copied())));
        DaemonGroups { of_type, groups: groups.collect() }
    }

    /// What runs on a size.
    pub(crate) fn of(&self, type_ix: TypeIx) -> &DaemonGroup {
        &self.groups[self.group_of(type_ix)]
    }

    /// The group of a size.
    pub(crate) fn group_of(&self, type_ix: TypeIx) -> usize {
        self.of_type[type_ix.position()]
    }

    /// The groups of these sizes, each once.
    pub(crate) fn of_types(&self, types: impl Iterator<Item = TypeIx>) -> Vec<usize> {
        let (mut groups, mut types) = (Vec::new(), types);
        // Most often there is one group, and many sizes.
        while groups.len() < self.groups.len()
            && let Some(type_ix) = types.next()
        {
            let group = self.group_of(type_ix);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    /// What the daemons of a group need.
    pub(crate) fn requests(&self, group: usize) -> &Resources {
        &self.groups[group].requests
    }
}

impl DaemonGroup {
    fn of<'p>(daemons: impl Iterator<Item = &'p Pod>) -> DaemonGroup {
        let (mut requests, mut ports) = (Resources::default(), Vec::new());
        for daemon in daemons {
            requests.add(&daemon.requests);
            ports.extend(daemon.host_ports.iter().cloned());
        }
        DaemonGroup { requests, ports }
    }
}

/// Sizes of which a new node runs the daemon. Its wishes do not count, nor do taints that only advise.
fn types_running(catalog: &CatalogIndex, spec: NodeSpec<'_>, daemon: &Pod) -> Bits<TypeIx> {
    let mut types = Bits::none(catalog.catalog.types().len());
    if !tolerates(daemon, spec.taints) {
        return types;
    }
    let is_well_known = |label: &str| catalog.catalog.is_well_known(label);
    let possible = daemon.alternatives.iter().filter(|wanted| spec.requirements.can_meet(wanted, is_well_known));
    possible.for_each(|wanted| types.join(&catalog.types_suiting(wanted)));
    types
}

/// Whether a daemon runs in spite of these taints.
pub(crate) fn tolerates<'t>(daemon: &Pod, taints: impl IntoIterator<Item = &'t Taint>) -> bool {
    taints.into_iter().all(|taint| !taint.is_a_bar() || taint.is_tolerated_by(&daemon.tolerations))
}
