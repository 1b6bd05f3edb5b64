//! Which number stands for what a node is made from? It tells whether a pool or a class was changed since.
//!
//! The numbers are our own, made from the canonical form of an object (`hash_canonical`), so their versions are too: the
//! reference never compares numbers of two versions, and neither do we. An operator reads them; nothing else does.
//! `docs/reference/drift.md` says the same to people.
//!
//! A version changes only together with the rules below or the form, and then [`crate::hash_stamp`] writes every number
//! anew. The tests pin numbers, so that none changes unnoticed.

use serde::Serialize;
use serde_json::Value;

use crate::hash_canonical::{Pick, Rules};
use crate::nodeclass::ProxmoxNodeClass;
use crate::nodepool::NodePool;

/// How hashes of pools are made. The reference's is `v3`.
pub const POOL_VERSION: &str = "v3-rs1";
/// How hashes of classes and templates are made. The reference's is `v1`.
pub const CLASS_VERSION: &str = "v1-rs1";

/// Demands are compared with the node's labels instead; what is not in the template changes no node.
const POOL: Rules = Rules {
    name: "NodePool spec.template",
    pick: Pick::AllBut(&["spec.requirements"]),
    durations: &["spec.expireAfter", "spec.terminationGracePeriod"],
    amounts: &[],
    maps: &["metadata.labels", "metadata.annotations"],
    spoken: &[],
    defaults: &[("spec.expireAfter", "\"720h\"")],
};

/// What a VM gets only once, when it is made. How its host was chosen, its disk
/// copied and how long it was waited for shows on no node.
const CLASS: Rules = Rules {
    name: "ProxmoxNodeClass spec",
    pick: Pick::AllBut(&[
        "tags",
        "metadataOptions",
        "addresses",
        "securityGroups",
        "resourcePool",
        "placementStrategy.hosts",
        "placementStrategy.goal",
        "placementStrategy.minAvailable",
        "placementStrategy.excludedHosts",
        "cloneMode",
        "timeouts",
    ]),
    durations: &["kubeletConfiguration.cpuCFSQuotaPeriod", "kubeletConfiguration.shutdownGracePeriod"],
    // By value, so that a larger disk is a change: the reference compares only whether it is decimal or binary.
    amounts: &["bootDevice.size"],
    maps: &[],
    spoken: &[],
    defaults: &[("placementStrategy.zoneBalance", "\"Balanced\""), ("bootDevice", r#"{"size":"30G"}"#)],
};

/// What a VM that runs can still be given.
const CLASS_IN_PLACE: Rules = Rules {
    name: "ProxmoxNodeClass spec in place",
    pick: Pick::Only(&["tags", "securityGroups", "resourcePool"]),
    durations: &[],
    amounts: &[],
    maps: &[],
    spoken: &[],
    defaults: &[("securityGroups.interface", "\"net0\"")],
};

/// What a template has to be made anew for.
const TEMPLATE: Rules = Rules {
    name: "ProxmoxTemplate spec",
    pick: Pick::Only(&["sourceImage", "storageIDs", "bios", "tpm"]),
    durations: &[],
    amounts: &[],
    maps: &[],
    // `tpm: {}` is a TPM.
    spoken: &["tpm"],
    defaults: &[("bios", "\"seabios\""), ("tpm.version", "\"v2.0\""), ("sourceImage.insecureSkipTLSVerify", "false")],
};

/// What a template can be given without being made anew.
const TEMPLATE_IN_PLACE: Rules = Rules {
    name: "ProxmoxTemplate spec in place",
    pick: Pick::AllBut(&["region", "sourceImage", "storageIDs", "bios", "tpm"]),
    durations: &[],
    amounts: &[],
    maps: &[],
    // An agent that is switched off is not the default of Proxmox.
    spoken: &["agent", "vga"],
    defaults: &[],
};

/// What every node of a pool is made from, but for its demands.
pub fn of_pool(pool: &NodePool) -> String {
    POOL.hash(&json(&pool.spec.template))
}

/// What a VM of a class is made from and keeps: a node whose class has another hash has drifted.
pub fn of_class(class: &ProxmoxNodeClass) -> String {
    CLASS.hash(&json(&class.spec))
}

/// What a VM of a class is given while it runs: `tags`, `securityGroups` and `resourcePool`.
pub fn of_class_in_place(class: &ProxmoxNodeClass) -> String {
    CLASS_IN_PLACE.hash(&json(&class.spec))
}

/// What a template of ours is made from: `sourceImage`, `storageIDs`, `bios` and `tpm` of the spec of a `ProxmoxTemplate`.
pub fn of_template(spec: &impl Serialize) -> String {
    TEMPLATE.hash(&json(spec))
}

/// What the VMs of a template are given without being made anew: every field but those of [`of_template`] and `region`.
pub fn of_template_in_place(spec: &impl Serialize) -> String {
    TEMPLATE_IN_PLACE.hash(&json(spec))
}

/// Our objects came from JSON, so they go back to it.
fn json(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
