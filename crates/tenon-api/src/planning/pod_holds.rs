//! Which pods on nodes cannot be evicted now, and which PodDisruptionBudgets hold them?

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{HoldKind, PodHold, PodKey};

use super::budgets::{blocks_all, blocks_now, lets_unhealthy_go, own_budgets};
use crate::objects::Objects;
use crate::pod_predicates::{bound_to, is_evictable, pod_key};

/// Every pod on a node that the eviction API would refuse. Pods that no drain evicts are not held by a budget.
pub fn pod_holds(objects: &Objects) -> BTreeMap<Arc<PodKey>, PodHold> {
    let budgets = &objects.disruption_budgets;
    if budgets.is_empty() {
        return BTreeMap::new();
    }
    let bound = objects.pods.iter().filter(|pod| bound_to(pod).is_some() && is_evictable(pod));
    let held = bound.filter_map(|pod| {
        let own = own_budgets(pod, budgets);
        let kind = match own.as_slice() {
            [] => return None,
            [one] if lets_unhealthy_go(one, pod) => return None,
            [one] if blocks_all(one) => HoldKind::Always,
            [one] if blocks_now(one) => HoldKind::Now,
            [_] => return None,
            _ => HoldKind::Several,
        };
        let name = |budget: &&Arc<crate::kube_objects::PodDisruptionBudget>| {
            let metadata = &budget.metadata;
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            format!("{}/{}", part(&metadata.namespace), part(&metadata.name))
        };
        Some((pod_key(pod).clone(), PodHold { budgets: own.iter().map(name).collect(), kind }))
    });
    held.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kube_objects::{Pod, PodDisruptionBudget};

    fn pod(more: &Value) -> Arc<Pod> {
        let mut pod = json!({
            "metadata": { "name": "p", "namespace": "shop", "uid": "u", "labels": { "app": "web" } },
            "spec": { "nodeName": "n1", "containers": [] },
            "status": { "phase": "Running" },
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            for (field, value) in value.as_object().into_iter().flatten() {
                pod[key][field] = value.clone();
            }
        }
        Arc::new(serde_json::from_value::<crate::kube_objects::WirePod>(pod).unwrap().into())
    }

    fn budget(name: &str, spec: &Value, allowed: i32) -> Arc<PodDisruptionBudget> {
        let mut spec = spec.clone();
        spec["selector"] = json!({ "matchLabels": { "app": "web" } });
        let status =
            json!({ "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1 });
        let budget = json!({ "metadata": { "name": name, "namespace": "shop" }, "spec": spec, "status": status });
        Arc::new(serde_json::from_value(budget).unwrap())
    }

    fn hold(pod: Arc<Pod>, disruption_budgets: Vec<Arc<PodDisruptionBudget>>) -> Option<HoldKind> {
        let objects = Objects { pods: vec![pod], disruption_budgets, ..Objects::default() };
        pod_holds(&objects).into_values().next().map(|hold| hold.kind)
    }

    #[test]
    fn h1_a_pod_is_held_by_a_budget_that_allows_nothing_or_by_several() {
        let (some, none) = (json!({ "minAvailable": 1 }), json!({ "maxUnavailable": 0 }));
        for (budgets, expected) in [
            (vec![budget("a", &some, 1)], None),
            (vec![budget("a", &some, 0)], Some(HoldKind::Now)),
            (vec![budget("a", &none, 0)], Some(HoldKind::Always)),
            (vec![budget("a", &json!({ "maxUnavailable": "0%" }), 0)], Some(HoldKind::Always)),
            (vec![budget("a", &json!({ "minAvailable": "100%" }), 0)], Some(HoldKind::Always)),
            (vec![budget("a", &some, 1), budget("b", &some, 1)], Some(HoldKind::Several)),
            (vec![], None),
        ] {
            assert_eq!(hold(pod(&json!({})), budgets.clone()), expected, "{budgets:?}");
        }
    }

    #[test]
    fn h7_a_budget_holds_the_pods_of_its_own_namespace_and_no_others() {
        let none = budget("a", &json!({ "maxUnavailable": 0 }), 0);
        let elsewhere = pod(&json!({ "metadata": { "namespace": "other" } }));
        assert_eq!(hold(elsewhere, vec![none.clone()]), None);
        let mut other = PodDisruptionBudget::clone(&none);
        other.metadata.namespace = Some("other".to_owned());
        assert_eq!(
            hold(pod(&json!({})), vec![none.clone(), Arc::new(other)]),
            Some(HoldKind::Always),
            "not by several"
        );
        let found =
            pod_holds(&Objects { pods: vec![pod(&json!({}))], disruption_budgets: vec![none], ..Objects::default() });
        assert_eq!(found.into_values().next().unwrap().budgets, ["shop/a"]);
    }

    #[test]
    fn h1_pods_that_no_drain_evicts_and_unhealthy_pods_that_may_go_are_not_held() {
        let none = || vec![budget("a", &json!({ "maxUnavailable": 0 }), 0)];
        let mirror = json!({ "metadata": { "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n" }] } });
        assert_eq!(hold(pod(&mirror), none()), None);
        let tolerant = json!({ "spec": { "tolerations": [{ "operator": "Exists" }] } });
        assert_eq!(hold(pod(&tolerant), none()), None);
        assert_eq!(hold(pod(&json!({ "metadata": { "namespace": "other" } })), none()), None);
        let broken = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
        let lenient = json!({ "maxUnavailable": 0, "unhealthyPodEvictionPolicy": "AlwaysAllow" });
        assert_eq!(hold(pod(&broken), vec![budget("a", &lenient, 0)]), None);
        assert_eq!(hold(pod(&broken), none()), Some(HoldKind::Always));
    }
}
