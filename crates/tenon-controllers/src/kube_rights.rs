//! Table: which rights on the Kubernetes API the controllers need, where, and what for.
//!
//! The chart's roles and the page for administrators are written from this table, and end-to-end tests run with nothing more: a call
//! that is not in it is refused there. A right that no scenario of a whole run uses fails that run.

/// A right on objects of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KubeRight {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource in plural, with its subresource.
    pub resource: &'static str,
    /// What is done with it.
    pub verbs: &'static [&'static str],
    /// Only objects of these names. `create` and `list` cannot be limited so.
    pub names: &'static [&'static str],
    /// Where.
    pub place: RightPlace,
    /// Whether every installation needs it.
    pub needed: Needed,
    /// What for.
    pub why: &'static str,
}

/// Where a right is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RightPlace {
    /// In the whole cluster.
    Cluster,
    /// In the namespace of the controller.
    Own,
    /// In the namespace of the controller, and in those with Secrets that ProxmoxNodeClasses name.
    FirstBootSecrets,
    /// In this namespace.
    Namespace(&'static str),
}

/// Which installations need a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// All of them.
    Always,
    /// Those with `--csr-approver=true`.
    CsrApprover,
    /// Those with `--scheduler-config`.
    SchedulerConfig,
    /// Those that set the feature gate PodDeletionCostManagement, also to false: what was written is removed then.
    PodDeletionCost,
    /// Those with the feature gate NodeOverlay.
    NodeOverlay,
}

const KARPENTER: &str = "karpenter.sh";
const PROXMOX: &str = "karpenter.proxmox.sinextra.dev";
const CERTIFICATES: &str = "certificates.k8s.io";

/// The Lease of both references' charts.
const LEASE: &str = "proxmox-karpenter-leader-election";

const READ: &[&str] = &["list", "watch"];
const LIST: &[&str] = &["list"];
const GET: &[&str] = &["get"];
const CREATE: &[&str] = &["create"];
const PATCH: &[&str] = &["patch"];

const fn cluster(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
) -> KubeRight {
    KubeRight { group, resource, verbs, names: &[], place: RightPlace::Cluster, needed: Needed::Always, why }
}

impl KubeRight {
    const fn at(self, place: RightPlace, names: &'static [&'static str]) -> KubeRight {
        KubeRight { place, names, ..self }
    }

    const fn only(self, needed: Needed) -> KubeRight {
        KubeRight { needed, ..self }
    }
}

/// Every right, sorted by place and group.
pub const KUBE_RIGHTS: &[KubeRight] = &[
    cluster("", "pods", &["delete", "list", "watch"], "planning pending pods; draining nodes"),
    cluster("", "pods/eviction", CREATE, "draining nodes"),
    cluster("", "pods", PATCH, "which pods go first when a ReplicaSet is scaled down").only(Needed::PodDeletionCost),
    cluster("", "nodes", &["delete", "get", "list", "patch", "watch"], "registering, cordoning and removing nodes"),
    cluster(
        "",
        "namespaces",
        &["get", "list", "watch"],
        "pods that choose namespaces by labels; the uid of kube-system is the ID of the cluster",
    ),
    cluster("", "persistentvolumeclaims", &["get", "list", "watch"], "planning pods with volumes; draining nodes"),
    cluster("", "persistentvolumes", READ, "planning pods with volumes"),
    cluster("", "services", READ, "which pods the default topology spread constraints count")
        .only(Needed::SchedulerConfig),
    cluster("", "replicationcontrollers", READ, "which pods the default topology spread constraints count")
        .only(Needed::SchedulerConfig),
    cluster("apps", "daemonsets", READ, "room for the pods of DaemonSets on new nodes"),
    cluster("apps", "replicasets", READ, "which pods the default topology spread constraints count")
        .only(Needed::SchedulerConfig),
    cluster("apps", "statefulsets", READ, "which pods the default topology spread constraints count")
        .only(Needed::SchedulerConfig),
    cluster("policy", "poddisruptionbudgets", LIST, "which nodes can be drained"),
    cluster("storage.k8s.io", "storageclasses", READ, "planning pods with volumes"),
    cluster("storage.k8s.io", "csinodes", READ, "how many volumes a node can attach"),
    cluster("storage.k8s.io", "volumeattachments", LIST, "waiting until the volumes of a drained node are detached"),
    cluster("events.k8s.io", "events", &["create", "patch"], "reporting what was done and why"),
    cluster(
        "authorization.k8s.io",
        "subjectaccessreviews",
        CREATE,
        "whether bootstrap tokens may request certificates",
    ),
    cluster(CERTIFICATES, "certificatesigningrequests", LIST, "why a node does not join"),
    cluster(CERTIFICATES, "certificatesigningrequests", &["watch"], "approving certificates of its own nodes")
        .only(Needed::CsrApprover),
    cluster(
        CERTIFICATES,
        "certificatesigningrequests/approval",
        &["update"],
        "approving certificates of its own nodes",
    )
    .only(Needed::CsrApprover),
    KubeRight {
        names: &["kubernetes.io/kube-apiserver-client-kubelet", "kubernetes.io/kubelet-serving"],
        ..cluster(CERTIFICATES, "signers", &["approve"], "approving certificates of its own nodes")
            .only(Needed::CsrApprover)
    },
    cluster(
        KARPENTER,
        "nodeclaims",
        &["create", "delete", "get", "list", "patch", "watch"],
        "one NodeClaim for each node",
    ),
    cluster(KARPENTER, "nodeclaims/status", PATCH, "conditions"),
    cluster(
        KARPENTER,
        "nodepools",
        &["get", "list", "patch", "watch"],
        "what nodes are created from; hashes for drift",
    ),
    cluster(KARPENTER, "nodepools/status", PATCH, "conditions; what the nodes of a NodePool have together"),
    cluster(KARPENTER, "nodeoverlays", READ, "what instance types cost or have besides").only(Needed::NodeOverlay),
    cluster(KARPENTER, "nodeoverlays/status", PATCH, "conditions").only(Needed::NodeOverlay),
    cluster(
        PROXMOX,
        "proxmoxnodeclasses",
        &["list", "patch", "watch"],
        "what VMs are created from; hashes for drift; the finalizer of classes in use",
    ),
    cluster(PROXMOX, "proxmoxnodeclasses/status", PATCH, "conditions"),
    cluster(PROXMOX, "proxmoxtemplates", &["list", "patch"], "templates that are created from images"),
    cluster(PROXMOX, "proxmoxtemplates/status", PATCH, "conditions"),
    cluster(PROXMOX, "proxmoxunmanagedtemplates", READ, "templates that exist"),
    cluster(PROXMOX, "proxmoxunmanagedtemplates/status", PATCH, "conditions"),
    cluster("coordination.k8s.io", "leases", CREATE, "leader election").at(RightPlace::Own, &[]),
    cluster("coordination.k8s.io", "leases", &["get", "update"], "leader election").at(RightPlace::Own, &[LEASE]),
    cluster("", "configmaps", GET, "the certificate authority that new nodes trust")
        .at(RightPlace::Own, &["kube-root-ca.crt"]),
    cluster("", "configmaps", CREATE, "VM IDs that were freed a moment ago").at(RightPlace::Own, &[]),
    cluster("", "configmaps", &["get", "patch"], "VM IDs that were freed a moment ago")
        .at(RightPlace::Own, &["tenon-vm-ids"]),
    cluster("", "secrets", GET, "first-boot data that ProxmoxNodeClasses name; read by name when needed")
        .at(RightPlace::FirstBootSecrets, &[]),
    cluster("", "secrets", &["create", "delete", "get", "list", "patch"], "bootstrap tokens of new nodes")
        .at(RightPlace::Namespace("kube-system"), &[]),
    cluster("", "configmaps", GET, "the address of the API server, for new nodes")
        .at(RightPlace::Namespace("kube-public"), &["cluster-info"]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_right_is_wider_than_it_must_be() {
        for right in KUBE_RIGHTS {
            let verbs: BTreeSet<&str> = right.verbs.iter().copied().collect();
            assert_eq!(verbs.len(), right.verbs.len(), "{right:?} names a verb twice");
            assert!(!right.verbs.contains(&"*") && right.resource != "*" && right.group != "*", "{right:?}");
            assert!(!right.why.is_empty());
            let is_secret_or_map = matches!(right.resource, "secrets" | "configmaps" | "leases");
            assert!(!is_secret_or_map || right.place != RightPlace::Cluster, "{right:?} is for the whole cluster");
            // RBAC cannot limit these to names, and a role that tries grants nothing.
            let is_unnamed = right.verbs.iter().any(|verb| matches!(*verb, "create" | "list" | "watch"));
            assert!(!is_unnamed || right.names.is_empty(), "{right:?}");
        }
    }
}
