//! Follows a task to its end. A call that was answered has only begun; the exit status of its task is the outcome.

use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::client::{Call, Client, segment};
use crate::error::{Cause, Doubtful, Error, Refusal, Result};
use crate::reply::{parse, unreadable};
use crate::upid::Upid;

/// The first look comes soon, because most tasks take a tenth of a second; later ones back off to this.
const FIRST_LOOK: Duration = Duration::from_millis(100);
const SLOWEST_LOOK: Duration = Duration::from_secs(2);

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
        let data = self.get(action.clone(), task_path(task, "status")).await?;
        let wire: Wire = parse(data).map_err(|cause| Error::new(&action, cause))?;
        match (wire.status.as_str(), wire.exitstatus) {
            ("running", _) => Ok(TaskProgress::Running),
            ("stopped", Some(end)) => Ok(read_end(&end)),
            // Between the worker's end and its last line.
            ("stopped", None) => Ok(TaskProgress::Running),
            (other, _) => Err(Error::new(action, unreadable(&format!("status is `{other}`")))),
        }
    }

    /// Follows a task to its end, `within` at the most. Resumable: the same name gives the same answer later.
    pub async fn await_task(&self, task: &Upid, within: Duration) -> Result<TaskOutcome> {
        let action = || format!("finish task {} on host {}", task.kind(), task.host());
        let deadline = Instant::now() + within;
        let mut pause = FIRST_LOOK;
        loop {
            match self.task_progress(task).await? {
                TaskProgress::Done(outcome) => return Ok(outcome),
                TaskProgress::Failed(refusal) => return Err(Error::new(action(), Cause::Refused(refusal))),
                TaskProgress::Died => {
                    return Err(Error::new(action(), Cause::MaybeDone(Doubtful::WorkerDied(task.to_string()))));
                }
                TaskProgress::Running if Instant::now() >= deadline => {
                    return Err(Error::new(action(), Cause::MaybeDone(Doubtful::StillRunning(task.to_string()))));
                }
                TaskProgress::Running => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(SLOWEST_LOOK);
        }
    }

    /// The lines of a task's log.
    pub async fn task_log(&self, task: &Upid) -> Result<Vec<String>> {
        let action = format!("read the log of task {task}");
        let call =
            Call { action, method: Method::GET, path: task_path(task, "log"), params: &[("limit", "0".to_owned())] };
        let data = self.call(&call).await?;
        let rows = data.as_array().ok_or_else(|| Error::new(call.action, unreadable("not a list")))?;
        Ok(rows.iter().filter_map(|row| row.get("t").and_then(Value::as_str)).map(str::to_owned).collect())
    }
}

fn task_path(task: &Upid, what: &str) -> String {
    format!("/nodes/{}/tasks/{}/{what}", segment(task.host()), segment(task))
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
    use crate::error::RefusalKind;

    #[test]
    fn warnings_are_success_and_a_dead_worker_is_neither() {
        assert_eq!(read_end("OK"), TaskProgress::Done(TaskOutcome::Ok));
        assert_eq!(read_end("WARNINGS: 2"), TaskProgress::Done(TaskOutcome::Warnings(2)));
        assert_eq!(read_end("unexpected status"), TaskProgress::Died);
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
