//! May a pod be evicted, and where does it run: the two verbs only pods have.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::DeleteOptions;
use super::failure::{ApiResult, Failure};
use super::object::{self, list, number, text};
use super::selector::Selector;
use super::state::State;
use super::target::Target;
use super::update::wrong_uid;

/// More evictions than this, unseen by whoever keeps the budget, are too many.
const DISRUPTED_MOST: usize = 2000;
const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

impl State {
    /// Assigns a pod to a node.
    pub(crate) fn bind(&mut self, target: &Target, binding: &Value) -> ApiResult<Value> {
        let pod = self.object(target)?;
        let (name, node) = (target.name(), text(binding, "/target/name"));
        let conflict = |why: &str| {
            let told = format!("Operation cannot be fulfilled on pods/binding {name:?}: {why}");
            Failure::new(409, "Conflict", told).with(json!({ "name": name, "kind": "pods/binding" }))
        };
        let wanted = object::uid(binding);
        if !wanted.is_empty() && wanted != object::uid(&pod) {
            return Err(Failure::conflict(&target.kind, name, &wrong_uid(target, wanted, object::uid(&pod))));
        }
        if object::is_deleting(&pod) {
            return Err(conflict(&format!("pod {name} is being deleted, cannot be assigned to a host")));
        }
        let bound = text(&pod, "/spec/nodeName");
        if !bound.is_empty() {
            return Err(conflict(&format!("pod {name} is already assigned to node {bound:?}")));
        }
        let mut new = (*pod).clone();
        object::with_part(&mut new, "spec", |spec| object::set(spec, "nodeName", Some(node.into())));
        for kind in ["labels", "annotations"] {
            let given = binding.pointer(&format!("/metadata/{kind}")).and_then(Value::as_object);
            for (key, value) in given.into_iter().flatten() {
                object::with_part(&mut new, "metadata", |metadata| {
                    object::with_part(metadata, kind, |map| object::set(map, key, Some(value.clone())));
                });
            }
        }
        let now = self.stamp(0);
        set_condition(
            &mut new,
            &json!({
                "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
            }),
        );
        self.store.put(&target.kind.shelf(), new);
        Ok(json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 }))
    }

    /// Asks a pod to leave, if its budget allows it.
    pub(crate) fn evict(&mut self, target: &Target, eviction: &Value) -> ApiResult<Value> {
        if object::name(eviction) != target.name() {
            return Err(Failure::bad_request("name in URL does not match name in Eviction object"));
        }
        let options = DeleteOptions::read(eviction.get("deleteOptions"), |_| None);
        let pod = self.object(target)?;
        let is_free = matches!(text(&pod, "/status/phase"), "Succeeded" | "Failed" | "Pending");
        if !is_free && !object::is_deleting(&pod) {
            self.spend_budget(&pod)?;
        }
        // The budget is spent first, as on a real server: a deletion that fails then gives nothing back.
        self.mark_disrupted(target, &options)?;
        self.delete(target, &DeleteOptions { version: None, ..options })?;
        Ok(json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 }))
    }

    fn mark_disrupted(&mut self, target: &Target, options: &DeleteOptions) -> ApiResult<()> {
        let pod = self.object(target)?;
        options.check(&target.kind, &pod)?;
        let mut new = (*pod).clone();
        let condition = json!({
            "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": self.stamp(0),
        });
        set_condition(&mut new, &condition);
        if new != *pod {
            self.store.put(&target.kind.shelf(), new);
        }
        Ok(())
    }

    /// Takes one disruption from the pod's budget, if it has one.
    fn spend_budget(&mut self, pod: &Value) -> ApiResult<()> {
        let shelf = self.built_in("policy", "poddisruptionbudgets").shelf();
        let covers = |budget: &Value| {
            let selector = budget.pointer("/spec/selector").and_then(Selector::of_object);
            object::namespace(budget) == object::namespace(pod)
                && selector.is_some_and(|selector| selector.matches(pod))
        };
        let budgets: Vec<Arc<Value>> =
            self.store.objects(&shelf).map(|(_, budget)| budget.clone()).filter(|budget| covers(budget)).collect();
        let budget = match budgets.as_slice() {
            [] => return Ok(()),
            [budget] => budget,
            _ => {
                let told =
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(Failure::internal(told));
            }
        };
        if !is_ready(pod) && may_leave_unready(budget) {
            return Ok(());
        }
        check_budget(budget)?;
        let mut new = (**budget).clone();
        let (left, now) = (number(budget, "/status/disruptionsAllowed").unwrap_or(0) - 1, self.stamp(0));
        object::with_part(&mut new, "status", |status| {
            object::set(status, "disruptionsAllowed", Some(left.into()));
            object::with_part(status, "disruptedPods", |pods| object::set(pods, object::name(pod), Some(now)));
        });
        if left == 0 {
            let condition = json!({
                "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
                "lastTransitionTime": self.stamp(0), "observedGeneration": budget.pointer("/status/observedGeneration"),
            });
            set_condition(&mut new, &condition);
        }
        self.store.put(&shelf, new);
        Ok(())
    }
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = list(pod, "/status/conditions").iter();
    conditions.any(|told| text(told, "/type") == "Ready" && text(told, "/status") == "True")
}

/// A pod that is not ready is not counted, so its end costs nothing.
fn may_leave_unready(budget: &Value) -> bool {
    let (healthy, desired) = (number(budget, "/status/currentHealthy"), number(budget, "/status/desiredHealthy"));
    let is_enough = healthy.unwrap_or(0) >= desired.unwrap_or(0) && desired.unwrap_or(0) > 0;
    is_enough || text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow"
}

fn check_budget(budget: &Value) -> ApiResult<()> {
    let name = object::name(budget);
    let status = |key: &str| number(budget, &format!("/status/{key}")).unwrap_or(0);
    let too_many = |told: String, retry_s: Option<i64>| {
        let mut details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": told }] });
        if let Some(retry_s) = retry_s {
            details["retryAfterSeconds"] = retry_s.into();
        }
        Failure::new(429, "TooManyRequests", VIOLATES).with(details)
    };
    let refused = |why: &str| {
        let told = format!("poddisruptionbudget.policy {name:?} is forbidden: {why}");
        let details = json!({ "name": name, "group": "policy", "kind": "poddisruptionbudget" });
        Err(Failure::new(403, "Forbidden", told).with(details))
    };
    if status("observedGeneration") < number(budget, "/metadata/generation").unwrap_or(0) {
        let told = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(told, Some(10)));
    }
    if status("disruptionsAllowed") < 0 {
        return refused("pdb disruptions allowed is negative");
    }
    let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > DISRUPTED_MOST) {
        return refused("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if status("disruptionsAllowed") == 0 {
        return Err(too_many(why_none_allowed(budget), None));
    }
    Ok(())
}

fn why_none_allowed(budget: &Value) -> String {
    let name = object::name(budget);
    let (healthy, desired) = (number(budget, "/status/currentHealthy"), number(budget, "/status/desiredHealthy"));
    let (healthy, desired) = (healthy.unwrap_or(0), desired.unwrap_or(0));
    let told = list(budget, "/status/conditions").iter().find(|told| text(told, "/type") == "DisruptionAllowed");
    let (reason, message) = told.map_or(("", ""), |told| (text(told, "/reason"), text(told, "/message")));
    let is_refused = told.is_some_and(|told| text(told, "/status") == "False") && !message.is_empty();
    if is_refused && reason == "SyncFailed" {
        format!("The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}")
    } else if healthy <= desired {
        format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
    } else if is_refused {
        format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

fn set_condition(object: &mut Value, condition: &Value) {
    object::with_part(object, "status", |status| {
        object::default(status, "conditions", json!([]));
        let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else { return };
        match conditions.iter_mut().find(|told| told["type"] == condition["type"]) {
            Some(told) if told["status"] == condition["status"] => {}
            Some(told) => *told = condition.clone(),
            None => conditions.push(condition.clone()),
        }
    });
}
