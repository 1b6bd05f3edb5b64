//! One write on a pod: what is sent, and what came of it.

use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_api::kube_objects::Pod;
use tenon_api::names::{ANNOTATION_MANAGED_DELETION_COST as MARK, ANNOTATION_POD_DELETION_COST as COST};
use tenon_api::replica;
use tenon_model::{CostLeftover, PodKey};

use crate::context::Context;
use crate::metrics::CostWritten;

/// What is changed on a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The cost is set or removed, whatever stands there.
    Manage(Option<i32>),
    /// What Tenon wrote is removed, and nothing else.
    CleanUp,
}

/// What came of a write.
#[derive(Debug)]
pub(super) enum Outcome {
    /// There is nothing more to do.
    Done,
    /// It is tried again.
    Failed(kube::Error),
}

/// Changes a pod, unless it is right already, gone, or another one by now.
pub(super) async fn write(context: &Context, key: &PodKey, change: Change) -> Outcome {
    let pod = context.watched.pods.get(&key.namespace, &key.name).filter(|pod| *pod.uid() == *key.uid);
    let result = match pod.as_deref().map(|pod| request(pod, change)) {
        None => "skipped_notfound",
        Some(None) => "skipped_unchanged",
        Some(Some(request)) => match send(context, key, request).await {
            Ok(()) => "updated",
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => "skipped_notfound",
            // Another pod of that name, or somebody changed what was looked at. The next pass sees it.
            Err(kube::Error::Api(refusal)) if matches!(refusal.code, 409 | 422) => "skipped_conflict",
            Err(error) => {
                context.metrics.cost_writes.get_or_create(&CostWritten { result: "error" }).inc();
                return Outcome::Failed(error);
            }
        },
    };
    context.metrics.cost_writes.get_or_create(&CostWritten { result }).inc();
    Outcome::Done
}

/// A patch, as the API server reads it.
#[derive(Debug, PartialEq)]
enum Request {
    Merge(Value),
    /// A list of operations: refused if a test in it fails.
    Json(Value),
}

/// What is sent; nothing if the pod is right.
fn request(pod: &Pod, change: Change) -> Option<Request> {
    let written = replica(pod)?.written;
    match change {
        Change::Manage(cost) if written.is(cost) => None,
        Change::Manage(cost) => {
            let text = cost.map(|cost| cost.to_string());
            // With the uid, the patch is refused if it is another pod by now.
            Some(Request::Merge(json!({
                "metadata": { "uid": pod.uid(), "annotations": { COST: text, MARK: text } },
            })))
        }
        Change::CleanUp => {
            let (leftover, mark) = (written.leftover()?, written.mark?);
            let is = |name: &str| json!({ "op": "test", "path": path(name), "value": mark });
            let remove = |name: &str| json!({ "op": "remove", "path": path(name) });
            let mut operations = vec![is(MARK), remove(MARK)];
            if leftover == CostLeftover::CostAndMark {
                operations.extend([is(COST), remove(COST)]);
            }
            operations.insert(0, json!({ "op": "test", "path": "/metadata/uid", "value": pod.uid() }));
            Some(Request::Json(Value::Array(operations)))
        }
    }
}

fn path(annotation: &str) -> String {
    format!("/metadata/annotations/{}", annotation.replace('~', "~0").replace('/', "~1"))
}

async fn send(context: &Context, key: &PodKey, request: Request) -> Result<(), kube::Error> {
    match request {
        Request::Merge(patch) => {
            let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(context.workload.clone(), &key.namespace);
            pods.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
        }
        Request::Json(operations) => {
            let path = format!("/api/v1/namespaces/{}/pods/{}", key.namespace, key.name);
            let request = http::Request::patch(path).header("content-type", "application/json-patch+json");
            let request = request.body(operations.to_string().into_bytes());
            let request =
                request.map_err(|error| kube::Error::BuildRequest(kube::core::request::Error::BuildRequest(error)))?;
            context.workload.request::<Value>(request).await.map(drop)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(cost: Option<&str>, mark: Option<&str>) -> Pod {
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true });
        let annotations = [(COST, cost), (MARK, mark)].into_iter().filter(|(_, text)| text.is_some());
        let annotations: std::collections::BTreeMap<_, _> = annotations.collect();
        let metadata = json!({ "name": "p", "namespace": "n", "uid": "u", "annotations": annotations, "ownerReferences": [owner] });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    #[test]
    fn j7_a_cost_is_set_or_removed_together_with_its_mark_and_only_on_the_same_pod() {
        let set = request(&pod(Some("7"), None), Change::Manage(Some(-1)));
        let expected = json!({ "metadata": { "uid": "u", "annotations": { COST: "-1", MARK: "-1" } } });
        assert_eq!(set, Some(Request::Merge(expected)));
        assert_eq!(request(&pod(Some("-1"), Some("-1")), Change::Manage(Some(-1))), None);
        let removed = json!({ "metadata": { "uid": "u", "annotations": { COST: null, MARK: null } } });
        assert_eq!(request(&pod(Some("7"), None), Change::Manage(None)), Some(Request::Merge(removed)));
        assert_eq!(request(&pod(None, None), Change::Manage(None)), None);
    }

    #[test]
    fn what_is_cleaned_up_is_what_tenon_wrote_as_long_as_nobody_changed_it() {
        let paths = |request: Option<Request>| match request {
            Some(Request::Json(Value::Array(operations))) => {
                let told = |it: &Value| format!("{} {}", it["op"].as_str().unwrap(), it["path"].as_str().unwrap());
                operations.iter().map(told).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        let (cost, mark) = (
            "/metadata/annotations/controller.kubernetes.io~1pod-deletion-cost",
            "/metadata/annotations/tenon.dev~1pod-deletion-cost",
        );
        let (uid, test_mark, remove_mark) =
            ("test /metadata/uid".to_owned(), format!("test {mark}"), format!("remove {mark}"));
        let both =
            [uid.clone(), test_mark.clone(), remove_mark.clone(), format!("test {cost}"), format!("remove {cost}")];
        assert_eq!(paths(request(&pod(Some("-1"), Some("-1")), Change::CleanUp)), both);
        assert_eq!(paths(request(&pod(Some("7"), Some("-1")), Change::CleanUp)), [uid, test_mark, remove_mark]);
        assert_eq!(request(&pod(Some("7"), None), Change::CleanUp), None);
    }
}
