//! Runs one test binary to its end, within a bound, and keeps what it prints for the moment it has ended.

use std::io::{self, BufRead, BufReader, PipeReader};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::artifacts::Suite;
use crate::run::forget_package;

/// How often a quiet suite is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A process that a test left behind may hold the pipe open; what it still says is of no interest.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Tests of one suite, or of several, as the harness counted them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// How a suite ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) suite: String,
    pub(crate) took: Duration,
    pub(crate) count: Count,
    /// What it printed, line by line.
    pub(crate) output: Vec<String>,
    /// Why it counts as failed; `None` if it passed.
    pub(crate) problem: Option<String>,
}

/// Runs a suite as cargo would: in its package's folder, which it is told. `prepare` adds what all suites share.
/// After `bound` it is killed.
pub(crate) fn run(suite: &Suite, bound: Duration, prepare: impl FnOnce(&mut Command)) -> Outcome {
    let start = Instant::now();
    let mut command = Command::new(&suite.executable);
    forget_package(&mut command);
    command.current_dir(&suite.folder).env("CARGO_MANIFEST_DIR", &suite.folder);
    prepare(&mut command);
    let mut output = Vec::new();
    let ended = start_and_follow(command, start + bound, &mut output);
    let mut count = Count::default();
    output.iter().for_each(|line| count.add(line));
    let problem = match ended {
        Ok(Some(status)) if status.success() && count.failed == 0 => None,
        Ok(Some(status)) => Some(format!("ended with {status}")),
        Ok(None) => Some(format!("killed, because it did not end within {} s", bound.as_secs())),
        Err(error) => Some(format!("{error:#}")),
    };
    Outcome { suite: suite.name.clone(), took: start.elapsed(), count, output, problem }
}

/// Gives the exit status, or `None` if the process had to be killed.
fn start_and_follow(
    mut command: Command,
    deadline: Instant,
    output: &mut Vec<String>,
) -> anyhow::Result<Option<ExitStatus>> {
    // One pipe for both, so that the order stays.
    let (reader, writer) = io::pipe().context("cannot make a pipe")?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().context("cannot make a pipe")?).stderr(writer);
    let mut child = command.spawn().context("cannot start it")?;
    // The command holds the writing end; the pipe ends only when the process is the last to have one.
    drop(command);
    let lines = lines_of(reader);
    let (mut ended, mut is_silent) = (None, false);
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => output.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if is_silent => std::thread::sleep(LOOK_EVERY),
            Err(RecvTimeoutError::Disconnected) => is_silent = true,
        }
        let status = child.try_wait().context("cannot wait for it")?;
        if let Some(status) = status {
            let since = *ended.get_or_insert_with(Instant::now);
            if is_silent || since.elapsed() > LAST_WORDS {
                return Ok(Some(status));
            }
        } else if Instant::now() > deadline {
            child.kill().and_then(|()| child.wait()).context("cannot kill it")?;
            return Ok(None);
        }
    }
}

/// The lines as they come, until everybody has closed the writing end.
fn lines_of(reader: PipeReader) -> Receiver<String> {
    let (sender, receiver) = channel();
    // Not joined: it ends with the last writer, and whoever left one behind is named by the check for leftovers.
    std::thread::spawn(move || {
        let lines = BufReader::new(reader).split(b'\n').map_while(Result::ok);
        let texts = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        // Nobody listens any more: the suite was killed or has ended.
        let _ = texts.map(|text| sender.send(text)).find(Result::is_err);
    });
    receiver
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A suite that is a shell script.
    fn script(text: &str, bound: Duration) -> Outcome {
        let suite = Suite { name: "a suite".into(), folder: "/".into(), executable: "/bin/sh".into() };
        run(&suite, bound, |command| {
            command.args(["-c", text]);
        })
    }

    const LONG: Duration = Duration::from_secs(60);

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
    fn a_suite_is_told_its_folder_and_nothing_of_the_package_that_runs_it() {
        let outcome = script("pwd; echo $CARGO_MANIFEST_DIR; echo package=$CARGO_PKG_NAME", LONG);
        assert_eq!((outcome.output, outcome.problem), (vec!["/".into(), "/".into(), "package=".into()], None));
    }

    #[test]
    fn what_a_suite_prints_and_what_it_complains_of_stays_in_order() {
        let outcome = script("echo a; echo b >&2; echo 'test result: ok. 4 passed; 0 failed;'; printf end", LONG);
        assert_eq!(outcome.output, ["a", "b", "test result: ok. 4 passed; 0 failed;", "end"]);
        assert_eq!((outcome.count, outcome.problem), (Count { passed: 4, failed: 0 }, None));
    }

    #[test]
    fn a_suite_that_ends_badly_fails_even_if_no_test_of_it_did() {
        let outcome = script("echo 'test result: ok. 4 passed; 0 failed;'; kill -ABRT $$", LONG);
        assert!(outcome.problem.is_some_and(|problem| problem.contains("signal: 6")));
        let missing = Suite { name: "a suite".into(), folder: "/".into(), executable: "/no/such/file".into() };
        let problem = run(&missing, LONG, |_| ()).problem.unwrap();
        assert!(problem.starts_with("cannot start it: "), "{problem}");
    }

    #[test]
    fn a_suite_that_hangs_is_killed() {
        // `exec`, so that what hangs is what is killed.
        let outcome = script("exec sleep 1000", Duration::ZERO);
        assert_eq!(outcome.problem.as_deref(), Some("killed, because it did not end within 0 s"));
        // One that closes what it prints to still has to end.
        let outcome = script("exec sleep 1000 >/dev/null 2>&1", Duration::ZERO);
        assert_eq!(outcome.problem.as_deref(), Some("killed, because it did not end within 0 s"));
    }
}
