//! What does the embedded server refuse that a real one does? Not behaviours: limits, each with its name.

use http::Method;
use serde_json::json;

use crate::ground::Ground;
use crate::reply::text;
use crate::things::config_map;

#[tokio::test]
async fn server_side_apply_is_unsupported() -> anyhow::Result<()> {
    let ground = Ground::embedded("apply").await?;
    let path = format!("{}/a?fieldManager=me", ground.here("configmaps"));
    ground.made(&ground.here("configmaps"), config_map("a")).await?;
    let reply = ground.send(Method::PATCH, &path, "application/apply-patch+yaml", Some(config_map("a"))).await?;
    let told = reply.refused(415, "UnsupportedMediaType")?;
    assert!(text(&told, "/message").contains("does not do server-side apply"), "{told:#}");
    Ok(())
}

#[tokio::test]
async fn dry_runs_are_not_implemented() -> anyhow::Result<()> {
    let ground = Ground::embedded("dry-run").await?;
    let path = format!("{}?dryRun=All", ground.here("configmaps"));
    let told = ground.post(&path, config_map("a")).await?.refused(501, "NotImplemented")?;
    assert_eq!(told["message"], "the embedded API server does not create configmaps as a dry run");
    Ok(())
}

#[tokio::test]
async fn logs_and_terminals_are_not_implemented() -> anyhow::Result<()> {
    let ground = Ground::embedded("logs").await?;
    ground.pod("a", json!({})).await?;
    for part in ["log", "exec", "portforward", "attach"] {
        ground.get(&format!("{}/a/{part}", ground.here("pods"))).await?.refused(501, "NotImplemented")?;
    }
    let tokens = format!("{}/default/token", ground.here("serviceaccounts"));
    ground.post(&tokens, json!({})).await?.refused(501, "NotImplemented")?;
    Ok(())
}
