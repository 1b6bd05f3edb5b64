//! The bill of materials: which crates are in the shipped program, as a CycloneDX document.
//!
//! Written here from `cargo metadata`, which knows the resolved crates, their licences and sources. A generator of others would be one
//! more tool to install for the same forty lines.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Release;
use crate::run::cargo;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// The document for the program that is shipped: without the simulator, and without what only tests need.
pub(super) fn document(release: &Release) -> anyhow::Result<String> {
    let mut metadata = cargo(&release.root);
    metadata.args(["metadata", "--format-version=1", "--locked", "--no-default-features"]);
    metadata.args(["--filter-platform", "x86_64-unknown-linux-gnu", "--manifest-path", "crates/tenon/Cargo.toml"]);
    let output =
        metadata.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata ended with {}", output.status);
    }
    let metadata = serde_json::from_slice(&output.stdout).context("cannot read the output of cargo metadata")?;
    let text = serde_json::to_string_pretty(&bill(&metadata)?).context("cannot encode the bill of materials")?;
    Ok(text + "\n")
}

fn bill(metadata: &Metadata) -> anyhow::Result<Value> {
    let packages: BTreeMap<&str, &Package> = metadata.packages.iter().map(|one| (one.id.as_str(), one)).collect();
    let nodes: BTreeMap<&str, &Node> = metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let root =
        metadata.packages.iter().find(|one| one.name == "tenon" && one.source.is_none()).context("no crate tenon")?;
    let (mut reached, mut queue) = (BTreeSet::new(), vec![root.id.as_str()]);
    while let Some(id) = queue.pop() {
        if reached.insert(id) {
            queue.extend(nodes.get(id).into_iter().flat_map(|node| linked(node)));
        }
    }
    let mut parts: Vec<&Package> = reached.iter().filter_map(|id| packages.get(id).copied()).collect();
    parts.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    let others = parts.iter().filter(|part| part.id != root.id);
    let reference = |id: &str| packages.get(id).map(|part| url(part));
    let edges: Vec<Value> = parts
        .iter()
        .map(|part| {
            let on: BTreeSet<String> =
                nodes.get(part.id.as_str()).into_iter().flat_map(|node| linked(node)).filter_map(reference).collect();
            json!({ "ref": url(part), "dependsOn": on })
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": component(root, "application") },
        "components": others.map(|part| component(part, "library")).collect::<Vec<_>>(),
        "dependencies": edges,
    }))
}

/// What is linked into a crate. What only its build script or its tests use is not in the program.
fn linked(node: &Node) -> impl Iterator<Item = &str> {
    let is_linked = |dependency: &&Dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
    node.deps.iter().filter(is_linked).map(|dependency| dependency.pkg.as_str())
}

fn component(part: &Package, kind: &str) -> Value {
    let mut component = json!({
        "type": kind, "bom-ref": url(part), "name": part.name, "version": part.version, "purl": url(part),
    });
    if let Some(license) = &part.license {
        // Some crates still use the older spelling of `OR`.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    component
}

/// The package URL of a crate.
fn url(part: &Package) -> String {
    format!("pkg:cargo/{}@{}", part.name, part.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_lists_what_is_linked_and_nothing_else() {
        let package = |name: &str, source: Option<&str>| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source });
        let on = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [package("tenon", None), package("serde", Some("registry")), package("cc", Some("registry")), package("proptest", None)],
            "resolve": { "nodes": [
                { "id": "tenon", "deps": [on("serde", Value::Null), on("cc", json!("build")), on("proptest", json!("dev"))] },
                { "id": "serde", "deps": [] }, { "id": "cc", "deps": [] }, { "id": "proptest", "deps": [] },
            ] },
        });
        let bill = bill(&serde_json::from_value(metadata).unwrap()).unwrap();
        let names: Vec<&str> =
            bill["components"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(names, ["serde"]);
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["dependencies"][1]["dependsOn"], json!(["pkg:cargo/serde@1.0.0"]));
    }
}
