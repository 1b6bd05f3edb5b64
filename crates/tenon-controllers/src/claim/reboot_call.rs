//! Has Proxmox start a VM of ours again, once: what was begun since it was asked for is followed, also after a crash.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenon_engine::launch::ObservedVm;
use tenon_model::{LaunchRecord, Timestamp};
use tenon_pve::{Client, Error, PowerState, ProvenVm, TaskFilter, TaskRow, TaskSource};

use super::gather::Observed;
use super::{ClaimError, observe};
use crate::context::Context;

/// Tasks by which a VM is started again.
const KINDS: [&str; 3] = ["qmreboot", "qmreset", "qmstart"];

/// Tasks of the VM that are looked through, the newest first.
const TASKS: u64 = 50;

/// The clock of a host may be behind ours by so much.
const CLOCK_SKEW_S: i64 = 5;

/// A reboot ends, one way or the other, long before.
const REMEMBERED_FOR: Duration = Duration::from_secs(3600);

/// What came of asking.
#[derive(Debug)]
pub(super) enum Called {
    /// It is under way, or Proxmox cannot be asked now.
    Waiting,
    /// The VM was started again.
    Done,
    /// It never will be.
    Impossible(String),
}

/// One look, and at most one request: the guest is asked to reboot; one that does not listen is reset; a VM that stopped is started.
pub(super) async fn call(
    context: &Context,
    observed: &Observed,
    (record, requested_at): (&LaunchRecord, Timestamp),
) -> Result<Called, ClaimError> {
    let Ok(pve) = context.region(&record.place.region) else { return Ok(Called::Waiting) };
    let seen = observe::vm(&pve, &context.owner(&observed.claim), record).await?;
    let Some(vm) = seen.proven else {
        return Ok(match seen.vm {
            ObservedVm::Absent => Called::Impossible(format!("VM {} no longer exists", record.vmid)),
            ObservedVm::Foreign(why) => {
                Called::Impossible(format!("VM {} does not belong to this NodeClaim: {why}", record.vmid))
            }
            _ => Called::Waiting,
        });
    };
    let patience = u32::try_from(context.settings.shutdown_within.as_secs()).unwrap_or(u32::MAX);
    match newest(&pve, &vm, requested_at).await? {
        Some(TaskRow { end: None, .. }) => return Ok(Called::Waiting),
        Some(task) if is_success(&task) => return Ok(Called::Done),
        Some(task) if task.upid.kind() == KINDS[0] => pve.reset_proven(&vm).await?,
        _ => begin(&pve, &vm, patience).await?,
    };
    tracing::info!(vmid = record.vmid.get(), host = %vm.host(), "rebooting VM");
    Ok(Called::Waiting)
}

async fn begin(pve: &Client, vm: &ProvenVm, patience_s: u32) -> Result<tenon_pve::Upid, Error> {
    let status = pve.vm_status(vm.host(), vm.vmid()).await?;
    match (status.power, patience_s) {
        (PowerState::Running, 0) => pve.reset_proven(vm).await,
        (PowerState::Running, _) => pve.reboot_proven(vm, Some(patience_s)).await,
        _ => pve.start_vm(vm.host(), vm.vmid()).await,
    }
}

/// The newest task that started the VM again since that was asked for.
async fn newest(pve: &Client, vm: &ProvenVm, requested_at: Timestamp) -> Result<Option<TaskRow>, Error> {
    let since = requested_at.seconds().0.saturating_sub(CLOCK_SKEW_S);
    let since = u64::try_from(since).unwrap_or_default();
    let filter = TaskFilter {
        source: Some(TaskSource::All),
        vmid: Some(vm.vmid()),
        limit: Some(TASKS),
        ..TaskFilter::default()
    };
    let rows = pve.tasks(vm.host(), &filter).await?.into_iter();
    let ours = rows.filter(|row| row.started >= since && KINDS.contains(&row.upid.kind()));
    Ok(ours.max_by_key(|row| row.started))
}

fn is_success(task: &TaskRow) -> bool {
    task.end.as_deref().is_some_and(|end| end == "OK" || end.starts_with("WARNINGS"))
}

/// When Proxmox was first asked to start VMs again, by the uid of their claim. May be lost: then it is asked for as long again.
#[derive(Debug, Default)]
pub(crate) struct RebootCalls {
    first: Mutex<BTreeMap<String, Timestamp>>,
}

impl RebootCalls {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Timestamp>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When it was first asked.
    pub(super) fn called_at(&self, uid: &str) -> Option<Timestamp> {
        self.lock().get(uid).copied()
    }

    /// It is asked now.
    pub(super) fn call(&self, uid: &str, now: Timestamp) {
        let mut first = self.lock();
        first.retain(|_, at| at.after(REMEMBERED_FOR) > now);
        first.entry(uid.to_owned()).or_insert(now);
    }

    /// The reboot is over.
    pub(super) fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }
}
