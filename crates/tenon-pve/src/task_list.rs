//! Tasks of a host that nobody remembered the name of: how a lost answer is found again.

use http::Method;
use serde::Deserialize;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client, Form, segment};
use crate::error::Result;
use crate::reply::{amount_or_none, whole};
use crate::upid::Upid;

/// A task in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Its name, by which it is followed.
    pub upid: Upid,
    /// When it began, in seconds since 1970.
    pub started: u64,
    /// When it ended.
    pub ended: Option<u64>,
    /// How it ended, in its own words; `None` while it runs.
    pub end: Option<String>,
}

/// Which tasks to list. A clone is found under the id of its source.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Which of them: those that ended, unless it is said otherwise.
    pub source: Option<TaskSource>,
    /// Only those about this VM.
    pub vmid: Option<VmId>,
    /// Only of this kind: `qmclone`.
    pub kind: Option<String>,
    /// Only those that failed.
    pub failed: Option<bool>,
    /// Only those that ended so: `ok`, `error`, `warning`, `unknown`, divided by commas.
    pub ended_so: Option<String>,
    /// Only this user's. Proxmox does not find a token's tasks by the token's name.
    pub user: Option<String>,
    /// Only those that began at this second since 1970 or later.
    pub since: Option<u64>,
    /// Leaves out so many, the newest first.
    pub start: Option<u64>,
    /// So many at the most; Proxmox gives fifty without.
    pub limit: Option<u64>,
}

/// Where tasks are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSource {
    /// Those that ended.
    Archive,
    /// Those that run.
    Active,
    /// Both.
    All,
}

impl TaskSource {
    fn word(self) -> &'static str {
        match self {
            TaskSource::Archive => "archive",
            TaskSource::Active => "active",
            TaskSource::All => "all",
        }
    }
}

#[derive(Deserialize)]
struct Wire {
    upid: String,
    #[serde(deserialize_with = "whole")]
    starttime: u64,
    #[serde(default, deserialize_with = "amount_or_none")]
    endtime: Option<u64>,
    status: Option<String>,
}

impl Client {
    /// Whether we started a task.
    pub fn is_own_task(&self, task: &Upid) -> bool {
        task.user() == self.session().user()
    }

    /// Tasks of a host, the newest first. Without other rights a token sees its own.
    pub async fn tasks(&self, host: &HostName, filter: &TaskFilter) -> Result<Vec<TaskRow>> {
        let form = Form::default()
            .with_some("source", filter.source.map(TaskSource::word))
            .with_some("vmid", filter.vmid)
            .with_some("typefilter", filter.kind.as_ref())
            .with_flag("errors", filter.failed)
            .with_some("statusfilter", filter.ended_so.as_ref())
            .with_some("userfilter", filter.user.as_ref())
            .with_some("since", filter.since)
            .with_some("start", filter.start)
            .with_some("limit", filter.limit);
        let action = format!("list the tasks of host {host}");
        let path = format!("/nodes/{}/tasks", segment(host));
        let call = Call { action, method: Method::GET, path, params: form.params() };
        let rows: Vec<Wire> = self.read(call).await?;
        // What has no name as ours have is not ours, and must not hide those that are.
        let read = |wire: Wire| {
            let upid = wire.upid.parse().ok()?;
            // One that runs has `RUNNING`, or nothing, where the end stands later.
            let end = wire.status.filter(|status| wire.endtime.is_some() || status != "RUNNING");
            Some(TaskRow { upid, started: wire.starttime, ended: wire.endtime, end })
        };
        Ok(rows.into_iter().filter_map(read).collect())
    }
}
