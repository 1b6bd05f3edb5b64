//! One pass of a launch: observe, decide, make at most one change, hand back what is to be recorded.

use tenon_api::CloneMode;
use tenon_engine::launch::{
    self, AwaitedEnd, Failure, LaunchDecision, LaunchResult, LaunchTime, ObservedTask, ObservedVm,
};
use tenon_model::{LaunchRecord, LaunchStep, Leftover, PveSize, Seconds};
use tenon_pve::{Cause, Client, Error, PowerState, RefusalKind, Upid};

use super::desired_vm::{DesiredVm, FirstBoot};
use super::firewall::VmFirewall;
use super::seed_file::{SeedFile, seed_file};
use super::seen_vm::{SeenVm, SeenVms};
use super::{bound_cpus, card_addresses, observe};

/// How often an id that is said to be taken is looked at before it is left to whoever has it.
const LOOKS: u32 = 3;

/// Reads the VM of a launch, and remembers it for the next step.
pub struct VmReader<'a> {
    /// The client.
    pub pve: &'a Client,
    /// What was just read.
    pub seen: &'a SeenVms,
}

/// One pass. `record` is what was last written down; a change is only made for the step that stands there.
pub async fn launch_pass(
    reader: &VmReader<'_>,
    desired: &DesiredVm<'_>,
    record: &LaunchRecord,
    time: &LaunchTime,
) -> Result<LaunchResult, Error> {
    let passed = pass(reader, desired, record, time).await;
    let goes_on = matches!(&passed, Ok(LaunchResult::Record(next)) if next.attempt == 1)
        || matches!(&passed, Ok(LaunchResult::Wait(AwaitedEnd::Task)));
    if !goes_on {
        // What was read may be what went wrong.
        reader.seen.forget(&desired.owner.claim_uid);
    }
    let refused = "storage of the template makes no linked clones; set cloneMode to Auto or Full";
    match passed? {
        LaunchResult::Record(next) if next.full_clone && desired.clone_mode == CloneMode::Linked => Ok(
            LaunchResult::GiveUp(format!("cannot clone template {} with cloneMode Linked: {refused}", record.template)),
        ),
        result => Ok(result),
    }
}

async fn pass(
    reader: &VmReader<'_>,
    desired: &DesiredVm<'_>,
    record: &LaunchRecord,
    time: &LaunchTime,
) -> Result<LaunchResult, Error> {
    let VmReader { pve, seen } = reader;
    if record.step == LaunchStep::Launched {
        return Ok(LaunchResult::Launched);
    }
    let mut task = observe::task(pve, record).await?;
    let uid = &desired.owner.claim_uid;
    let (vm, known) = match (&task, seen.recent(uid, record, time.now)) {
        // Its task says all there is to know, and a VM being created cannot be read anyway.
        (ObservedTask::Running, _) => (ObservedVm::Absent, None),
        (ObservedTask::None | ObservedTask::Done, Some(known)) => {
            (ObservedVm::Ours { uuid: known.config().uuid() }, Some(known))
        }
        // Nobody has the id: neither a VM that the API token cannot see, nor a clone of ours whose reply was lost.
        (ObservedTask::None, None) if is_unsent(record) && pve.is_id_free(record.vmid).await? => {
            (ObservedVm::Absent, None)
        }
        _ => {
            let observed = observe::vm(pve, &desired.owner, record).await?;
            let known = observed.proven.map(|vm| SeenVm::new(vm, time.now));
            if let Some(known) = &known {
                seen.read(uid, known.clone());
            }
            (observed.vm, known)
        }
    };
    if let Some(upid) = observe::lost_clone_task(pve, record, &vm).await? {
        task = ObservedTask::Found(upid.to_string());
    }
    let change = Change { reader, desired, record, now: time.now };
    match launch::next_step(record, &vm, &task, time) {
        LaunchDecision::Conclude(LaunchResult::Record(next)) => Ok(LaunchResult::Record(change.skipped(next))),
        LaunchDecision::Conclude(result) => Ok(result),
        LaunchDecision::Perform(step) => {
            let outcome = change.perform(step, known).await;
            change.judge(outcome)
        }
    }
}

/// Whether nothing says that the clone was sent.
fn is_unsent(record: &LaunchRecord) -> bool {
    record.step == LaunchStep::Clone && record.upid.is_none()
}

/// The one change of a pass.
struct Change<'a> {
    reader: &'a VmReader<'a>,
    desired: &'a DesiredVm<'a>,
    record: &'a LaunchRecord,
    now: Seconds,
}

/// What a change gave: a task to follow, or it is done already.
enum Begun {
    Task(Upid),
    Done,
}

impl Change<'_> {
    async fn perform(&self, step: LaunchStep, known: Option<SeenVm>) -> Result<Begun, ChangeError> {
        match (step, known) {
            (LaunchStep::Clone, _) => self.clone().await,
            (LaunchStep::Configure, Some(vm)) => self.configure(&vm).await,
            (LaunchStep::Resize, Some(vm)) => self.resize(&vm).await,
            (LaunchStep::UploadSeed, Some(vm)) => self.upload(&vm).await,
            (LaunchStep::AttachSeed, Some(vm)) => self.attach(&vm).await,
            (LaunchStep::Firewall, Some(vm)) => self.protect(&vm).await,
            (LaunchStep::Start, Some(vm)) => self.start(&vm).await,
            // The engine asks for these only with a proof in hand; without one nothing is changed.
            (LaunchStep::Identify | LaunchStep::Launched, _) | (_, None) => Ok(Begun::Done),
        }
    }

    async fn clone(&self) -> Result<Begun, ChangeError> {
        self.seed_file()?;
        let request = self.desired.clone_request(self.record).map_err(ChangeError::Desired)?;
        let host = self.desired.source.host.as_ref().unwrap_or(self.record.host());
        Ok(Begun::Task(self.reader.pve.clone_vm(host, &request).await?))
    }

    async fn configure(&self, vm: &SeenVm) -> Result<Begun, ChangeError> {
        let Change { desired, record, .. } = self;
        if let Some(why) = card_addresses::unplanned(&record.addresses, vm.config()) {
            return Err(ChangeError::Desired(why));
        }
        let mut keys = desired.identity(record, vm.config());
        keys.extend(bound_cpus::affinity(record.pinning.as_ref(), self.reader.pve.is_root()));
        let keys: Vec<(&str, String)> = keys.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        self.write(vm, &keys).await
    }

    async fn attach(&self, vm: &SeenVm) -> Result<Begun, ChangeError> {
        let Some(seed) = seed_file(&self.desired.owner, self.record) else { return Ok(Begun::Done) };
        let digest = vm.config().digest().map(|digest| ("digest", digest.to_owned()));
        let keys: Vec<_> = DesiredVm::drive(&seed).into_iter().chain(digest).collect();
        self.write(vm, &keys).await
    }

    /// Writes to the configuration, which has another digest from then on.
    async fn write(&self, vm: &SeenVm, keys: &[(&str, String)]) -> Result<Begun, ChangeError> {
        self.reader.pve.configure_vm(vm.host(), vm.vmid(), keys).await?;
        self.reader.seen.changed(&self.desired.owner.claim_uid, self.now);
        Ok(Begun::Done)
    }

    /// A clone inherits the rules of its template. Where those are known to be none, and this is the first try, nothing has to
    /// be read.
    async fn protect(&self, vm: &SeenVm) -> Result<Begun, ChangeError> {
        let firewall = VmFirewall { pve: self.reader.pve, host: vm.host(), vmid: vm.vmid() };
        let groups = &self.desired.security_groups;
        if vm.is_fresh_clone() && self.desired.source.has_no_rules {
            firewall.begin(groups).await?;
        } else {
            firewall.settle(groups).await?;
        }
        Ok(Begun::Done)
    }

    /// A VM that was configured a moment ago does not run. Otherwise it is asked: somebody may have started it.
    async fn start(&self, vm: &SeenVm) -> Result<Begun, ChangeError> {
        let pve = self.reader.pve;
        if !vm.is_fresh_clone() && pve.vm_status(vm.host(), vm.vmid()).await?.power == PowerState::Running {
            return Ok(Begun::Done);
        }
        Ok(Begun::Task(pve.start_vm(vm.host(), vm.vmid()).await?))
    }

    /// Grows the disk, never shrinks it: Proxmox would refuse, and the image may need what it has.
    async fn resize(&self, vm: &SeenVm) -> Result<Begun, ChangeError> {
        let Some((disk, drive)) = vm.config().boot_disk() else {
            return Err(ChangeError::Desired(format!("template {} has no boot disk", self.record.template)));
        };
        let wanted = PveSize::from_gib(self.desired.disk_gib);
        if drive.size().unwrap_or_default() >= wanted {
            return Ok(Begun::Done);
        }
        Ok(Begun::Task(self.reader.pve.resize_disk(vm.host(), vm.vmid(), disk, &wanted.to_string()).await?))
    }

    async fn upload(&self, vm: &SeenVm) -> Result<Begun, ChangeError> {
        let (FirstBoot::Seed(render), Some(file)) = (self.desired.first_boot, self.seed_file()?) else {
            return Ok(Begun::Done);
        };
        let image = render(self.record, vm.config()).map_err(ChangeError::Desired)?;
        let pve = self.reader.pve;
        if self.reader.seen.must_look(vm.host(), &file.storage, self.now) || self.record.attempt > 1 {
            // A token that may not look may still upload.
            let _ = pve.storage_status(vm.host(), &file.storage).await;
        }
        Ok(Begun::Task(pve.upload_iso(vm.host(), &file.storage, &file.name, &image).await?))
    }

    /// Where first-boot data goes, if the VM gets any. Without a place for it nothing is cloned.
    fn seed_file(&self) -> Result<Option<SeedFile>, ChangeError> {
        if matches!(self.desired.first_boot, FirstBoot::Image) {
            return Ok(None);
        }
        let no_room = || {
            ChangeError::Desired(format!(
                "no storage for ISO images on host {} has room for first-boot data; free space, or allow content type iso on \
                 another storage",
                self.record.host()
            ))
        };
        seed_file(&self.desired.owner, self.record).map(Some).ok_or_else(no_room)
    }

    /// The record past steps that have nothing to do for this VM, so that none is written down for nothing.
    fn skipped(&self, mut next: LaunchRecord) -> LaunchRecord {
        while next.step != self.record.step && self.desired.skips(next.step) {
            next = next.advanced(self.now);
        }
        next
    }

    /// Turns what a change gave into what is to be recorded.
    fn judge(&self, outcome: Result<Begun, ChangeError>) -> Result<LaunchResult, Error> {
        match outcome {
            Ok(Begun::Task(upid)) => {
                let upid = Some(upid.to_string());
                Ok(LaunchResult::Record(LaunchRecord { upid, last_progress_at: self.now, ..self.record.clone() }))
            }
            Ok(Begun::Done) => Ok(LaunchResult::Record(self.skipped(self.record.advanced(self.now)))),
            Err(ChangeError::Desired(why)) => Ok(LaunchResult::GiveUp(why)),
            Err(ChangeError::Pve(error)) => match (error.cause(), error.refusal().map(observe::failure)) {
                // It may have been done: the next pass looks before anything is sent again.
                (Cause::MaybeDone(_), _) => Ok(LaunchResult::Wait(AwaitedEnd::Host)),
                // By whom, the next pass sees: perhaps by a call of ours that was thought lost.
                (_, Some(Failure::IdTaken)) if self.record.step == LaunchStep::Clone && self.record.attempt < LOOKS => {
                    Ok(LaunchResult::Record(self.record.begun_again()))
                }
                (_, Some(Failure::IdTaken)) if self.record.step == LaunchStep::Clone => Ok(LaunchResult::Relaunch {
                    why: "the VM ID is in use by a VM that this API token cannot read".to_owned(),
                    leftover: Leftover::Nothing,
                }),
                (_, Some(Failure::NoLinkedClone(_))) => Ok(launch::clone_in_full(self.record, &error.full_message())),
                (_, Some(Failure::OtherState(_))) => Ok(launch::try_again(self.record, &error.full_message())),
                // The seed was deleted under our hands, or an earlier version gave it another name.
                (_, Some(Failure::Hopeless(_)))
                    if self.record.step == LaunchStep::AttachSeed && error.is_not_found() =>
                {
                    Ok(match launch::try_again(self.record, &error.full_message()) {
                        LaunchResult::Record(again) => {
                            LaunchResult::Record(LaunchRecord { step: LaunchStep::UploadSeed, ..again })
                        }
                        ended => ended,
                    })
                }
                // A token that was replaced is in the cloud config in a moment; a launch has time for that.
                _ if error.refusal().is_some_and(|told| told.kind == RefusalKind::Unauthorized) => Err(error),
                (_, Some(Failure::Hopeless(_) | Failure::IdTaken)) => Ok(LaunchResult::GiveUp(error.full_message())),
                _ => Err(error),
            },
        }
    }
}

/// Why a change was not made.
enum ChangeError {
    /// Proxmox did not do it.
    Pve(Error),
    /// The desired VM cannot be created.
    Desired(String),
}

impl From<Error> for ChangeError {
    fn from(error: Error) -> ChangeError {
        ChangeError::Pve(error)
    }
}
