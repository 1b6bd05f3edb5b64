//! Do the client library's own calls arrive as they are meant?

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kube::Api;
use kube::api::{DeleteParams, EvictParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;

use crate::ground::Ground;
use crate::things::{config_map, deployment};

pub(crate) async fn the_library_reads_refusals(ground: &Ground) -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(ground.client.clone(), &ground.name);
    assert!(maps.get_opt("a").await?.is_none());
    match maps.get("a").await {
        Err(kube::Error::Api(told)) => assert_eq!((told.code, told.reason.as_str()), (404, "NotFound")),
        other => anyhow::bail!("{other:?}"),
    }
    let deleted = maps.delete("a", &DeleteParams::default()).await;
    assert!(matches!(&deleted, Err(kube::Error::Api(told)) if told.is_not_found()), "{deleted:?}");
    Ok(())
}

pub(crate) async fn the_library_tells_what_stays_from_what_is_gone(ground: &Ground) -> anyhow::Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(ground.client.clone(), &ground.name);
    let held: ConfigMap = serde_json::from_value(config_map("a"))?;
    let mut held = maps.create(&PostParams::default(), &held).await?;
    held.metadata.finalizers = Some(vec!["tenon.dev/test".to_owned()]);
    let held = maps.replace("a", &PostParams::default(), &held).await?;
    let just_this = Preconditions { uid: held.metadata.uid.clone(), resource_version: None };
    let params = DeleteParams::default().preconditions(just_this);
    let stays = maps.delete("a", &params).await?.left().is_some_and(|map| map.metadata.deletion_timestamp.is_some());
    assert!(stays, "what stays is the object");
    let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("a", &PatchParams::default(), &free).await?;
    ground.made(&ground.here("configmaps"), config_map("b")).await?;
    assert!(maps.delete("b", &DeleteParams::default()).await?.is_right(), "what is gone is a Status");
    Ok(())
}

pub(crate) async fn an_eviction_sent_as_an_object_keeps_its_options(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let pods: Api<Pod> = Api::namespaced(ground.client.clone(), &ground.name);
    let evict = async |uid: Option<String>| {
        let preconditions = meta::Preconditions { uid, resource_version: None };
        let delete_options =
            Some(meta::DeleteOptions { preconditions: Some(preconditions), ..meta::DeleteOptions::default() });
        let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
        let eviction = Eviction { metadata, delete_options };
        pods.create_subresource::<Eviction, meta::Status>("eviction", "a", &PostParams::default(), &eviction).await
    };
    let refused = evict(Some("00000000-0000-0000-0000-000000000000".to_owned())).await;
    assert!(matches!(&refused, Err(kube::Error::Api(told)) if told.code == 409), "{refused:?}");
    evict(pods.get("a").await?.metadata.uid).await?;
    assert!(pods.get("a").await?.metadata.deletion_timestamp.is_some());
    Ok(())
}

/// Not what we want, but what is: `kube` 5.0 writes `delete_options` where the API reads `deleteOptions`. When this
/// fails, the library is mended and `Api::evict` may be used with preconditions.
pub(crate) async fn an_eviction_by_the_library_loses_its_options(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let pods: Api<Pod> = Api::namespaced(ground.client.clone(), &ground.name);
    let other = Preconditions { uid: Some("00000000-0000-0000-0000-000000000000".to_owned()), resource_version: None };
    let delete_options = Some(DeleteParams::default().preconditions(other));
    let told = pods.evict("a", &EvictParams { delete_options, ..EvictParams::default() }).await?;
    assert!(told.is_success());
    assert!(pods.get("a").await?.metadata.deletion_timestamp.is_some(), "another pod was evicted than was meant");
    Ok(())
}

pub(crate) async fn the_library_scales(ground: &Ground) -> anyhow::Result<()> {
    ground.made(&ground.here("apps/deployments"), deployment("a")).await?;
    let deployments: Api<Deployment> = Api::namespaced(ground.client.clone(), &ground.name);
    assert_eq!(deployments.get_scale("a").await?.spec.and_then(|spec| spec.replicas), None);
    let patch = Patch::Merge(json!({ "spec": { "replicas": 2 } }));
    let scale = deployments.patch_scale("a", &PatchParams::default(), &patch).await?;
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(2));
    Ok(())
}

pub(crate) async fn the_library_lists_page_by_page(ground: &Ground) -> anyhow::Result<()> {
    for name in ["a", "b", "c"] {
        ground.made(&ground.here("secrets"), json!({ "metadata": { "name": name } })).await?;
    }
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(ground.client.clone(), &ground.name);
    let mut params = ListParams::default().limit(2);
    let first = secrets.list(&params).await?;
    params.continue_token = first.metadata.continue_.clone();
    let second = secrets.list(&params).await?;
    let names = first.items.iter().chain(&second.items).filter_map(|item| item.metadata.name.as_deref());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(first.metadata.resource_version, second.metadata.resource_version);
    Ok(())
}
