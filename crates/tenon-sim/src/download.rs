//! How a file comes from a URL onto a storage: the call, and the worker that lets it come in its time.
//!
//! What is found at the URL is asked of `web`, and for servers nobody published of `fetch`, which is I/O. The words are in `wget`.

use std::time::Duration;

use bytes::Bytes;

use crate::images::virtual_size;
use crate::jobs::Job;
use crate::keys::format_size;
use crate::params::Call;
use crate::state::State;
use crate::storage::{TEMPORARY, Volume, VolumeKey};
use crate::tasks::{Event, NewTask, TaskOutcome};
use crate::upload::{Checksum, has_ending};
use crate::wget::{Progress, ROW_BYTES, timestamp};
use crate::wire::{Answer, Fetch, Refusal, Reply};

/// A server that has not answered by then never does. The wait is not taken back, so it is longer than any transfer.
const PATIENCE: Duration = Duration::from_secs(30 * 86_400);

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
    let url = call.word("url").to_string();
    let verify = call.text("verify-certificates") != Some("0");
    let published = state.browse(&url, verify).is_some();
    let order = Order { key, kind: kind.into(), url: url.clone(), checksum: Checksum::asked(call), verify };
    let job = Job::Download(Box::new(DownloadJob { order, phase: Phase::Begin }));
    let reply = state.spawn(NewTask { node: call.node(), kind: "download", id: file.into(), user: &call.user, job });
    let fetch = reply.upid.clone().filter(|_| !published).map(|upid| Fetch { upid, url, verify });
    Ok(Reply { fetch, ..reply })
}

/// A file that begins to come.
#[derive(Clone, Debug)]
pub(crate) struct Download {
    pub(crate) data: Bytes,
    /// May be more than the bytes of a published file.
    pub(crate) length: u64,
    pub(crate) bytes_per_s: u64,
    /// What is said until the server has answered.
    pub(crate) lines: Vec<String>,
}

/// What came of asking for a URL.
#[derive(Clone, Debug)]
pub(crate) enum Fetched {
    File(Download),
    /// What `wget` says, line by line, and the error it ends with.
    Failed {
        lines: Vec<String>,
        error: String,
    },
}

impl Fetched {
    /// A failure whose last line is also the error of the task.
    pub(crate) fn failed_as_told(lines: Vec<String>) -> Self {
        let error = lines.last().cloned().unwrap_or_default();
        Self::Failed { lines, error }
    }
}

/// What is wanted.
#[derive(Debug)]
struct Order {
    key: VolumeKey,
    kind: String,
    url: String,
    checksum: Option<Checksum>,
    verify: bool,
}

#[derive(Debug)]
enum Phase {
    Begin,
    /// For an answer from the network.
    Waiting,
    Coming(Transfer),
}

/// How much of a file has come.
#[derive(Debug)]
struct Transfer {
    file: Download,
    /// Where it lies until it is complete.
    temporary: VolumeKey,
    received: u64,
    began: Duration,
    row_began: Duration,
}

#[derive(Debug)]
pub(crate) struct DownloadJob {
    order: Order,
    phase: Phase,
}

impl DownloadJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        let phase = std::mem::replace(&mut self.phase, Phase::Waiting);
        let outcome = match phase {
            Phase::Begin => self.begin(state, upid),
            Phase::Waiting => match state.tasks.fetched.remove(upid) {
                None => Err("download failed: exit code 4".into()),
                Some(fetched) => self.start(state, upid, fetched),
            },
            Phase::Coming(transfer) => self.go_on(state, upid, transfer),
        };
        outcome.unwrap_or_else(|text| {
            self.clean_up(state, upid);
            TaskOutcome::Failed(text)
        })
    }

    fn begin(&mut self, state: &mut State, upid: &str) -> Result<TaskOutcome, String> {
        let Order { key, url, checksum, verify, .. } = &self.order;
        let path = state.path_of(key);
        state.log(upid, format!("downloading {url} to {path}"));
        if let Some(existing) = state.volumes.get(key) {
            // A file that is there already is fine if it is proved to be the same.
            let same = checksum.as_ref().is_some_and(|checksum| checksum.check(&existing.data).is_ok());
            if !same {
                return Err(format!("refusing to override existing file '{path}'"));
            }
            let line = "calculating checksum of existing file...OK, got correct file already, no need to download";
            state.log(upid, line);
            return Ok(TaskOutcome::Done);
        }
        let now = timestamp(state.epoch());
        state.log(upid, format!("--{now}--  {url}"));
        match state.browse(url, *verify) {
            Some(found) => self.start(state, upid, found),
            None => Ok(TaskOutcome::After(PATIENCE)),
        }
    }

    /// The server has answered.
    fn start(&mut self, state: &mut State, upid: &str, fetched: Fetched) -> Result<TaskOutcome, String> {
        let file = match fetched {
            Fetched::File(file) => file,
            Fetched::Failed { lines, error } => {
                lines.into_iter().for_each(|line| state.log(upid, line));
                return Err(format!("download failed: {error}"));
            }
        };
        let temporary = self.temporary(state, upid);
        file.lines.iter().for_each(|line| state.log(upid, line.as_str()));
        let (length, path) = (file.length, state.path_of(&temporary));
        state.log(upid, format!("Length: {length} ({}) [application/octet-stream]", format_size(length)));
        state.log(upid, format!("Saving to: '{path}'"));
        let empty = Volume { content: TEMPORARY.into(), ..state.file(TEMPORARY, "raw", Bytes::new()) };
        state.volumes.insert(temporary.clone(), empty);
        let transfer = Transfer { file, temporary, received: 0, began: state.now, row_began: state.now };
        let wait = transfer.next_row();
        self.phase = Phase::Coming(transfer);
        Ok(TaskOutcome::After(wait))
    }

    /// One more row of dots has come.
    fn go_on(&mut self, state: &mut State, upid: &str, mut transfer: Transfer) -> Result<TaskOutcome, String> {
        let row = transfer.row_bytes();
        let (_, free) = state.usage(&transfer.temporary.storage, &transfer.temporary.host);
        if row > free {
            let text = format!("Cannot write to '{}' (No space left on device).", state.path_of(&transfer.temporary));
            state.log(upid, text.as_str());
            return Err(format!("download failed: {text}"));
        }
        transfer.received += row;
        if let Some(volume) = state.volumes.get_mut(&transfer.temporary) {
            (volume.used, volume.bytes) = (transfer.received, transfer.received);
        }
        let progress = transfer.progress(state.now, row);
        state.log(upid, progress.row());
        transfer.row_began = state.now;
        if transfer.received < transfer.file.length {
            let wait = transfer.next_row();
            self.phase = Phase::Coming(transfer);
            return Ok(TaskOutcome::After(wait));
        }
        let line = progress.saved(&state.path_of(&transfer.temporary), state.epoch());
        state.log(upid, line);
        self.finish(state, upid, transfer)
    }

    /// Only a file that is complete and checked gets its name.
    fn finish(&self, state: &mut State, upid: &str, transfer: Transfer) -> Result<TaskOutcome, String> {
        let (Download { data, length, .. }, temporary) = (transfer.file, transfer.temporary);
        self.verify(state, upid, &data)?;
        let Order { key, kind, url, .. } = &self.order;
        let format = key.name.rsplit('.').next().unwrap_or("").to_ascii_lowercase();
        let mut bytes = length;
        if kind == "import" {
            let inside = virtual_size(&format, &data).map_err(|e| {
                format!("failed to verify file: qemu-img: Could not open '{}': {e}", state.path_of(&temporary))
            })?;
            bytes = if format == "qcow2" { inside } else { length };
        }
        state.volumes.remove(&temporary);
        let format = if kind == "iso" { "iso".into() } else { format };
        let file = state.file(kind, &format, data);
        // Whoever brings an image to import it means to boot it.
        let volume = Volume { bytes, used: length, length: Some(length), bootable: kind == "import", ..file };
        state.volumes.insert(key.clone(), volume);
        let path = state.path_of(key);
        state.log(upid, format!("download of '{url}' to '{path}' finished"));
        Ok(TaskOutcome::Done)
    }

    fn verify(&self, state: &mut State, upid: &str, data: &[u8]) -> Result<(), String> {
        let Some(checksum) = &self.order.checksum else { return Ok(()) };
        let checked = checksum.check(data);
        let line =
            if checked.is_ok() { "calculating checksum...OK, checksum verified" } else { "calculating checksum..." };
        state.log(upid, line);
        checked
    }

    fn temporary(&self, state: &State, upid: &str) -> VolumeKey {
        let pid = state.tasks.by_upid.get(upid).map_or(0, |task| task.pid);
        let name = format!("{}.tmp_dwnl.{pid}", self.order.key.name);
        VolumeKey { name, ..self.order.key.clone() }
    }

    /// A worker that fails takes its half of the file with it; one that is killed cannot.
    fn clean_up(&self, state: &mut State, upid: &str) {
        let temporary = self.temporary(state, upid);
        state.volumes.remove(&temporary);
    }

    pub(crate) fn interrupt(&self, state: &mut State, upid: &str) -> String {
        self.clean_up(state, upid);
        "download failed: received interrupt".into()
    }
}

impl Transfer {
    fn row_bytes(&self) -> u64 {
        ROW_BYTES.min(self.file.length - self.received)
    }

    fn next_row(&self) -> Duration {
        Duration::from_secs_f64(self.row_bytes() as f64 / self.file.bytes_per_s as f64)
    }

    fn progress(&self, now: Duration, row: u64) -> Progress {
        let span = (now - self.row_began).as_secs_f64();
        let rate = row as f64 / span.max(1e-9);
        Progress {
            received: self.received,
            length: self.file.length,
            elapsed_s: (now - self.began).as_secs_f64(),
            rate,
        }
    }
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
