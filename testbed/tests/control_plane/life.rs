//! Testbeds side by side, components that are killed or hang, and what is left at the end.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use testbed::Program;

use crate::support::{eventually, from_json, names, new_namespace, own_testbed};

/// Whether a process with this testbed in its arguments still runs.
fn is_running(pid: u32, dir: &Path) -> bool {
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&arguments).contains(&dir.display().to_string())
}

#[tokio::test]
async fn two_testbeds_run_side_by_side_and_leave_nothing() -> anyhow::Result<()> {
    let Some(first) = own_testbed()? else { return Ok(()) };
    let Some(second) = own_testbed()? else { return Ok(()) };
    assert_ne!(first.server(), second.server());
    new_namespace(&first.admin().await?, "only-in-the-first").await?;
    let list = Api::<Namespace>::all(second.admin().await?).list(&ListParams::default()).await?;
    assert!(!names(&list.items).contains(&"only-in-the-first".to_owned()));

    let traces: Vec<_> = [&first, &second].map(|bed| (bed.dir().to_owned(), pids(bed))).into_iter().collect();
    assert!(traces.iter().all(|(dir, pids)| pids.len() == 4 && pids.iter().all(|pid| is_running(*pid, dir))));
    drop(first);
    drop(second);
    for (dir, pids) in traces {
        assert!(!dir.exists(), "{} is left", dir.display());
        assert!(!pids.iter().any(|pid| is_running(*pid, &dir)), "a process of {} is left", dir.display());
    }
    Ok(())
}

fn pids(testbed: &testbed::Testbed) -> Vec<u32> {
    Program::CONTROL_PLANE.iter().filter_map(|program| testbed.pid(*program)).collect()
}

#[tokio::test]
async fn a_killed_api_server_comes_back_with_its_data() -> anyhow::Result<()> {
    let Some(testbed) = own_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let map = from_json(json!({ "metadata": { "name": "kept" }, "data": { "k": "v" } }))?;
    let before = maps.create(&PostParams::default(), &map).await?;

    let old_pid = testbed.pid(Program::KubeApiserver);
    testbed.kill(Program::KubeApiserver)?;
    assert_eq!(testbed.pid(Program::KubeApiserver), None);
    assert!(maps.get("kept").await.is_err(), "nobody should answer");
    testbed.restart(Program::KubeApiserver)?;
    assert_ne!(testbed.pid(Program::KubeApiserver), old_pid);
    let after = eventually("the object is still there", async || Ok(maps.get("kept").await.ok())).await?;
    assert_eq!(after.metadata.uid, before.metadata.uid);

    testbed.restart(Program::Etcd)?;
    let after = eventually("etcd kept it too", async || Ok(maps.get("kept").await.ok())).await?;
    assert_eq!(after.metadata.uid, before.metadata.uid);
    // The others reconnect by themselves: a new namespace still gets its ServiceAccount.
    new_namespace(&client, "afterwards").await
}

#[tokio::test]
async fn a_paused_api_server_answers_nobody_until_it_is_resumed() -> anyhow::Result<()> {
    let Some(testbed) = own_testbed()? else { return Ok(()) };
    let namespaces: Api<Namespace> = Api::all(testbed.admin().await?);
    namespaces.get("default").await?;
    testbed.pause(Program::KubeApiserver)?;
    let asked = tokio::time::timeout(Duration::from_secs(2), namespaces.get("default")).await;
    assert!(asked.is_err(), "a paused server answered: {asked:?}");
    testbed.resume(Program::KubeApiserver)?;
    eventually("it answers again", async || Ok(namespaces.get("default").await.ok())).await?;
    Ok(())
}
