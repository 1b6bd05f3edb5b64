//! What the daemons of a cluster need on a node: on a new one, by its size, and on one that is there.

use tenon_model::{HostPort, Pod, Requirements, Resources, Taint};

use crate::axes::{Amounts, Axes};
use crate::bits::Bits;
use crate::bug::found;
use crate::stock::Stock;

/// What daemons need on new nodes of a pool. Sizes with the same daemons form a group.
pub(crate) struct DaemonGroups {
    of_size: Vec<usize>,
    groups: Vec<DaemonGroup>,
}

/// What the daemons of some sizes need.
pub(crate) struct DaemonGroup {
    pub(crate) requests: Resources,
    pub(crate) row: Amounts,
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
    pub(crate) fn new(stock: &Stock<'_>, spec: NodeSpec<'_>, daemons: &[&Pod], axes: &Axes) -> DaemonGroups {
        let sizes = stock.catalog.types().len();
        let running: Vec<Bits> = daemons.iter().map(|daemon| sizes_running(stock, spec, daemon)).collect();
        let mut sets: Vec<Bits> = Vec::new();
        let mut of_size = Vec::with_capacity(sizes);
        for size in 0..sizes {
            let set = Bits::those(daemons.len(), |n| running.get(n).is_some_and(|sizes| sizes.has(size)));
            let group = sets.iter().position(|known| *known == set).unwrap_or_else(|| {
                sets.push(set);
                sets.len() - 1
            });
            of_size.push(group);
        }
        let groups = sets.iter().map(|set| DaemonGroup::of(set.iter().filter_map(|n| daemons.get(n).copied()), axes));
        DaemonGroups { of_size, groups: groups.collect() }
    }

    /// The group of a size.
    pub(crate) fn of(&self, size: usize) -> Option<&DaemonGroup> {
        let group = self.of_size.get(size).and_then(|group| self.groups.get(*group));
        found(group, "the daemons of the size")
    }
}

impl DaemonGroup {
    fn of<'p>(daemons: impl Iterator<Item = &'p Pod>, axes: &Axes) -> DaemonGroup {
        let (mut requests, mut ports) = (Resources::default(), Vec::new());
        for daemon in daemons {
            requests.add(&daemon.requests);
            ports.extend(daemon.host_ports.iter().cloned());
        }
        DaemonGroup { row: axes.row(&requests), requests, ports }
    }
}

/// Sizes of which a new node runs the daemon. Its wishes do not count, nor do taints that only advise.
fn sizes_running(stock: &Stock<'_>, spec: NodeSpec<'_>, daemon: &Pod) -> Bits {
    let mut sizes = Bits::none(stock.catalog.types().len());
    if !tolerates(daemon, spec.taints) {
        return sizes;
    }
    let is_well_known = |label: &str| stock.catalog.is_well_known(label);
    let possible = daemon.alternatives.iter().filter(|wanted| spec.requirements.can_meet(wanted, is_well_known));
    possible.for_each(|wanted| sizes.join(&stock.sizes_suiting(wanted)));
    sizes
}

/// Whether a daemon runs in spite of these taints.
pub(crate) fn tolerates<'t>(daemon: &Pod, taints: impl IntoIterator<Item = &'t Taint>) -> bool {
    taints.into_iter().all(|taint| !taint.is_a_bar() || taint.is_tolerated_by(&daemon.tolerations))
}
