//! Which scenarios say nothing, because Karpenter v1.15.0 has a fault there that we must not copy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::vocabulary::POOL;

/// Why a comparison on these objects would be void.
pub(super) fn reason(objects: &Value) -> Option<&'static str> {
    let none = Vec::new();
    let items = objects["items"].as_array().unwrap_or(&none);
    let of_kind = |kind: &str| items.iter().filter(|item| item["kind"] == kind).collect::<Vec<_>>();
    let (pods, pools) = (of_kind("Pod"), of_kind("NodePool"));
    let (claims, nodes) = (of_kind("NodeClaim"), of_kind("Node"));
    if of_kind("DaemonSet").iter().any(|set| required_terms(&set["spec"]["template"]["spec"]).len() > 1) {
        return Some("a daemon has several required node-affinity terms, and some get lost while types are walked");
    }
    if pools.iter().any(|pool| has_near_node_limit(pool, &claims, pods.len())) {
        return Some("limits.nodes is near, and is not counted down within a run");
    }
    if forgets_spread(&pods, &pools) {
        return Some("a relaxation changes the node filter of a spread, whose new group forgets placed pods");
    }
    if pods.iter().any(|pod| collapses(&pod["spec"])) {
        return Some("NotIn and a demand for the same label collapse, and a node without the label is accepted");
    }
    if invents_labels(&pods, &nodes, &claims) {
        return Some("a NotIn pod on a node without the label defines it there, and pods that want a value follow");
    }
    None
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn required_terms(spec: &Value) -> &[Value] {
    let affinity = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    list(&affinity["nodeSelectorTerms"])
}

fn preferred_terms(spec: &Value) -> Vec<&Value> {
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
    let staying = own.filter(|claim| claim["metadata"]["deletionTimestamp"].is_null()).count() as u64;
    limit != staying && limit < staying + pods as u64
}

fn forgets_spread(pods: &[&Value], pools: &[&Value]) -> bool {
    let prefers = |taint: &Value| taint["effect"] == "PreferNoSchedule";
    let any_prefers = pools.iter().any(|pool| list(&pool["spec"]["template"]["spec"]["taints"]).iter().any(prefers));
    let spreads = |pod: &Value| !list(&pod["spec"]["topologySpreadConstraints"]).is_empty();
    pods.iter().any(|pod| spreads(pod) && (any_prefers || required_terms(&pod["spec"]).len() > 1))
}

/// Whether the expressions that count at one time hold both `NotIn` and a demand for the same key.
fn collapses(spec: &Value) -> bool {
    let none = Value::Null;
    let with_none =
        |terms: Vec<&Value>| if terms.is_empty() { vec![Value::Null] } else { terms.into_iter().cloned().collect() };
    let required = with_none(required_terms(spec).iter().collect());
    let mut preferred = with_none(preferred_terms(spec));
    preferred.push(none);
    required.iter().any(|first| {
        preferred.iter().any(|second| {
            let both = || list(&first["matchExpressions"]).iter().chain(list(&second["matchExpressions"]));
            let denied: BTreeSet<_> = both().filter(|one| one["operator"] == "NotIn").map(key).collect();
            let demanded = ["Exists", "Gt", "Lt"];
            both().any(|one| demanded.iter().any(|word| one["operator"] == *word) && denied.contains(key(one)))
        })
    })
}

fn key(expression: &Value) -> &str {
    expression["key"].as_str().unwrap_or_default()
}

fn invents_labels(pods: &[&Value], nodes: &[&Value], claims: &[&Value]) -> bool {
    let mut uses: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod["spec"]["nodeName"].is_null()) {
        let selector = pod["spec"]["nodeSelector"].as_object();
        for name in selector.into_iter().flat_map(|labels| labels.keys()) {
            uses.entry(name).or_default().1 = true;
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
    let lacks = |name: &str| nodes.iter().chain(claims).any(|object| object["metadata"]["labels"][name].is_null());
    uses.iter().any(|(name, (denies, demands))| *denies && *demands && lacks(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn objects(items: &[Value]) -> Value {
        json!({"items": items})
    }

    fn pod(terms: &Value) -> Value {
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        json!({"kind": "Pod", "spec": {"affinity": {"nodeAffinity": required}}})
    }

    #[test]
    fn a_daemon_with_two_terms_is_void_and_one_with_one_is_not() {
        let daemon = |terms: Value| json!({"kind": "DaemonSet", "spec": {"template": pod(&terms)}});
        assert!(reason(&objects(&[daemon(json!([{}, {}]))])).is_some());
        assert_eq!(reason(&objects(&[daemon(json!([{}]))])), None);
    }

    #[test]
    fn a_node_limit_is_void_only_between_reached_and_out_of_reach() {
        let pool = |nodes: &str| json!({"kind": "NodePool", "spec": {"limits": {"nodes": nodes}}});
        let pods = || vec![pod(&json!([])), pod(&json!([])), pod(&json!([]))];
        let with = |nodes: &str| reason(&objects(&[vec![pool(nodes)], pods()].concat()));
        assert_eq!(with("0"), None);
        assert!(with("1").is_some());
        assert!(with("2").is_some());
        assert_eq!(with("3"), None);
    }

    #[test]
    fn not_in_beside_exists_is_void_in_one_term_and_not_in_two() {
        let exists = json!({"key": "k", "operator": "Exists"});
        let not_in = json!({"key": "k", "operator": "NotIn", "values": ["a"]});
        assert!(reason(&objects(&[pod(&json!([{"matchExpressions": [exists, not_in]}]))])).is_some());
        let two = json!([{"matchExpressions": [exists]}, {"matchExpressions": [not_in]}]);
        assert_eq!(reason(&objects(&[pod(&two)])), None);
    }

    #[test]
    fn a_label_that_is_denied_and_wanted_is_void_only_where_a_node_lacks_it() {
        let denied = pod(&json!([{"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["a"]}]}]));
        let wanted = json!({"kind": "Pod", "spec": {"nodeSelector": {"k": "b"}}});
        let node = |labels: Value| json!({"kind": "Node", "metadata": {"labels": labels}});
        let with = |labels: Value| reason(&objects(&[denied.clone(), wanted.clone(), node(labels)]));
        assert!(with(json!({})).is_some());
        assert_eq!(with(json!({"k": "b"})), None);
    }
}
