//! How a file that came with a request gets onto a storage: its name, its checksum, its format.

use bytes::Bytes;
use sha1::Digest;

use crate::images::virtual_size;
use crate::jobs::Job;
use crate::params::Call;
use crate::state::State;
use crate::storage::{Volume, VolumeKey};
use crate::tasks::{NewTask, TaskOutcome};
use crate::wire::{Answer, Refusal};

pub(crate) fn upload(state: &mut State, call: &Call) -> Answer {
    let (storage, kind) = (call.word("storage"), call.word("content"));
    let spec = state.usable_storage(storage, call.node())?;
    if !spec.content.iter().any(|c| c == kind) {
        return Err(Refusal::failed(format!("storage '{storage}' does not support '{kind}' content")).into());
    }
    let file = clean_name(call.word("filename"));
    if !has_ending(kind, &file) {
        return Err(Refusal::invalid_field("filename", "wrong file extension").into());
    }
    let key = state.place(storage, call.node(), &format!("{kind}/{file}"));
    let data = call.file.as_ref().map(|f| f.bytes.clone()).unwrap_or_default();
    let temporary = format!("/var/tmp/pveupload-{:016x}{:016x}", state.chance.next(), state.chance.next());
    let job = UploadJob { key, kind: kind.into(), data, checksum: Checksum::asked(call), temporary, waited: false };
    let job = Job::Upload(Box::new(job));
    Ok(state.spawn(NewTask { node: call.node(), kind: "imgcopy", id: String::new(), user: &call.user, job }))
}

/// Whether a file of this kind may be called so.
pub(crate) fn has_ending(kind: &str, file: &str) -> bool {
    let endings: &[&str] = match kind {
        "iso" => &[".iso", ".img"],
        "vztmpl" => &[".tar.gz", ".tar.xz", ".tar.zst"],
        _ => &[".ova", ".qcow2", ".raw", ".vmdk"],
    };
    endings.iter().any(|ending| file.to_ascii_lowercase().ends_with(ending))
}

/// The last part of the path, odd characters replaced.
pub(crate) fn clean_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or("");
    last.chars().map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' }).collect()
}

/// What a caller says a file's checksum is.
#[derive(Clone, Debug)]
pub(crate) struct Checksum {
    algorithm: String,
    expected: String,
}

impl Checksum {
    pub(crate) fn asked(call: &Call) -> Option<Self> {
        let (algorithm, expected) = call.text("checksum-algorithm").zip(call.text("checksum"))?;
        Some(Self { algorithm: algorithm.into(), expected: expected.to_ascii_lowercase() })
    }

    pub(crate) fn check(&self, data: &[u8]) -> Result<(), String> {
        let sum: Vec<u8> = match self.algorithm.as_str() {
            "sha1" => sha1::Sha1::digest(data).to_vec(),
            "sha224" => sha2::Sha224::digest(data).to_vec(),
            "sha256" => sha2::Sha256::digest(data).to_vec(),
            "sha384" => sha2::Sha384::digest(data).to_vec(),
            "sha512" => sha2::Sha512::digest(data).to_vec(),
            other => return Err(format!("checksum algorithm '{other}' is not simulated")),
        };
        let got: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        if got == self.expected {
            return Ok(());
        }
        Err(format!("checksum mismatch: got '{got}' != expect '{}'", self.expected))
    }
}

#[derive(Debug)]
pub(crate) struct UploadJob {
    key: VolumeKey,
    kind: String,
    data: Bytes,
    checksum: Option<Checksum>,
    temporary: String,
    waited: bool,
}

impl UploadJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        let outcome = if std::mem::replace(&mut self.waited, true) {
            self.copy(state, upid).map(|()| TaskOutcome::Done)
        } else {
            self.begin(state, upid).map(|()| TaskOutcome::After(state.config.pace.upload))
        };
        outcome.unwrap_or_else(TaskOutcome::Failed)
    }

    fn begin(&self, state: &mut State, upid: &str) -> Result<(), String> {
        state.log(upid, format!("starting file import from: {}", self.temporary));
        if let Some(checksum) = &self.checksum {
            if let Err(text) = checksum.check(&self.data) {
                state.log(upid, "calculating checksum...");
                return Err(text);
            }
            state.log(upid, "calculating checksum...OK, checksum verified");
        }
        let format = self.format();
        if self.kind == "import" {
            virtual_size(&format, &self.data)
                .map_err(|e| format!("qemu-img: Could not open '{}': {e}", self.temporary))?;
        }
        let node = state.tasks.by_upid.get(upid).map(|t| t.node.clone()).unwrap_or_default();
        let path = state.path_of(&self.key);
        state.log(upid, format!("target node: {node}"));
        state.log(upid, format!("target file: {path}"));
        state.log(upid, format!("file size is: {}", self.data.len()));
        state.log(upid, format!("command: cp -- {} {path}", self.temporary));
        Ok(())
    }

    fn format(&self) -> String {
        self.key.name.rsplit('.').next().filter(|_| self.kind != "iso").unwrap_or("iso").to_ascii_lowercase()
    }

    fn copy(&self, state: &mut State, upid: &str) -> Result<(), String> {
        let bytes = self.data.len() as u64;
        let place = (self.key.storage.clone(), self.key.host.clone());
        if self.kind == "iso" && state.no_iso_folder.contains(&place) {
            let path = state.path_of(&self.key);
            return Err(format!("import failed: cp: cannot create regular file '{path}': No such file or directory"));
        }
        let replaced = state.volumes.get(&self.key).map_or(0, |v| v.used);
        if bytes > state.usage(&self.key.storage, &self.key.host).1 + replaced {
            let path = state.path_of(&self.key);
            return Err(format!("import failed: cp: error writing '{path}': No space left on device"));
        }
        store_file(state, self.key.clone(), &self.kind, self.data.clone());
        state.log(upid, "finished file import successfully");
        Ok(())
    }
}

/// Puts a whole file onto a storage, in place of any other of its name.
pub(crate) fn store_file(state: &mut State, key: VolumeKey, kind: &str, data: Bytes) {
    let format = key.name.rsplit('.').next().filter(|_| kind != "iso").unwrap_or("iso").to_ascii_lowercase();
    let (length, bytes) = (data.len() as u64, virtual_size(&format, &data).unwrap_or(data.len() as u64));
    let is_disk = kind == "import";
    let file = state.file(kind, &format, data);
    // Whoever brings an image to import it means to boot it.
    state.volumes.insert(key, Volume { bytes, length: Some(length), bootable: is_disk, ..file });
}
