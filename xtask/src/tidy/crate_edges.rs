//! Rule: arrows between our crates point inward only, and pure crates stay pure.

use super::Problem;
use crate::tree::{Crate, Dependency, Tree};

/// A crate, the crates of ours it may use, and the outside crates it must not know.
struct Row {
    name: &'static str,
    ours: &'static [&'static str],
    unknown: &'static [&'static str],
}

const KUBE: [&str; 5] = ["k8s-openapi", "kube", "kube-client", "kube-core", "kube-runtime"];

/// What a crate that only thinks must not know: I/O, async, logging, randomness, clients.
const IMPURE: &[&str] = &[
    "hyper",
    "hyper-util",
    "k8s-openapi",
    "kube",
    "kube-client",
    "kube-core",
    "kube-runtime",
    "log",
    "rand",
    "reqwest",
    "tokio",
    "tower",
    "tracing",
];

/// The engine's helpers are few and small, so that it can be read whole.
const ENGINE_OUTSIDE_MAX: usize = 5;

/// What the product is made of.
const PARTS: [&str; 8] = [
    "tenon-model",
    "tenon-engine",
    "tenon-cloudinit",
    "tenon-gotemplate",
    "tenon-api",
    "tenon-pve",
    "tenon-controllers",
    "tenon-dashboard",
];

/// The commands may have the simulator behind them, but a build without it must be possible: it is what is shipped.
const OPTIONAL: (&str, &str) = ("tenon-cli", "tenon-sim");

/// The plan of the house. A new crate gets a row here, and a sentence in ARCHITECTURE.md.
const TABLE: &[Row] = &[
    Row { name: "tenon-model", ours: &[], unknown: IMPURE },
    Row { name: "tenon-engine", ours: &["tenon-model"], unknown: IMPURE },
    Row { name: "tenon-gotemplate", ours: &[], unknown: IMPURE },
    Row { name: "tenon-cloudinit", ours: &["tenon-model", "tenon-gotemplate"], unknown: IMPURE },
    Row { name: "tenon-api", ours: &["tenon-model"], unknown: &["hyper", "kube-client", "kube-runtime", "tokio"] },
    Row { name: "tenon-pve", ours: &["tenon-model"], unknown: &KUBE },
    Row {
        name: "tenon-controllers",
        ours: &["tenon-model", "tenon-engine", "tenon-cloudinit", "tenon-api", "tenon-pve"],
        unknown: &["axum", "clap"],
    },
    Row { name: "tenon-dashboard", ours: &["tenon-model", "tenon-api"], unknown: &["clap"] },
    Row { name: "tenon-sim", ours: &["tenon-model", "tenon-api", "tenon-pve"], unknown: &["clap"] },
    Row { name: "tenon-cli", ours: &PARTS, unknown: &[] },
    Row { name: "tenon", ours: &PARTS, unknown: &[] },
    Row { name: "tenon-fuzz", ours: &PARTS, unknown: &[] },
    Row { name: "testbed", ours: &[], unknown: &[] },
    Row { name: "xtask", ours: &["testbed"], unknown: &[] },
];

/// Tests of every crate may stand on these, but the simulator's own may not.
const TEST_GROUND: [&str; 2] = ["tenon-sim", "testbed"];

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    Ok(tree.crates.iter().flat_map(|package| check_crate(tree, package)).collect())
}

fn check_crate(tree: &Tree, package: &Crate) -> Vec<Problem> {
    let manifest = tree.relative(&package.folder().join("Cargo.toml"));
    let problem = |message: String| Problem::new(&manifest, 0, message);
    let Some(row) = TABLE.iter().find(|row| row.name == package.name) else {
        return vec![problem(format!(
            "crate `{}` has no row in the table of crate edges (xtask, crate_edges.rs)",
            package.name
        ))];
    };
    let mut problems: Vec<Problem> =
        package.dependencies.iter().filter_map(|dependency| refusal(row, dependency)).map(problem).collect();
    let outside = package.dependencies.iter().filter(|other| other.path.is_none() && other.kind.is_none()).count();
    if row.name == "tenon-engine" && outside > ENGINE_OUTSIDE_MAX {
        problems.push(problem(format!(
            "the engine has {outside} outside dependencies; at most {ENGINE_OUTSIDE_MAX} are allowed"
        )));
    }
    problems
}

fn refusal(row: &Row, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.as_str();
    let is_dev = dependency.kind.as_deref() == Some("dev");
    if dependency.path.is_none() {
        let refused = !is_dev && row.unknown.contains(&name);
        return refused.then(|| format!("`{}` must not depend on outside crate `{name}`", row.name));
    }
    if (row.name, name) == OPTIONAL && !is_dev {
        let message = format!("`{}` may use `{name}` only as an optional dependency: add `optional = true`", row.name);
        return (!dependency.optional).then_some(message);
    }
    // The binary starts the verbs, and nobody else may.
    let is_verbs = row.name == "tenon" && name == "tenon-cli";
    let is_test_ground = is_dev && row.name != "tenon-sim" && TEST_GROUND.contains(&name);
    if row.ours.contains(&name) || is_verbs || is_test_ground {
        return None;
    }
    let allowed = if row.ours.is_empty() { "none of our crates".to_owned() } else { row.ours.join(", ") };
    Some(format!("`{}` must not depend on `{name}`; it may use {allowed}", row.name))
}
