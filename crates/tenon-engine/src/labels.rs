//! The labels a node is born with, from where and how large it is.

use tenon_model::{InstanceType, Place, Requirement, Requirements};

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
const ARCH: &str = "kubernetes.io/arch";
const OS: &str = "kubernetes.io/os";
const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
const NODEPOOL: &str = "karpenter.sh/nodepool";
const FAMILY: &str = "karpenter.proxmox.sinextra.dev/instance-family";

/// What is true of every node of this size.
pub(crate) fn of_type(size: &InstanceType) -> Requirements {
    // Templates for another architecture would bring a field to say so.
    let facts = [
        (INSTANCE_TYPE, size.name.as_str()),
        (FAMILY, size.family()),
        (CAPACITY_TYPE, size.capacity_type.as_str()),
        (ARCH, "amd64"),
        (OS, "linux"),
    ];
    facts.into_iter().map(|(label, value)| (label.to_owned(), Requirement::is(value))).collect()
}

/// What is true of every node made here.
pub(crate) fn of_place(place: &Place) -> Requirements {
    let facts = [(REGION, place.region.as_str()), (ZONE, place.host.as_str())];
    facts.into_iter().map(|(label, value)| (label.to_owned(), Requirement::is(value))).collect()
}

/// What is true of every node of this pool.
pub(crate) fn of_pool(name: &str) -> (String, Requirement) {
    (NODEPOOL.to_owned(), Requirement::is(name))
}

/// Labels that a size or a place decides: a pool need not speak of them.
pub(crate) fn is_decided_later(label: &str) -> bool {
    [ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, FAMILY].contains(&label)
}
