//! How many packages something is built from, ours and others.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde::Serialize;

use super::goal::Goal;
use crate::run::cargo;

/// The packages of a resolved graph, each with its version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Packages {
    /// Of this workspace.
    pub(crate) ours: BTreeSet<String>,
    pub(crate) others: BTreeSet<String>,
}

/// Asks cargo. Cargo downloads what is missing for that, so that no build is measured while it waits for the network.
pub(crate) fn packages(root: &Path, goal: &Goal) -> anyhow::Result<Packages> {
    let mut tree = cargo(root);
    tree.args(goal.tree_arguments()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = tree.output().context("cannot run cargo")?;
    if !output.status.success() {
        let command = goal.tree_arguments().join(" ");
        bail!("cannot list the packages of {}: `cargo {command}` failed; see its output above", root.display());
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads lines such as `serde v1.0.0 (*)`, `serde_derive v1.0.0 (proc-macro)` and `tenon v0.1.0 (/src/crates/tenon)`.
fn parse(tree: &str) -> Packages {
    let mut packages = Packages::default();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let name = line.split(" (").next().unwrap_or(line).to_owned();
        let is_ours = line.split(" (").skip(1).any(|note| note.starts_with('/'));
        if is_ours {
            packages.ours.insert(name)
        } else {
            packages.others.insert(name)
        };
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_once_and_is_ours_if_it_has_a_path() {
        let tree = "tenon v0.1.0 (/src/crates/tenon)\nserde v1.0.0\nserde_derive v1.0.0 (proc-macro)\nserde v1.0.0 (*)\n\
                    tenon-derive v0.1.0 (proc-macro) (/src/crates/tenon-derive)\n\nsyn v2.0.0\nsyn v3.0.0\n";
        let packages = parse(tree);
        assert_eq!(Vec::from_iter(packages.ours), ["tenon v0.1.0", "tenon-derive v0.1.0"]);
        assert_eq!(
            Vec::from_iter(packages.others),
            ["serde v1.0.0", "serde_derive v1.0.0", "syn v2.0.0", "syn v3.0.0"]
        );
    }
}
