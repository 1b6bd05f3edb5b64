//! Launches in a small world that loses replies, kills workers and crashes us at every point.

use proptest::prelude::*;
use tenon_engine::launch::{Failure, LaunchDecision, LaunchResult, ObservedTask, ObservedVm, next_step};
use tenon_model::{LaunchRecord, LaunchStep, Seconds};

use crate::claim::launch::{at, record};

/// What goes wrong with a change.
#[derive(Debug, Clone, Copy)]
enum Luck {
    /// Nothing.
    Fine,
    /// It is done, but nobody hears the name of its task.
    ReplyLost,
    /// It is not done, and nobody hears why.
    NotSent,
    /// Its worker dies half-way.
    WorkerDies,
    /// It fails.
    Fails,
}

/// Proxmox, as far as one launch can see it.
#[derive(Default)]
struct World {
    /// Ids with a VM of ours.
    ours: Vec<u32>,
    husks: Vec<u32>,
    last_task: Option<ObservedTask>,
}

impl World {
    fn see(&self, record: &LaunchRecord) -> ObservedVm {
        let id = record.vmid.get();
        if self.husks.contains(&id) {
            ObservedVm::Locked("clone".to_owned())
        } else if self.ours.contains(&id) {
            ObservedVm::Ours { uuid: Some(format!("uuid-{id}")) }
        } else {
            ObservedVm::Absent
        }
    }

    fn perform(&mut self, record: &LaunchRecord, luck: Luck) -> Option<ObservedTask> {
        let id = record.vmid.get();
        let is_clone = record.step == LaunchStep::Clone;
        assert!(!is_clone || (!self.ours.contains(&id) && !self.husks.contains(&id)), "a copy was sent twice");
        match luck {
            Luck::NotSent => return None,
            Luck::Fails => return Some(ObservedTask::Failed(Failure::Passing("bad luck".to_owned()))),
            Luck::WorkerDies if is_clone => self.husks.push(id),
            _ if is_clone => self.ours.push(id),
            _ => {}
        }
        match luck {
            Luck::ReplyLost => None,
            Luck::WorkerDies => Some(ObservedTask::Lost),
            _ => Some(ObservedTask::Done),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn every_launch_ends_with_one_vm_or_none_and_every_husk_written_down(
        luck in proptest::collection::vec(prop_oneof![
            4 => Just(Luck::Fine), 1 => Just(Luck::ReplyLost), 1 => Just(Luck::NotSent),
            1 => Just(Luck::WorkerDies), 1 => Just(Luck::Fails),
        ], 60)
    ) {
        let (mut world, mut record, mut now) = (World::default(), record(LaunchStep::Clone), 1_000);
        let mut luck = luck.into_iter().chain(std::iter::repeat(Luck::Fine));
        let mut ended = None;
        for _ in 0..200 {
            now += 1;
            let task = world.last_task.clone().unwrap_or(ObservedTask::None);
            let result = match next_step(&record, &world.see(&record), &task, &at(now)) {
                LaunchDecision::Perform(step) => {
                    prop_assert_eq!(step, record.step);
                    let fate = luck.next().unwrap_or(Luck::Fine);
                    world.last_task = world.perform(&record, fate);
                    continue;
                }
                LaunchDecision::Conclude(result) => result,
            };
            match result {
                LaunchResult::Record(next) => {
                    if next.upid.is_none() {
                        world.last_task = None;
                    }
                    record = next;
                }
                LaunchResult::Wait(_) => now += 100,
                LaunchResult::Relaunch { leftover, .. } => {
                    let vmid = (record.vmid.get() + 1).try_into().unwrap();
                    record = record.moved_to(vmid, leftover, Seconds(now));
                    world.last_task = None;
                }
                result @ (LaunchResult::GiveUp(_) | LaunchResult::Refuse(_) | LaunchResult::Launched) => {
                    ended = Some(result);
                    break;
                }
            }
        }
        let ended = ended.expect("a launch must end");
        prop_assert!(world.ours.len() <= 1, "{:?}", world.ours);
        if ended == LaunchResult::Launched {
            prop_assert_eq!(&world.ours, &vec![record.vmid.get()]);
            let uuid = format!("uuid-{}", record.vmid);
            prop_assert_eq!(record.uuid.clone(), Some(uuid));
        }
        let known: Vec<u32> = record.incomplete.iter().map(|id| id.get()).chain([record.vmid.get()]).collect();
        prop_assert!(world.husks.iter().all(|husk| known.contains(husk)), "{:?} not in {known:?}", world.husks);
    }
}
