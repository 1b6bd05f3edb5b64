//! Writes `status.lastPodEventTime` of a NodeClaim when a pod is added to or removed from its node: `consolidateAfter` counts
//! from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use tenon_api::kube_objects::Pod;

use jiff::SignedDuration;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use serde_json::json;
use tenon_api::pod_predicates::{is_active, is_owned_by_daemon_set};
use tokio::sync::mpsc;

use crate::claim::ClaimError;
use crate::context::{Context, is_ours};
use crate::panics::{caught, note};
use crate::stop::Stop;
use crate::writes;

/// The time is written no more often than this for a node with many pod events.
const WRITTEN_EVERY: SignedDuration = SignedDuration::from_secs(10);

/// Nodes whose time is still to be written. More are dropped: another pod event of the same node will follow.
pub(crate) const QUEUE_LENGTH: usize = 1024;

/// The last state of each pod, by uid.
#[derive(Default)]
pub(crate) struct PodStates {
    previous: BTreeMap<Box<str>, State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    bound: bool,
    ended: bool,
}

impl PodStates {
    /// The node that a pod was added to or removed from, if the change is of that kind. Pods that are there when the watch
    /// begins are no news.
    pub(crate) fn node_with_pod_event(&mut self, event: &Event<Pod>) -> Option<String> {
        match event {
            Event::Init | Event::InitDone => None,
            Event::InitApply(pod) => {
                self.previous.insert(pod.uid().into(), state(pod));
                None
            }
            Event::Delete(pod) => {
                self.previous.remove(pod.uid());
                None
            }
            Event::Apply(pod) => {
                let now = state(pod);
                let before = self.previous.insert(pod.uid().into(), now);
                let before = before.unwrap_or(State { bound: false, ended: false });
                let node = pod.node_name.as_deref().map(str::to_owned);
                node.filter(|_| now != before && !is_owned_by_daemon_set(pod))
            }
        }
    }
}

fn state(pod: &Pod) -> State {
    State { bound: pod.node_name.is_some(), ended: !is_active(pod) }
}

/// Writes the times until stopped.
pub(crate) async fn run(context: Arc<Context>, mut nodes: mpsc::Receiver<String>, mut stop: Stop) {
    loop {
        let node = tokio::select! {
            biased;
            node = nodes.recv() => node,
            () = stop.wait() => return,
        };
        let Some(node) = node else { return };
        match caught(write_time(&context, &node)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(claim = node, error = error.full_message(), "updating NodeClaim status failed");
            }
            Err(panic) => note(&context.metrics, "nodeclaim.podevents", &format!("NodeClaim {node}"), &panic),
        }
    }
}

async fn write_time(context: &Context, node: &str) -> Result<(), ClaimError> {
    let Some(claim) = context.watched.claims.get(&ObjectRef::new(node)).filter(|claim| is_ours(claim)) else {
        return Ok(());
    };
    let now = context.clock.time();
    let last = claim.status.as_ref().and_then(|status| status.last_pod_event_time.as_ref());
    if last.is_some_and(|last| now.0.duration_since(last.0) < WRITTEN_EVERY)
        || claim.metadata.deletion_timestamp.is_some()
    {
        return Ok(());
    }
    let status = json!({ "lastPodEventTime": now });
    let written = writes::merge_status(&context.workload, claim.as_ref(), &status).await;
    let action = || format!("write status.lastPodEventTime of NodeClaim {node}");
    written.map(drop).map_err(|source| ClaimError::kube(&action(), source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(node: &str, more: &Value) -> Pod {
        let mut pod = json!({ "metadata": { "name": "p", "uid": "u" }, "spec": { "containers": [] } });
        if !node.is_empty() {
            pod["spec"]["nodeName"] = json!(node);
        }
        for (key, value) in more.as_object().unwrap() {
            pod["metadata"][key] = value.clone();
        }
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_pod_that_is_added_or_removed_is_an_event_and_one_that_is_there_is_not() {
        let mut states = PodStates::default();
        let (plain, going) = (json!({}), json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
        assert_eq!(states.node_with_pod_event(&Event::InitApply(pod("n", &plain))), None, "it was there before");
        assert_eq!(states.node_with_pod_event(&Event::Apply(pod("n", &plain))), None, "nothing changed for the node");
        assert_eq!(states.node_with_pod_event(&Event::Apply(pod("n", &going))).as_deref(), Some("n"));
        assert_eq!(states.node_with_pod_event(&Event::Delete(pod("n", &going))), None);
        assert_eq!(states.node_with_pod_event(&Event::Apply(pod("", &plain))), None);
        assert_eq!(states.node_with_pod_event(&Event::Apply(pod("n", &plain))).as_deref(), Some("n"), "bound just now");
    }

    #[test]
    fn pods_of_daemon_sets_are_no_events() {
        let owner =
            json!({ "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d" }] });
        assert_eq!(PodStates::default().node_with_pod_event(&Event::Apply(pod("n", &owner))), None);
    }
}
