//! Rule: a file is named for what it answers, not for being a drawer.

use std::path::Component;

use super::Problem;
use crate::tree::Tree;

/// Names that say nothing about what is inside.
const DRAWERS: [&str; 8] = ["common", "helper", "helpers", "misc", "shared", "types", "util", "utils"];

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for path in tree.sources.keys() {
        let folders = path.parent().into_iter().flat_map(|parent| parent.components());
        let names = folders.map(Component::as_os_str).chain(path.file_stem());
        for name in names.filter_map(|name| name.to_str()).filter(|name| DRAWERS.contains(name)) {
            problems.push(Problem::new(
                path,
                0,
                format!("`{name}` does not say what the file is for; name the file for the question it answers"),
            ));
        }
    }
    Ok(problems)
}
