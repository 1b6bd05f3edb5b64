//! The rules of this project that a program can check. Each rule is one file; each problem names the place and the next move.

mod clippy_files;
mod crate_edges;
mod doc_examples;
mod file_names;
mod forbidden_words;
mod generated_files;
mod map;
mod module_tree;
mod named_tests;
mod openings;
mod reasons;
mod recordings;
mod sizes;
mod test_counts;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::bail;

use crate::tree::Tree;

/// One broken rule at one place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    pub(crate) path: PathBuf,
    /// From 1; 0 speaks of the whole file.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Problem {
        Problem { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path.display(), self.message),
            line => write!(f, "{}:{line}: {}", self.path.display(), self.message),
        }
    }
}

/// A rule looks at the tree and returns what breaks it. It fails only when it cannot look.
type Rule = fn(&Tree) -> anyhow::Result<Vec<Problem>>;

const RULES: [Rule; 14] = [
    crate_edges::check,
    clippy_files::check,
    file_names::check,
    module_tree::check,
    openings::check,
    doc_examples::check,
    sizes::check,
    forbidden_words::check,
    generated_files::check,
    map::check,
    recordings::check,
    reasons::check,
    test_counts::check,
    named_tests::check,
];

/// Checks the tree at `root` and prints every problem. Generated files are compared with what `tenon` prints, which is
/// built first if it is not given.
pub(crate) fn run(root: &Path, tenon: Option<PathBuf>) -> anyhow::Result<()> {
    let tree = Tree { tenon, ..Tree::read(root)? };
    let mut problems = Vec::new();
    for rule in RULES {
        problems.extend(rule(&tree)?);
    }
    problems.sort();
    for problem in &problems {
        eprintln!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        1 => bail!("tidy found 1 problem"),
        n => bail!("tidy found {n} problems"),
    }
}
