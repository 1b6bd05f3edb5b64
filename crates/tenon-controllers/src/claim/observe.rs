//! What is true of a claim's VM and task right now, in the engine's words.

use tenon_engine::launch::{Failure, ObservedTask, ObservedVm};
use tenon_model::{LaunchRecord, VmId};
use tenon_pve::{Advice, Cause, Client, Doubt, Error, GuestKind, ProvenVm, Refusal, RefusalKind, TaskProgress};

use super::desired_vm::Owner;

/// What is observed of the VM, with the proof if there is one.
pub(crate) struct VmObservation {
    pub(crate) vm: ObservedVm,
    pub(crate) proven: Option<ProvenVm>,
}

/// Looks at the VM under the recorded id, wherever it is by now.
pub(crate) async fn vm(pve: &Client, owner: &Owner, record: &LaunchRecord) -> Result<VmObservation, Error> {
    let proof = owner.proof(record);
    let first = pve.prove(record.host(), &proof).await;
    let is_denied = first.as_ref().is_err_and(is_denied);
    if !is_denied && !first.as_ref().is_err_and(Error::is_not_found) {
        return judge(first);
    }
    // Not on the host it was made on means gone or moved, and only the listing knows which.
    let resources = pve.resources().await?;
    match resources.guests.iter().find(|guest| guest.id == record.vmid) {
        Some(guest) if guest.kind != GuestKind::Qemu => {
            Ok(VmObservation::without_proof(ObservedVm::Foreign("it is an LXC container".to_owned())))
        }
        Some(guest) => judge(pve.prove(&guest.host, &proof).await),
        // With rights on a pool only, what is not in the pool cannot be seen: a VM that was destroyed, but also one that
        // somebody else made, or took out of the pool.
        None if is_denied && !pve.is_id_free(record.vmid).await? => Ok(VmObservation::without_proof(
            ObservedVm::Foreign("the API token cannot see the VM with this id".to_owned()),
        )),
        None => Ok(VmObservation::without_proof(ObservedVm::Absent)),
    }
}

fn is_denied(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| matches!(refusal.kind, RefusalKind::Denied { .. }))
}

fn judge(outcome: Result<Result<ProvenVm, Doubt>, Error>) -> Result<VmObservation, Error> {
    match outcome {
        Ok(Ok(proven)) => {
            Ok(VmObservation { vm: ObservedVm::Ours { uuid: proven.config().uuid() }, proven: Some(proven) })
        }
        Ok(Err(Doubt::Locked(lock))) => Ok(VmObservation::without_proof(ObservedVm::Locked(lock))),
        Ok(Err(doubt)) => Ok(VmObservation::without_proof(ObservedVm::Foreign(doubt.to_string()))),
        Err(error) if error.is_not_found() => Ok(VmObservation::without_proof(ObservedVm::Absent)),
        Err(error) if matches!(error.cause(), Cause::MaybeDone(_)) => {
            Ok(VmObservation::without_proof(ObservedVm::Unreachable))
        }
        Err(error) => Err(error),
    }
}

/// Whether an incomplete clone is still there under an id. Another VM may have the id by now, and nobody must be told to
/// destroy that VM.
pub(crate) async fn is_incomplete_clone(pve: &Client, record: &LaunchRecord, id: VmId) -> Result<bool, Error> {
    match pve.vm_config(record.host(), id).await {
        Ok(config) => Ok(matches!(config.lock(), Some("clone" | "create"))),
        Err(error) if error.is_not_found() => Ok(false),
        // An incomplete clone is in no pool yet, and with rights on a pool only it cannot be read.
        Err(error) if is_denied(&error) => Ok(!pve.is_id_free(id).await?),
        Err(error) => Err(error),
    }
}

impl VmObservation {
    /// A VM that is not proven to be ours, or not there.
    pub(crate) fn without_proof(vm: ObservedVm) -> VmObservation {
        VmObservation { vm, proven: None }
    }
}

/// Looks at the recorded task.
pub(crate) async fn task(pve: &Client, record: &LaunchRecord) -> Result<ObservedTask, Error> {
    let Some(upid) = &record.upid else { return Ok(ObservedTask::None) };
    // A name we cannot read is as good as a task nobody knows.
    let Ok(upid) = upid.parse() else { return Ok(ObservedTask::Lost) };
    match pve.task_progress(&upid).await {
        Ok(TaskProgress::Running) => Ok(ObservedTask::Running),
        Ok(TaskProgress::Done(_)) => Ok(ObservedTask::Done),
        Ok(TaskProgress::Failed(refusal)) => Ok(ObservedTask::Failed(failure(&refusal))),
        Ok(TaskProgress::Died) => Ok(ObservedTask::Lost),
        Err(error) if error.is_not_found() => Ok(ObservedTask::Lost),
        Err(error) => Err(error),
    }
}

/// Whether another try may help.
pub(crate) fn failure(refusal: &Refusal) -> Failure {
    let words = refusal.to_string();
    match refusal.advice() {
        Advice::ChooseAnother => Failure::IdTaken,
        Advice::Wait => Failure::Busy(words),
        Advice::SendAgain | Advice::LookFirst => Failure::Passing(words),
        Advice::FreeSpace => Failure::Hopeless(format!("{words}; make room on that storage")),
        Advice::PlanAgain | Advice::AskOperator => Failure::Hopeless(words),
    }
}
