//! Rule: no example in a doc comment. Doc tests are off in every crate, because each example is a program to compile
//! and link, and a test shows the same. So nothing would compile the example.

use std::path::Path;

use super::Problem;
use crate::tree::Tree;

/// What opens and closes an example.
const FENCE: &str = "```";

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let sources = tree.sources.keys().filter_map(|path| tree.texts.get_key_value(path));
    Ok(sources.flat_map(|(path, text)| problems(path, text)).collect())
}

fn problems(path: &Path, text: &str) -> Vec<Problem> {
    let mut is_open = false;
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let fence = line.strip_prefix("///").or(line.strip_prefix("//!")).map(str::trim);
        let Some(kind) = fence.and_then(|line| line.strip_prefix(FENCE)) else { continue };
        is_open = !is_open;
        if is_open && kind != "text" {
            let message = "doc tests are off, so nothing compiles this example: write a test, or mark it as `text`";
            problems.push(Problem::new(path, number + 1, message));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        problems(Path::new("x.rs"), text).iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn an_example_that_nothing_compiles_is_found() {
        assert_eq!(lines("//! Adds.\n//!\n//! ```\n//! add(1, 2);\n//! ```\n"), [3]);
        assert_eq!(lines("    /// ```rust\n    /// f();\n    /// ```\n    /// ```ignore\n    /// ```\n"), [1, 4]);
    }

    #[test]
    fn a_drawing_and_a_text_of_the_program_are_fine() {
        assert_eq!(lines("/// ```text\n/// a -> b\n/// ```\nfn f() {}\n"), [0; 0]);
        assert_eq!(lines("const FENCE: &str = \"```\";\n// ```\n"), [0; 0]);
    }
}
