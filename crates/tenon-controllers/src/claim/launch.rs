//! One pass of a launch: look, decide, make at most one change, hand back what is to be written down.

use tenon_engine::launch::{self, Failure, LaunchAction, TaskSeen, VmSeen, Waiting};
use tenon_model::{LaunchRecord, LaunchStep, PveSize, Seconds, VmId};
use tenon_pve::{Cause, Client, Error, PowerState, ProvenVm, Upid};

use super::observe::{self, Seen};
use super::order::{FirstBoot, Order, seed_file};

/// How often an id that is said to be taken is looked at before it is left to whoever has it.
const LOOKS: u32 = 3;

/// What came of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchPass {
    /// Write this down, then pass again.
    Record(LaunchRecord),
    /// Nothing to do until something ends.
    Wait(Waiting),
    /// Take another id and begin anew.
    Relaunch {
        /// Why.
        why: String,
        /// An id under which something is left that only an operator can remove.
        husk: Option<VmId>,
    },
    /// The claim goes back to planning.
    GiveUp(String),
    /// The VM under our id is somebody else's.
    Refuse(String),
    /// The VM runs.
    Launched,
}

/// One pass. `record` is what was last written down; a change is only made for the step that stands there.
pub async fn pass(pve: &Client, order: &Order<'_>, record: &LaunchRecord, now: Seconds) -> Result<LaunchPass, Error> {
    let task = observe::task(pve, record).await?;
    let seen = match task {
        // Its task says all there is to know, and a VM being made cannot be read anyway.
        TaskSeen::Running => Seen { vm: VmSeen::Absent, proven: None },
        _ => observe::vm(pve, &order.owner, record).await?,
    };
    match launch::next_step(record, &seen.vm, &task, now) {
        LaunchAction::Record(record) => Ok(LaunchPass::Record(record)),
        LaunchAction::Wait(waiting) => Ok(LaunchPass::Wait(waiting)),
        LaunchAction::Relaunch { why, husk } => Ok(LaunchPass::Relaunch { why, husk }),
        LaunchAction::GiveUp(why) => Ok(LaunchPass::GiveUp(why)),
        LaunchAction::Refuse(why) => Ok(LaunchPass::Refuse(why)),
        LaunchAction::Launched => Ok(LaunchPass::Launched),
        LaunchAction::Perform(step) => {
            let change = Change { pve, order, record, now };
            let outcome = change.perform(step, seen.proven).await;
            change.judge(outcome)
        }
    }
}

/// The one change of a pass.
struct Change<'a> {
    pve: &'a Client,
    order: &'a Order<'a>,
    record: &'a LaunchRecord,
    now: Seconds,
}

/// What a change gave: a task to follow, or it is done already.
enum Begun {
    Task(Upid),
    Done,
}

impl Change<'_> {
    async fn perform(&self, step: LaunchStep, proven: Option<ProvenVm>) -> Result<Begun, Trouble> {
        let Change { pve, order, record, .. } = self;
        match (step, proven) {
            (LaunchStep::Clone, _) => self.clone().await,
            (LaunchStep::Configure, Some(vm)) => {
                let keys = order.identity(record, vm.config());
                let keys: Vec<(&str, String)> = keys.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
                pve.configure_vm(vm.host(), vm.vmid(), &keys).await?;
                Ok(Begun::Done)
            }
            (LaunchStep::Resize, Some(vm)) => self.resize(&vm).await,
            (LaunchStep::UploadSeed, Some(vm)) => self.upload(&vm).await,
            (LaunchStep::AttachSeed, Some(vm)) => {
                if let (FirstBoot::Seed(_), Some(seed)) = (&order.first_boot, seed_file(record)) {
                    pve.configure_vm(vm.host(), vm.vmid(), &Order::drive(&seed)).await?;
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

    async fn clone(&self) -> Result<Begun, Trouble> {
        let Change { pve, order, record, .. } = self;
        let template = match order.storage {
            Some(_) => Some(pve.vm_config(record.host(), record.template).await?),
            None => None,
        };
        let request = order.clone_request(record, template.as_ref());
        Ok(Begun::Task(pve.clone_vm(record.host(), &request).await?))
    }

    /// Grows the disk, never shrinks it: Proxmox would refuse, and the image may need what it has.
    async fn resize(&self, vm: &ProvenVm) -> Result<Begun, Trouble> {
        let Some((disk, drive)) = vm.config().boot_disk() else {
            return Err(Trouble::Order(format!("template {} has no disk to boot from", self.record.template)));
        };
        let wanted = PveSize::from_gib(self.order.disk_gib);
        if drive.size().unwrap_or_default() >= wanted {
            return Ok(Begun::Done);
        }
        Ok(Begun::Task(self.pve.resize_disk(vm.host(), vm.vmid(), disk, &wanted.to_string()).await?))
    }

    async fn upload(&self, vm: &ProvenVm) -> Result<Begun, Trouble> {
        let FirstBoot::Seed(render) = self.order.first_boot else { return Ok(Begun::Done) };
        let Some(file) = seed_file(self.record) else {
            let why = format!(
                "no storage of host {} that takes ISO images has room for the first-boot data; make room, or allow content \
                 type iso on another",
                self.record.host()
            );
            return Err(Trouble::Order(why));
        };
        let image = render(self.record, vm.config()).map_err(Trouble::Order)?;
        Ok(Begun::Task(self.pve.upload_iso(vm.host(), &file.storage, &file.name, &image).await?))
    }

    /// Turns what a change gave into what is to be written down.
    fn judge(&self, outcome: Result<Begun, Trouble>) -> Result<LaunchPass, Error> {
        match outcome {
            Ok(Begun::Task(upid)) => {
                let upid = Some(upid.to_string());
                Ok(LaunchPass::Record(LaunchRecord { upid, last_progress_at: self.now, ..self.record.clone() }))
            }
            Ok(Begun::Done) => Ok(LaunchPass::Record(self.record.advanced(self.now))),
            Err(Trouble::Order(why)) => Ok(LaunchPass::GiveUp(why)),
            Err(Trouble::Pve(error)) => match (error.cause(), error.refusal().map(observe::failure)) {
                // It may have been done: the next pass looks before anything is sent again.
                (Cause::MaybeDone(_), _) => Ok(LaunchPass::Wait(Waiting::Host)),
                // By whom, the next pass sees: perhaps by a call of ours that was thought lost.
                (_, Some(Failure::IdTaken)) if self.record.step == LaunchStep::Clone && self.record.attempt < LOOKS => {
                    Ok(LaunchPass::Record(self.record.begun_again()))
                }
                (_, Some(Failure::IdTaken)) if self.record.step == LaunchStep::Clone => Ok(LaunchPass::Relaunch {
                    why: "the id is taken by something that cannot be seen".to_owned(),
                    husk: None,
                }),
                (_, Some(Failure::Hopeless(_) | Failure::IdTaken)) => Ok(LaunchPass::GiveUp(error.full_message())),
                _ => Err(error),
            },
        }
    }
}

/// Why a change was not made.
enum Trouble {
    /// Proxmox did not do it.
    Pve(Error),
    /// What was ordered cannot be made.
    Order(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Pve(error)
    }
}
