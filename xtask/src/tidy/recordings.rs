//! Rule: the simulator knows rules, not answers. Its sources read no recording, and no file but a table beside them.
//!
//! What it is held to lies under `tests`; a simulator that could look there would agree with itself.

use std::path::Path;

use super::Problem;
use crate::tree::Tree;

/// Where the simulator's sources lie.
const SIMULATOR: &str = "crates/tenon-sim/src";

/// Ways to read a file, and names of what must not be read.
const WORDS: [(&str, &str); 9] = [
    ("include!", "a source that includes a file"),
    ("include_str!", "a source that includes a file"),
    ("include_bytes!", "a source that includes a file"),
    ("std::fs", "a source that reads files"),
    ("tokio::fs", "a source that reads files"),
    ("exchanges", "the name of the recordings"),
    ("recordings", "the folder of the recordings"),
    ("fixtures", "what tests compare with"),
    ("/tests/", "what tests compare with"),
];

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let sources = tree.texts.iter().filter(|(path, _)| path.starts_with(SIMULATOR));
    Ok(sources.flat_map(|(path, text)| problems(path, text)).collect())
}

fn problems(path: &Path, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let found = WORDS.iter().filter(|(word, _)| line.contains(word) && !takes_in_a_neighbour(line, word));
        problems.extend(found.map(|(word, why)| {
            let message = format!("`{word}`: {why}; the simulator must not read the recordings it is tested against");
            Problem::new(path, number + 1, message)
        }));
    }
    problems
}

/// A table in the same folder is a source of the simulator, too, and held to the same words.
fn takes_in_a_neighbour(line: &str, word: &str) -> bool {
    let name = line.split_once(word).and_then(|(_, rest)| rest.strip_prefix("(\"")?.split_once('"'));
    word == "include_str!" && name.is_some_and(|(name, _)| !name.contains(['/', '\\']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        problems(Path::new("crates/tenon-sim/src/x.rs"), text).iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn a_simulator_that_takes_in_a_recording_is_found() {
        assert_eq!(lines("const A: &str =\n    include_str!(\"../tests/a.jsonl\");"), [2, 2]);
        assert_eq!(lines("include_str!(\"guest/../../a.txt\")"), [1]);
        assert_eq!(lines("include_str!(concat!(\"a\", \"b\"))"), [1]);
        assert_eq!(lines("std::fs::read(path)"), [1]);
        assert_eq!(lines("// see exchanges.jsonl"), [1]);
    }

    #[test]
    fn rules_of_its_own_are_fine() {
        assert_eq!(lines("const TABLE: &str = include_str!(\"messages.txt\");"), [0; 0]);
        assert_eq!(lines("const TABLE: &str = \"GET /version\";\nfn f() {}"), [0; 0]);
    }

    #[test]
    fn only_the_simulators_own_sources_are_meant() {
        let root = crate::tree::workspace_root();
        let tree = Tree::read(&root).expect("the tree can be read");
        assert!(tree.texts.keys().any(|path| path.starts_with(SIMULATOR)), "the simulator has moved: correct the rule");
        assert_eq!(check(&tree).expect("the rule can look"), []);
    }
}
