//! Rule: a page that says how many tests a file has is right.
//!
//! A count is a path in backquotes with a number after it; short paths are said in lines such as "`a/` is `crates/a/`".

use std::path::Path;

use super::Problem;
use crate::tree::Tree;

/// The page that counts.
const PAGE: &str = "docs/dev/karpenter-coverage.md";

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let Some(page) = tree.texts.get(Path::new(PAGE)) else { return Ok(Vec::new()) };
    Ok(problems(page, |path| tree.texts.get(Path::new(path)).map(|text| tests_in(text))))
}

fn tests_in(text: &str) -> usize {
    let lines = text.lines().map(str::trim_start);
    lines.filter(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test")).count()
}

fn problems(page: &str, count: impl Fn(&str) -> Option<usize>) -> Vec<Problem> {
    let short: Vec<(&str, &str)> = page.lines().filter_map(short_path).collect();
    let mut problems = Vec::new();
    for (number, line) in page.lines().enumerate() {
        for (path, said) in counts(line) {
            let full = short.iter().find_map(|(from, to)| Some(format!("{to}{}", path.strip_prefix(from)?)));
            let full = full.unwrap_or_else(|| path.to_owned());
            let message = match count(&full) {
                Some(found) if found == said => continue,
                Some(found) => format!("`{path}` has {found} tests, not {said}: correct the number"),
                None => format!("`{path}` does not exist: correct the path"),
            };
            problems.push(Problem::new(PAGE, number + 1, message));
        }
    }
    problems
}

/// What a short path stands for.
pub(super) fn short_path(line: &str) -> Option<(&str, &str)> {
    let (short, rest) = line.strip_prefix("- `")?.split_once("` is `")?;
    Some((short, rest.strip_suffix('`')?))
}

/// Paths of sources with the number after them.
fn counts(line: &str) -> Vec<(&str, usize)> {
    let parts: Vec<&str> = line.split('`').collect();
    let pairs = parts.windows(2).filter(|pair| pair.first().is_some_and(|path| path.ends_with(".rs")));
    let count = |pair: &[&'_ str]| {
        let said = pair.get(1)?.strip_prefix(' ')?;
        said.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    };
    pairs.filter_map(|pair| Some((*pair.first()?, count(pair)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(page: &str) -> Vec<String> {
        let count = |path: &str| (path == "crates/a/tests/x.rs").then_some(2);
        problems(page, count).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_wrong_number_and_a_missing_file_are_found() {
        let short = "- `a/` is `crates/a/tests/`\n";
        assert_eq!(messages(&format!("{short}| `a/x.rs` 2, `a/x.rs` without a number |")), [""; 0]);
        let wrong = messages(&format!("{short}| `a/x.rs` 3, `a/y.rs` 1; more |"));
        assert_eq!(wrong.len(), 2);
        assert!(wrong[0].contains(":2: `a/x.rs` has 2 tests, not 3"), "{wrong:?}");
        assert!(wrong[1].contains("`a/y.rs` does not exist"), "{wrong:?}");
    }

    #[test]
    fn tests_are_counted_wherever_they_stand_and_words_about_them_are_not() {
        assert_eq!(tests_in("#[test]\nfn a() {}\n    #[tokio::test(start_paused = true)]\n// #[test]\n\"#[test]\""), 2);
    }
}
