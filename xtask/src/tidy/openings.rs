//! Rule: every Rust file opens by saying what it answers.

use super::Problem;
use crate::generate;
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    // A file that another takes in as it is may be an expression, and opens inside that other file.
    let is_silent = |source: &syn::File| !source.attrs.iter().any(|attribute| attribute.path().is_ident("doc"));
    let silent = tree.sources.iter().filter(|(path, source)| is_silent(source) && !generate::is_generated(path));
    Ok(silent.map(|(path, _)| Problem::new(path, 1, "open the file with `//! ` and the question it answers")).collect())
}
