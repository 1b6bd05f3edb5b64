//! The objects of a live cluster, as they would stand in files. Nothing is written there.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::sync::Arc;
use tenon_api::kube_objects::{
    CSINode, DaemonSet, Deployment, Job, Namespace, Node, PersistentVolume, PersistentVolumeClaim, PodDisruptionBudget,
    ReplicaSet, ReplicationController, Service, StatefulSet, StorageClass, VolumeAttachment, WirePod,
};

use anyhow::{Context as _, anyhow};
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tenon_api::objects::Object;
use tenon_api::{NodeClaim, NodeOverlay, NodePool, status_message};
use tenon_controllers::Clock;
use tenon_controllers::election::Fence;
use tenon_model::full_message;

use super::collect::Collector;
use super::location::Location;
use super::supply::{Supply, TypeSource};
use crate::controller::clients;

/// Objects in one answer: what an API server likes to give at once.
const PAGE: u32 = 500;

/// Reads the cluster that a kubeconfig names, and the instance types its nodes are created from.
pub fn read(kubeconfig: &OsStr, types: TypeSource, into: &mut Collector) -> anyhow::Result<Supply> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(async {
        // It never opens: a plan changes nothing, in Kubernetes or in Proxmox.
        let fence = Fence::closed(Clock::Wall);
        let client = clients::cluster(Some(kubeconfig), "--kubeconfig", "plan").await?.fenced(&fence)?;
        list_all(&client, into).await?;
        types.look(&client, &fence, into).await
    })
}

/// Lists every kind that matters.
///
/// Nodes come before pods: a pod that is bound in between is then counted on a node that is known.
pub async fn list_all(client: &Client, into: &mut Collector) -> anyhow::Result<()> {
    list::<NodePool>(client, into).await?;
    list::<NodeOverlay>(client, into).await?;
    list::<Node>(client, into).await?;
    list::<NodeClaim>(client, into).await?;
    list::<CSINode>(client, into).await?;
    list::<VolumeAttachment>(client, into).await?;
    list::<PersistentVolume>(client, into).await?;
    list::<PersistentVolumeClaim>(client, into).await?;
    list::<StorageClass>(client, into).await?;
    list::<DaemonSet>(client, into).await?;
    list::<Deployment>(client, into).await?;
    list::<ReplicaSet>(client, into).await?;
    list::<StatefulSet>(client, into).await?;
    list::<Job>(client, into).await?;
    list::<ReplicationController>(client, into).await?;
    list::<Namespace>(client, into).await?;
    list::<Service>(client, into).await?;
    list::<PodDisruptionBudget>(client, into).await?;
    list::<WirePod>(client, into).await
}

async fn list<K>(client: &Client, into: &mut Collector) -> anyhow::Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    Object: From<K>,
{
    let (kind, source) = (K::kind(&()), Arc::from("the cluster"));
    let api = Api::<K>::all(client.clone());
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = match api.list(&params).await {
            Ok(page) => page,
            // Most clusters have no NodeOverlays, and whoever plans for one may not know of them.
            Err(kube::Error::Api(status)) if kind == "NodeOverlay" && status.code == 404 => return Ok(()),
            Err(error) if kind == "NodeOverlay" && is_forbidden(&error) => {
                into.note(format!("planned without NodeOverlays: {:#}", not_listed(&kind, &error)));
                return Ok(());
            }
            // A cluster without a kind has no objects of it; but a server that knows no pods is no cluster.
            Err(kube::Error::Api(status)) if status.code == 404 && kind != "Pod" && kind != "Node" => {
                into.note(format!("the cluster has no {kind} resource ({})", K::api_version(&())));
                return Ok(());
            }
            Err(error) => return Err(not_listed(&kind, &error)),
        };
        let next = page.metadata.continue_.clone().filter(|token| !token.is_empty());
        for object in page.items {
            let object = Object::from(object);
            let key = object.key();
            let object = object.settled().map_err(|fault| anyhow!("cannot use {key} of the cluster: {fault}"))?;
            into.add(object, Location::cluster(&source))?;
        }
        match next {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(()),
        }
    }
}

fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// Why a kind cannot be listed, and the next step.
pub(super) fn not_listed(kind: &str, error: &kube::Error) -> anyhow::Error {
    let kube::Error::Api(status) = error else {
        let cause = full_message(error);
        let next = "check that the API server named in the file given with --kubeconfig is running";
        return anyhow!("cannot list {kind} in the cluster: {cause}; {next}");
    };
    let next = match status.code {
        401 => "renew the credentials in the file given with --kubeconfig".to_owned(),
        403 => format!("allow this user to list {kind} in all namespaces, or give the objects as files with -f"),
        404 => "check the server in the file given with --kubeconfig".to_owned(),
        410 => "the list took too long; try again".to_owned(),
        _ => "try again".to_owned(),
    };
    let said = status_message(status);
    anyhow!("cannot list {kind} in the cluster: the API server answered {}: {said}; {next}", status.code)
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::api::PostParams;
    use kube::client::Body;
    use serde_json::json;
    use tenon_sim::{Cluster, ClusterConfig};

    use super::super::collect::Collected;
    use super::*;

    #[tokio::test]
    async fn a_cluster_is_read_as_files_are() {
        let cluster = Cluster::new(ClusterConfig::default()).unwrap();
        let client = cluster.client();
        for definition in tenon_api::definitions() {
            Api::all(client.clone()).create(&PostParams::default(), &definition).await.unwrap();
        }
        let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(client.clone(), "default");
        for index in 0..3 {
            let container = json!({"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}});
            let pod = json!({"metadata": {"name": format!("web-{index}")}, "spec": {"containers": [container]}});
            pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        }
        let claim = json!({"metadata": {"name": "c"}, "spec": {"requirements": [], "nodeClassRef":
            {"group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "n"}}});
        let claims: Api<NodeClaim> = Api::all(client.clone());
        claims
            .create(
                &PostParams::default(),
                &serde_json::from_value(json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": claim["metadata"], "spec": claim["spec"]}))
                .unwrap(),
            )
            .await
            .unwrap();
        let mut collector = Collector::default();
        list_all(&client, &mut collector).await.unwrap();
        let Collected { objects, notes, .. } = collector.finish().unwrap();
        assert_eq!(objects.pods.len(), 3);
        assert!(!["", "default/web-0"].contains(&objects.pods[0].uid()));
        assert!(objects.node_claims.is_empty());
        assert!(notes.iter().any(|note| note.contains("1 NodeClaim without status.providerID")), "{notes:?}");
    }

    /// What is said of a server that gives one answer to everything.
    async fn said_of(code: u16) -> String {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "R",
                "message": "no, thank you"});
            let body = Body::from(status.to_string().into_bytes());
            Response::builder().status(code).body(body).map_err(std::io::Error::other)
        });
        let client = Client::new(service, "default");
        format!("{:#}", list_all(&client, &mut Collector::default()).await.unwrap_err())
    }

    #[tokio::test]
    async fn a_server_that_refuses_is_quoted_with_the_next_step() {
        for (code, words) in [
            (
                401,
                "cannot list NodePool in the cluster: the API server answered 401: no, thank you; renew the credentials",
            ),
            (403, "no, thank you; allow this user to list NodePool in all namespaces"),
            (
                404,
                "cannot list Node in the cluster: the API server answered 404: no, thank you; check the server in the file",
            ),
            (500, "the API server answered 500: no, thank you; try again"),
        ] {
            let said = said_of(code).await;
            assert!(said.contains(words), "{said}");
        }
    }
}
