//! Which privileges does Tenon need on Proxmox, where, and for which request?
//!
//! The rows are in `table`. SECURITY.md, the roles of tests and what `tenon regions` misses are written from them. Nothing here is
//! asked before a request: Proxmox decides.

mod table;
mod unlisted;

use std::collections::{BTreeMap, BTreeSet};

pub use table::PVE_CALLS;
pub use unlisted::unlisted;

/// A request that the client can make, and what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PveCall {
    /// The HTTP method.
    pub method: &'static str,
    /// The path below `/api2/json`, with its variable parts in braces.
    pub path: &'static str,
    /// The parameters that need the privileges, with `N` for a number. Empty: whatever the parameters.
    pub keys: &'static [&'static str],
    /// For what the request is made.
    pub flow: Flow,
    /// Each privilege, with the place where it must be held. All are needed.
    pub needs: &'static [(AclPlace, &'static str)],
    /// What happens without them.
    pub without: Without,
    /// What the request does.
    pub why: &'static str,
}

/// What becomes of a request without its privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// Proxmox refuses it.
    Refused,
    /// Proxmox answers, and leaves out what the token may not see.
    Hidden,
}

/// For what requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flow {
    /// Looking at hosts, storages, bridges, VMs and templates.
    Status,
    /// Creating the VM of a node.
    Launch,
    /// Removing the VM of a node.
    Release,
    /// Rebooting the VM of a node.
    Reboot,
    /// Putting VMs into security groups.
    SecurityGroups,
    /// Moving VMs that run to another resource pool.
    PoolMoves,
    /// Creating, replacing and deleting the VM templates of ProxmoxTemplates.
    Templates,
    /// Moving VM templates that exist to another resource pool.
    TemplatePools,
    /// PCI devices of VM templates.
    PciDevices,
    /// Checking the addresses in certificate requests of kubelets.
    KubeletCertificates,
    /// Finding out why a node does not join.
    Diagnosis,
    /// Seeing in which pool a VM is.
    PoolNames,
    /// Seeing hosts in maintenance mode, and whether there is quorum.
    ClusterState,
    /// Seeing guests that Tenon did not create.
    OtherGuests,
    /// The client can do it; Tenon never does.
    Never,
}

/// Which installations need a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// All.
    Always,
    /// Those with this setting.
    With(&'static str),
    /// None. What is lost without it.
    Optional(&'static str),
    /// None, and nothing is lost.
    Never,
}

/// Where a privilege is held: each place is one line of access control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AclPlace {
    /// The resource pool of nodes.
    NodePool,
    /// The VM templates that nodes are cloned from.
    NodeTemplates,
    /// The storages of disks.
    Disks,
    /// The storages of seed images.
    Seeds,
    /// The SDN zone of the bridges.
    Bridges,
    /// The hosts.
    Hosts,
    /// The resource pool of the VM templates that Tenon creates.
    TemplatePool,
    /// The storages of downloaded images.
    Images,
    /// The PCI mappings.
    PciMappings,
    /// Every guest.
    Guests,
    /// The whole Proxmox cluster.
    Cluster,
}

impl PveCall {
    /// Whether a request is this one. `path` has its percent escapes decoded.
    pub fn is(&self, method: &str, path: &str) -> bool {
        let (mut wanted, mut given) = (self.path.split('/'), path.split('/'));
        if self.method != method {
            return false;
        }
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return true,
                // The name of a volume has slashes of its own, and comes last.
                (Some("{volume}"), Some(_)) => return true,
                (Some(wanted), Some(given)) if wanted.starts_with('{') || wanted == given => {}
                _ => return false,
            }
        }
    }

    /// Whether the privileges are needed for this parameter.
    pub fn is_about(&self, key: &str) -> bool {
        let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
        self.keys.iter().any(|wanted| *wanted == key || wanted.strip_suffix('N') == Some(stem))
    }
}

impl Flow {
    /// Every flow that is made, in the order of the documentation.
    pub const MADE: [Flow; 14] = [
        Flow::Status,
        Flow::Launch,
        Flow::Release,
        Flow::Reboot,
        Flow::SecurityGroups,
        Flow::PoolMoves,
        Flow::Templates,
        Flow::TemplatePools,
        Flow::PciDevices,
        Flow::KubeletCertificates,
        Flow::Diagnosis,
        Flow::PoolNames,
        Flow::ClusterState,
        Flow::OtherGuests,
    ];

    /// Who needs it.
    pub fn demand(self) -> Demand {
        match self {
            Flow::Status | Flow::Launch | Flow::Release => Demand::Always,
            Flow::Reboot => Demand::With("the condition Rebooting of a NodeClaim"),
            Flow::SecurityGroups => Demand::With("`securityGroups` of a ProxmoxNodeClass"),
            Flow::PoolMoves => Demand::With("`resourcePool` of a ProxmoxNodeClass that changes while its VMs run"),
            Flow::Templates => Demand::With("ProxmoxTemplates"),
            Flow::TemplatePools => Demand::With("`resourcePool` of a ProxmoxTemplate that changes"),
            Flow::PciDevices => Demand::With("`pciDevices` of a ProxmoxTemplate"),
            Flow::KubeletCertificates => Demand::With("`--csr-approver`, for VMs without fixed addresses"),
            Flow::Diagnosis => Demand::Optional("the event of a node that does not join has no lines of its boot log"),
            Flow::PoolNames => Demand::Optional("Tenon goes by the pool it put a VM into"),
            Flow::ClusterState => Demand::Optional(
                "VMs are created on hosts in maintenance mode, too, and `tenon regions` does not say whether there is quorum",
            ),
            Flow::OtherGuests => Demand::Optional(
                "guests outside the pools take no room in Tenon's eyes (raise `memory_reserve`), and a clone that was \
                 interrupted cannot be seen",
            ),
            Flow::Never => Demand::Never,
        }
    }

    /// Its rows.
    pub fn calls(self) -> impl Iterator<Item = &'static PveCall> {
        PVE_CALLS.iter().filter(move |call| call.flow == self)
    }

    /// Its privileges, by place.
    pub fn privileges(self) -> Privileges {
        privileges(&[self])
    }
}

/// Privileges by place.
pub type Privileges = BTreeMap<AclPlace, BTreeSet<&'static str>>;

/// What these flows need together.
pub fn privileges(flows: &[Flow]) -> Privileges {
    let mut all = Privileges::new();
    for (place, privilege) in
        PVE_CALLS.iter().filter(|call| flows.contains(&call.flow)).flat_map(|call| call.needs.iter().copied())
    {
        all.entry(place).or_default().insert(privilege);
    }
    all
}

/// The flows that every installation needs.
pub const REQUIRED: [Flow; 3] = [Flow::Status, Flow::Launch, Flow::Release];

/// The privilege that stands for one on Proxmox VE 8, where it differs.
pub fn on_version_8(privilege: &str) -> &str {
    if privilege.starts_with("VM.GuestAgent.") { "VM.Monitor" } else { privilege }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The role of the Go provider, which an operator has granted.
    const GO_PROVIDER: &str = "Datastore.Allocate Datastore.AllocateSpace Datastore.AllocateTemplate Datastore.Audit Mapping.Audit \
        Mapping.Use Sys.Audit Sys.AccessNetwork SDN.Audit SDN.Use VM.Audit VM.Allocate VM.Clone VM.Config.CDROM VM.Config.CPU \
        VM.Config.Memory VM.Config.Disk VM.Config.Network VM.Config.HWType VM.Config.Cloudinit VM.Config.Options VM.PowerMgmt \
        Pool.Audit Pool.Allocate";

    /// Ours beyond that role: for flows that the Go provider does not have.
    const MORE: [(&str, &[Flow]); 2] = [
        ("VM.GuestAgent.Audit", &[Flow::KubeletCertificates, Flow::Diagnosis]),
        ("VM.GuestAgent.FileRead", &[Flow::Diagnosis]),
    ];

    #[test]
    fn no_flow_needs_more_than_the_go_provider_but_for_what_it_does_not_do() {
        let granted: BTreeSet<&str> = GO_PROVIDER.split_whitespace().collect();
        for flow in Flow::MADE {
            for privilege in flow.privileges().into_values().flatten() {
                let is_more = MORE.iter().any(|(more, flows)| *more == privilege && flows.contains(&flow));
                assert!(granted.contains(privilege) || is_more, "{flow:?} needs {privilege}");
                assert!(!is_more || flow.demand() != Demand::Always, "{flow:?}");
            }
        }
    }

    #[test]
    fn what_is_never_done_needs_nothing_and_everything_else_says_why() {
        for call in PVE_CALLS {
            assert!(call.flow != Flow::Never || call.needs.is_empty(), "{call:?}");
            assert_eq!(call.flow == Flow::Never, call.why.is_empty(), "{call:?}");
            assert!(call.flow == Flow::Never || Flow::MADE.contains(&call.flow), "{call:?}");
            let places: BTreeSet<_> = call.needs.iter().collect();
            assert_eq!(places.len(), call.needs.len(), "{call:?} names a privilege twice");
        }
        assert!(REQUIRED.iter().all(|flow| flow.demand() == Demand::Always));
    }

    #[test]
    fn a_request_is_found_by_its_method_and_path() {
        let found = |method: &str, path: &str| PVE_CALLS.iter().filter(|call| call.is(method, path)).count();
        assert!(found("PUT", "/nodes/pve1/qemu/20000/config") > 1);
        assert!(found("DELETE", "/nodes/pve1/storage/shared/content/shared:iso/a.iso") > 0);
        assert_eq!(found("DELETE", "/nodes/pve1/storage/shared/content"), 0);
        assert_eq!(found("PATCH", "/version"), 0);
        assert_eq!(found("GET", "/version/more"), 0);
        let card = PVE_CALLS.iter().find(|call| call.keys.contains(&"netN")).unwrap();
        assert!(card.is_about("net12") && !card.is_about("network"));
    }
}
