//! Rule: every Rust file opens by saying what it answers.

use super::Problem;
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let silent = tree.sources.keys().filter(|path| {
        let opening = tree.texts.get(*path).and_then(|text| text.lines().next()).unwrap_or_default();
        !opening.starts_with("//! ") && !super::sizes::is_exempt(opening)
    });
    Ok(silent.map(|path| Problem::new(path, 1, "open the file with `//! ` and the question it answers")).collect())
}
