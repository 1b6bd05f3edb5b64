//! How work that outlives its answer runs: workers, their order in time, the file locks they hold.
//!
//! A worker is a job that is stepped whenever its next instant is due; there are no threads. What the calls
//! under `/tasks` show of it is in `tasklist`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::download::Fetched;
use crate::fault::{TaskFault, TaskLot, WorldChange};
use crate::jobs::Job;
use crate::state::State;
use crate::wire::Reply;

/// Finished tasks that can still be asked about.
const TASKS_KEPT: usize = 20_000;
/// A factor that makes everything take for ever; more would overflow.
const SLOWEST: f64 = 1e6;

/// What a step of a job leads to.
#[derive(Debug)]
pub(crate) enum TaskOutcome {
    /// Step again after this long.
    After(Duration),
    /// Step again as soon as this lock is held.
    Locked(Lock),
    Done,
    Failed(String),
}

impl From<String> for TaskOutcome {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

/// What only one worker at a time may have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lock {
    /// The file lock of a VM.
    Vm(u32),
    /// The lock of a storage, of one host when it is local.
    Storage(String, String),
}

/// Something that is due at an instant.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Step(String),
    /// A worker has waited for a file lock long enough.
    GiveUp(String),
    /// The clean-up helper of an old QEMU takes a VM's file lock.
    Trap(u32),
    /// The HA manager stops a VM.
    HaStops(u32),
    /// Somebody who is no worker lets go of a VM's file lock.
    Unlock(Lock),
    /// The world changes.
    World(Box<WorldChange>),
}

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) upid: String,
    pub(crate) node: String,
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    /// Token id, `user@realm!name`.
    pub(crate) user: String,
    pub(crate) pid: u32,
    pub(crate) pstart: u64,
    pub(crate) starttime: u64,
    pub(crate) log: Vec<String>,
    pub(crate) warnings: u32,
    /// When it ended and how.
    pub(crate) end: Option<(u64, String)>,
    /// From when to when it ran, counted as the ledger counts.
    pub(crate) ran: (Duration, Option<Duration>),
    job: Option<Job>,
    begun: bool,
    lot: TaskLot,
    /// How it will end when a task that stalls is released.
    outcome: Option<TaskOutcome>,
}

/// What a call asks to be done after its answer.
pub(crate) struct NewTask<'a> {
    pub(crate) node: &'a str,
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    pub(crate) user: &'a str,
    pub(crate) job: Job,
}

#[derive(Debug, Default)]
pub(crate) struct Tasks {
    pub(crate) by_upid: BTreeMap<String, Task>,
    /// Oldest first.
    pub(crate) order: VecDeque<String>,
    pub(crate) held: BTreeSet<String>,
    /// Files that came from the network, for the tasks that wait for them.
    pub(crate) fetched: BTreeMap<String, Fetched>,
    /// What happens to the next worker to be started.
    pub(crate) next_lot: TaskLot,
    queue: BTreeMap<(Duration, u64), Event>,
    scheduled: u64,
    parked: Vec<String>,
    /// Who holds a lock; an empty text is the clean-up helper of an old QEMU.
    locks: BTreeMap<Lock, String>,
    waiting: VecDeque<(Lock, String)>,
    pids: u32,
}

impl Tasks {
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.queue.keys().next().map(|(at, _)| *at)
    }

    pub(crate) fn pop_due(&mut self) -> Option<Event> {
        self.queue.pop_first().map(|(_, event)| event)
    }

    pub(crate) fn schedule(&mut self, at: Duration, event: Event) {
        self.scheduled += 1;
        self.queue.insert((at, self.scheduled), event);
    }

    pub(crate) fn is_locked(&self, vmid: u32) -> bool {
        self.locks.contains_key(&Lock::Vm(vmid))
    }

    pub(crate) fn last_pid(&self) -> u32 {
        1000 + self.pids
    }

    pub(crate) fn next_pid(&mut self) -> u32 {
        self.pids += 1;
        self.last_pid()
    }
}

impl State {
    /// Starts a worker; the answer comes a little later, the outcome only in the task.
    pub(crate) fn spawn(&mut self, new: NewTask<'_>) -> Reply {
        let NewTask { node, kind, id, user, job } = new;
        let pid = self.tasks.next_pid();
        let pstart = u64::try_from(self.now.as_millis() / 10).unwrap_or(0) + 100_000;
        let starttime = self.epoch();
        let upid = format!("UPID:{node}:{pid:08X}:{pstart:08X}:{starttime:08X}:{kind}:{id}:{user}:");
        let (node, user) = (node.to_string(), user.to_string());
        let lot = std::mem::take(&mut self.tasks.next_lot);
        let task = Task {
            upid: upid.clone(),
            node,
            kind,
            id,
            user,
            pid,
            pstart,
            starttime,
            lot,
            job: Some(job),
            outcome: None,
            log: Vec::new(),
            warnings: 0,
            end: None,
            ran: (self.now, None),
            begun: false,
        };
        self.forget_old_tasks();
        self.tasks.by_upid.insert(upid.clone(), task);
        self.tasks.order.push_back(upid.clone());
        let answer = self.config.pace.answer;
        // The worker is at work before the caller has the answer, so racing callers can all get one.
        self.tasks.schedule(self.now + answer / 2, Event::Step(upid.clone()));
        Reply { delay: answer, upid: Some(upid.clone()), ..Reply::data(upid.into()) }
    }

    /// The archive of finished tasks is as long as it is, so that a long storm does not eat the memory.
    fn forget_old_tasks(&mut self) {
        let oldest = |tasks: &Tasks| {
            tasks.order.front().and_then(|upid| tasks.by_upid.get(upid)).is_some_and(|t| t.end.is_some())
        };
        while self.tasks.order.len() >= TASKS_KEPT && oldest(&self.tasks) {
            if let Some(upid) = self.tasks.order.pop_front() {
                self.tasks.by_upid.remove(&upid);
                self.tasks.fetched.remove(&upid);
            }
        }
    }

    pub(crate) fn log(&mut self, upid: &str, line: impl Into<String>) {
        if let Some(task) = self.tasks.by_upid.get_mut(upid) {
            task.log.push(line.into());
        }
    }

    pub(crate) fn warn(&mut self, upid: &str, text: &str) {
        self.log(upid, format!("WARN: {text}"));
        if let Some(task) = self.tasks.by_upid.get_mut(upid) {
            task.warnings += 1;
        }
    }

    pub(crate) fn step_task(&mut self, upid: &str) {
        let Some(task) = self.tasks.by_upid.get_mut(upid).filter(|t| t.end.is_none()) else { return };
        let stalls = task.lot.fault == Some(TaskFault::Stalls) || self.tasks.held.contains(task.kind);
        match task.lot.fault.clone() {
            _ if task.begun && stalls => return self.tasks.parked.push(upid.to_string()),
            Some(TaskFault::Fails(text)) => {
                if let Some(job) = task.job.take() {
                    job.abandon(self);
                }
                return self.finish_task(upid, Err(text));
            }
            Some(TaskFault::Dies) if task.begun => {
                self.kill_task(upid);
                return;
            }
            _ => {}
        }
        if let Some(outcome) = task.outcome.take() {
            return self.go_on(upid, outcome);
        }
        let (Some(mut job), full) = (task.job.take(), task.lot.full) else { return };
        let ready = task.begun || job.locked_vm().is_none_or(|vmid| self.take_lock(upid, Lock::Vm(vmid)));
        self.crowded = full;
        let outcome = ready.then(|| job.step(self, upid));
        self.crowded = false;
        if let Some(task) = self.tasks.by_upid.get_mut(upid) {
            task.job = Some(job);
            task.begun = ready;
        }
        if let Some(outcome) = outcome {
            self.go_on(upid, outcome);
        }
    }

    /// What follows a step.
    fn go_on(&mut self, upid: &str, outcome: TaskOutcome) {
        let lot = self.tasks.by_upid.get(upid).map(|task| task.lot.clone()).unwrap_or_default();
        match (outcome, lot.fault) {
            (TaskOutcome::After(wait), _) => {
                let wait = wait.mul_f64(lot.slower.unwrap_or(1.0).clamp(0.0, SLOWEST));
                self.tasks.schedule(self.now + wait, Event::Step(upid.to_string()));
            }
            (TaskOutcome::Locked(lock), _) => self.step_with(upid, lock),
            // It has no step left to stall or die at.
            (outcome, Some(TaskFault::Stalls | TaskFault::Dies)) => {
                if let Some(task) = self.tasks.by_upid.get_mut(upid) {
                    task.outcome = Some(outcome);
                }
                self.tasks.schedule(self.now, Event::Step(upid.to_string()));
            }
            (TaskOutcome::Failed(text), _) => self.finish_task(upid, Err(text)),
            (TaskOutcome::Done, Some(TaskFault::FailsAfter(text))) => self.finish_task(upid, Err(text)),
            (TaskOutcome::Done, _) => {
                if let Some(warning) = &lot.warning {
                    self.warn(upid, warning);
                }
                self.finish_task(upid, Ok(()));
            }
        }
    }

    /// Steps a task again as soon as it has a lock.
    fn step_with(&mut self, upid: &str, lock: Lock) {
        if self.take_lock(upid, lock) {
            self.tasks.schedule(self.now, Event::Step(upid.to_string()));
        }
    }

    /// Takes a lock, or queues for it.
    fn take_lock(&mut self, upid: &str, lock: Lock) -> bool {
        if let Entry::Vacant(free) = self.tasks.locks.entry(lock.clone()) {
            free.insert(upid.to_string());
            return true;
        }
        self.log(upid, "trying to acquire lock...");
        let patience = match lock {
            Lock::Vm(_) => self.config.pace.lock_wait,
            Lock::Storage(..) => self.config.pace.storage_lock_wait,
        };
        self.tasks.waiting.push_back((lock, upid.to_string()));
        self.tasks.schedule(self.now + patience, Event::GiveUp(upid.to_string()));
        false
    }

    pub(crate) fn give_up_lock(&mut self, upid: &str) {
        let Some(at) = self.tasks.waiting.iter().position(|(_, waiter)| waiter == upid) else { return };
        let Some((lock, _)) = self.tasks.waiting.remove(at) else { return };
        let text = match lock {
            Lock::Vm(vmid) => lock_timeout(vmid),
            Lock::Storage(id, _) => format!("cfs-lock 'storage-{id}' error: got lock request timeout"),
        };
        let job = self.tasks.by_upid.get_mut(upid).and_then(|task| task.job.take());
        let text = job.map_or(text.clone(), |mut job| job.give_up(self, text));
        self.finish_task(upid, Err(text));
    }

    /// Somebody else takes a VM's file lock and keeps it for longer than anybody waits.
    pub(crate) fn hog_lock(&mut self, vmid: u32) {
        if let Entry::Vacant(free) = self.tasks.locks.entry(Lock::Vm(vmid)) {
            free.insert(String::new());
            let pace = &self.config.pace;
            let span = pace.lock_wait + pace.answer + Duration::from_secs(1);
            self.tasks.schedule(self.now + span, Event::Unlock(Lock::Vm(vmid)));
        }
    }

    /// Keeps a VM's file lock taken for a while, as the clean-up after an old QEMU does.
    pub(crate) fn trap_lock(&mut self, vmid: u32) {
        let span = self.config.pace.restart_trap;
        if span.is_zero() || self.tasks.is_locked(vmid) {
            return;
        }
        self.tasks.locks.insert(Lock::Vm(vmid), String::new());
        self.tasks.schedule(self.now + span, Event::Unlock(Lock::Vm(vmid)));
    }

    /// Lets go of a lock; who waited longest has it next.
    pub(crate) fn release_lock(&mut self, lock: &Lock) {
        self.tasks.locks.remove(lock);
        let Some(at) = self.tasks.waiting.iter().position(|(wanted, _)| wanted == lock) else { return };
        if let Some((lock, next)) = self.tasks.waiting.remove(at) {
            self.log(&next, " OK");
            // Held from this moment on, so that nobody slips in between; a VM's lock is taken by the step itself.
            if matches!(lock, Lock::Storage(..)) {
                self.tasks.locks.insert(lock, next.clone());
            }
            self.tasks.schedule(self.now, Event::Step(next));
        }
    }

    fn finish_task(&mut self, upid: &str, result: Result<(), String>) {
        let Some(task) = self.tasks.by_upid.get(upid) else { return };
        let (line, exit) = match result {
            Ok(()) if task.warnings > 0 => {
                (format!("TASK WARNINGS: {}", task.warnings), format!("WARNINGS: {}", task.warnings))
            }
            Ok(()) => ("TASK OK".to_string(), "OK".to_string()),
            Err(text) => (format!("TASK ERROR: {text}"), text),
        };
        self.log(upid, line);
        self.end_task(upid, exit);
    }

    /// Ends a task without an end line in its log.
    fn end_task(&mut self, upid: &str, exit: String) {
        let (epoch, now) = (self.epoch(), self.now);
        let Some(task) = self.tasks.by_upid.get_mut(upid) else { return };
        task.end = Some((epoch, exit));
        task.ran.1 = Some(now);
        task.job = None;
        self.tasks.parked.retain(|parked| parked != upid);
        self.tasks.waiting.retain(|(_, waiter)| waiter != upid);
        let held = self.tasks.locks.iter().filter(|(_, owner)| *owner == upid).map(|(lock, _)| lock.clone());
        for lock in held.collect::<Vec<_>>() {
            self.release_lock(&lock);
        }
    }

    /// The worker dies without a word; whatever it had done stays.
    pub(crate) fn kill_task(&mut self, upid: &str) -> bool {
        let running = self.tasks.by_upid.get(upid).is_some_and(|t| t.end.is_none());
        if running {
            self.end_task(upid, "unexpected status".into());
        }
        running
    }

    /// Somebody stops the task through the API; a worker that can clean up does.
    pub(crate) fn interrupt_task(&mut self, upid: &str) {
        let Some(task) = self.tasks.by_upid.get_mut(upid).filter(|t| t.end.is_none()) else { return };
        let Some(mut job) = task.job.take() else { return };
        let text = job.interrupt(self, upid);
        self.finish_task(upid, Err(text));
    }

    pub(crate) fn release_held(&mut self) {
        self.tasks.held.clear();
        for upid in std::mem::take(&mut self.tasks.parked) {
            let lot = self.tasks.by_upid.get_mut(&upid).map(|task| &mut task.lot);
            if let Some(lot) = lot.filter(|lot| lot.fault == Some(TaskFault::Stalls)) {
                lot.fault = None;
            }
            self.tasks.schedule(self.now, Event::Step(upid));
        }
    }
}

pub(crate) fn lock_timeout(vmid: u32) -> String {
    format!("can't lock file '/var/lock/qemu-server/lock-{vmid}.conf' - got timeout")
}
