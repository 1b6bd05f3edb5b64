//! Rule: a generated file is what its generator writes today.

use super::Problem;
use crate::artifacts::build_tenon;
use crate::generate;
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let mut files = generate::files_of(tree).peekable();
    let tenon = match &tree.tenon {
        Some(tenon) => tenon.clone(),
        None if files.peek().is_none() => return Ok(problems),
        None => build_tenon(&tree.root)?,
    };
    for file in files {
        let message = match tree.texts.get(file.path()) {
            None => "is missing",
            Some(text) if *text != file.content(&tenon, &tree.root)? => "is stale",
            Some(_) => continue,
        };
        problems.push(Problem::new(file.path(), 0, format!("{message}: run `cargo xtask generate`")));
    }
    Ok(problems)
}
