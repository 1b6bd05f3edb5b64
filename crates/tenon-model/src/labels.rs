//! Labels whose meaning is agreed upon: their names, their old names, and which ones nobody sets by hand.

/// On Nodes and NodeClaims: the NodePool they belong to.
pub const NODEPOOL: &str = "karpenter.sh/nodepool";
/// On Nodes and NodeClaims: `on-demand`, `spot` or `reserved`.
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
/// The Kubernetes zone label.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// The Kubernetes region label.
pub const REGION: &str = "topology.kubernetes.io/region";
/// On Nodes: the host that the VM is on now. It differs from the zone once the VM was migrated.
pub const HOST: &str = "tenon.dev/host";
/// The Kubernetes instance-type label.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// The Kubernetes architecture label.
pub const ARCH: &str = "kubernetes.io/arch";
/// The Kubernetes operating-system label.
pub const OS: &str = "kubernetes.io/os";
/// The build of Windows.
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";
/// The Kubernetes host-name label.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// The annotation of Pods, Nodes and NodeClaims that are to be left alone.
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// The annotation of Nodes and NodeClaims that are not to be repaired.
pub const DO_NOT_REPAIR: &str = "karpenter.sh/do-not-repair";
/// The part of the instance type's name before the first dot.
pub const INSTANCE_FAMILY: &str = "karpenter.proxmox.sinextra.dev/instance-family";
/// The CPU model of the VM.
pub const INSTANCE_CPU_TYPE: &str = "karpenter.proxmox.sinextra.dev/instance-cpu-type";
/// The image the VM was made from.
pub const INSTANCE_IMAGE_ID: &str = "karpenter.proxmox.sinextra.dev/instance-image-id";

/// Labels that a pool or a pod may ask for although no pool names them: whoever makes the node sets them. Sorted.
pub const WELL_KNOWN: [&str; 11] = [
    INSTANCE_CPU_TYPE,
    INSTANCE_FAMILY,
    INSTANCE_IMAGE_ID,
    CAPACITY_TYPE,
    NODEPOOL,
    ARCH,
    OS,
    INSTANCE_TYPE,
    WINDOWS_BUILD,
    REGION,
    ZONE,
];

/// Domains whose labels are the autoscaler's own, with all domains below them; [`WELL_KNOWN`] ones are free.
pub const RESTRICTED_DOMAINS: [&str; 2] = ["karpenter.proxmox.sinextra.dev", "karpenter.sh"];

/// Values of [`CAPACITY_TYPE`] that mean something.
pub const CAPACITY_TYPES: [&str; 3] = ["on-demand", "reserved", "spot"];

/// Old names of labels, and what they are called now. Nodes have only the new ones.
const ALIASES: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
];

/// What a label is called today.
pub fn canonical_label(label: &str) -> &str {
    // All old names have this word, and hardly any other label does.
    if !label.contains("beta.kubernetes.io/") {
        return label;
    }
    ALIASES.iter().find(|(old, _)| *old == label).map_or(label, |(_, new)| *new)
}

/// Whether whoever makes the node sets the label.
pub fn is_well_known(label: &str) -> bool {
    WELL_KNOWN.contains(&label)
}

/// Whether nobody may set or ask for the label by hand: it differs for every node, or belongs to the autoscaler.
pub fn is_restricted(label: &str) -> bool {
    if is_well_known(label) {
        return false;
    }
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let is_within =
        |restricted: &&str| domain.strip_suffix(*restricted).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    label == HOSTNAME || RESTRICTED_DOMAINS.iter().any(is_within)
}

/// The values of a label that mean something, where only those do.
pub fn known_values(label: &str) -> Option<&'static [&'static str]> {
    (label == CAPACITY_TYPE).then_some(CAPACITY_TYPES.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_become_new_ones() {
        for (old, new) in ALIASES {
            assert_eq!(canonical_label(old), new);
            assert_eq!(canonical_label(new), new);
        }
        assert_eq!(canonical_label("beta.kubernetes.io/other"), "beta.kubernetes.io/other");
    }

    #[test]
    fn what_belongs_to_the_autoscaler_is_restricted() {
        for label in [
            "karpenter.sh/initialized",
            "sub.karpenter.sh/x",
            "karpenter.proxmox.sinextra.dev/proxmoxnodeclass",
            "x.karpenter.proxmox.sinextra.dev/y",
            HOSTNAME,
        ] {
            assert!(is_restricted(label), "{label}");
        }
        let free = ["mykarpenter.sh/x", "karpenter.sh", "kubernetes.io/foo", "node.k8s.io/x", "team", "/karpenter.sh"];
        for label in free.into_iter().chain(WELL_KNOWN) {
            assert!(!is_restricted(label), "{label}");
        }
    }

    #[test]
    fn the_well_known_ones_are_sorted() {
        assert!(WELL_KNOWN.is_sorted());
    }
}
