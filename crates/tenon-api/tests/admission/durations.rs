//! Durations as the real API server takes them in a NodePool.

use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tenon_model::{NodeShare, Timespan, TimespanOrNever};
use testbed::shared_testbed;

use super::definitions::install;

const TEXTS: [&str; 32] = [
    "0s",
    "30s",
    "5m",
    "1h",
    "1h30m",
    "30m1h",
    "1m1m1m",
    "007s",
    "720h",
    "99999999999h",
    "0h0m0s",
    "Never",
    "never",
    "",
    "0",
    "5",
    "s",
    "1d",
    "1w",
    "-1s",
    "+1s",
    "1.5h",
    ".5s",
    "1h ",
    " 1h",
    "1h 30m",
    "1H",
    "5ms",
    "5us",
    "1h5",
    "NeverNever",
    "1hNever",
];

const SHARES: [&str; 16] =
    ["0", "5", "10%", "0%", "100%", "101%", "99%", "007", "", "%", "-1", "+1", "1.5", "10 %", "2147483647", "10%%"];

fn pool(duration: &str, share: &str, grace: Option<&str>) -> Value {
    let class = json!({ "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "default" });
    let mut template = json!({ "requirements": [], "nodeClassRef": class, "expireAfter": duration });
    if let Some(grace) = grace {
        template["terminationGracePeriod"] = grace.into();
    }
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "durations" },
        "spec": {
            "template": { "spec": template },
            "disruption": { "consolidateAfter": duration, "budgets": [{ "nodes": share }] },
        },
    })
}

/// What the server would keep; `None` if it refuses.
async fn kept(pools: &Api<DynamicObject>, pool: &Value) -> anyhow::Result<Option<Value>> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    match pools.create(&dry_run, &serde_json::from_value(pool.clone())?).await {
        Ok(made) => Ok(Some(made.data)),
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn the_server_takes_the_durations_and_shares_that_we_read_and_keeps_their_text() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    install(&client).await?;
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("karpenter.sh", "v1", "NodePool"), "nodepools");
    let pools: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut differences = Vec::new();
    for text in TEXTS {
        let ours = text.parse::<TimespanOrNever>().ok().map(|span| span.to_string());
        let theirs = kept(&pools, &pool(text, "5", None)).await?;
        for field in ["/spec/disruption/consolidateAfter", "/spec/template/spec/expireAfter"] {
            let theirs = theirs.as_ref().and_then(|made| made.pointer(field)).and_then(Value::as_str);
            if theirs != ours.as_deref() {
                differences.push(format!("{field} {text:?}: {ours:?} here, {theirs:?} there"));
            }
        }
        let ours = text.parse::<Timespan>().is_ok();
        let theirs = kept(&pools, &pool("5m", "5", Some(text))).await?.is_some();
        if ours != theirs {
            differences.push(format!("grace {text:?}: {ours} here, {theirs} there"));
        }
    }
    for text in SHARES {
        let ours = text.parse::<NodeShare>().is_ok();
        let theirs = kept(&pools, &pool("5m", text, None)).await?.is_some();
        if ours != theirs {
            differences.push(format!("nodes {text:?}: {ours} here, {theirs} there"));
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    Ok(())
}
