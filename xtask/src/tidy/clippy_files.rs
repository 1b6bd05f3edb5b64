//! Rule: a pure crate brings its own `clippy.toml`, which repeats the root's rules and bans what is not pure.
//!
//! Clippy reads one file only, the nearest: without this rule the root's bans would silently not hold there.

use std::path::Path;

use anyhow::Context as _;
use toml::{Table, Value};

use super::Problem;
use crate::tree::Tree;

/// The crates that decide or render, and do nothing else.
const PURE: [&str; 4] = ["tenon-model", "tenon-engine", "tenon-gotemplate", "tenon-cloudinit"];

/// One ban for each thing a pure crate must not have: clock, environment, files, network, random order, randomness.
const BANS: [(&str, &str); 6] = [
    ("disallowed-methods", "std::time::SystemTime::now"),
    ("disallowed-methods", "std::env::var"),
    ("disallowed-types", "std::fs::File"),
    ("disallowed-types", "std::net::TcpStream"),
    ("disallowed-types", "std::collections::HashMap"),
    ("disallowed-types", "std::hash::RandomState"),
];

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let root = read(tree, Path::new("clippy.toml"))?.unwrap_or_default();
    let mut problems = Vec::new();
    for package in tree.crates.iter().filter(|package| PURE.contains(&package.name.as_str())) {
        let path = tree.relative(&package.folder().join("clippy.toml"));
        match read(tree, &path)? {
            None => problems.push(Problem::new(
                path,
                0,
                "missing: a pure crate needs its own clippy.toml; copy the one of another pure crate",
            )),
            Some(own) => problems.extend(missing(&root, &own).map(|what| Problem::new(&path, 0, what))),
        }
    }
    Ok(problems)
}

fn read(tree: &Tree, path: &Path) -> anyhow::Result<Option<Table>> {
    let parse = |text: &String| text.parse::<Table>().with_context(|| format!("cannot read {}", path.display()));
    tree.texts.get(path).map(parse).transpose()
}

fn missing(root: &Table, own: &Table) -> impl Iterator<Item = String> {
    let repeated = root
        .iter()
        .filter(|(key, value)| !holds(own, key, value))
        .map(|(key, _)| format!("`{key}` of the root clippy.toml is not repeated in full"));
    let bans = BANS
        .iter()
        .filter(|(list, path)| !bans(own, list, path))
        .map(|(list, path)| format!("`{list}` does not ban {path}"));
    repeated.collect::<Vec<_>>().into_iter().chain(bans.collect::<Vec<_>>())
}

/// Whether `own` has this setting: a list at least in full, anything else exactly.
fn holds(own: &Table, key: &str, value: &Value) -> bool {
    match (own.get(key), value) {
        (Some(Value::Array(have)), Value::Array(want)) => want.iter().all(|entry| have.contains(entry)),
        (have, want) => have == Some(want),
    }
}

fn bans(own: &Table, list: &str, path: &str) -> bool {
    let entries = own.get(list).and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| entry.get("path").and_then(Value::as_str)).any(|banned| banned == path)
}
