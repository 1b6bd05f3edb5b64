//! `cargo xtask diff`: what a newcomer without Go is told, and that a worse plan fails.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{script, text, xtask};

/// A folder with one scenario, and the plans that two programs made of it.
struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new(objects: &Value, theirs: &[Value], ours: &Value) -> anyhow::Result<Bench> {
        let bench = Bench { dir: tempfile::tempdir()? };
        for folder in ["scenarios/7", "reference", "ours"] {
            fs::create_dir_all(bench.dir.path().join(folder))?;
        }
        bench.write("scenarios/7/objects.json", objects)?;
        let requirements = json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]);
        let offerings: Vec<_> =
            [0.5, 1.0, 2.0].map(|price| json!({"requirements": requirements, "price": price})).into();
        bench.write("scenarios/7/instance-types.json", &json!([{"name": "m", "offerings": offerings}]))?;
        bench.write("reference/7.json", &json!(theirs))?;
        bench.write("ours/7.json", ours)?;
        Ok(bench)
    }

    fn write(&self, name: &str, value: &Value) -> anyhow::Result<()> {
        Ok(fs::write(self.dir.path().join(name), value.to_string())?)
    }

    fn judge(&self) -> anyhow::Result<Output> {
        let folders = ["scenarios", "reference", "ours"].map(|name| self.dir.path().join(name));
        Ok(xtask().args(["diff", "judge"]).args(folders).output()?)
    }
}

fn plan(pods: &[&str], cost: f64) -> Value {
    let offering = json!({"instanceType": "m", "zone": "a", "capacityType": "spot", "price": cost});
    let claim = json!({"nodePool": "a", "pods": pods, "offering": offering});
    json!({"version": 1, "newNodeClaims": [claim], "existingNodes": [], "unschedulable": [],
        "stats": {"pods": pods.len(), "nodes": 1, "cost": cost}})
}

fn two_pods() -> Value {
    let pods = ["a", "b"].map(|name| json!({"kind": "Pod", "metadata": {"name": name, "namespace": "default"}}));
    json!({"kind": "List", "items": pods})
}

#[test]
fn a_plan_as_good_as_karpenters_passes() -> anyhow::Result<()> {
    let bench = Bench::new(&two_pods(), &[plan(&["default/a"], 1.0)], &plan(&["default/a"], 0.5))?;
    let output = bench.judge()?;
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("1 right, 0 wrong, 0 with more pods placed, 0 void"), "{}", text(&output));
    Ok(())
}

#[test]
fn a_worse_plan_fails_and_is_named() -> anyhow::Result<()> {
    let bench = Bench::new(&two_pods(), &[plan(&["default/a", "default/b"], 1.0)], &plan(&["default/a"], 2.0))?;
    let output = bench.judge()?;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("7: pods only Karpenter places: default/b"), "{}", text(&output));
    assert!(text(&output).contains("7: Tenon's plan costs 2.0000"), "{}", text(&output));
    Ok(())
}

#[test]
fn a_scenario_that_is_void_proves_nothing() -> anyhow::Result<()> {
    let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}, {}]}});
    let daemon = json!({"kind": "DaemonSet", "spec": {"template": {"spec": {"affinity": {"nodeAffinity": terms}}}}});
    let bench = Bench::new(&json!({"items": [daemon]}), &[plan(&["a"], 1.0)], &plan(&["a"], 1.0))?;
    let output = bench.judge()?;
    assert_eq!(output.status.code(), Some(1), "nothing was compared: {}", text(&output));
    assert!(text(&output).contains("7: void:"), "{}", text(&output));
    Ok(())
}

#[test]
fn without_go_the_way_without_go_is_named() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut command = xtask();
    command.arg("diff").env_remove("TENON_TESTBED_BIN").env_remove("KUBEBUILDER_ASSETS");
    let output = command.env("XDG_CACHE_HOME", dir.path()).env("PATH", "/bin").output()?;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("`cargo xtask diff recorded`"), "{}", text(&output));
    assert!(text(&output).contains("install Go"), "{}", text(&output));
    Ok(())
}

/// Answers every scenario with an empty plan, which leaves out all pods.
fn lazy_tenon(path: &Path) -> anyhow::Result<()> {
    let plan =
        json!({"version": 1, "newNodeClaims": [], "existingNodes": [], "unschedulable": [], "stats": {"cost": 0}});
    script(path, &format!("echo '{plan}'"))
}

#[test]
fn a_tenon_that_places_nothing_fails_against_the_recordings() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let tenon = dir.path().join("tenon");
    lazy_tenon(&tenon)?;
    let output = xtask().args(["diff", "recorded", "--tenon"]).arg(&tenon).output()?;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let wrong = text(&output).lines().filter(|line| line.contains("pods only Karpenter places")).count();
    assert!(wrong > 30, "only {wrong} of 40 recordings noticed");
    Ok(())
}
