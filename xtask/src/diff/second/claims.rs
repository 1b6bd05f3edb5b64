//! What a pool writes when it makes a machine: the claim, and the node that joins for it.

use serde_json::{Map, Value, json};

use super::super::dice::Dice;
use super::pools::{self, Pool};
use super::sizes::Size;
use super::{HOST, uid};

/// How far a machine of a pool has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is only a claim.
    Launched,
    /// The node is there, with its startup taints.
    Registered,
    Initialized,
}

impl Stage {
    pub(super) fn roll(dice: &mut Dice) -> Stage {
        match dice.below(20) {
            0 => Stage::Launched,
            1 | 2 => Stage::Registered,
            _ => Stage::Initialized,
        }
    }
}

/// A machine of a pool that is on its way, or there.
pub(super) struct Birth<'a> {
    pub(super) pool: &'a Pool,
    pub(super) size: &'a Size,
    /// The labels that the claim and the node share.
    pub(super) labels: Map<String, Value>,
    pub(super) stage: Stage,
    /// The provider id.
    pub(super) id: String,
    /// The names of the claim and of the node.
    pub(super) claim: String,
    pub(super) node: String,
}

impl Birth<'_> {
    /// The claim, and the node if it is there.
    pub(super) fn objects(&self, dice: &mut Dice) -> Vec<Value> {
        let mut claim = self.claim(dice);
        if self.stage == Stage::Initialized && dice.chance(6) {
            claim["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        }
        let mut objects = vec![claim];
        if self.stage != Stage::Launched {
            let uid = uid(dice);
            objects.push(self.joined(&uid));
        }
        objects
    }

    fn claim(&self, dice: &mut Dice) -> Value {
        let requirements: Vec<Value> =
            self.labels.iter().map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]})).collect();
        let owner = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": self.pool.name, "uid": self.pool.uid,
            "blockOwnerDeletion": true,
        });
        json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": self.claim, "uid": uid(dice), "labels": self.labels, "ownerReferences": [owner],
                "finalizers": ["karpenter.sh/termination"], "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "nodeClassRef": pools::class(), "requirements": requirements, "expireAfter": "720h",
                "taints": self.pool.taints, "startupTaints": self.pool.startup,
                "resources": {"requests": {"cpu": "100m", "pods": "3"}},
            },
            "status": self.status(),
        })
    }

    /// What a claim of this stage says about itself.
    fn status(&self) -> Value {
        let condition = |kind: &str, holds: bool| {
            let status = if holds { "True" } else { "Unknown" };
            json!({"type": kind, "status": status, "reason": kind, "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let initialized = self.stage == Stage::Initialized;
        let conditions = [
            condition("Launched", true),
            condition("Registered", self.stage != Stage::Launched),
            condition("Initialized", initialized),
            condition("Ready", initialized),
        ];
        let (capacity, allocatable) = (self.size.capacity(), self.size.allocatable());
        let mut status =
            json!({"providerID": self.id, "capacity": capacity, "allocatable": allocatable, "conditions": conditions});
        if self.stage != Stage::Launched {
            status["nodeName"] = json!(self.node);
        }
        status
    }

    fn joined(&self, uid: &str) -> Value {
        let mut labels = self.labels.clone();
        labels.insert(HOST.to_owned(), json!(self.node));
        labels.insert("karpenter.sh/registered".to_owned(), json!("true"));
        let mut taints = self.pool.taints.clone();
        if self.stage == Stage::Initialized {
            labels.insert("karpenter.sh/initialized".to_owned(), json!("true"));
        } else {
            taints.extend(self.pool.startup.clone());
        }
        let mut spec = json!({"providerID": self.id});
        if !taints.is_empty() {
            spec["taints"] = json!(taints);
        }
        node(self.size, uid, &labels, &spec)
    }
}

/// A node of that size; its name is its host name.
pub(super) fn node(size: &Size, uid: &str, labels: &Map<String, Value>, spec: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": labels.get(HOST), "uid": uid, "labels": labels},
        "spec": spec,
        "status": {
            "capacity": size.capacity(), "allocatable": size.allocatable(),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}
