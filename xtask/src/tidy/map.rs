//! Rule: the map is true. Every path in ARCHITECTURE.md exists, and the page stays short enough to be read.

use std::path::Path;

use super::Problem;
use crate::tree::Tree;

/// The page.
const PAGE: &str = "ARCHITECTURE.md";

/// Longer than this nobody reads it.
const MOST_LINES: usize = 300;

/// How the page shortens the folders of crates.
const CRATES: [&str; 8] = ["model", "engine", "cloudinit", "api", "pve", "controllers", "sim", "cli"];

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let Some(text) = tree.texts.get(Path::new(PAGE)) else { return Ok(Vec::new()) };
    Ok(problems(text, |path| tree.root.join(path).exists()))
}

fn problems(text: &str, exists: impl Fn(&str) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for path in paths(line).into_iter().flat_map(|path| expanded(&path)) {
            let full = full(&path);
            if !exists(&full) {
                problems.push(Problem::new(PAGE, number + 1, format!("{full} does not exist: correct the path")));
            }
        }
    }
    let lines = text.lines().count();
    if lines > MOST_LINES {
        let message = format!("{lines} lines; at most {MOST_LINES} are allowed: shorten it");
        problems.push(Problem::new(PAGE, 0, message));
    }
    problems
}

/// What looks like a path among the words in backticks.
fn paths(line: &str) -> Vec<String> {
    let quoted = line.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        let first = word.split('/').next().unwrap_or_default();
        let is_ours = CRATES.contains(&first) || ["crates", "testbed", "xtask", "bench", "docs"].contains(&first);
        word.contains('/') && is_ours && !word.contains(char::is_whitespace)
    };
    quoted.filter(is_path).map(str::to_owned).collect()
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
        Some((head, (names, tail))) => names.split(',').map(|name| format!("{head}{name}{tail}")).collect(),
        None => vec![path.to_owned()],
    }
}

fn full(path: &str) -> String {
    match path.split_once('/') {
        // How the page explains its own short forms.
        Some((_, "x.rs")) => ".".to_owned(),
        Some((name, rest)) if CRATES.contains(&name) => format!("crates/tenon-{name}/src/{rest}"),
        _ => path.replace("crates/tenon-controllers/src/x.rs", "."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(text: &str) -> Vec<String> {
        problems(text, |path| path == "crates/tenon-engine/src/a.rs").into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn a_path_that_does_not_exist_is_found() {
        assert!(missing("see `engine/a.rs` and `crates/tenon-engine/src/a.rs`").is_empty());
        assert_eq!(missing("see `engine/{a,b}.rs`"), ["crates/tenon-engine/src/b.rs does not exist: correct the path"]);
        assert_eq!(missing("see `docs/gone.md`").len(), 1);
    }

    #[test]
    fn words_in_backticks_that_are_no_paths_are_left_alone() {
        assert!(missing("`Ready`, `cargo xtask tidy`, `/readyz`, `region/host`").is_empty());
    }

    #[test]
    fn a_page_that_is_too_long_is_found() {
        assert_eq!(missing(&"word\n".repeat(MOST_LINES)).len(), 0);
        assert_eq!(missing(&"word\n".repeat(MOST_LINES + 1)).len(), 1);
    }
}
