//! How many replicas are there, and how many are wanted?

use serde_json::json;

use crate::ground::Ground;
use crate::reply::{generation, number, text, uid, version};
use crate::things::{config_map, deployment, with};

pub(crate) async fn a_deployment_has_a_scale(ground: &Ground) -> anyhow::Result<()> {
    let deployments = ground.here("apps/deployments");
    let made = ground.made(&deployments, deployment("a")).await?;
    let scale = ground.get(&format!("{deployments}/a/scale")).await?.expect(200)?;
    assert_eq!((text(&scale, "/kind"), text(&scale, "/apiVersion")), ("Scale", "autoscaling/v1"));
    assert_eq!((text(&scale, "/metadata/name"), uid(&scale)), ("a", uid(&made)));
    assert_eq!(text(&scale, "/metadata/namespace"), ground.name);
    assert_eq!(scale["status"], json!({ "replicas": 0, "selector": "app=a" }));
    Ok(())
}

pub(crate) async fn a_patched_scale_changes_its_deployment(ground: &Ground) -> anyhow::Result<()> {
    let deployments = ground.here("apps/deployments");
    let path = format!("{deployments}/a");
    ground.made(&deployments, deployment("a")).await?;
    let scale = ground.merge(&format!("{path}/scale"), json!({ "spec": { "replicas": 3 } })).await?.expect(200)?;
    assert_eq!((text(&scale, "/kind"), number(&scale, "/spec/replicas")), ("Scale", 3));
    let changed = ground.get(&path).await?.expect(200)?;
    assert_eq!((number(&changed, "/spec/replicas"), generation(&changed)), (3, 2));
    Ok(())
}

pub(crate) async fn an_updated_scale_changes_its_deployment(ground: &Ground) -> anyhow::Result<()> {
    let deployments = ground.here("apps/deployments");
    let path = format!("{deployments}/a");
    ground.made(&deployments, deployment("a")).await?;
    let scale = json!({ "metadata": { "name": "a" }, "spec": { "replicas": 2 } });
    ground.put(&format!("{path}/scale"), scale).await?.expect(200)?;
    assert_eq!(number(&ground.get(&path).await?.expect(200)?, "/spec/replicas"), 2);
    Ok(())
}

pub(crate) async fn a_pool_has_a_scale(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool_with(json!({ "spec": { "replicas": 2 } })).await?;
    ground.merge(&format!("{path}/status"), json!({ "status": { "nodes": 1 } })).await?.expect(200)?;
    let scale = ground.get(&format!("{path}/scale")).await?.expect(200)?;
    assert_eq!((text(&scale, "/kind"), uid(&scale)), ("Scale", uid(&made)));
    assert_eq!((number(&scale, "/spec/replicas"), &scale["status"]), (2, &json!({ "replicas": 1 })));
    Ok(())
}

pub(crate) async fn a_patched_scale_changes_its_pool(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = ground.pool_with(json!({ "spec": { "replicas": 0 } })).await?;
    let scale = ground.merge(&format!("{path}/scale"), json!({ "spec": { "replicas": 4 } })).await?.expect(200)?;
    assert_eq!(number(&scale, "/spec/replicas"), 4);
    let changed = ground.get(&path).await?.expect(200)?;
    assert_eq!((number(&changed, "/spec/replicas"), generation(&changed)), (4, 2));
    Ok(())
}

pub(crate) async fn a_scale_of_a_stale_version_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = ground.pool_with(json!({ "spec": { "replicas": 1 } })).await?;
    let scale = ground.get(&format!("{path}/scale")).await?.expect(200)?;
    ground.merge(&path, json!({ "metadata": { "labels": { "a": "b" } } })).await?.expect(200)?;
    let stale = with(scale.clone(), json!({ "spec": { "replicas": 5 } }));
    ground.put(&format!("{path}/scale"), stale).await?.refused(409, "Conflict")?;
    let patch = json!({ "metadata": { "resourceVersion": version(&scale) }, "spec": { "replicas": 5 } });
    ground.merge(&format!("{path}/scale"), patch).await?.refused(409, "Conflict")?;
    Ok(())
}

pub(crate) async fn a_scale_of_nothing_is_not_found(ground: &Ground) -> anyhow::Result<()> {
    ground.get(&format!("{}/a/scale", ground.here("apps/deployments"))).await?.refused(404, "NotFound")?;
    let maps = ground.here("configmaps");
    ground.made(&maps, config_map("a")).await?;
    ground.get(&format!("{maps}/a/scale")).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_scale_that_wants_none_leaves_the_number_out(ground: &Ground) -> anyhow::Result<()> {
    let deployments = ground.here("apps/deployments");
    ground.made(&deployments, deployment("a")).await?;
    let (pool, _) = ground.pool_with(json!({ "spec": { "replicas": 0 } })).await?;
    for path in [format!("{deployments}/a"), pool] {
        let scale = ground.get(&format!("{path}/scale")).await?.expect(200)?;
        assert_eq!((&scale["spec"], number(&scale, "/status/replicas")), (&json!({}), 0), "{path}");
        let scale = ground.merge(&format!("{path}/scale"), json!({ "spec": { "replicas": 2 } })).await?.expect(200)?;
        assert_eq!(number(&scale, "/spec/replicas"), 2, "{path}");
    }
    Ok(())
}
