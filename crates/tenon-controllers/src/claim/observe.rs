//! What is true of a claim's VM and task right now, in the engine's words.

use tenon_engine::launch::{Failure, ObservedTask, ObservedVm};
use tenon_model::{LaunchRecord, LaunchStep, VmId};
use tenon_pve::{
    Advice, Cause, Client, Doubt, Error, GuestKind, OwnerMark, Proof, ProvenVm, Refusal, RefusalKind, TaskFilter,
    TaskProgress, TaskSource, Upid, is_being_made,
};

use super::desired_vm::Owner;

/// Clone tasks that are looked through for a lost one, the newest first.
const TASKS: u64 = 200;

/// What is observed of the VM, with the proof if there is one.
pub(crate) struct VmObservation {
    pub(crate) vm: ObservedVm,
    pub(crate) proven: Option<ProvenVm>,
}

/// What one host says about the VM under the recorded id.
enum Said {
    Observed(VmObservation),
    /// It is not on this host: gone, or moved.
    NotHere,
    /// The token may not read it; Proxmox says the same of a VM that does not exist.
    Denied,
    /// The host does not answer.
    NoAnswer,
}

/// Looks at the VM under the recorded id, wherever it is by now. It is absent only if no host has it and no listing shows
/// it; while it is listed somewhere, it is at most out of reach.
pub(crate) async fn vm(pve: &Client, owner: &Owner, record: &LaunchRecord) -> Result<VmObservation, Error> {
    let proof = owner.proof(record);
    let first = judge(pve.prove(record.host(), &proof).await)?;
    if let Said::Observed(observation) = first {
        return Ok(observation);
    }
    let resources = pve.resources().await?;
    match resources.guests.iter().find(|guest| guest.id == record.vmid) {
        Some(guest) if guest.kind != GuestKind::Qemu => {
            Ok(VmObservation::without_proof(ObservedVm::Foreign("it is an LXC container".to_owned())))
        }
        // A dead host keeps its VMs until somebody, or HA, moves them.
        Some(guest) if guest.host == *record.host() => Ok(listed(&first)),
        Some(guest) => Ok(elsewhere(pve, &guest.host, &proof).await?),
        // With rights on a pool only, what is not in the pool cannot be seen: a clone that is not done, a VM that somebody
        // else made, or took out of the pool. The id tells it from one that was destroyed.
        None if matches!(first, Said::NotHere) || pve.is_id_free(record.vmid).await? => {
            Ok(VmObservation::without_proof(ObservedVm::Absent))
        }
        None => Ok(VmObservation::without_proof(match first {
            Said::NoAnswer => ObservedVm::Unreachable,
            _ => ObservedVm::Hidden,
        })),
    }
}

/// It is listed where it was looked for, and could not be read there.
fn listed(first: &Said) -> VmObservation {
    VmObservation::without_proof(match first {
        Said::Denied => ObservedVm::Hidden,
        // Between two looks it came, or is about to go.
        _ => ObservedVm::Unreachable,
    })
}

async fn elsewhere(pve: &Client, host: &tenon_model::HostName, proof: &Proof) -> Result<VmObservation, Error> {
    Ok(match judge(pve.prove(host, proof).await)? {
        Said::Observed(observation) => observation,
        other => listed(&other),
    })
}

fn is_denied(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| matches!(refusal.kind, RefusalKind::Denied { .. }))
}

fn judge(outcome: Result<Result<ProvenVm, Doubt>, Error>) -> Result<Said, Error> {
    match outcome {
        Ok(Ok(proven)) => Ok(Said::Observed(VmObservation {
            vm: ObservedVm::Ours { uuid: proven.config().uuid() },
            proven: Some(proven),
        })),
        Ok(Err(Doubt::Locked(lock))) => Ok(Said::Observed(VmObservation::without_proof(ObservedVm::Locked(lock)))),
        Ok(Err(doubt)) => Ok(Said::Observed(VmObservation::without_proof(ObservedVm::Foreign(doubt.to_string())))),
        Err(error) if error.is_not_found() => Ok(Said::NotHere),
        Err(error) if is_denied(&error) => Ok(Said::Denied),
        Err(error) if matches!(error.cause(), Cause::MaybeDone(_)) => Ok(Said::NoAnswer),
        Err(error) => Err(error),
    }
}

/// Whether an incomplete clone of ours is still there under an id. Another VM may have the id by now, and nobody must be
/// told to destroy that VM.
pub(crate) async fn is_incomplete_clone(
    pve: &Client,
    owner: &Owner,
    record: &LaunchRecord,
    id: VmId,
) -> Result<bool, Error> {
    match pve.vm_config(record.host(), id).await {
        Ok(config) => {
            let is_ours = OwnerMark::find_in(config.description()).is_some_and(|mark| mark == owner.mark(id));
            Ok(config.lock().is_some_and(|lock| is_being_made(&config, lock) || (lock == "clone" && is_ours)))
        }
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
        // Another token began it, and this one may not read it: what it did must be looked for.
        Err(error) if error.is_not_found() || is_denied(&error) => Ok(ObservedTask::Lost),
        Err(error) if matches!(error.cause(), Cause::MaybeDone(_)) => Ok(ObservedTask::Unreachable),
        Err(error) => Err(error),
    }
}

/// Looks for the clone task of a record that names none, where something has the id: the reply may have been lost, or the
/// controller killed before it wrote the UPID down. Only a task of our own counts that says in its log that it clones into
/// this id; the newest, since a host's clock may tell another time than ours.
pub(crate) async fn lost_clone_task(
    pve: &Client,
    record: &LaunchRecord,
    vm: &ObservedVm,
) -> Result<Option<Upid>, Error> {
    let may_be_ours = matches!(vm, ObservedVm::Locked(_) | ObservedVm::Hidden);
    if record.step != LaunchStep::Clone || record.upid.is_some() || !may_be_ours {
        return Ok(None);
    }
    let filter = TaskFilter {
        source: Some(TaskSource::All),
        vmid: Some(record.template),
        kind: Some("qmclone".to_owned()),
        limit: Some(TASKS),
        ..TaskFilter::default()
    };
    let made = format!("with ID {}", record.vmid);
    for row in pve.tasks(record.host(), &filter).await?.into_iter().filter(|row| pve.is_own_task(&row.upid)) {
        let log = pve.task_log_from(&row.upid, 0, Some(1)).await?;
        if log.first().is_some_and(|line| line.trim_end().ends_with(&made)) {
            return Ok(Some(row.upid));
        }
    }
    Ok(None)
}

/// Whether another try may help.
pub(crate) fn failure(refusal: &Refusal) -> Failure {
    let words = refusal.to_string();
    match (&refusal.kind, refusal.advice()) {
        (RefusalKind::WrongState, _) => Failure::OtherState(words),
        (RefusalKind::NoLinkedClones, _) => Failure::NoLinkedClone(words),
        (_, Advice::ChooseAnother) => Failure::IdTaken,
        (_, Advice::Wait) => Failure::Busy(words),
        (_, Advice::SendAgain | Advice::LookFirst) => Failure::Passing(words),
        (_, Advice::FreeSpace) => Failure::Hopeless(format!("{words}; make room on that storage")),
        (_, Advice::PlanAgain | Advice::AskOperator) => Failure::Hopeless(words),
    }
}
