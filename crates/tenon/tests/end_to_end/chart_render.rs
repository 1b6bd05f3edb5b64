//! What does the chart render for which values, and does a real API server take it?
//!
//! Snapshots are small: the default values in full, and for others the lines that differ. Set UPDATE_SNAPSHOTS=1 to write them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testbed::proof::with_programs;
use testbed::{Program, Testbed, eventually, own_testbed};

use crate::chart::{Admin, beside};
use crate::world::install_definitions;

/// Sets of values by name, as `--set` of Helm.
const VALUES: [(&str, &[&str]); 13] = [
    ("nodes", &["csrApprover=true", "ccm=none", "nodePolicy=static", "firstBootSecretNamespaces={default}"]),
    (
        "existing-secret",
        &["existingConfigSecret=mine", "existingConfigSecretKey=proxmox.yaml", "configFile=/etc/elsewhere/cloud.yaml"],
    ),
    ("metrics", &["metrics.enabled=true", "metrics.port=9090"]),
    (
        "service-monitor",
        &["metrics.enabled=true", "metrics.type=serviceMonitor", "metrics.monitorLabels.release=prometheus"],
    ),
    ("pod-monitor", &["metrics.enabled=true", "metrics.type=podMonitor", "metrics.interval=30s"]),
    ("alerts", &["prometheusRule.create=true", "prometheusRule.labels.release=prometheus"]),
    ("availability", &["networkPolicy.create=true", "podDisruptionBudget.create=true", "replicaCount=2"]),
    ("other-account", &["serviceAccount.create=false", "serviceAccount.name=other", "bootstrapBindings.create=false"]),
    ("files", &["instanceTypes=[]", "nodeSettings=\\{\\}", "updateStrategy.type=Recreate"]),
    ("other-name", &["fullnameOverride=scaler"]),
    (
        "scheduler",
        &["schedulerConfig=podTopologySpread: {}", "priorityClassName=", "image.repository=registry.example/tenon"],
    ),
    (
        "extra-objects",
        &[
            "extraObjects[0].apiVersion=v1",
            "extraObjects[0].kind=ConfigMap",
            "extraObjects[0].metadata.name=\\{\\{ .Release.Name \\}\\}-more",
        ],
    ),
    ("dashboard", &["grafanaDashboard.create=true"]),
];

/// What the schema of the values refuses.
const WRONG: [&str; 4] =
    ["metrics.port=0", "csrApprover=perhaps", "customResources.nodeClass.a.enable=true", "replicas=2"];

/// The fields of the Prometheus operator's kinds that the chart could get wrong, as that operator requires them.
fn stand_ins() -> Vec<Value> {
    let labels = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let selector = json!({ "type": "object", "properties": { "matchLabels": labels } });
    let endpoints = json!({ "type": "array", "items": { "type": "object", "properties": {
        "port": { "type": "string" }, "interval": { "type": "string", "pattern": "^(0|(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?)$" },
    } } });
    let rule = json!({ "type": "object", "required": ["expr"], "properties": {
        "alert": { "type": "string" }, "expr": { "x-kubernetes-int-or-string": true }, "for": { "type": "string" },
        "labels": labels, "annotations": labels,
    } });
    let groups = json!({ "type": "array", "items": { "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" }, "interval": { "type": "string" }, "rules": { "type": "array", "items": rule },
    } } });
    vec![
        definition(
            "ServiceMonitor",
            &["endpoints", "selector"],
            &json!({ "endpoints": endpoints, "selector": selector }),
        ),
        definition("PodMonitor", &["selector"], &json!({ "podMetricsEndpoints": endpoints, "selector": selector })),
        definition("PrometheusRule", &[], &json!({ "groups": groups })),
    ]
}

fn definition(kind: &str, required: &[&str], properties: &Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let mut spec = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        spec["required"] = json!(required);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.monitoring.coreos.com") },
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced", "names": { "kind": kind, "plural": plural },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "required": ["spec"], "properties": { "spec": spec },
            } } }],
        },
    })
}

/// What the chart renders for these values.
fn render(admin: &Admin, values: &[&str]) -> anyhow::Result<String> {
    let chart = beside("../../charts/tenon");
    let mut args = vec!["template", "t", &chart, "--namespace", "kube-system"];
    values.iter().for_each(|value| args.extend(["--set", value]));
    admin.helm(&args)
}

/// What the API server says of objects, without keeping them.
fn try_objects(testbed: &Testbed, manifests: &str) -> anyhow::Result<()> {
    let path = testbed.dir().join("rendered.yaml");
    std::fs::write(&path, manifests)?;
    let args = ["apply", "--dry-run=server", "--validate=strict", "-f", &path.to_string_lossy()];
    Admin { testbed }.kubectl(&args).map(drop)
}

/// Objects by kind and name, without comments. What a file of the chart says is shown by the file.
fn objects(rendered: &str) -> BTreeMap<String, Vec<&str>> {
    let mut objects = BTreeMap::new();
    for document in rendered.split("\n---\n") {
        let is_shown = |line: &&str| !line.trim_start().starts_with('#') && !line.trim().is_empty() && *line != "---";
        let lines: Vec<&str> = document.lines().filter(is_shown).collect();
        let field = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        let (kind, title) = (field("kind:"), field("  name:"));
        let namespace = field("  namespace:");
        if !kind.is_empty() {
            objects.insert(format!("{kind} {namespace}/{title}"), lines);
        }
    }
    objects
}

/// The lines that differ, in order: `-` for those that are not there any more.
fn difference<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<String> {
    // The length of what both have in common from each pair of lines on.
    let mut common = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for (i, was) in old.iter().enumerate().rev() {
        for (j, is) in new.iter().enumerate().rev() {
            common[i][j] = if was == is { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j < new.len() && (i == old.len() || common[i][j + 1] >= common[i + 1][j]) {
            lines.push(format!("+{}", new[j]));
            j += 1;
        } else {
            lines.push(format!("-{}", old[i]));
            i += 1;
        }
    }
    lines
}

/// The objects of a set of values that differ from those of the default values.
fn summary(default: &str, rendered: &str) -> String {
    let (old, new) = (objects(default), objects(rendered));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut text = String::new();
    for name in names {
        match (old.get(name), new.get(name)) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => text += &format!("{name}\n{}\n", difference(old, new).join("\n")),
            (Some(_), None) => text += &format!("{name}\n(gone)\n"),
            (None, Some(new)) => {
                // The dashboard and the alerts are files of the chart.
                let lines = new.iter().take_while(|line| !matches!(line.trim(), "tenon.json: |" | "groups:"));
                text += &format!("{name}\n{}\n", lines.map(|line| format!("+{line}")).collect::<Vec<_>>().join("\n"));
            }
            (None, None) => {}
        }
    }
    text
}

fn matches_committed(name: &str, text: &str) -> anyhow::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/charts/snapshots").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().context("no folder")?)?;
        return Ok(std::fs::write(path, text)?);
    }
    let committed = std::fs::read_to_string(&path).with_context(|| format!("no {name}; set UPDATE_SNAPSHOTS=1"))?;
    ensure!(committed == text, "{name} differs; if that is right, set UPDATE_SNAPSHOTS=1\n{committed}\nis now\n{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_renders_what_was_reviewed_and_the_api_server_takes_it_whatever_the_values() -> anyhow::Result<()> {
    let Some(testbed) = own_testbed()? else { return Ok(()) };
    if with_programs(&[Program::Helm, Program::Kubectl])?.is_none() {
        return Ok(());
    }
    install_definitions(&testbed.admin().await?).await?;
    let admin = Admin { testbed: &testbed };
    let path = testbed.dir().join("stand-ins.json");
    std::fs::write(&path, json!({ "apiVersion": "v1", "kind": "List", "items": stand_ins() }).to_string())?;
    admin.kubectl(&["create", "-f", &path.to_string_lossy()])?;
    admin.kubectl(&["wait", "--for=condition=Established", "customresourcedefinitions", "--all"])?;
    let (chart, user) = (beside("../../charts/tenon"), beside("tests/end_to_end/charts/values-of-a-user.yaml"));
    admin.helm(&["lint", "--strict", &chart])?;
    try_objects(&testbed, &admin.helm(&["template", "t", &chart, "--namespace", "kube-system", "--values", &user])?)?;
    let default = render(&admin, &[])?;
    matches_committed(
        "default.yaml",
        &objects(&default).into_values().map(|lines| lines.join("\n") + "\n---\n").collect::<String>(),
    )?;
    try_objects(&testbed, &default)?;
    for (name, values) in VALUES {
        let rendered = render(&admin, values)?;
        // Under another name everything is the same, or the snapshot would say where the old name is left.
        matches_committed(&format!("{name}.diff"), &summary(&default, &rendered.replace("scaler", "t-tenon")))?;
        // What is established is served a moment later.
        eventually("the kinds are served", async || match try_objects(&testbed, &rendered) {
            Err(error) if error.to_string().contains("no matches for kind") => Ok(None),
            outcome => outcome.with_context(|| name.to_owned()).map(Some),
        })
        .await?;
    }
    for wrong in WRONG {
        let refused = render(&admin, &[wrong]).unwrap_err().to_string();
        ensure!(refused.contains("values don't meet the specifications"), "{wrong}: {refused}");
    }
    Ok(())
}

#[test]
fn a_difference_shows_what_came_and_what_went() {
    assert_eq!(difference(&["a", "b", "c"], &["a", "x", "c", "d"]), ["+x", "-b", "+d"]);
    assert!(difference(&["a"], &["a"]).is_empty());
    assert_eq!(
        summary("kind: A\nmetadata:\n  name: x", "kind: A\nmetadata:\n  name: y"),
        "A /x\n(gone)\nA /y\n+kind: A\n+metadata:\n+  name: y\n"
    );
}
