//! What would a plan see if Karpenter and Tenon followed kube-scheduler in one more rule? Each change is of one rule, and leaves the
//! rest as it is.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::scenario::{list, text};

/// Where terms of required node affinity are.
const TERMS: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
/// Where terms of required pod anti-affinity are.
const APART: &str = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";

/// A pod to be placed, and all that a plan for it is made from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct World {
    pub(super) pools: Vec<Value>,
    /// Nodes, claims, pods that run, and volumes.
    pub(super) there: Vec<Value>,
    pub(super) pod: Value,
}

impl World {
    /// The pod with each of its required node-affinity terms alone, if it has several.
    pub(super) fn with_single_terms(&self) -> Vec<World> {
        let terms = self.pod.pointer(TERMS).map(list).filter(|terms| terms.len() > 1).unwrap_or_default();
        let single = |term: Value| {
            let mut made = self.clone();
            *made.pod.pointer_mut(TERMS)? = json!([term]);
            Some(made)
        };
        terms.into_iter().filter_map(single).collect()
    }

    /// The pod without spreads that have an empty selector, if it has such.
    pub(super) fn without_empty_selectors(&self) -> Option<World> {
        let mut made = self.clone();
        let spreads = made.pod["spec"]["topologySpreadConstraints"].as_array_mut()?;
        let before = spreads.len();
        spreads.retain(|spread| spread["labelSelector"] != json!({}));
        (spreads.len() < before).then_some(made)
    }

    /// NodePools that can create no node in a domain that the pod spreads over and no node is in, if they could.
    pub(super) fn without_new_domains(&self) -> Option<World> {
        let mut made = self.clone();
        for label in self.spread_over() {
            let nodes = self.there.iter().filter(|object| object["kind"] == "Node");
            let known: BTreeSet<&str> = nodes.filter_map(|node| node["metadata"]["labels"][&label].as_str()).collect();
            if known.is_empty() {
                continue;
            }
            for pool in &mut made.pools {
                let asked = &mut pool["spec"]["template"]["spec"]["requirements"];
                let mut all = list(asked);
                let of_label = all.iter_mut().filter(|one| one["key"] == *label).filter_map(Value::as_object_mut);
                of_label.for_each(|one| drop(one.remove("minValues")));
                all.push(json!({ "key": label, "operator": "In", "values": known }));
                *asked = json!(all);
            }
        }
        (made != *self).then_some(made)
    }

    /// Labels other than the name of the host that the pod must spread over.
    fn spread_over(&self) -> BTreeSet<String> {
        let spreads = list(&self.pod["spec"]["topologySpreadConstraints"]).into_iter();
        let hard = spreads.filter(|spread| spread["whenUnsatisfiable"] == "DoNotSchedule");
        hard.map(|spread| text(&spread["topologyKey"])).filter(|label| label != "kubernetes.io/hostname").collect()
    }

    /// Nobody stays away from anybody by a label that this node lacks, and no other node has room, if there is such a label.
    pub(super) fn without_absent_labels(&self, name: &str) -> Option<World> {
        let mut made = self.clone();
        let node = self.there.iter().find(|object| object["kind"] == "Node" && object["metadata"]["name"] == name)?;
        let labels = node["metadata"]["labels"].clone();
        let mut is_changed = false;
        let pods = made.there.iter_mut().filter(|object| object["kind"] == "Pod");
        for terms in pods.chain([&mut made.pod]).filter_map(|pod| pod.pointer_mut(APART)?.as_array_mut()) {
            let before = terms.len();
            terms.retain(|term| !labels[text(&term["topologyKey"])].is_null());
            is_changed |= terms.len() < before;
        }
        made.leave_room_only_on(name);
        is_changed.then_some(made)
    }

    /// The pod without what it prefers.
    pub(super) fn without_preferences(&self) -> World {
        let mut made = self.clone();
        let spec = &mut made.pod["spec"];
        for kind in ["nodeAffinity", "podAffinity", "podAntiAffinity"] {
            let of_kind = spec.pointer_mut(&format!("/affinity/{kind}")).and_then(Value::as_object_mut);
            of_kind.into_iter().for_each(|part| drop(part.remove("preferredDuringSchedulingIgnoredDuringExecution")));
        }
        let spreads = spec.pointer_mut("/topologySpreadConstraints").and_then(Value::as_array_mut);
        spreads.into_iter().for_each(|all| all.retain(|spread| spread["whenUnsatisfiable"] == "DoNotSchedule"));
        made
    }

    /// Fills all nodes but one.
    fn leave_room_only_on(&mut self, name: &str) {
        let is_other = |object: &&mut Value| {
            let is_node = object["kind"] == "Node" || object["kind"] == "NodeClaim";
            is_node && object["metadata"]["name"] != name
        };
        for object in self.there.iter_mut().filter(is_other) {
            for part in ["capacity", "allocatable"] {
                object["status"][part]["pods"] = json!("0");
            }
        }
    }
}

#[cfg(test)]
fn of(pod: Value) -> World {
    World { pools: Vec::new(), there: Vec::new(), pod }
}

#[test]
fn a_pod_has_each_of_several_terms_alone() {
    let pod = |terms: Value| {
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
        of(json!({ "spec": { "affinity": { "nodeAffinity": required } } }))
    };
    let alone = pod(json!([{ "a": 1 }, { "b": 1 }])).with_single_terms();
    assert_eq!(alone, [pod(json!([{ "a": 1 }])), pod(json!([{ "b": 1 }]))]);
    assert_eq!(pod(json!([{ "a": 1 }])).with_single_terms(), []);
    assert_eq!(of(json!({ "spec": {} })).with_single_terms(), []);
}

#[test]
fn spreads_with_an_empty_selector_are_left_out() {
    let pod = |spreads: Value| of(json!({ "spec": { "topologySpreadConstraints": spreads } }));
    let (empty, other) = (json!({ "labelSelector": {} }), json!({ "labelSelector": { "matchLabels": { "a": "b" } } }));
    assert_eq!(pod(json!([empty, other])).without_empty_selectors(), Some(pod(json!([other]))));
    assert_eq!(pod(json!([other])).without_empty_selectors(), None);
    assert_eq!(of(json!({ "spec": {} })).without_empty_selectors(), None);
}

#[test]
fn node_pools_offer_only_the_domains_of_nodes() {
    let spread = |rule: &str| {
        let spreads = json!([{ "topologyKey": "zone", "whenUnsatisfiable": rule }]);
        let pool = |asked: Value| json!({ "spec": { "template": { "spec": { "requirements": asked } } } });
        let node = json!({ "kind": "Node", "metadata": { "labels": { "zone": "a" } } });
        let pools = vec![pool(json!([{ "key": "zone", "operator": "Exists", "minValues": 2 }])), pool(Value::Null)];
        World { pools, there: vec![node], ..of(json!({ "spec": { "topologySpreadConstraints": spreads } })) }
    };
    let made = spread("DoNotSchedule").without_new_domains().unwrap();
    let asked = |number: usize| made.pools[number]["spec"]["template"]["spec"]["requirements"].clone();
    let known = json!({ "key": "zone", "operator": "In", "values": ["a"] });
    assert_eq!(asked(0), json!([{ "key": "zone", "operator": "Exists" }, known]));
    assert_eq!(asked(1), json!([known]));
    assert_eq!(spread("ScheduleAnyway").without_new_domains(), None);
    let nowhere = World { there: Vec::new(), ..spread("DoNotSchedule") };
    assert_eq!(nowhere.without_new_domains(), None, "no node has the label");
}

#[test]
fn nobody_stays_away_by_a_label_that_the_node_lacks() {
    let apart = |labels: Value| {
        let terms: Vec<Value> = list(&labels).iter().map(|label| json!({ "topologyKey": label })).collect();
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": terms });
        json!({ "kind": "Pod", "spec": { "affinity": { "podAntiAffinity": required } } })
    };
    let node = |name: &str, room: &str| {
        let pods = json!({ "pods": room });
        let status = json!({ "capacity": pods, "allocatable": pods });
        json!({ "kind": "Node", "metadata": { "name": name, "labels": { "zone": "a" } }, "status": status })
    };
    let world = |(running, own): (Value, Value), room: &str| World {
        there: vec![node("here", "9"), node("there", room), apart(running)],
        ..of(apart(own))
    };
    let made = world((json!(["disk", "zone"]), json!(["disk"])), "9").without_absent_labels("here");
    assert_eq!(made, Some(world((json!(["zone"]), json!([])), "0")));
    assert_eq!(world((json!(["zone"]), json!(["zone"])), "9").without_absent_labels("here"), None);
}

#[test]
fn what_a_pod_prefers_is_left_out() {
    let terms = json!([{ "weight": 1 }]);
    let both = json!({
        "preferredDuringSchedulingIgnoredDuringExecution": terms, "requiredDuringSchedulingIgnoredDuringExecution": terms,
    });
    let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": terms });
    let spread = |rule: &str| json!({ "whenUnsatisfiable": rule });
    let pod = |affinity: &Value, spreads: Value| {
        let affinity = json!({ "nodeAffinity": affinity, "podAffinity": affinity, "podAntiAffinity": affinity });
        of(json!({ "spec": { "affinity": affinity, "topologySpreadConstraints": spreads } }))
    };
    let made = pod(&both, json!([spread("ScheduleAnyway"), spread("DoNotSchedule")])).without_preferences();
    assert_eq!(made, pod(&required, json!([spread("DoNotSchedule")])));
    let plain = of(json!({ "spec": {} }));
    assert_eq!(plain.without_preferences(), plain);
}
