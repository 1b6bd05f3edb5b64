//! Which rows of a table were used by a whole run of tests, whatever test used them?
//!
//! A test that knows the table says which rows there are and which of them it used; `cargo xtask test` closes with the rows that no
//! test used. A run of single tests collects nothing.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;

/// The file that collects the rows of a whole run.
pub const FILE_VARIABLE: &str = "TENON_COVERAGE_FILE";

const LISTED: &str = "listed ";
const USED: &str = "used ";

/// Writes down the rows of a table, and which of them were used; without a file to write into it does nothing.
pub fn record(listed: &BTreeSet<String>, used: &BTreeSet<String>) -> std::io::Result<()> {
    let Some(path) = std::env::var_os(FILE_VARIABLE) else { return Ok(()) };
    // One write: tests of one process and of others append at the same time.
    File::options().create(true).append(true).open(path)?.write_all(written(listed, used).as_bytes())
}

fn written(listed: &BTreeSet<String>, used: &BTreeSet<String>) -> String {
    let line = |mark: &str, row: &String| format!("{mark}{row}\n");
    listed.iter().map(|row| line(LISTED, row)).chain(used.iter().map(|row| line(USED, row))).collect()
}

/// The rows of a file that were listed and never used.
pub fn never_used(file: &str) -> BTreeSet<&str> {
    let of = |mark: &str| file.lines().filter_map(|line| line.strip_prefix(mark)).collect::<BTreeSet<_>>();
    of(LISTED).difference(&of(USED)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_row_that_one_of_several_tests_used_is_used() {
        let table = rows(&["get nodes", "list pods", "watch pods"]);
        let file = written(&table, &rows(&["list pods"])) + &written(&table, &rows(&["watch pods"]));
        assert_eq!(never_used(&file), BTreeSet::from(["get nodes"]));
        assert_eq!(never_used(""), BTreeSet::new());
    }
}
