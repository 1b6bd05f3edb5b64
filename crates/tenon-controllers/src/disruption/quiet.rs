//! Notes on a claim when a pod came to or left its node, so that it is known for how long it has been quiet.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use serde_json::json;
use tokio::sync::mpsc;

use super::pods::{is_owned_by, is_terminal, is_terminating};
use crate::context::{Context, is_ours};
use crate::stop::Stop;
use crate::writes;

/// A node that is busy is noted no more often than this.
const APART: SignedDuration = SignedDuration::from_secs(10);

/// Notes that wait to be written. More are dropped: another pod of the same node will come.
pub(crate) const WAITING: usize = 1024;

/// What was last seen of each pod.
#[derive(Default)]
pub(crate) struct PodStates {
    seen: BTreeMap<String, State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    bound: bool,
    ended: bool,
}

impl PodStates {
    /// The node whose quiet a change broke, if it did. What is there at first breaks nobody's quiet.
    pub(crate) fn disturbed(&mut self, event: &Event<Pod>) -> Option<String> {
        match event {
            Event::Init | Event::InitDone => None,
            Event::InitApply(pod) => {
                self.seen.insert(pod.uid().unwrap_or_default(), state(pod));
                None
            }
            Event::Delete(pod) => {
                self.seen.remove(&pod.uid().unwrap_or_default());
                None
            }
            Event::Apply(pod) => {
                let now = state(pod);
                let before = self.seen.insert(pod.uid().unwrap_or_default(), now);
                let before = before.unwrap_or(State { bound: false, ended: false });
                let is_daemon = is_owned_by(pod, "apps/v1", "DaemonSet");
                let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
                node.filter(|_| now != before && !is_daemon)
            }
        }
    }
}

fn state(pod: &Pod) -> State {
    let bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    State { bound, ended: is_terminal(pod) || is_terminating(pod) }
}

/// Writes the notes until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut nodes: mpsc::Receiver<String>, mut stop: Stop) {
    loop {
        let node = tokio::select! {
            biased;
            node = nodes.recv() => node,
            () = stop.wait() => return,
        };
        let Some(node) = node else { return };
        if let Err(error) = note(&context, &node).await {
            tracing::warn!(node, %error, "that a pod came or went could not be noted");
        }
    }
}

async fn note(context: &Context, node: &str) -> Result<(), kube::Error> {
    let Some(claim) = context.watched.claims.get(&ObjectRef::new(node)).filter(|claim| is_ours(claim)) else {
        return Ok(());
    };
    let now = context.clock.time();
    let last = claim.status.as_ref().and_then(|status| status.last_pod_event_time.as_ref());
    if last.is_some_and(|last| now.0.duration_since(last.0) < APART) || claim.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let status = json!({ "lastPodEventTime": now });
    writes::merge_status(&context.workload, claim.as_ref(), &status).await.map(drop)
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
    fn a_pod_that_comes_or_leaves_breaks_the_quiet_and_one_that_is_there_does_not() {
        let mut states = PodStates::default();
        let (plain, going) = (json!({}), json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
        assert_eq!(states.disturbed(&Event::InitApply(pod("n", &plain))), None, "it was there before");
        assert_eq!(states.disturbed(&Event::Apply(pod("n", &plain))), None, "nothing changed for the node");
        assert_eq!(states.disturbed(&Event::Apply(pod("n", &going))).as_deref(), Some("n"));
        assert_eq!(states.disturbed(&Event::Delete(pod("n", &going))), None);
        assert_eq!(states.disturbed(&Event::Apply(pod("", &plain))), None);
        assert_eq!(states.disturbed(&Event::Apply(pod("n", &plain))).as_deref(), Some("n"), "bound just now");
    }

    #[test]
    fn pods_of_daemons_never_break_it() {
        let owner =
            json!({ "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d" }] });
        assert_eq!(PodStates::default().disturbed(&Event::Apply(pod("n", &owner))), None);
    }
}
