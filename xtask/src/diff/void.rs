//! Which scenarios say nothing, because Karpenter v1.15.0 has a fault there that we must not copy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::scenario::Scenario;
use super::vocabulary::{INSTANCE_TYPE, POOL, canonical};
use super::{collapse, topology_void};

/// Why a comparison on this input would be void.
pub(super) fn reason(scenario: &Scenario) -> Option<&'static str> {
    let items = list(&scenario.objects["items"]);
    let of_kind = |kind: &str| items.iter().filter(|item| item["kind"] == kind).collect::<Vec<_>>();
    let (pods, pools) = (of_kind("Pod"), of_kind("NodePool"));
    let (claims, nodes) = (of_kind("NodeClaim"), of_kind("Node"));
    if of_kind("DaemonSet").iter().any(|set| required_terms(&set["spec"]["template"]["spec"]).len() > 1) {
        return Some(
            "of several required node-affinity terms of a DaemonSet, it loses some while it goes through instance types",
        );
    }
    if pools.iter().any(|pool| has_near_node_limit(pool, &claims, pods.len())) {
        return Some("within one run it does not count new nodes against limits.nodes, and the limit is near");
    }
    if forgets_spread(&pods, &pools) {
        return Some(
            "when a relaxation changes the node filter of a topology spread, it forgets the pods it placed before",
        );
    }
    let existing: Vec<&Value> = nodes.iter().filter(|node| !is_passed_over(node)).chain(&claims).copied().collect();
    if collapse::happens(scenario, &pods, &existing) {
        return Some("it merges several requirements of one pod on one label, and accepts a node without the label");
    }
    if counts_full_reservations(scenario) {
        return Some("with reservations switched off, it plans nodes from a reservation that is full");
    }
    let leaving = leaving(&claims, &nodes);
    if invents_labels(&pods, &existing, &leaving) {
        return Some(
            "a pod with NotIn adds the label to a node that lacks it, and later pods that need a value are placed there",
        );
    }
    topology_void::reason(scenario, &pods, &pools)
}

/// The elements of a list that may be missing.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(super) fn required_terms(spec: &Value) -> &[Value] {
    let affinity = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    list(&affinity["nodeSelectorTerms"])
}

pub(super) fn preferred_terms(spec: &Value) -> Vec<&Value> {
    let preferred = &spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
    list(preferred).iter().map(|term| &term["preference"]).collect()
}

/// Between reached and out of reach, the pods of one run could open more nodes than there may be.
fn has_near_node_limit(pool: &Value, claims: &[&Value], pods: usize) -> bool {
    let limit = &pool["spec"]["limits"]["nodes"];
    let Some(limit) = limit.as_u64().or_else(|| limit.as_str().and_then(|text| text.parse().ok())) else {
        return !limit.is_null();
    };
    let own = claims.iter().filter(|claim| claim["metadata"]["labels"][POOL] == pool["metadata"]["name"]);
    let staying = own.filter(|claim| !is_leaving(claim)).count() as u64;
    limit != staying && limit < staying + pods as u64
}

fn is_leaving(claim: &Value) -> bool {
    let says = |one: &Value| one["type"] == "InstanceTerminating" && one["status"] == "True";
    !claim["metadata"]["deletionTimestamp"].is_null() || list(&claim["status"]["conditions"]).iter().any(says)
}

/// The names of the nodes whose claims go: their pods are planned again.
fn leaving<'a>(claims: &[&Value], nodes: &[&'a Value]) -> BTreeSet<&'a str> {
    let machines: BTreeSet<&str> = claims.iter().filter(|claim| is_leaving(claim)).filter_map(provider_id).collect();
    let of_them =
        nodes.iter().filter(|node| node["spec"]["providerID"].as_str().is_some_and(|id| machines.contains(id)));
    of_them.filter_map(|node| node["metadata"]["name"].as_str()).collect()
}

fn provider_id<'a>(claim: &&'a Value) -> Option<&'a str> {
    claim["status"]["providerID"].as_str()
}

/// A node of a pool that does not say yet what it is counts for nobody.
fn is_passed_over(node: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    let is_initialized = labels["karpenter.sh/initialized"] == "true";
    let is_vague = node["spec"]["providerID"].is_null() || (!is_initialized && labels[INSTANCE_TYPE].is_null());
    !labels[POOL].is_null() && is_vague
}

/// Switched off, what a reservation has left is not looked at, also where nothing is.
fn counts_full_reservations(scenario: &Scenario) -> bool {
    let is_off = scenario.options.as_ref().is_some_and(|options| options["featureGates"]["ReservedCapacity"] == false);
    let is_full = |one: &Value| one["reservationCapacity"] == 0 && one["available"] != false;
    is_off && list(&scenario.types).iter().any(|size| list(&size["offerings"]).iter().any(is_full))
}

fn forgets_spread(pods: &[&Value], pools: &[&Value]) -> bool {
    let prefers = |taint: &Value| taint["effect"] == "PreferNoSchedule";
    let any_prefers = pools.iter().any(|pool| list(&pool["spec"]["template"]["spec"]["taints"]).iter().any(prefers));
    let spreads = |pod: &Value| !list(&pod["spec"]["topologySpreadConstraints"]).is_empty();
    pods.iter().any(|pod| spreads(pod) && (any_prefers || required_terms(&pod["spec"]).len() > 1))
}

/// The label of an expression, by its new name.
pub(super) fn key(expression: &Value) -> &str {
    canonical(expression["key"].as_str().unwrap_or_default())
}

fn invents_labels(pods: &[&Value], existing: &[&Value], leaving: &BTreeSet<&str>) -> bool {
    let mut uses: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    let waits = |pod: &&&Value| pod["spec"]["nodeName"].as_str().is_none_or(|node| leaving.contains(node));
    for pod in pods.iter().filter(waits) {
        let selector = pod["spec"]["nodeSelector"].as_object();
        for name in selector.into_iter().flat_map(|labels| labels.keys()) {
            uses.entry(canonical(name)).or_default().1 = true;
        }
        let terms = required_terms(&pod["spec"]).iter().chain(preferred_terms(&pod["spec"]));
        for one in terms.flat_map(|term| list(&term["matchExpressions"])) {
            let (denies, demands) = uses.entry(key(one)).or_default();
            match one["operator"].as_str() {
                Some("NotIn") => *denies = true,
                Some("DoesNotExist") | None => {}
                Some(_) => *demands = true,
            }
        }
    }
    let lacks = |name: &str| existing.iter().any(|object| object["metadata"]["labels"][name].is_null());
    uses.iter().any(|(name, (denies, demands))| *denies && *demands && lacks(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reason_of(items: &[Value]) -> Option<&'static str> {
        reason(&Scenario { objects: json!({"items": items}), types: json!([]), options: None })
    }

    fn pod(terms: &Value) -> Value {
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        json!({"kind": "Pod", "spec": {"affinity": {"nodeAffinity": required}}})
    }

    #[test]
    fn a_daemon_with_two_terms_is_void_and_one_with_one_is_not() {
        let daemon = |terms: Value| json!({"kind": "DaemonSet", "spec": {"template": pod(&terms)}});
        assert!(reason_of(&[daemon(json!([{}, {}]))]).is_some());
        assert_eq!(reason_of(&[daemon(json!([{}]))]), None);
    }

    #[test]
    fn a_node_limit_is_void_only_between_reached_and_out_of_reach() {
        let pool = |nodes: &str| json!({"kind": "NodePool", "spec": {"limits": {"nodes": nodes}}});
        let pods = || vec![pod(&json!([])), pod(&json!([])), pod(&json!([]))];
        let with = |nodes: &str| reason_of(&[vec![pool(nodes)], pods()].concat());
        assert_eq!(with("0"), None);
        assert!(with("1").is_some());
        assert!(with("2").is_some());
        assert_eq!(with("3"), None);
    }

    #[test]
    fn a_claim_that_goes_does_not_count_toward_the_limit() {
        let pool = json!({"kind": "NodePool", "metadata": {"name": "a"}, "spec": {"limits": {"nodes": "1"}}});
        let claim = |status: &str| {
            let conditions = json!([{"type": "InstanceTerminating", "status": status}]);
            json!({"kind": "NodeClaim", "metadata": {"labels": {POOL: "a"}}, "status": {"conditions": conditions}})
        };
        assert_eq!(reason_of(&[pool.clone(), claim("False"), pod(&json!([]))]), None);
        assert!(reason_of(&[pool, claim("True"), pod(&json!([])), pod(&json!([]))]).is_some());
    }

    #[test]
    fn a_full_reservation_is_void_only_where_reservations_are_switched_off() {
        let with = |is_on: bool, left: u32| {
            let types = json!([{"offerings": [{"reservationCapacity": left}]}]);
            let options = Some(json!({"featureGates": {"ReservedCapacity": is_on}}));
            reason(&Scenario { objects: json!({}), types, options })
        };
        assert!(with(false, 0).is_some());
        assert_eq!((with(true, 0), with(false, 1)), (None, None));
    }

    #[test]
    fn a_label_that_is_denied_and_wanted_is_void_only_where_a_node_lacks_it() {
        let denied = pod(&json!([{"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["a"]}]}]));
        let wanted = json!({"kind": "Pod", "spec": {"nodeSelector": {"k": "b"}}});
        let node = |labels: Value| json!({"kind": "Node", "metadata": {"labels": labels}});
        let with = |labels: Value| reason_of(&[denied.clone(), wanted.clone(), node(labels)]);
        assert!(with(json!({})).is_some());
        assert_eq!(with(json!({"k": "b"})), None);
    }
}
