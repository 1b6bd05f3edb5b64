//! How a disk grows. Nearly everything that can be wrong with it is told by the task, not by the call.

use crate::changes::refuse_skiplock;
use crate::jobs::Job;
use crate::keys;
use crate::params::Call;
use crate::state::State;
use crate::tasks::{NewTask, TaskOutcome};
use crate::update::CHECKSUM_MISMATCH;
use crate::wire::Answer;

pub(crate) fn resize(state: &mut State, call: &Call) -> Answer {
    refuse_skiplock(call)?;
    let owned = |name: &str| call.text(name).unwrap_or("").to_string();
    let job = ResizeJob {
        vmid: call.vmid(),
        host: call.node().into(),
        disk: owned("disk"),
        size: owned("size"),
        digest: call.text("digest").map(str::to_owned),
        waited: false,
    };
    let id = call.vmid().to_string();
    Ok(state.spawn(NewTask { node: call.node(), kind: "resize", id, user: &call.user, job: Job::Resize(job) }))
}

/// An image larger than this can not be grown in time.
const SLOW_BYTES: u64 = 32 << 40;

fn command(path: &str, size: u64) -> String {
    format!("/usr/bin/qemu-img resize '--preallocation=metadata' -f qcow2 {path} {size}")
}

#[derive(Debug)]
pub(crate) struct ResizeJob {
    pub(crate) vmid: u32,
    host: String,
    disk: String,
    size: String,
    digest: Option<String>,
    waited: bool,
}

impl ResizeJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        if !std::mem::replace(&mut self.waited, true) {
            return match self.new_size(state) {
                // Laying out the metadata of a huge image takes longer than anybody waits.
                Ok(size) if size > SLOW_BYTES => TaskOutcome::After(state.config.pace.lock_wait),
                Ok(_) => TaskOutcome::After(state.config.pace.resize),
                Err(text) => {
                    self.tell_why(state, upid);
                    TaskOutcome::Failed(text)
                }
            };
        }
        let running = state.vms.get(&self.vmid).is_some_and(|vm| vm.running.is_some());
        match self.grow(state) {
            // A running QEMU does it itself, without a word.
            Ok(()) if running => TaskOutcome::Done,
            Ok(()) => {
                state.log(upid, "Image resized.");
                TaskOutcome::Done
            }
            Err(text) => TaskOutcome::Failed(text),
        }
    }

    /// The disk of a template is read-only, which `qemu-img` finds out by itself.
    fn tell_why(&self, state: &mut State, upid: &str) {
        let Some(vm) = state.vms.get(&self.vmid).filter(|vm| vm.is_template()) else { return };
        let drive = vm.drives().into_iter().find(|(key, d)| *key == self.disk && !d.is_cdrom()).map(|(_, d)| d);
        if let Some(key) = drive.and_then(|drive| state.key_of(&drive.file, &self.host)) {
            let open = format!("Could not open '{}'", state.path_of(&key));
            state.log(upid, format!("qemu-img: {open}: {open}: Operation not permitted"));
        }
    }

    fn new_size(&self, state: &mut State) -> Result<u64, String> {
        let vm = state.vm_for_task(&self.host, self.vmid)?;
        if self.digest.as_ref().is_some_and(|d| *d != vm.digest()) {
            return Err(CHECKSUM_MISMATCH.into());
        }
        vm.check_lock()?;
        let drives = vm.drives();
        let drive = drives.iter().find(|(key, _)| *key == self.disk).map(|(_, d)| d);
        let drive = drive.ok_or_else(|| format!("disk '{}' does not exist", self.disk))?;
        if drive.is_cdrom() {
            return Err("you can't resize a cdrom".into());
        }
        let template = vm.is_template();
        let (relative, digits) = self.size.strip_prefix('+').map_or((false, self.size.as_str()), |d| (true, d));
        let asked = keys::parse_size(digits).unwrap_or(0);
        let size = if relative { drive.bytes() + asked } else { asked };
        if template {
            let path = state.key_of(&drive.file, &self.host).map(|key| state.path_of(&key)).unwrap_or_default();
            return Err(format!("command '{}' failed: exit code 1", command(&path, size)));
        }
        if size < drive.bytes() {
            return Err("shrinking disks is not supported".into());
        }
        Ok(size)
    }

    fn grow(&self, state: &mut State) -> Result<(), String> {
        let size = self.new_size(state)?;
        let vm = state.vm_for_task(&self.host, self.vmid)?;
        let Some((_, mut drive)) = vm.drives().into_iter().find(|(key, _)| *key == self.disk) else { return Ok(()) };
        let key = state.key_of(&drive.file, &self.host);
        let key = key.filter(|k| state.volumes.contains_key(k));
        let key = key.ok_or_else(|| format!("volume '{}' does not exist", drive.file))?;
        if size > SLOW_BYTES {
            return Err(format!("command '{}' failed: got timeout", command(&state.path_of(&key), size)));
        }
        let linked = state.volumes.get(&key).is_some_and(|v| v.parent.is_some());
        // A linked clone is thin: growing it takes no room yet.
        let more = if linked { 0 } else { size.saturating_sub(drive.bytes()) };
        if more > state.usage(&key.storage, &key.host).1 {
            let path = state.path_of(&key);
            return Err(format!("command '{}' failed: No space left on device", command(&path, size)));
        }
        if let Some(volume) = state.volumes.get_mut(&key) {
            volume.bytes = size;
            volume.used += more;
        }
        // The image has grown by now, even when the config can not be written.
        state.check_writable(&self.host, self.vmid)?;
        drive.options.insert("size".into(), keys::format_size(size));
        let vm = state.vm_for_task(&self.host, self.vmid)?;
        vm.config.insert(self.disk.clone(), drive.print());
        Ok(())
    }
}
