//! How a file comes from a URL onto a storage: the call, the worker, and what `wget` would say.
//!
//! The fetching itself is I/O and done in `fetch`; this worker waits for what comes of it.

use bytes::Bytes;

use crate::images::virtual_size;
use crate::jobs::Job;
use crate::keys::format_size;
use crate::params::Call;
use crate::state::State;
use crate::storage::VolumeKey;
use crate::tasks::{Event, NewTask, TaskOutcome};
use crate::upload::{Checksum, has_ending, store_file};
use crate::wire::{Answer, Fetch, Refusal, Reply};

use std::time::Duration;

/// A file that has not come by then never comes.
const PATIENCE: Duration = Duration::from_secs(3600);

pub(crate) fn download(state: &mut State, call: &Call) -> Answer {
    let (storage, kind, file) = (call.word("storage"), call.word("content"), call.word("filename"));
    let spec = state.usable_storage(storage, call.node())?;
    if !spec.content.iter().any(|c| c == kind) {
        return Err(Refusal::failed(format!("storage '{storage}' is not configured for content-type '{kind}'")).into());
    }
    let odd = |c: char| !(c.is_ascii_alphanumeric() || "_.-".contains(c));
    if !has_ending(kind, file) || file.contains(odd) || file.starts_with('.') {
        return Err(Refusal::invalid_field("filename", "invalid filename or wrong extension").into());
    }
    let key = state.place(storage, call.node(), &format!("{kind}/{file}"));
    let (url, checksum) = (call.word("url").to_string(), Checksum::asked(call));
    let job = DownloadJob { key, kind: kind.into(), url: url.clone(), checksum, begun: false };
    let job = Job::Download(Box::new(job));
    let reply = state.spawn(NewTask { node: call.node(), kind: "download", id: file.into(), user: &call.user, job });
    let fetch = reply.upid.clone().map(|upid| Fetch { upid, url });
    Ok(Reply { fetch, ..reply })
}

/// What came of asking for a URL.
#[derive(Clone, Debug)]
pub(crate) enum Fetched {
    File(Bytes),
    /// What `wget` says, line by line, and the error it ends with.
    Failed {
        lines: Vec<String>,
        error: String,
    },
}

#[derive(Debug)]
pub(crate) struct DownloadJob {
    key: VolumeKey,
    kind: String,
    url: String,
    checksum: Option<Checksum>,
    begun: bool,
}

impl DownloadJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        let outcome = if std::mem::replace(&mut self.begun, true) {
            match state.tasks.fetched.remove(upid) {
                None => Err("download failed: exit code 4".into()),
                Some(fetched) => self.finish(state, upid, fetched),
            }
        } else {
            self.begin(state, upid)
        };
        outcome.unwrap_or_else(TaskOutcome::Failed)
    }

    fn begin(&self, state: &mut State, upid: &str) -> Result<TaskOutcome, String> {
        let path = state.path_of(&self.key);
        state.log(upid, format!("downloading {} to {path}", self.url));
        if let Some(existing) = state.volumes.get(&self.key) {
            // A file that is there already is fine if it is proved to be the same.
            let same = self.checksum.as_ref().is_some_and(|checksum| checksum.check(&existing.data).is_ok());
            if !same {
                return Err(format!("refusing to override existing file '{path}'"));
            }
            let line = "calculating checksum of existing file...OK, got correct file already, no need to download";
            state.log(upid, line);
            return Ok(TaskOutcome::Done);
        }
        Ok(TaskOutcome::After(PATIENCE))
    }

    fn finish(&self, state: &mut State, upid: &str, fetched: Fetched) -> Result<TaskOutcome, String> {
        let path = state.path_of(&self.key);
        let now = timestamp(state.epoch());
        state.log(upid, format!("--{now}--  {}", self.url));
        let data = match fetched {
            Fetched::File(data) => data,
            Fetched::Failed { lines, error } => {
                lines.into_iter().for_each(|line| state.log(upid, line));
                return Err(format!("download failed: {error}"));
            }
        };
        let pid = state.tasks.by_upid.get(upid).map_or(0, |task| task.pid);
        let (temporary, length) = (format!("{path}.tmp_dwnl.{pid}"), data.len() as u64);
        state.log(upid, format!("Connecting to {}... connected.", authority(&self.url)));
        state.log(upid, "HTTP request sent, awaiting response... 200 OK");
        state.log(upid, format!("Length: {length} ({}) [application/octet-stream]", format_size(length)));
        state.log(upid, format!("Saving to: '{temporary}'"));
        state.log(upid, format!("{now} (100 MB/s) - '{temporary}' saved [{length}/{length}]"));
        self.verify(state, upid, &data)?;
        let format = self.key.name.rsplit('.').next().unwrap_or("");
        if self.kind == "import" {
            virtual_size(format, &data)
                .map_err(|e| format!("failed to verify file: qemu-img: Could not open '{temporary}': {e}"))?;
        }
        if length > state.usage(&self.key.storage, &self.key.host).1 {
            return Err(format!("download failed: {temporary}: No space left on device"));
        }
        store_file(state, self.key.clone(), &self.kind, data);
        state.log(upid, format!("download of '{}' to '{path}' finished", self.url));
        Ok(TaskOutcome::Done)
    }

    fn verify(&self, state: &mut State, upid: &str, data: &[u8]) -> Result<(), String> {
        let Some(checksum) = &self.checksum else { return Ok(()) };
        let checked = checksum.check(data);
        let line =
            if checked.is_ok() { "calculating checksum...OK, checksum verified" } else { "calculating checksum..." };
        state.log(upid, line);
        checked
    }
}

/// `host:port` of a URL, as `wget` names it.
pub(crate) fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or(rest)
}

fn timestamp(epoch: u64) -> String {
    let seconds = i64::try_from(epoch).unwrap_or(0);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| String::new(), |at| at.strftime("%F %T").to_string())
}

impl State {
    /// Hands a worker the file it waits for.
    pub(crate) fn deliver(&mut self, upid: &str, fetched: Fetched) {
        if self.tasks.by_upid.get(upid).is_some_and(|task| task.end.is_none()) {
            self.tasks.fetched.insert(upid.to_string(), fetched);
            // A worker that has not begun yet is stepped in its turn and finds the file then.
            let begun = self.now + self.config.pace.answer;
            self.tasks.schedule(begun, Event::Step(upid.to_string()));
        }
    }
}
