//! Is every new VM bound to exactly what it has, and to nothing that another one has?

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{CpuRoom, Host, Pinning, Quantity, Resources};

use super::{Checker, Subject};

impl Checker<'_> {
    /// On each host where VMs are bound.
    pub(super) fn vms_are_bound(&mut self) {
        for host in self.snapshot.hosts.iter().filter(|host| host.cpus.is_some()) {
            self.vms_are_bound_on(host);
        }
    }

    fn vms_are_bound_on(&mut self, host: &Host) {
        let Some(mut left) = host.cpus.as_deref().cloned() else { return };
        for (number, node) in self.plan.new_nodes.iter().enumerate() {
            if node.chosen.place.as_ref() != Some(&host.place) {
                continue;
            }
            let Some((size, way)) = self.chosen(node) else { continue };
            let broken = match node.pinning.as_deref() {
                None => Some("is not bound to any CPU".to_owned()),
                Some(pinning) => broken(&left, pinning, &size.capacity_with(&way.overrides)),
            };
            let name = &host.place.host;
            self.expect(broken.is_none(), || {
                let why = broken.unwrap_or_default();
                (Subject::NewNode(number), format!("a new VM of NodePool {} on host {name} {why}", node.pool))
            });
            node.pinning.iter().for_each(|pinning| left.hold(pinning));
        }
    }
}

/// What is wrong with what a VM is bound to, if something is.
fn broken(left: &CpuRoom, pinning: &Pinning, capacity: &Resources) -> Option<String> {
    let whole = |amount: Quantity| u64::try_from(amount.value()).unwrap_or_default();
    let (cpus, memory_mib) = (whole(capacity.get(CPU)), whole(capacity.get(MEMORY)) >> 20);
    if pinning.cpus().count() != cpus {
        return Some(format!("has {cpus} CPUs and is bound to CPUs {}", pinning.affinity()));
    }
    if pinning.memory_mib() != memory_mib {
        return Some(format!("has {memory_mib} MiB of memory and is bound to {} MiB", pinning.memory_mib()));
    }
    let is_wrong = |held: &&tenon_model::PinnedCell| {
        let cell = left.cells.iter().find(|cell| cell.node == held.node);
        let is_held = cell.is_some_and(|cell| {
            cell.cpus.has_all(&held.cpus) && cell.memory_mib >= i64::try_from(held.memory_mib).unwrap_or(i64::MAX)
        });
        !is_held || held.cpus.is_empty() || held.memory_mib == 0
    };
    let wrong = pinning.cells.iter().find(is_wrong)?;
    Some(format!(
        "is bound to CPUs {} and {} MiB of NUMA node {}, which are not free",
        wrong.cpus, wrong.memory_mib, wrong.node
    ))
}
