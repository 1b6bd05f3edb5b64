//! What do people see of our kinds: examples, `kubectl get`, `kubectl explain`, the chart?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use testbed::proof::with_programs;
use testbed::{Program, Testbed, eventually, own_testbed, shared_testbed};

use super::samples::{Kinds, sample};
use crate::ground::Ground;

/// Set, the committed texts are written instead of compared.
const UPDATE: &str = "UPDATE_SNAPSHOTS";

/// A file of the repository.
fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// What a program says to the testbed; an error if it fails.
fn run(testbed: &Testbed, program: Program, args: &[&str]) -> anyhow::Result<String> {
    let found = with_programs(&[program])?.into_iter().flatten().next().context("the program is gone")?;
    let output = Command::new(found.path).args(args).envs(testbed.environment()).output()?;
    ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Compares a text with the committed one.
fn matches_committed(name: &str, text: &str) -> anyhow::Result<()> {
    let path = in_repository("crates/tenon/tests/conformance/definitions/snapshots").join(name);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::create_dir_all(path.parent().context("no folder")?)?;
        return Ok(std::fs::write(path, text)?);
    }
    let committed = std::fs::read_to_string(&path).with_context(|| format!("no text for {name}; set {UPDATE}=1"))?;
    ensure!(committed == text, "{name} differs; if that is right, set {UPDATE}=1\n{committed}\nis now\n{text}");
    Ok(())
}

/// The documents of every example.
fn examples() -> anyhow::Result<Vec<Value>> {
    let inside = |folder: PathBuf| -> anyhow::Result<Vec<PathBuf>> {
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    };
    let (folders, mut files): (Vec<PathBuf>, Vec<PathBuf>) =
        inside(in_repository("examples"))?.into_iter().partition(|path| path.is_dir());
    for folder in folders {
        files.extend(inside(folder)?);
    }
    files.sort();
    let mut documents = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let parsed: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| format!("cannot read {}", file.display()))?;
        documents.extend(parsed);
    }
    Ok(documents)
}

#[tokio::test]
async fn kubectl_applies_every_example_in_the_strictest_way() -> anyhow::Result<()> {
    // Its own: the examples have names that others could use.
    let Some(testbed) = own_testbed()? else { return Ok(()) };
    if with_programs(&[Program::Kubectl])?.is_none() {
        return Ok(());
    }
    for definition in tenon_api::definitions() {
        let path = testbed.dir().join(tenon_api::file_name(&definition));
        std::fs::write(&path, serde_json::to_vec(&definition)?)?;
        run(&testbed, Program::Kubectl, &["apply", "--server-side", "-f", &path.to_string_lossy()])?;
    }
    run(&testbed, Program::Kubectl, &["wait", "--for=condition=Established", "customresourcedefinitions", "--all"])?;
    let folder = in_repository("examples").to_string_lossy().into_owned();
    let apply = ["apply", "--server-side", "--validate=strict", "--recursive", "-f", &folder];
    // What is established is served a moment later.
    let applied = eventually("the kinds are served", async || match run(&testbed, Program::Kubectl, &apply) {
        Err(error) if error.to_string().contains("no matches for kind") => Ok(None),
        outcome => outcome.map(Some),
    })
    .await?;
    ensure!(applied.lines().count() == examples()?.len(), "not everything was applied:\n{applied}");
    Ok(())
}

/// Nothing of an example is dropped or changed.
pub(super) async fn examples_are_stored_as_written(ground: &Ground) -> anyhow::Result<()> {
    ground.define().await?;
    let kinds = Kinds::read()?;
    let ours: BTreeSet<String> = tenon_api::definitions().into_iter().map(|found| found.spec.names.kind).collect();
    for (number, mut example) in examples()?.into_iter().enumerate() {
        let kind = example["kind"].as_str().context("no kind")?.to_owned();
        if !ours.contains(&kind) {
            continue;
        }
        example["metadata"] = json!({ "name": format!("{}-{number}", ground.name) });
        let path = format!("{}?fieldValidation=Strict", kinds.path(&kind, &ground.name));
        let stored = ground.made(&path, example.clone()).await?;
        ensure!(contains(&stored["spec"], &example["spec"]), "{kind}: {} became {}", example["spec"], stored["spec"]);
    }
    Ok(())
}

/// Whether all of `less` is in `more`.
fn contains(more: &Value, less: &Value) -> bool {
    match (more, less) {
        (Value::Object(more), Value::Object(less)) => {
            less.iter().all(|(key, value)| more.get(key).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(more), Value::Array(less)) => {
            more.len() == less.len() && more.iter().zip(less).all(|(more, less)| contains(more, less))
        }
        (more, less) => more == less,
    }
}

#[test]
fn the_full_examples_leave_no_field_out() -> anyhow::Result<()> {
    let examples = examples()?;
    for kind in ["ProxmoxNodeClass", "ProxmoxTemplate", "ProxmoxUnmanagedTemplate"] {
        let full = examples.iter().find(|example| example["kind"] == kind && example["metadata"]["name"] == "full");
        let full = full.with_context(|| format!("no full {kind}"))?;
        let definitions = tenon_api::definitions();
        let definition = definitions.iter().find(|found| found.spec.names.kind == kind).context("no definition")?;
        let definition = serde_json::to_value(definition)?;
        let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let mut absent = Vec::new();
        missing("spec", spec, &full["spec"], &mut absent);
        ensure!(absent.is_empty(), "the full {kind} lacks {absent:?}");
    }
    Ok(())
}

fn missing(path: &str, schema: &Value, value: &Value, absent: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match &value[name] {
            Value::Null => absent.push(path),
            Value::Array(items) => missing(&path, &field["items"], &items[0], absent),
            found => missing(&path, field, found, absent),
        }
    }
}

#[tokio::test]
async fn kubectl_shows_and_explains_every_kind() -> anyhow::Result<()> {
    let Some(ground) = Ground::real("kubectl_shows_and_explains").await? else { return Ok(()) };
    let (Some(testbed), Some(_)) = (shared_testbed()?, with_programs(&[Program::Kubectl])?) else { return Ok(()) };
    ground.define().await?;
    let kinds = Kinds::read()?;
    let mut shown = String::new();
    for definition in tenon_api::definitions() {
        let names = &definition.spec.names;
        let (kind, group) = (&names.kind, &definition.spec.group);
        store(&ground, &kinds, kind).await?;
        let resource = format!("{}.{}.{group}", names.plural, definition.spec.versions[0].name);
        let args = ["get", &resource, "shown", "-o", "wide", "--namespace", &ground.name];
        shown += &format!("{kind}\n{}\n", table(&run(testbed, Program::Kubectl, &args)?));
        let resource = format!("{}.{group}", names.plural);
        let explained = eventually("the kind is explained", async || {
            let whole = run(testbed, Program::Kubectl, &["explain", &resource, "--recursive"])?;
            let spec = run(testbed, Program::Kubectl, &["explain", &format!("{resource}.spec")])?;
            Ok(whole.contains("conditions").then(|| format!("{whole}\n{spec}")))
        })
        .await?;
        let explained: Vec<&str> = explained.lines().map(str::trim_end).collect();
        matches_committed(&format!("explain-{}.txt", kind.to_lowercase()), &(explained.join("\n") + "\n"))?;
    }
    matches_committed("get-wide.txt", &shown)
}

/// An object with a status, for people to look at.
async fn store(ground: &Ground, kinds: &Kinds, kind: &str) -> anyhow::Result<()> {
    let mut object = sample(kind, "");
    object["metadata"] = json!({ "name": "shown", "labels": {
        "node.kubernetes.io/instance-type": "s1.4x8", "karpenter.sh/capacity-type": "on-demand",
        "topology.kubernetes.io/zone": "pve1", "karpenter.sh/nodepool": "default",
    } });
    object["status"]["resources"] = json!({ "cpu": "4", "memory": "8Gi", "zones": "2" });
    let mut status = object["status"].take();
    if !matches!(kind, "NodePool" | "ProxmoxNodeClass" | "ProxmoxTemplate" | "ProxmoxUnmanagedTemplate") {
        status.as_object_mut().context("no status")?.remove("resources");
    }
    let path = kinds.path(kind, &ground.name);
    object.as_object_mut().context("no object")?.remove("status");
    ground.made(&path, object).await?;
    ground.merge(&format!("{path}/shown/status"), json!({ "status": status })).await?.expect(200)?;
    Ok(())
}

/// A table without its widths and ages, which differ from run to run.
fn table(text: &str) -> String {
    let cells = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
    };
    let mut lines: Vec<Vec<String>> = text.lines().map(cells).collect();
    let age = lines.first().and_then(|head| head.iter().position(|cell| cell == "AGE"));
    for line in lines.iter_mut().skip(1) {
        if let Some(cell) = age.and_then(|age| line.get_mut(age)) {
            *cell = "<age>".to_owned();
        }
    }
    lines.iter().map(|line| line.join(" | ") + "\n").collect()
}

/// A copy of the chart whose class does not know `cloneMode`.
fn older_chart(folder: &Path) -> anyhow::Result<()> {
    let chart = in_repository("charts/tenon-crds");
    std::fs::create_dir_all(folder.join("templates"))?;
    for file in ["Chart.yaml", "values.yaml", "values.schema.json"] {
        std::fs::copy(chart.join(file), folder.join(file))?;
    }
    for entry in std::fs::read_dir(chart.join("templates"))? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?.replace("cloneMode:", "formerMode:");
        std::fs::write(folder.join("templates").join(path.file_name().context("no name")?), text)?;
    }
    Ok(())
}

#[tokio::test]
async fn the_chart_installs_upgrades_and_keeps_the_definitions() -> anyhow::Result<()> {
    // Its own: no other test may define the kinds here.
    let Some(testbed) = own_testbed()? else { return Ok(()) };
    if with_programs(&[Program::Helm, Program::Kubectl])?.is_none() {
        return Ok(());
    }
    let helm = |args: &[&str]| run(&testbed, Program::Helm, args);
    let names = || run(&testbed, Program::Kubectl, &["get", "customresourcedefinitions", "-o", "name"]);
    let class = || -> anyhow::Result<Value> {
        let name = "proxmoxnodeclasses.karpenter.proxmox.sinextra.dev";
        Ok(serde_json::from_str(&run(&testbed, Program::Kubectl, &["get", "crd", name, "-o", "json"])?)?)
    };
    let modes = |class: &Value| {
        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let fields = class.pointer(spec).cloned().unwrap_or_default();
        (fields.get("cloneMode").is_some(), fields.get("formerMode").is_some())
    };
    let older = testbed.dir().join("older-chart");
    older_chart(&older)?;
    helm(&["install", "crds", &older.to_string_lossy()])?;
    ensure!(names()?.lines().count() == 7, "{}", names()?);
    ensure!(modes(&class()?) == (false, true), "the older chart is not there");

    let chart = in_repository("charts/tenon-crds").to_string_lossy().into_owned();
    helm(&["upgrade", "crds", &chart, "--set", "additionalAnnotations.team=web"])?;
    let upgraded = class()?;
    ensure!(modes(&upgraded) == (true, false), "an upgrade does not upgrade the definitions");
    let annotations = &upgraded["metadata"]["annotations"];
    assert_eq!((&annotations["helm.sh/resource-policy"], &annotations["team"]), (&json!("keep"), &json!("web")));
    for definition in tenon_api::definitions() {
        let args = ["get", "crd", definition.metadata.name.as_deref().unwrap_or_default(), "-o", "json"];
        let stored: CustomResourceDefinition = serde_json::from_str(&run(&testbed, Program::Kubectl, &args)?)?;
        let is_same = stored.spec.versions[0].schema == definition.spec.versions[0].schema;
        ensure!(is_same, "the chart's {args:?} is another one: run `cargo xtask crds`");
    }

    helm(&["uninstall", "crds"])?;
    ensure!(names()?.lines().count() == 7, "the definitions went with the release");
    ensure!(helm(&["install", "crds", &chart, "--set-string", "keep=maybe"]).is_err(), "the values are not checked");
    helm(&["install", "crds", &chart, "--set", "keep=false"])?;
    helm(&["uninstall", "crds"])?;
    eventually("the definitions go", async || Ok(names()?.is_empty().then_some(()))).await
}

/// A chart like that of the Go provider: older definitions in `crds/`, which belong to no release.
fn chart_with_definitions_aside(folder: &Path, definitions: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder.join("crds"))?;
    std::fs::write(folder.join("Chart.yaml"), "apiVersion: v2\nname: karpenter-provider-proxmox\nversion: 0.4.9\n")?;
    Ok(std::fs::write(folder.join("crds/all.yaml"), definitions)?)
}

#[tokio::test]
async fn the_chart_takes_over_the_definitions_of_the_go_providers_chart_and_their_objects_stay() -> anyhow::Result<()> {
    // Its own: no other test may define the kinds here.
    let Some(testbed) = own_testbed()? else { return Ok(()) };
    if with_programs(&[Program::Helm, Program::Kubectl])?.is_none() {
        return Ok(());
    }
    let helm = |args: &[&str]| run(&testbed, Program::Helm, args);
    let kubectl = |args: &[&str]| run(&testbed, Program::Kubectl, args);
    let [older, theirs] = ["older-chart", "their-chart"].map(|name| testbed.dir().join(name));
    older_chart(&older)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    chart_with_definitions_aside(&theirs, &helm(&["template", "x", &text(&older)])?)?;
    helm(&["install", "karpenter", &text(&theirs)])?;
    kubectl(&["wait", "--for=condition=Established", "customresourcedefinitions", "--all"])?;
    let pool = testbed.dir().join("pool.json");
    std::fs::write(&pool, json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "theirs" }, "spec": sample("NodePool", "")["spec"],
    }).to_string())?;
    eventually("the kinds are served", async || Ok(kubectl(&["create", "-f", &text(&pool)]).ok())).await?;

    let chart = text(&in_repository("charts/tenon-crds"));
    let refused = helm(&["install", "tenon-crds", &chart]).unwrap_err().to_string();
    ensure!(refused.contains("invalid ownership metadata"), "{refused}");
    helm(&["install", "tenon-crds", &chart, "--take-ownership"])?;
    let name = "proxmoxnodeclasses.karpenter.proxmox.sinextra.dev";
    let class: Value = serde_json::from_str(&kubectl(&["get", "crd", name, "-o", "json"])?)?;
    assert_eq!(class["metadata"]["annotations"]["meta.helm.sh/release-name"], json!("tenon-crds"));
    ensure!(class.to_string().contains("cloneMode"), "taking over does not upgrade");
    // The other release goes, and a later version of ours is an upgrade like any other.
    helm(&["uninstall", "karpenter"])?;
    helm(&["upgrade", "tenon-crds", &chart])?;
    ensure!(kubectl(&["get", "customresourcedefinitions", "-o", "name"])?.lines().count() == 7, "definitions are gone");
    ensure!(kubectl(&["get", "nodepools", "-o", "name"])?.contains("theirs"), "the NodePool is gone");
    Ok(())
}
