//! One pass of a launch: observe, decide, make at most one change, hand back what is to be recorded.

use tenon_engine::launch::{
    self, AwaitedEnd, Failure, LaunchDecision, LaunchResult, LaunchTime, ObservedTask, ObservedVm,
};
use tenon_model::{LaunchRecord, LaunchStep, Leftover, PveSize, Seconds};
use tenon_pve::{Cause, Client, Error, PowerState, ProvenVm, Upid};

use super::desired_vm::{DesiredVm, FirstBoot};
use super::observe::{self, VmObservation};
use super::seed_file::{SeedFile, seed_file};
use super::{bound_cpus, card_addresses};

/// How often an id that is said to be taken is looked at before it is left to whoever has it.
const LOOKS: u32 = 3;

/// One pass. `record` is what was last written down; a change is only made for the step that stands there.
pub async fn launch_pass(
    pve: &Client,
    desired: &DesiredVm<'_>,
    record: &LaunchRecord,
    time: &LaunchTime,
) -> Result<LaunchResult, Error> {
    let mut task = observe::task(pve, record).await?;
    let observed = match task {
        // Its task says all there is to know, and a VM being created cannot be read anyway.
        ObservedTask::Running => VmObservation::without_proof(ObservedVm::Absent),
        _ => observe::vm(pve, &desired.owner, record).await?,
    };
    if let Some(upid) = observe::lost_clone_task(pve, record, &observed.vm).await? {
        task = ObservedTask::Found(upid.to_string());
    }
    match launch::next_step(record, &observed.vm, &task, time) {
        LaunchDecision::Conclude(result) => Ok(result),
        LaunchDecision::Perform(step) => {
            let change = Change { pve, desired, record, now: time.now };
            let outcome = change.perform(step, observed.proven).await;
            change.judge(outcome)
        }
    }
}

/// The one change of a pass.
struct Change<'a> {
    pve: &'a Client,
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
    async fn perform(&self, step: LaunchStep, proven: Option<ProvenVm>) -> Result<Begun, ChangeError> {
        let Change { pve, desired, record, .. } = self;
        match (step, proven) {
            (LaunchStep::Clone, _) => self.clone().await,
            (LaunchStep::Configure, Some(vm)) => {
                if let Some(why) = card_addresses::unplanned(&record.addresses, vm.config()) {
                    return Err(ChangeError::Desired(why));
                }
                let mut keys = desired.identity(record, vm.config());
                keys.extend(bound_cpus::affinity(record.pinning.as_ref(), pve.is_root()));
                let keys: Vec<(&str, String)> = keys.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
                pve.configure_vm(vm.host(), vm.vmid(), &keys).await?;
                Ok(Begun::Done)
            }
            (LaunchStep::Resize, Some(vm)) => self.resize(&vm).await,
            (LaunchStep::UploadSeed, Some(vm)) => self.upload(&vm).await,
            (LaunchStep::AttachSeed, Some(vm)) => {
                if let (FirstBoot::Seed(_), Some(seed)) = (&desired.first_boot, seed_file(&desired.owner, record)) {
                    let digest = vm.config().digest().map(|digest| ("digest", digest.to_owned()));
                    let keys: Vec<_> = DesiredVm::drive(&seed).into_iter().chain(digest).collect();
                    pve.configure_vm(vm.host(), vm.vmid(), &keys).await?;
                }
                Ok(Begun::Done)
            }
            (LaunchStep::Start, Some(vm)) => match pve.vm_status(vm.host(), vm.vmid()).await?.power {
                PowerState::Running => Ok(Begun::Done),
                PowerState::Stopped => Ok(Begun::Task(pve.start_vm(vm.host(), vm.vmid()).await?)),
            },
            // The engine asks for these only with a proof in hand; without one nothing is changed.
            (LaunchStep::Identify | LaunchStep::Launched, _) | (_, None) => Ok(Begun::Done),
        }
    }

    async fn clone(&self) -> Result<Begun, ChangeError> {
        let Change { pve, desired, record, .. } = self;
        self.seed_file()?;
        let template = match desired.storage {
            Some(_) => Some(pve.vm_config(record.host(), record.template).await?),
            None => None,
        };
        let request = desired.clone_request(record, template.as_ref());
        Ok(Begun::Task(pve.clone_vm(record.host(), &request).await?))
    }

    /// Grows the disk, never shrinks it: Proxmox would refuse, and the image may need what it has.
    async fn resize(&self, vm: &ProvenVm) -> Result<Begun, ChangeError> {
        let Some((disk, drive)) = vm.config().boot_disk() else {
            return Err(ChangeError::Desired(format!("template {} has no boot disk", self.record.template)));
        };
        let wanted = PveSize::from_gib(self.desired.disk_gib);
        if drive.size().unwrap_or_default() >= wanted {
            return Ok(Begun::Done);
        }
        Ok(Begun::Task(self.pve.resize_disk(vm.host(), vm.vmid(), disk, &wanted.to_string()).await?))
    }

    async fn upload(&self, vm: &ProvenVm) -> Result<Begun, ChangeError> {
        let (FirstBoot::Seed(render), Some(file)) = (self.desired.first_boot, self.seed_file()?) else {
            return Ok(Begun::Done);
        };
        let image = render(self.record, vm.config()).map_err(ChangeError::Desired)?;
        // With its last image Proxmox deletes the folder too, and makes it anew when it looks at the storage. A token that may
        // not look may still upload.
        let _ = self.pve.storage_status(vm.host(), &file.storage).await;
        Ok(Begun::Task(self.pve.upload_iso(vm.host(), &file.storage, &file.name, &image).await?))
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

    /// Turns what a change gave into what is to be recorded.
    fn judge(&self, outcome: Result<Begun, ChangeError>) -> Result<LaunchResult, Error> {
        match outcome {
            Ok(Begun::Task(upid)) => {
                let upid = Some(upid.to_string());
                Ok(LaunchResult::Record(LaunchRecord { upid, last_progress_at: self.now, ..self.record.clone() }))
            }
            Ok(Begun::Done) => Ok(LaunchResult::Record(self.record.advanced(self.now))),
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
