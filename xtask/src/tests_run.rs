//! Runs all tests, counts them, and closes with what was proved, what was left behind and what took long.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::bail;
use testbed::{DIR_VARIABLE, coverage, proof};

use crate::artifacts::{BUILT_VARIABLE, Built, Suite};
use crate::leftovers::Ground;
use crate::suite_run::{self, Count, Outcome};

/// The suite that takes longest starts first, and all others run beside it: it mostly waits, they mostly compute.
const LONGEST: &str = "tenon end_to_end";

/// How many suites run at once: the longest, and the others one after the other.
const LANES: usize = 2;

/// The longest suite takes ten minutes on two cores; one that takes three times as long will not end.
const BOUND: Duration = Duration::from_secs(30 * 60);

/// This many suites are named for taking long.
const NAMED: usize = 6;

/// Runs the suites. `built_in` is how long it took to build them.
pub(crate) fn run_all(built: &Built, built_in: Duration) -> anyhow::Result<()> {
    eprintln!("== tests");
    let ground = Ground::new()?;
    let (proofs, rights) = (ground.path().join("proofs"), ground.path().join("rights"));
    let outcomes = run_suites(&built.suites, |command| {
        command
            .env(BUILT_VARIABLE, &built.tenon)
            .env(proof::FILE_VARIABLE, &proofs)
            .env(coverage::FILE_VARIABLE, &rights);
        confine(command, &ground);
    });
    let mut closing = closing_list(&fs::read_to_string(&proofs).unwrap_or_default());
    closing.push(format!("the tests were built in {:.1} s", built_in.as_secs_f64()));
    closing.extend(slowest(&outcomes));
    closing.extend(failures(&outcomes));
    let rights = fs::read_to_string(&rights).unwrap_or_default();
    let unused = coverage::never_used(&rights);
    closing.extend(unused.iter().map(|right| format!("never used: {right}")));
    let left = ground.check_empty();
    closing.push(match &left {
        Ok(()) => "left behind: nothing".to_owned(),
        Err(error) => format!("left behind: {error:#}"),
    });
    let sum = |of: fn(&Count) -> usize| outcomes.iter().map(|outcome| of(&outcome.count)).sum::<usize>();
    let (passed, failed) = (sum(|count| count.passed), sum(|count| count.failed));
    closing.push(format!("tests: {passed} passed, {failed} failed"));
    println!("{}", closing.join("\n"));
    left.map_err(|error| error.context("the tests left something behind"))?;
    if outcomes.iter().any(|outcome| outcome.problem.is_some()) {
        bail!("tests failed");
    }
    if !unused.is_empty() {
        bail!("no test uses some rights of kube_rights.rs, named above; remove them, or test what needs them");
    }
    if passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

/// What a test makes, it makes on this ground.
fn confine(command: &mut Command, ground: &Ground) {
    command
        .envs(testbed::folder_variables())
        .env(DIR_VARIABLE, ground.testbeds())
        .env("TMPDIR", ground.temp())
        .env("RUST_TEST_THREADS", at_once().to_string())
        // A failed test prints its error; the way through the runtime to it says nothing.
        .env("RUST_LIB_BACKTRACE", "0");
}

/// How many tests of a suite run at once. Whole systems mostly wait, so the longest suite goes on with other tests meanwhile. Each
/// may have a control plane, which takes half a GiB.
fn at_once() -> usize {
    (5 * std::thread::available_parallelism().map_or(2, usize::from)).min(12)
}

/// Runs every suite, some side by side, and prints what each said when it has ended.
fn run_suites(suites: &[Suite], prepare: impl Fn(&mut Command) + Sync) -> Vec<Outcome> {
    let queue = Mutex::new(longest_first(suites).into_iter());
    let next = || locked(&queue).next();
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(suite) = next() {
                    eprintln!("   running {}", suite.name);
                    let outcome = suite_run::run(suite, BOUND, &prepare);
                    // Held while it is printed, so that no other output gets between.
                    let mut outcomes = locked(&outcomes);
                    println!("{}\n{}", heading(&outcome), outcome.output.join("\n"));
                    outcomes.push(outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that panicked leaves a list that is still whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn longest_first(suites: &[Suite]) -> Vec<&Suite> {
    let (mut first, others): (Vec<_>, Vec<_>) = suites.iter().partition(|suite| suite.name == LONGEST);
    first.extend(others);
    first
}

fn heading(outcome: &Outcome) -> String {
    let end = outcome.problem.as_deref().unwrap_or("ok");
    format!("== {}: {end} after {:.1} s", outcome.suite, outcome.took.as_secs_f64())
}

/// The suites that took longest, longest first.
fn slowest(outcomes: &[Outcome]) -> Vec<String> {
    let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
    sorted.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    let named = sorted.into_iter().take(NAMED).map(|outcome| {
        let tests = outcome.count.passed + outcome.count.failed;
        format!("{:8.1} s for {tests} tests: {}", outcome.took.as_secs_f64(), outcome.suite)
    });
    std::iter::once("slowest suites:".to_owned()).chain(named).collect()
}

fn failures(outcomes: &[Outcome]) -> Vec<String> {
    let failed = outcomes.iter().filter_map(|outcome| Some((outcome, outcome.problem.as_ref()?)));
    failed.map(|(outcome, problem)| format!("failed suite: {} ({problem})", outcome.suite)).collect()
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

    fn outcome(suite: &str, seconds: u64, problem: Option<&str>) -> Outcome {
        Outcome {
            suite: suite.into(),
            took: Duration::from_secs(seconds),
            count: Count { passed: 3, failed: problem.iter().len() },
            output: Vec::new(),
            problem: problem.map(str::to_owned),
        }
    }

    #[test]
    fn a_tool_is_listed_once_as_proved_or_with_what_is_missing() {
        let list = closing_list("proved helm\nproved control-plane\nproved helm\nmissing chromium: not on PATH\n");
        assert_eq!(list, ["proved here: control-plane, helm", "not proved here (tool missing): chromium: not on PATH"]);
    }

    #[test]
    fn slow_and_failed_suites_are_named() {
        let outcomes: Vec<_> =
            (0..9).map(|n| outcome(&format!("s{n}"), 10 - n, (n == 8).then_some("killed"))).collect();
        let slowest = slowest(&outcomes);
        assert_eq!(slowest.len(), 1 + NAMED);
        assert_eq!(slowest[1], "    10.0 s for 3 tests: s0");
        assert_eq!(failures(&outcomes), ["failed suite: s8 (killed)"]);
        assert_eq!(heading(&outcomes[8]), "== s8: killed after 2.0 s");
    }

    #[test]
    fn every_suite_runs_once_and_the_longest_starts_first() {
        let suite = |name: &str| Suite { name: name.into(), folder: "/".into(), executable: "/bin/sh".into() };
        let suites = ["a", "b", LONGEST, "c"].map(suite);
        assert_eq!(longest_first(&suites).iter().map(|suite| suite.name.as_str()).next(), Some(LONGEST));
        let outcomes = run_suites(&suites, |command| {
            command.args(["-c", "echo 'test result: ok. 1 passed;'"]);
        });
        let mut names: Vec<&str> = outcomes.iter().map(|outcome| outcome.suite.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["a", "b", "c", LONGEST]);
        assert!(outcomes.iter().all(|outcome| outcome.count.passed == 1 && outcome.problem.is_none()));
    }

    #[test]
    fn the_longest_suite_exists() {
        let (package, test) = LONGEST.split_once(' ').unwrap();
        let folder = crate::tree::workspace_root().join("crates").join(package).join("tests").join(test);
        assert!(folder.is_dir(), "{} is not there", folder.display());
    }
}
