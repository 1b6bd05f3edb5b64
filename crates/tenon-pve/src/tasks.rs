//! Follows a task to its end. A call that was answered has only begun; the exit status of its task is the outcome.
//!
//! A task is asked for at the host its name tells, and its name is all that is needed to go on after a restart.

use std::time::Duration;

use http::Method;
use serde::Deserialize;
use tokio::time::Instant;

use crate::client::{Call, Client, Form, segment};
use crate::error::{Cause, Doubtful, Error, Result};
use crate::observer::TaskEnd;
use crate::refusal::{Refusal, RefusalKind};
use crate::reply::{parse, unreadable};
use crate::upid::Upid;

/// The first look comes soon, because most tasks take a tenth of a second; later ones back off to this.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const SLOWEST_LOOK: Duration = Duration::from_secs(2);

/// Failed looks in a row before a wait is given up. The host is then away for a minute or more, and its caller should
/// know.
const LOOKS_FORGIVEN: u32 = 4;

/// Lines of a log that are read at one look: more than a task writes between two.
const LINES_AT_ONCE: u64 = 500;

/// What stands in the end of a task that says only which program failed.
const PROGRAM_SIGNS: [&str; 2] = ["command '", "QEMU exited with code"];

/// Lines at the end of a log that are looked at for the reason.
const TELLING_LINES: usize = 20;

/// What a task that ended says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOutcome {
    /// All went well.
    Ok,
    /// It was done, with this many warnings in its log.
    Warnings(u32),
}

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskProgress {
    /// It has not ended.
    Running,
    /// It ended with success.
    Done(TaskOutcome),
    /// It ended with these words.
    Failed(Refusal),
    /// Its worker died; what it had done by then must be looked for.
    Died,
}

#[derive(Deserialize)]
struct Wire {
    status: String,
    exitstatus: Option<String>,
}

impl Client {
    /// Looks once at a task, at the host that runs it.
    pub async fn task_progress(&self, task: &Upid) -> Result<TaskProgress> {
        let action = format!("follow task {task}");
        let data = self.get(action.clone(), task_path(task, "/status")).await?;
        let wire: Wire = parse(data).map_err(|cause| Error::new(&action, cause))?;
        match (wire.status.as_str(), wire.exitstatus) {
            ("running", _) => Ok(TaskProgress::Running),
            ("stopped", Some(end)) => {
                let progress = self.explained(task, read_end(&end)).await;
                let end = if matches!(progress, TaskProgress::Done(_)) { TaskEnd::Done } else { TaskEnd::Failed };
                self.observer().into_iter().for_each(|observer| observer.task_ended(task, end));
                Ok(progress)
            }
            // Between the worker's end and its last line.
            ("stopped", None) => Ok(TaskProgress::Running),
            (other, _) => Err(Error::new(action, unreadable(&format!("status is `{other}`")))),
        }
    }

    /// Where the end of a task names only the program that failed, the reason stands in its log. A log that cannot be read
    /// leaves the end as it is.
    async fn explained(&self, task: &Upid, progress: TaskProgress) -> TaskProgress {
        let TaskProgress::Failed(refusal) = &progress else { return progress };
        if !PROGRAM_SIGNS.iter().any(|sign| refusal.words.contains(sign)) {
            return progress;
        }
        let log = self.task_log(task).await.unwrap_or_default();
        telling_line(&log).map_or(progress.clone(), |line| {
            TaskProgress::Failed(Refusal::of_task(&format!("{line} ({})", without_arguments(&refusal.words))))
        })
    }

    /// Follows a task to its end, `within` at the most. Resumable: the same name gives the same answer later.
    pub async fn await_task(&self, task: &Upid, within: Duration) -> Result<TaskOutcome> {
        let deadline = Instant::now() + within;
        let (mut pause, mut missed) = (FIRST_LOOK, 0);
        loop {
            if let Some(outcome) = self.look(task, deadline, &mut missed).await? {
                return Ok(outcome);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(SLOWEST_LOOK);
        }
    }

    /// The same, handing over each line of the task's log once, as soon as it is seen. The log is a courtesy: if it
    /// cannot be read, the task is followed all the same.
    pub async fn await_task_telling(
        &self,
        task: &Upid,
        within: Duration,
        mut tell: impl FnMut(&str) + Send,
    ) -> Result<TaskOutcome> {
        let deadline = Instant::now() + within;
        let (mut pause, mut missed, mut told) = (FIRST_LOOK, 0, 0);
        loop {
            // The end is looked for before the log is read, so that the lines before the end are not missed.
            let ended = self.look(task, deadline, &mut missed).await;
            for line in self.task_log_from(task, told, Some(LINES_AT_ONCE)).await.unwrap_or_default() {
                tell(&line);
                told += 1;
            }
            if let Some(outcome) = ended? {
                return Ok(outcome);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(SLOWEST_LOOK);
        }
    }

    /// One look of somebody who waits: the outcome, `None` if it still runs and time is left, or what ends the waiting.
    /// A look that fails on the way is no news of the task, so a few in a row are forgiven.
    async fn look(&self, task: &Upid, deadline: Instant, missed: &mut u32) -> Result<Option<TaskOutcome>> {
        let action = || format!("finish task {} on host {}", task.kind(), task.host());
        let unknown = |doubt| Error::new(action(), Cause::MaybeDone(doubt));
        let progress = match self.task_progress(task).await {
            Ok(progress) => progress,
            Err(error) if error.refusal().is_none() && *missed < LOOKS_FORGIVEN && Instant::now() < deadline => {
                *missed += 1;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        *missed = 0;
        match progress {
            TaskProgress::Done(outcome) => Ok(Some(outcome)),
            TaskProgress::Failed(refusal) => Err(Error::new(action(), Cause::Refused(refusal))),
            TaskProgress::Died => Err(unknown(Doubtful::WorkerDied(task.to_string()))),
            TaskProgress::Running if Instant::now() >= deadline => {
                Err(unknown(Doubtful::StillRunning(task.to_string())))
            }
            TaskProgress::Running => Ok(None),
        }
    }

    /// The lines of a task's log.
    pub async fn task_log(&self, task: &Upid) -> Result<Vec<String>> {
        self.task_log_from(task, 0, Some(0)).await
    }

    /// Lines of a task's log after the first `start`, so many at the most; 0 is all, and without it Proxmox gives fifty.
    pub async fn task_log_from(&self, task: &Upid, start: u64, limit: Option<u64>) -> Result<Vec<String>> {
        #[derive(Deserialize)]
        struct Line {
            #[serde(default)]
            t: String,
        }
        let action = format!("read the log of task {task}");
        let form = Form::default().with_some("start", (start > 0).then_some(start)).with_some("limit", limit);
        let call = Call { action, method: Method::GET, path: task_path(task, "/log"), params: form.params() };
        Ok(self.read::<Vec<Line>>(call).await?.into_iter().map(|line| line.t).collect())
    }

    /// Stops a task; one that has ended already is no error. Takes up to two seconds. A clone that is stopped cleans up
    /// after itself.
    pub async fn stop_task(&self, task: &Upid) -> Result<()> {
        let action = format!("stop task {task}");
        self.call(&Call { action, method: Method::DELETE, path: task_path(task, ""), params: &[] }).await.map(drop)
    }
}

/// The line of a log that says why a program failed: the last one whose meaning is known, or else the last one.
fn telling_line(log: &[String]) -> Option<&str> {
    let is_said =
        |line: &&str| !line.is_empty() && !line.starts_with("TASK ERROR") && !line.starts_with("transferred ");
    let lines: Vec<&str> = log.iter().map(|line| line.trim()).filter(is_said).collect();
    let last = lines.iter().rev().take(TELLING_LINES);
    let known = last.clone().find(|line| !matches!(Refusal::of_task(line).kind, RefusalKind::TaskFailed));
    known.or_else(|| last.clone().next()).copied()
}

/// The words without the arguments of the command in them, which are long and tell an operator nothing.
fn without_arguments(words: &str) -> String {
    let mut parts = words.splitn(3, '\'');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(before), Some(command), Some(after)) if before.ends_with("command ") => {
            let program = command.split(' ').next().unwrap_or_default();
            format!("{before}'{program}'{after}")
        }
        _ => words.to_owned(),
    }
}

fn task_path(task: &Upid, what: &str) -> String {
    format!("/nodes/{}/tasks/{}{what}", segment(task.host()), segment(task))
}

fn read_end(end: &str) -> TaskProgress {
    match (end, end.strip_prefix("WARNINGS: ").and_then(|count| count.trim().parse().ok())) {
        ("OK", _) => TaskProgress::Done(TaskOutcome::Ok),
        (_, Some(warnings)) => TaskProgress::Done(TaskOutcome::Warnings(warnings)),
        ("unexpected status", _) => TaskProgress::Died,
        (words, None) => TaskProgress::Failed(Refusal::of_task(words)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_success_and_a_dead_worker_is_neither() {
        assert_eq!(read_end("OK"), TaskProgress::Done(TaskOutcome::Ok));
        assert_eq!(read_end("WARNINGS: 2"), TaskProgress::Done(TaskOutcome::Warnings(2)));
        assert_eq!(read_end("unexpected status"), TaskProgress::Died);
    }

    #[test]
    fn the_line_of_a_log_that_tells_the_reason_is_found() {
        let log = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let full = log(&[
            "create full clone of drive scsi0 (local:9000/base-9000-disk-0.qcow2)",
            "transferred 0.0 B of 3.0 GiB (0.00%)",
            "qemu-img: error while writing at byte 1073741824: No space left on device",
            "removing image: local:20001/vm-20001-disk-0.qcow2",
            "TASK ERROR: clone failed: copy failed: command '/usr/bin/qemu-img convert -p -n x y' failed: exit code 1",
        ]);
        let line = telling_line(&full).unwrap();
        assert_eq!(line, "qemu-img: error while writing at byte 1073741824: No space left on device");
        let unknown =
            log(&["kvm: -drive file=x: Could not open 'x'", "TASK ERROR: start failed: QEMU exited with code 1"]);
        assert_eq!(telling_line(&unknown), Some("kvm: -drive file=x: Could not open 'x'"));
        assert_eq!(telling_line(&log(&["TASK ERROR: x"])), None);
        let words = "clone failed: copy failed: command '/usr/bin/qemu-img convert -p -n x y' failed: exit code 1";
        assert_eq!(
            without_arguments(words),
            "clone failed: copy failed: command '/usr/bin/qemu-img' failed: exit code 1"
        );
        assert_eq!(without_arguments("can't lock file 'x' - got timeout"), "can't lock file 'x' - got timeout");
    }

    #[test]
    fn the_words_of_a_failed_task_have_a_kind() {
        let kind = |words: &str| match read_end(words) {
            TaskProgress::Failed(refusal) => refusal.kind,
            other => panic!("{other:?}"),
        };
        assert_eq!(kind("unable to create VM 7: config file already exists"), RefusalKind::AlreadyExists);
        assert_eq!(kind("close (rename) atomic file '/x/7.conf' failed: File exists"), RefusalKind::AlreadyExists);
        assert_eq!(kind("VM is locked (clone)"), RefusalKind::Locked(Some("clone".to_owned())));
        assert_eq!(kind("clone failed: write error: No space left on device"), RefusalKind::NoSpace);
        assert_eq!(kind("start failed: QEMU exited with code 1"), RefusalKind::TaskFailed);
    }
}
