//! Evicts a pod, or deletes it when the termination grace period of its NodeClaim ends: the only two ways a pod is ended.

use std::fmt;
use std::time::Duration;
use tenon_api::kube_objects::{Pod, WirePod};

use jiff::Timestamp;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::Value;
use tenon_api::pod_predicates::pod_key;
use tenon_engine::drain::grace_left_s;
use tenon_model::PodKey;

use super::ClaimError;
use tenon_api::event_reasons;

use crate::context::Context;
use crate::disruption::model_time;
use crate::events::Event;
use crate::kube_error;
use crate::metrics::{Code, DrainedPod};

/// Which node is removed, and why.
pub(crate) struct Removal {
    /// The Node.
    pub(crate) node: String,
    /// Why, if it is known.
    pub(crate) reason: Option<String>,
    /// Why, as the metric of drained pods has it.
    pub(crate) counted_as: String,
}

/// Why pods leave a node that stays.
const REBOOT: &str = "reboot";

impl Removal {
    /// The node is only started again.
    pub(crate) fn for_reboot(node: String) -> Removal {
        Removal { node, reason: Some(REBOOT.to_owned()), counted_as: REBOOT.to_owned() }
    }
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reason.as_deref() == Some(REBOOT) {
            return write!(f, "Node {} is being rebooted", self.node);
        }
        write!(f, "Node {} is being removed", self.node)?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}

/// Why a pod is still there: an event for its Node and its NodeClaim, and how long it takes until it is tried again.
pub(crate) struct Refused {
    pub(crate) event: Event,
    pub(crate) wait: Duration,
}

/// Evicts a pod. What is refused, by PodDisruptionBudgets or by anybody else, is tried again later; an error only if the API
/// server did not answer, so that nothing else would be answered either.
pub(crate) async fn evict_pod(context: &Context, pod: &Pod, removal: &Removal) -> Result<Option<Refused>, ClaimError> {
    let pods: Api<WirePod> = Api::namespaced(context.workload.clone(), pod.namespace());
    // Not the library's own call: it spells the options so that no server reads them, and then another pod with the same
    // name would be evicted in this one's place.
    let eviction = Eviction {
        metadata: ObjectMeta {
            name: Some(pod.name().to_owned()),
            namespace: Some(pod.namespace().to_owned()),
            ..ObjectMeta::default()
        },
        delete_options: Some(DeleteOptions {
            preconditions: Some(Preconditions { uid: uid_of(pod), resource_version: None }),
            ..DeleteOptions::default()
        }),
    };
    let outcome: Result<Value, _> =
        pods.create_subresource("eviction", pod.name(), &PostParams::default(), &eviction).await;
    let code = match &outcome {
        Ok(_) => 200,
        Err(kube::Error::Api(refusal)) => refusal.code,
        Err(_) => 0,
    };
    context.metrics.evictions.get_or_create(&Code { code }).inc();
    let key = pod_key(pod);
    match outcome {
        Ok(_) => {
            context.memory.evictions.done(key);
            context.metrics.pods_drained.get_or_create(&DrainedPod { reason: removal.counted_as.clone() }).inc();
            context
                .events
                .publish_for(&pod.reference(), &Event::new(&event_reasons::EVICTED, format!("Evicted: {removal}")))
                .await;
            Ok(None)
        }
        // Deleted, or another pod has its name by now: either way it has left.
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => {
            context.memory.evictions.done(key);
            Ok(None)
        }
        // A budget forbids it now; more than one budget is a fault of the pod's owner that only they can mend.
        Err(kube::Error::Api(refusal)) if refusal.code == 429 || refusal.message.contains("PodDisruptionBudget") => {
            let message = refusal.message.trim_end_matches('.');
            let note = format!("Eviction of pod {key} from Node {} is blocked: {message}; retrying", removal.node);
            Ok(Some(refused(context, key, note)))
        }
        Err(error @ kube::Error::Api(_)) => {
            let why = kube_error::message(&error);
            let note = format!("Cannot evict pod {key} from Node {}: {why}; retrying", removal.node);
            Ok(Some(refused(context, key, note)))
        }
        Err(source) => Err(ClaimError::kube(&format!("evict pod {key}"), source)),
    }
}

fn refused(context: &Context, pod: &PodKey, note: String) -> Refused {
    let wait = context.memory.evictions.refused(pod);
    Refused { event: Event::new(&event_reasons::FAILED_DRAINING, note), wait }
}

/// Deletes a pod so that it ends by the deadline, whatever budgets say. It always has a second to end by itself.
pub(crate) async fn delete_pod(
    context: &Context,
    pod: &Pod,
    removal: &Removal,
    deadline: Option<Timestamp>,
) -> Result<Option<Refused>, ClaimError> {
    let key = pod_key(pod);
    let grace = grace_left_s(deadline.map(model_time), model_time(context.clock.now()));
    let pods: Api<WirePod> = Api::namespaced(context.workload.clone(), pod.namespace());
    match pods.delete(pod.name(), &only_this(pod, grace)).await {
        Ok(_) => {
            let note = format!("Deleted with a grace period of {grace} s: {removal}, and terminationGracePeriod ends");
            context.memory.evictions.done(key);
            context.events.publish_for(&pod.reference(), &Event::new(&event_reasons::DISRUPTED, note)).await;
            Ok(None)
        }
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => {
            context.memory.evictions.done(key);
            Ok(None)
        }
        Err(error @ kube::Error::Api(_)) => {
            let why = kube_error::message(&error);
            let note = format!("Cannot delete pod {key} of Node {}: {why}; retrying", removal.node);
            Ok(Some(refused(context, key, note)))
        }
        Err(source) => Err(ClaimError::kube(&format!("delete pod {key}"), source)),
    }
}

fn uid_of(pod: &Pod) -> Option<String> {
    (!pod.uid().is_empty()).then(|| pod.uid().to_owned())
}

fn only_this(pod: &Pod, grace_period_s: u32) -> DeleteParams {
    let preconditions = Some(kube::api::Preconditions { uid: uid_of(pod), resource_version: None });
    DeleteParams { grace_period_seconds: Some(grace_period_s), preconditions, ..DeleteParams::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_node_is_removed_is_said_where_it_is_known() {
        let removal = |reason: Option<&str>| Removal {
            node: "default-x7".to_owned(),
            reason: reason.map(str::to_owned),
            counted_as: String::new(),
        };
        assert_eq!(Removal::for_reboot("default-x7".to_owned()).to_string(), "Node default-x7 is being rebooted");
        assert_eq!(removal(None).to_string(), "Node default-x7 is being removed");
        assert_eq!(removal(Some("Drifted")).to_string(), "Node default-x7 is being removed (Drifted)");
    }
}
