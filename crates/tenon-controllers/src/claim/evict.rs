//! Asks one pod to leave, or makes it: the only two ways a pod is ended here.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta, Preconditions};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::Value;

use super::ClaimError;
use tenon_api::event_reasons;

use crate::context::Context;
use crate::disruption::pods::key;
use crate::events::Event;
use crate::metrics::Code;

/// Asks a pod to leave. What its budgets do not allow now is asked again later. Returns what the claim's owner should know.
pub(crate) async fn ask(context: &Context, pod: &Pod) -> Result<Option<Event>, ClaimError> {
    let pods: Api<Pod> = Api::namespaced(context.workload.clone(), &pod.namespace().unwrap_or_default());
    // Not the library's own call: it spells the options so that no server reads them, and then a pod made anew under the
    // same name would be asked to leave in this one's place.
    let eviction = Eviction {
        metadata: ObjectMeta { name: pod.metadata.name.clone(), namespace: pod.namespace(), ..ObjectMeta::default() },
        delete_options: Some(DeleteOptions {
            preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
            ..DeleteOptions::default()
        }),
    };
    let outcome: Result<Value, _> =
        pods.create_subresource("eviction", &pod.name_any(), &PostParams::default(), &eviction).await;
    let code = match &outcome {
        Ok(_) => 200,
        Err(kube::Error::Api(refusal)) => refusal.code,
        Err(_) => 0,
    };
    context.metrics.evictions.get_or_create(&Code { code }).inc();
    match outcome {
        Ok(_) => {
            context
                .events
                .publish(pod, &Event::new(&event_reasons::EVICTED, "its node goes, so the pod was asked to leave"))
                .await;
            Ok(None)
        }
        // Gone, or another pod has its name by now: either way it has left.
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => Ok(None),
        // A budget forbids it now; more than one budget is a fault of the pod's owner that only they can mend.
        Err(kube::Error::Api(refusal)) if refusal.code == 429 || refusal.message.contains("PodDisruptionBudget") => {
            Ok(Some(Event::new(
                &event_reasons::FAILED_DRAINING,
                format!("pod {} may not leave yet: {}", key(pod), refusal.message),
            )))
        }
        Err(source) => Err(ClaimError::kube(&format!("evict pod {}", key(pod)), source)),
    }
}

/// Makes a pod leave by the deadline, budgets or not. It always has a second to end by itself.
pub(crate) async fn force(
    context: &Context,
    pod: &Pod,
    deadline: Option<Timestamp>,
) -> Result<Option<Event>, ClaimError> {
    let left = deadline.map_or(1, |deadline| deadline.duration_since(context.clock.now()).as_secs());
    let grace = u32::try_from(left.clamp(1, i64::from(u32::MAX))).unwrap_or(1);
    let pods: Api<Pod> = Api::namespaced(context.workload.clone(), &pod.namespace().unwrap_or_default());
    match pods.delete(&pod.name_any(), &only_this(pod, Some(grace))).await {
        Ok(_) => {
            let told = format!("the pod was deleted with {grace} s to end, because its node must be gone by then");
            context.events.publish(pod, &Event::new(&event_reasons::DISRUPTED, told)).await;
            Ok(None)
        }
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => Ok(None),
        Err(source) => Err(ClaimError::kube(&format!("delete pod {}", key(pod)), source)),
    }
}

fn only_this(pod: &Pod, grace_period_seconds: Option<u32>) -> DeleteParams {
    let preconditions = Some(kube::api::Preconditions { uid: pod.uid(), resource_version: None });
    DeleteParams { grace_period_seconds, preconditions, ..DeleteParams::default() }
}
