//! Small clusters whose nodes may be disrupted, in few words.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use tenon_api::kube_objects::{Node, Pod};
use tenon_api::plan_options::FeatureGates;
use tenon_api::{CandidateObjects, NodeClaim, NodePool, disruption_pool, timestamp};
use tenon_engine::disruption::{DisruptionBlocked, EmptinessInput, EmptinessVerdict, judge_emptiness};
use tenon_model::CandidateNode;

use crate::decisions::objects::spec;

/// Ten minutes after every node of these clusters was initialized.
pub(crate) const NOW: &str = "2026-03-11T10:10:00Z";
const INITIALIZED: &str = "2026-03-11T10:00:00Z";

pub(crate) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Lays the fields of `over` on `base`, objects deeply.
pub(crate) fn merged(mut base: Value, over: &Value) -> Value {
    match (base.as_object_mut(), over.as_object()) {
        (Some(fields), Some(over)) => {
            for (name, value) in over {
                let field = fields.remove(name).unwrap_or(Value::Null);
                fields.insert(name.clone(), merged(field, value));
            }
            base
        }
        _ => over.clone(),
    }
}

/// A pool that consolidates at once and allows all its nodes to be disrupted.
pub(crate) fn pool(name: &str, over: &Value) -> NodePool {
    let template = json!({ "spec": {
        "requirements": [],
        "nodeClassRef": { "group": "g", "kind": "k", "name": "default" },
    } });
    let disruption = json!({ "consolidateAfter": "0s", "budgets": [{ "nodes": "100%" }] });
    let base = json!({ "metadata": { "name": name }, "spec": { "template": template, "disruption": disruption } });
    spec(merged(base, over))
}

/// A claim, its Node and the pods on it, owned.
#[derive(Debug, Clone)]
pub(crate) struct OwnedNode {
    pub(crate) claim: NodeClaim,
    /// As JSON, so that a test can lay fields on it.
    pub(crate) node: Option<Value>,
    pub(crate) pods: Vec<Pod>,
    pub(crate) nominated: bool,
}

impl OwnedNode {
    fn to_model(&self, now: Timestamp) -> CandidateNode {
        let (node, pods): (Option<Node>, _) = (self.node.clone().map(spec), self.pods.iter().collect());
        let (gates, is_nominated) = (FeatureGates::default(), self.nominated);
        let objects = CandidateObjects { claim: &self.claim, node: node.as_ref(), pods, is_nominated, gates };
        objects.to_model(timestamp(&Time(now)))
    }

    pub(crate) fn with_claim(mut self, over: &Value) -> OwnedNode {
        self.claim = spec(merged(serde_json::to_value(&self.claim).unwrap(), over));
        self
    }

    pub(crate) fn with_node(mut self, over: &Value) -> OwnedNode {
        self.node = Some(merged(self.node.unwrap_or_default(), over));
        self
    }

    pub(crate) fn with_pod(mut self, over: &Value) -> OwnedNode {
        let base = json!({
            "metadata": { "namespace": "shop", "name": format!("cart-{}", self.pods.len()) },
            "spec": { "containers": [] },
            "status": { "phase": "Running" },
        });
        self.pods.push(spec(merged(base, over)));
        self
    }
}

pub(crate) fn condition(type_: &str, status: &str) -> Value {
    json!({ "type": type_, "status": status, "lastTransitionTime": INITIALIZED })
}

/// A node of pool `default` that is initialized, ready and empty.
pub(crate) fn empty_node(name: &str) -> OwnedNode {
    let claim = json!({
        "metadata": {
            "name": name,
            "creationTimestamp": "2026-03-11T09:00:00Z",
            "labels": { "karpenter.sh/nodepool": "default" },
        },
        "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "default" } },
        "status": { "conditions": [condition("Initialized", "True")] },
    });
    let labels = json!({
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
    });
    let node = json!({
        "metadata": { "name": format!("node-{name}"), "labels": labels },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    OwnedNode { claim: spec(claim), node: Some(node), pods: Vec::new(), nominated: false }
}

pub(crate) fn verdict(pools: &[NodePool], nodes: &[OwnedNode], now: Timestamp) -> EmptinessVerdict {
    judge_emptiness(&EmptinessInput {
        now: timestamp(&Time(now)),
        pools: pools.iter().map(disruption_pool).collect(),
        nodes: nodes.iter().map(|node| node.to_model(now)).collect(),
    })
}

/// Why the only node of the default pool is not disrupted; nothing if it is.
pub(crate) fn blocked(node: &OwnedNode) -> Option<DisruptionBlocked> {
    blocked_in(&pool("default", &json!({})), node)
}

/// The same, of one pool.
pub(crate) fn blocked_in(pool: &NodePool, node: &OwnedNode) -> Option<DisruptionBlocked> {
    let verdict = verdict(std::slice::from_ref(pool), std::slice::from_ref(node), now());
    assert_eq!(verdict.delete.len() + verdict.blocked.len(), 1, "every node is deleted or not");
    verdict.blocked.into_iter().next().map(|(_, blocked)| blocked)
}
