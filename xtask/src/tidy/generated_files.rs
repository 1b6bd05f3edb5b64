//! Rule: a generated file is what its generator writes today.

use super::Problem;
use crate::generate;
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for file in generate::files_of(tree) {
        let wanted = file.content(&tree.root)?;
        let message = match tree.texts.get(file.path()) {
            None => "is missing",
            Some(text) if *text != wanted => "is stale",
            Some(_) => continue,
        };
        problems.push(Problem::new(file.path(), 0, format!("{message}: run `cargo xtask generate`")));
    }
    Ok(problems)
}
