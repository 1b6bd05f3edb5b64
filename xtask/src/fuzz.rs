//! `cargo xtask fuzz`: the fuzz tests of the workspace, with more mutations than a test run has time for.
//!
//! A fuzz test is a test in a module or a test binary called `fuzz`. It runs in the normal test build, which checks for
//! overflow, one test at a time: so the text that was shown last is known, even if the process aborts or hangs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use testbed::mutation::{LAST_VARIABLE, RUNS_VARIABLE, SEED_VARIABLE};

use crate::artifacts::{self, Suite};
use crate::run::step;
use crate::suite_run;
use crate::tree::workspace_root;

/// What a module or a test binary with fuzz tests is called.
const MARK: &str = "fuzz";

/// What 100,000 mutations may take at most; the slowest test needs a tenth of it on two cores.
const BOUND: Duration = Duration::from_secs(30 * 60);

/// For which tests, how often.
#[derive(Debug, clap::Args)]
pub(crate) struct FuzzArgs {
    /// Run only tests with this in the name of their binary or in their own.
    name: Option<String>,
    /// How many mutations each test is shown.
    #[arg(long, default_value_t = 100_000)]
    runs: usize,
    /// The seed of every test, instead of the one it has.
    #[arg(long)]
    seed: Option<u64>,
}

/// One fuzz test.
#[derive(Debug)]
struct Target<'a> {
    suite: &'a Suite,
    test: String,
}

pub(crate) fn run(args: &FuzzArgs) -> anyhow::Result<()> {
    let built = step("build", || artifacts::build_tests(&workspace_root()))?;
    let targets = targets(&built.suites, args.name.as_deref())?;
    if targets.is_empty() {
        bail!("no fuzz test has `{}` in its name", args.name.as_deref().unwrap_or_default());
    }
    let folder = tempfile::tempdir().context("cannot create a folder")?;
    let last = folder.path().join("last");
    let mut failed = 0;
    for target in &targets {
        failed += usize::from(!passes(target, args, &last));
    }
    println!("fuzz: {} tests with {} mutations each, {failed} failed", targets.len(), args.runs);
    if failed > 0 {
        bail!("fuzz tests failed");
    }
    Ok(())
}

/// Runs one test, and says how it ended.
fn passes(target: &Target<'_>, args: &FuzzArgs, last: &Path) -> bool {
    // What another test left behind would mislead.
    let _ = fs::remove_file(last);
    let outcome = suite_run::run(target.suite, BOUND, |command| {
        command.args([target.test.as_str(), "--exact", "--nocapture"]);
        command.env(RUNS_VARIABLE, args.runs.to_string()).env(LAST_VARIABLE, last);
        if let Some(seed) = args.seed {
            command.env(SEED_VARIABLE, seed.to_string());
        }
    });
    let end = outcome.problem.as_deref().unwrap_or("ok");
    println!("{} {}: {end} after {:.1} s", outcome.suite, target.test, outcome.took.as_secs_f64());
    if outcome.problem.is_some() {
        println!("{}", outcome.output.join("\n"));
        if let Some(text) = fs::read(last).ok().and_then(|file| last_text(&file)) {
            println!("the last text: {text}");
        }
    }
    outcome.problem.is_none()
}

/// The first line and as many bytes as it says.
fn last_text(file: &[u8]) -> Option<String> {
    let end = file.iter().position(|byte| *byte == b'\n')?;
    let line = String::from_utf8_lossy(&file[..end]).into_owned();
    let length: usize = line.rsplit_once("bytes ")?.1.parse().ok()?;
    let text = file.get(end + 1..)?.get(..length)?;
    Some(format!("{line}: {:?}", String::from_utf8_lossy(text)))
}

fn targets<'a>(suites: &'a [Suite], name: Option<&str>) -> anyhow::Result<Vec<Target<'a>>> {
    let mut targets = Vec::new();
    for suite in suites {
        let mut command = Command::new(&suite.executable);
        command.args(["--list", "--format", "terse"]).current_dir(&suite.folder).stdin(Stdio::null());
        let output = command.output().with_context(|| format!("cannot list the tests of {}", suite.name))?;
        let listed = String::from_utf8_lossy(&output.stdout);
        targets.extend(fuzz_tests(&suite.name, &listed, name).into_iter().map(|test| Target { suite, test }));
    }
    Ok(targets)
}

/// The fuzz tests in a list such as `a::fuzz::b: test`.
fn fuzz_tests(suite: &str, listed: &str, name: Option<&str>) -> Vec<String> {
    let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let is_fuzz =
        |test: &&str| suite.split(' ').skip(1).any(|word| word == MARK) || test.split("::").any(|m| m == MARK);
    let is_asked_for = |test: &&str| name.is_none_or(|name| test.contains(name) || suite.contains(name));
    tests.filter(is_fuzz).filter(is_asked_for).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "pods_survive: test\nconversion::fuzz::records_survive: test\nx: benchmark\n\n2 tests\n";

    #[test]
    fn a_test_in_a_module_or_a_binary_called_fuzz_is_a_fuzz_test() {
        assert_eq!(fuzz_tests("tenon-api suite", LISTED, None), ["conversion::fuzz::records_survive"]);
        assert_eq!(fuzz_tests("tenon-model fuzz", LISTED, None), ["pods_survive", "conversion::fuzz::records_survive"]);
        assert!(fuzz_tests("tenon-fuzz suite", "a: test\n", None).is_empty());
    }

    #[test]
    fn the_last_text_ends_where_its_first_line_says() {
        let told = last_text(b"seed 1, text 2, bytes 3\nabcdef").unwrap();
        assert_eq!(told, "seed 1, text 2, bytes 3: \"abc\"");
        assert_eq!(last_text(b""), None);
        assert_eq!(last_text(b"seed 1, text 2, bytes 9\nabc"), None);
    }

    #[test]
    fn a_name_selects_by_test_and_by_binary() {
        assert_eq!(fuzz_tests("tenon-model fuzz", LISTED, Some("pods")), ["pods_survive"]);
        assert_eq!(fuzz_tests("tenon-model fuzz", LISTED, Some("tenon-model")).len(), 2);
        assert!(fuzz_tests("tenon-model fuzz", LISTED, Some("template")).is_empty());
    }
}
