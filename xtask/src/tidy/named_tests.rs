//! Rule: a page that names a test as a proof names one that exists.
//!
//! A test is named as "`file::test`" in backquotes; short paths are said in lines such as "- `a/` is `crates/a/`".

use std::path::Path;

use super::Problem;
use super::test_counts::short_path;
use crate::tree::Tree;

/// The page that names tests.
const PAGE: &str = "docs/dev/weaknesses.md";

pub(crate) fn check(tree: &Tree) -> anyhow::Result<Vec<Problem>> {
    let Some(page) = tree.texts.get(Path::new(PAGE)) else { return Ok(Vec::new()) };
    Ok(problems(page, |path| tree.texts.get(Path::new(path)).map(String::as_str)))
}

fn problems<'a>(page: &str, text: impl Fn(&str) -> Option<&'a str>) -> Vec<Problem> {
    let short: Vec<(&str, &str)> = page.lines().filter_map(short_path).collect();
    let mut problems = Vec::new();
    for (number, line) in page.lines().enumerate() {
        for (path, test) in line.split('`').filter_map(|part| part.split_once(".rs::")) {
            let full = short.iter().find_map(|(from, to)| Some(format!("{to}{}", path.strip_prefix(from)?)));
            let full = format!("{}.rs", full.as_deref().unwrap_or(path));
            let message = match text(&full) {
                Some(text) if text.contains(&format!("fn {test}(")) => continue,
                Some(_) => format!("`{full}` has no test `{test}`: name another, or say that there is none"),
                None => format!("`{full}` does not exist: correct the path of test `{test}`"),
            };
            problems.push(Problem::new(PAGE, number + 1, message));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_was_renamed_and_a_file_that_is_gone_are_found() {
        let text = |path: &str| (path == "crates/a/tests/x.rs").then_some("async fn a_test() {}\nfn another() {}");
        let messages = |line: &str| -> Vec<String> {
            let page = format!("- `a/` is `crates/a/tests/`\n{line}");
            problems(&page, text).iter().map(ToString::to_string).collect()
        };
        assert_eq!(messages("| `a/x.rs::a_test`, `crates/a/tests/x.rs::another`, `a/x.rs` |"), [""; 0]);
        let wrong = messages("| `a/x.rs::a_tes`, `a/y.rs::a_test` |");
        assert_eq!(wrong.len(), 2);
        assert!(wrong[0].contains(":2: `crates/a/tests/x.rs` has no test `a_tes`"), "{wrong:?}");
        assert!(wrong[1].contains("`crates/a/tests/y.rs` does not exist"), "{wrong:?}");
    }
}
