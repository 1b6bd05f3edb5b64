//! Runs all tests, counts them, and closes with what was proved and what was left behind.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use testbed::{DIR_VARIABLE, proof};

use crate::leftovers;
use crate::run::cargo;

/// Tests of one run, as the harnesses counted them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    passed: usize,
    failed: usize,
}

pub(crate) fn run_all(root: &Path) -> anyhow::Result<()> {
    eprintln!("== tests");
    let ground = leftovers::Ground::new()?;
    let proofs = ground.path().join("proofs");
    let mut cargo = cargo(root);
    cargo
        .args(["test", "--workspace", "--no-fail-fast"])
        .envs(testbed::folder_variables())
        .env(DIR_VARIABLE, ground.testbeds())
        .env("TMPDIR", ground.temp())
        .env(proof::FILE_VARIABLE, &proofs)
        // Whole systems mostly wait for each other, so more of them than there are cores run side by side.
        .env("RUST_TEST_THREADS", at_once().to_string())
        // A failed test prints its error; the way through the runtime to it says nothing.
        .env("RUST_LIB_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = cargo.spawn().context("cannot run cargo test")?;
    let mut count = Count::default();
    let stdout = child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines());
    for line in stdout.map_while(Result::ok) {
        println!("{line}");
        count.add(&line);
    }
    let status = child.wait().context("cannot wait for cargo test")?;
    for line in closing_list(&fs::read_to_string(&proofs).unwrap_or_default()) {
        println!("{line}");
    }
    let left = ground.check_empty();
    match &left {
        Ok(()) => println!("left behind: nothing"),
        Err(error) => println!("left behind: {error:#}"),
    }
    println!("tests: {} passed, {} failed", count.passed, count.failed);
    left.context("the tests left something behind")?;
    if !status.success() || count.failed > 0 {
        bail!("tests failed");
    }
    if count.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

impl Count {
    /// Adds what a harness closes with: `test result: ok. 12 passed; 0 failed; …`.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let number = |unit: &str| {
            let words: Vec<&str> = result.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
            words
                .windows(2)
                .find(|pair| pair.last() == Some(&unit))
                .and_then(|pair| pair.first()?.parse::<usize>().ok())
        };
        self.passed += number("passed").unwrap_or_default();
        self.failed += number("failed").unwrap_or_default();
    }
}

/// How many tests of a binary run at once.
fn at_once() -> usize {
    std::thread::available_parallelism().map_or(4, usize::from).max(4)
}

/// What the tests that need outside tools recorded, each tool once.
fn closing_list(proofs: &str) -> Vec<String> {
    let of = |mark: &str| proofs.lines().filter_map(|line| line.strip_prefix(mark)).collect::<BTreeSet<_>>();
    let (proved, missing) = (of("proved "), of("missing "));
    let mut lines = vec![format!("proved here: {}", Vec::from_iter(proved).join(", "))];
    lines.extend(missing.into_iter().map(|tool| format!("not proved here (tool missing): {tool}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_harnesses_are_added() {
        let mut count = Count::default();
        for line in [
            "running 3 tests",
            "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s",
            "test result: FAILED. 10 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 387.03s",
            "a test that prints 7 passed",
        ] {
            count.add(line);
        }
        assert_eq!(count, Count { passed: 12, failed: 3 });
    }

    #[test]
    fn a_tool_is_listed_once_as_proved_or_with_what_is_missing() {
        let list = closing_list("proved helm\nproved control-plane\nproved helm\nmissing chromium: not on PATH\n");
        assert_eq!(list, ["proved here: control-plane, helm", "not proved here (tool missing): chromium: not on PATH"]);
    }
}
