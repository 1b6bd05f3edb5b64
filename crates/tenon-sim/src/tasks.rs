//! How work that outlives its answer runs: workers, their order in time, the file locks they hold.
//!
//! A worker is a job that is stepped whenever its next instant is due; there are no threads. What the calls
//! under `/tasks` show of it is in `tasklist`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::jobs::Job;
use crate::state::State;
use crate::wire::Reply;

/// What a step of a job leads to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Step again after this long.
    After(Duration),
    Done,
    Failed(String),
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

/// Something that is due at an instant.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Step(String),
    /// A worker has waited for a file lock long enough.
    GiveUp(String),
    /// The clean-up helper of an old QEMU takes a VM's file lock.
    Trap(u32),
    /// Somebody who is no worker lets go of a VM's file lock.
    Unlock(u32),
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
    job: Option<Job>,
    begun: bool,
    fault: Option<String>,
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
    pub(crate) order: Vec<String>,
    pub(crate) held: BTreeSet<String>,
    /// The next worker to be started fails with this text.
    pub(crate) next_fault: Option<String>,
    queue: BTreeMap<(Duration, u64), Event>,
    scheduled: u64,
    parked: Vec<String>,
    /// Who holds the file lock of a VM; an empty text is the clean-up helper of an old QEMU.
    locks: BTreeMap<u32, String>,
    waiting: VecDeque<(u32, String)>,
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
        self.locks.contains_key(&vmid)
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
        let fault = self.tasks.next_fault.take();
        let task = Task {
            upid: upid.clone(),
            node,
            kind,
            id,
            user,
            pid,
            pstart,
            starttime,
            fault,
            job: Some(job),
            log: Vec::new(),
            warnings: 0,
            end: None,
            begun: false,
        };
        self.tasks.by_upid.insert(upid.clone(), task);
        self.tasks.order.push(upid.clone());
        let answer = self.config.pace.answer;
        // The worker is at work before the caller has the answer, so racing callers can all get one.
        self.tasks.schedule(self.now + answer / 2, Event::Step(upid.clone()));
        Reply { data: upid.clone().into(), total: None, delay: answer, upid: Some(upid) }
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
        if task.begun && self.tasks.held.contains(task.kind) {
            self.tasks.parked.push(upid.to_string());
            return;
        }
        if let Some(text) = task.fault.take() {
            return self.finish_task(upid, Err(text));
        }
        let Some(mut job) = task.job.take() else { return };
        let ready = task.begun || self.take_lock(upid, &job);
        let outcome = ready.then(|| job.step(self, upid));
        if let Some(task) = self.tasks.by_upid.get_mut(upid) {
            task.job = Some(job);
            task.begun = ready;
        }
        match outcome {
            Some(Outcome::After(wait)) => self.tasks.schedule(self.now + wait, Event::Step(upid.to_string())),
            Some(Outcome::Done) => self.finish_task(upid, Ok(())),
            Some(Outcome::Failed(text)) => self.finish_task(upid, Err(text)),
            None => {}
        }
    }

    /// Takes the file lock of the job's VM, or queues for it.
    fn take_lock(&mut self, upid: &str, job: &Job) -> bool {
        let Some(vmid) = job.locked_vm() else { return true };
        if !self.tasks.is_locked(vmid) {
            self.tasks.locks.insert(vmid, upid.to_string());
            return true;
        }
        self.log(upid, "trying to acquire lock...");
        self.tasks.waiting.push_back((vmid, upid.to_string()));
        self.tasks.schedule(self.now + self.config.pace.lock_wait, Event::GiveUp(upid.to_string()));
        false
    }

    pub(crate) fn give_up_lock(&mut self, upid: &str) {
        let Some(at) = self.tasks.waiting.iter().position(|(_, waiter)| waiter == upid) else { return };
        if let Some((vmid, _)) = self.tasks.waiting.remove(at) {
            self.finish_task(upid, Err(lock_timeout(vmid)));
        }
    }

    /// Keeps a VM's file lock taken for a while, as the clean-up after an old QEMU does.
    pub(crate) fn trap_lock(&mut self, vmid: u32) {
        let span = self.config.pace.restart_trap;
        if span.is_zero() || self.tasks.is_locked(vmid) {
            return;
        }
        self.tasks.locks.insert(vmid, String::new());
        self.tasks.schedule(self.now + span, Event::Unlock(vmid));
    }

    pub(crate) fn release_lock(&mut self, vmid: u32) {
        self.tasks.locks.remove(&vmid);
        let Some(at) = self.tasks.waiting.iter().position(|(id, _)| *id == vmid) else { return };
        if let Some((_, next)) = self.tasks.waiting.remove(at) {
            self.log(&next, " OK");
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
        let epoch = self.epoch();
        let Some(task) = self.tasks.by_upid.get_mut(upid) else { return };
        task.end = Some((epoch, exit));
        task.job = None;
        self.tasks.parked.retain(|parked| parked != upid);
        self.tasks.waiting.retain(|(_, waiter)| waiter != upid);
        let held = self.tasks.locks.iter().find(|(_, owner)| *owner == upid).map(|(vmid, _)| *vmid);
        if let Some(vmid) = held {
            self.release_lock(vmid);
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
        let text = job.interrupt(self);
        self.finish_task(upid, Err(text));
    }

    pub(crate) fn release_held(&mut self) {
        self.tasks.held.clear();
        for upid in std::mem::take(&mut self.tasks.parked) {
            self.tasks.schedule(self.now, Event::Step(upid));
        }
    }
}

pub(crate) fn lock_timeout(vmid: u32) -> String {
    format!("can't lock file '/var/lock/qemu-server/lock-{vmid}.conf' - got timeout")
}
