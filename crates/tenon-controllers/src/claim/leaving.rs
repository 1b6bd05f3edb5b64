//! Which pods of a node that goes are asked to leave now, which are made to, and which are waited for.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use tenon_api::{names, pod};
use tenon_model::{Effect, Taint};

use crate::disruption::pods::{forbids_disruption, is_active, is_owned_by, is_terminal, is_terminating};

/// A pod that is still there so long after it should be gone belongs to a kubelet that does not answer.
const STUCK_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// What is to be done with the pods of a node.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Leaving {
    /// Pods that are asked to leave.
    pub(crate) evict: Vec<Arc<Pod>>,
    /// Pods whose time is up.
    pub(crate) force: Vec<Arc<Pod>>,
    /// How many are waited for.
    pub(crate) waiting: usize,
    /// The first that is never asked, because it says so itself.
    pub(crate) unwilling: Option<Arc<Pod>>,
}

/// Pods leave in this order, each kind only when the one before is gone: what serves others stays longest.
fn tier(pod: &Pod) -> u8 {
    let class = pod.spec.as_ref().and_then(|spec| spec.priority_class_name.as_deref());
    let is_critical = matches!(class, Some("system-cluster-critical" | "system-node-critical"));
    u8::from(is_critical) * 2 + u8::from(is_owned_by(pod, "apps/v1", "DaemonSet"))
}

/// Decides, for all pods of a node.
pub(crate) fn leaving(pods: &[Arc<Pod>], deadline: Option<Timestamp>, now: Timestamp) -> Leaving {
    let waiting: Vec<&Arc<Pod>> = pods.iter().filter(|pod| !is_terminal(pod) && is_drainable(pod, now)).collect();
    let is_due = |pod: &Pod| deadline.is_some_and(|deadline| is_due(pod, deadline, now));
    let (force, graceful): (Vec<_>, Vec<_>) = waiting.iter().copied().partition(|pod| is_due(pod));
    let first = graceful.iter().map(|pod| tier(pod)).min();
    let asked = graceful.into_iter().filter(|pod| Some(tier(pod)) == first && is_active(pod));
    let (unwilling, evict): (Vec<_>, Vec<_>) = asked.partition(|pod| forbids_disruption(pod, now));
    Leaving {
        evict: evict.into_iter().cloned().collect(),
        force: force.into_iter().cloned().collect(),
        waiting: waiting.len(),
        unwilling: unwilling.first().map(|pod| (*pod).clone()),
    }
}

/// Whether a pod leaves before its node does. The kubelet's own pods and those that put up with a node that goes do not.
pub(crate) fn is_drainable(pod: &Pod, now: Timestamp) -> bool {
    let is_stuck = pod.metadata.deletion_timestamp.as_ref().is_some_and(|due| now.duration_since(due.0) > STUCK_AFTER);
    !is_stuck && !is_owned_by(pod, "v1", "Node") && !tolerates_going(pod)
}

fn tolerates_going(found: &Pod) -> bool {
    let taint = Taint { key: names::TAINT_DISRUPTED.to_owned(), value: String::new(), effect: Effect::NoSchedule };
    taint.is_tolerated_by(&pod::to_model(found).tolerations)
}

/// Whether a pod must be told to go now to be gone by the deadline.
fn is_due(pod: &Pod, deadline: Timestamp, now: Timestamp) -> bool {
    match &pod.metadata.deletion_timestamp {
        Some(due) if is_terminating(pod) => due.0 > deadline,
        _ => {
            let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
            now > deadline - SignedDuration::from_secs(grace.max(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn pod(name: &str, more: &serde_json::Value) -> Arc<Pod> {
        let mut pod = json!({ "metadata": { "name": name, "namespace": "d" }, "spec": { "containers": [] } });
        for (key, value) in more.as_object().unwrap() {
            for (inner, value) in value.as_object().unwrap() {
                pod[key][inner] = value.clone();
            }
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn names_of(pods: &[Arc<Pod>]) -> Vec<&str> {
        pods.iter().map(|pod| pod.metadata.name.as_deref().unwrap()).collect()
    }

    fn daemon() -> serde_json::Value {
        json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u" }])
    }

    #[test]
    fn what_serves_others_stays_longest() {
        let plain = pod("plain", &json!({}));
        let critical = pod("critical", &json!({ "spec": { "priorityClassName": "system-cluster-critical" } }));
        let of_daemon = pod("daemon", &json!({ "metadata": { "ownerReferences": daemon() } }));
        let pods = [critical.clone(), of_daemon.clone(), plain];
        let first = leaving(&pods, None, at(0));
        assert_eq!((names_of(&first.evict), first.waiting), (vec!["plain"], 3));
        assert_eq!(names_of(&leaving(&pods[..2], None, at(0)).evict), ["daemon"]);
        assert_eq!(names_of(&leaving(&[critical], None, at(0)).evict), ["critical"]);
    }

    #[test]
    fn pods_that_stay_with_their_node_are_not_waited_for() {
        let tolerant = pod("tolerant", &json!({ "spec": { "tolerations": [{ "operator": "Exists" }] } }));
        let mirror = json!([{ "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u" }]);
        let mirror = pod("mirror", &json!({ "metadata": { "ownerReferences": mirror } }));
        let done = pod("done", &json!({ "status": { "phase": "Succeeded" } }));
        let stuck = pod("stuck", &json!({ "metadata": { "deletionTimestamp": at(-61).to_string() } }));
        assert_eq!(leaving(&[tolerant, mirror, done, stuck], None, at(0)), Leaving::default());
    }

    #[test]
    fn a_pod_that_forbids_it_is_waited_for_until_the_deadline() {
        let pods = [pod("mine", &json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } }))];
        let before = leaving(&pods, Some(at(100)), at(69));
        assert_eq!((before.evict.len(), before.force.len(), before.waiting), (0, 0, 1));
        assert!(before.unwilling.is_some());
        // Its grace of 30 s ends at the deadline if it is told just now.
        assert_eq!(names_of(&leaving(&pods, Some(at(100)), at(71)).force), ["mine"]);
    }

    #[test]
    fn a_pod_that_is_leaving_is_waited_for_and_not_asked_again() {
        let pods = [pod("going", &json!({ "metadata": { "deletionTimestamp": at(10).to_string() } }))];
        let now = leaving(&pods, None, at(0));
        assert_eq!((now.evict.len(), now.waiting), (0, 1));
    }
}
