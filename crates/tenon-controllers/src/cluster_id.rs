//! Who is this cluster? Its name stands in the proof of every VM.

use std::time::Duration;

use kube::api::Api;
use kube::{Client, ResourceExt};
use tenon_api::kube_objects::Namespace;

use crate::kube_error;
use crate::settings::Settings;

/// How long it takes until the API server is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Who this cluster is, asked until it answers: a VM must never be marked with a name that is not the cluster's.
pub(crate) async fn cluster_id(workload: &Client, settings: &Settings) -> String {
    if let Some(id) = settings.cluster_id.clone().filter(|id| !id.is_empty()) {
        return id;
    }
    let namespaces: Api<Namespace> = Api::all(workload.clone());
    loop {
        match namespaces.get("kube-system").await {
            Ok(namespace) => match namespace.uid() {
                Some(uid) => return uid,
                None => tracing::warn!("namespace kube-system has no uid; set --cluster-id"),
            },
            Err(error) => {
                let error = kube_error::message(&error);
                tracing::warn!(error, "cannot read namespace kube-system for the cluster id; retrying");
            }
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}
