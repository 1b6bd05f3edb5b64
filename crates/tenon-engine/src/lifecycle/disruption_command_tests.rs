//! Which step follows from what is seen of a command, state by state?

use Candidate::{Deleting, Gone, Marked, Recorded, Taken, Unrecorded};
use CommandStep::{Advance, Await, Create, Delete, Done, Mark, Record, RollBack};
use Failure::{CandidateLost, Interrupted, ReplacementLost, TimedOut};
use Stage::{Marking, Replacing};
use Successor::{Absent, Initialized, Lost, Rising};
use tenon_model::Seconds;

use super::*;

fn command(stage: Stage, candidates: &[Candidate], successors: &[Successor]) -> ObservedCommand {
    ObservedCommand {
        stage,
        candidates: candidates.to_vec(),
        successors: successors.to_vec(),
        is_planned: true,
        deadline: Timestamp::from(Seconds(600)),
    }
}

fn step(command: &ObservedCommand) -> CommandStep {
    command.next_step(Timestamp::from(Seconds(599)))
}

#[test]
fn h12_a_command_records_marks_creates_waits_and_deletes_in_this_order() {
    for (stage, candidates, successors, expected) in [
        (Marking, &[Unrecorded, Recorded][..], &[Absent][..], Record),
        (Marking, &[Recorded, Recorded], &[Absent], Mark),
        (Marking, &[Marked, Recorded], &[Absent], Mark),
        (Marking, &[Marked, Marked], &[Absent], Create),
        (Marking, &[Marked], &[Rising, Absent], Create),
        (Marking, &[Marked], &[Rising, Rising], Advance),
        (Replacing, &[Marked], &[Rising, Rising], Await),
        (Replacing, &[Marked], &[Initialized, Rising], Await),
        (Replacing, &[Marked], &[Initialized, Initialized], Delete),
        (Replacing, &[Recorded], &[Initialized], Mark),
        (Replacing, &[Deleting, Marked], &[Initialized], Delete),
        (Replacing, &[Deleting, Gone], &[Initialized], Done),
        (Replacing, &[Deleting], &[Lost], Done),
    ] {
        assert_eq!(step(&command(stage, candidates, successors)), expected, "{stage:?} {candidates:?} {successors:?}");
    }
}

#[test]
fn h12_nodes_without_replacements_are_deleted_once_all_are_marked() {
    for (candidates, expected) in [
        (&[Unrecorded][..], Record),
        (&[Recorded], Mark),
        (&[Marked, Unrecorded], Record),
        (&[Marked, Marked], Delete),
        // One that goes anyway does not keep the others.
        (&[Deleting, Marked], Delete),
        (&[Gone, Unrecorded], Record),
        (&[Gone, Deleting], Done),
    ] {
        assert_eq!(step(&command(Marking, candidates, &[])), expected, "{candidates:?}");
    }
}

#[test]
fn h12_a_replacement_that_is_lost_rolls_back_at_every_stage() {
    for (stage, candidates, successors) in [
        (Marking, &[Marked][..], &[Lost][..]),
        (Marking, &[Recorded], &[Rising, Lost]),
        (Replacing, &[Marked], &[Lost]),
        (Replacing, &[Marked], &[Absent]),
        (Replacing, &[Marked], &[Initialized, Absent]),
        (Replacing, &[Deleting, Marked], &[Absent]),
    ] {
        let seen = command(stage, candidates, successors);
        assert_eq!(step(&seen), RollBack(ReplacementLost), "{stage:?} {candidates:?} {successors:?}");
    }
}

#[test]
fn h12_a_command_that_takes_too_long_rolls_back_unless_all_is_ready() {
    let due = Timestamp::from(Seconds(600));
    assert_eq!(command(Replacing, &[Marked], &[Rising]).next_step(due), RollBack(TimedOut));
    assert_eq!(command(Marking, &[Marked], &[Absent]).next_step(due), RollBack(TimedOut));
    assert_eq!(command(Marking, &[Marked], &[]).next_step(due), RollBack(TimedOut));
    assert_eq!(command(Replacing, &[Marked], &[Initialized]).next_step(due), Delete);
    assert_eq!(command(Replacing, &[Deleting], &[Rising]).next_step(due), Done);
    for (nodes, seconds) in [(0, 600), (1, 600), (10_000, 800), (1_000_000, 3600), (usize::MAX, 3600)] {
        assert_eq!(time_limit(nodes), Duration::from_secs(seconds), "{nodes}");
    }
}

#[test]
fn h4_whoever_finds_a_command_that_was_not_planned_here_goes_on_only_if_nothing_is_left_to_plan() {
    let found = |stage, candidates: &[Candidate], successors: &[Successor]| {
        step(&ObservedCommand { is_planned: false, ..command(stage, candidates, successors) })
    };
    for candidates in [&[Recorded][..], &[Marked], &[Marked, Unrecorded], &[Deleting, Marked]] {
        assert_eq!(found(Marking, candidates, &[]), RollBack(Interrupted), "{candidates:?}");
        assert_eq!(found(Marking, candidates, &[Rising, Absent]), RollBack(Interrupted), "{candidates:?}");
    }
    assert_eq!(found(Marking, &[Marked], &[Rising]), Advance, "the record is behind, the replacement is there");
    assert_eq!(found(Replacing, &[Marked], &[Rising]), Await);
    assert_eq!(found(Replacing, &[Deleting, Marked], &[Initialized]), Delete);
}

#[test]
fn h12_a_node_that_somebody_else_takes_ends_the_command() {
    assert_eq!(step(&command(Marking, &[Marked, Taken], &[])), RollBack(CandidateLost));
    assert_eq!(step(&command(Replacing, &[Marked, Unrecorded], &[Rising])), RollBack(CandidateLost));
    assert_eq!(step(&command(Marking, &[Gone, Marked], &[Absent])), RollBack(CandidateLost));
    assert_eq!(step(&command(Marking, &[Gone, Marked], &[Rising])), Advance, "it exists already, and is waited for");
}

/// Whatever is seen, it ends: from every state some number of steps that succeed leads to Done, Await or a roll-back.
#[test]
fn every_step_that_succeeds_leads_on() {
    let (candidates, successors) =
        ([Gone, Deleting, Taken, Unrecorded, Recorded, Marked], [Absent, Lost, Rising, Initialized]);
    for stage in [Marking, Replacing] {
        for is_planned in [true, false] {
            for a in candidates {
                for b in candidates {
                    for c in successors {
                        for more in [&[][..], &[c], &[c, Initialized]] {
                            let seen = ObservedCommand { is_planned, ..command(stage, &[a, b], more) };
                            assert!(ends(seen.clone()), "{seen:?}");
                        }
                    }
                }
            }
        }
    }
}

fn ends(mut seen: ObservedCommand) -> bool {
    for _ in 0..8 {
        let stays = |node: &Candidate| !matches!(node, Gone | Deleting);
        let to = match step(&seen) {
            Done | Await | RollBack(_) => return true,
            Record => Recorded,
            Mark => Marked,
            Delete => Deleting,
            Create => {
                seen.successors.iter_mut().filter(|state| **state == Absent).for_each(|state| *state = Rising);
                continue;
            }
            Advance => {
                seen.stage = Replacing;
                continue;
            }
        };
        let is_before = |node: &Candidate| stays(node) && (to != Recorded || *node == Unrecorded);
        seen.candidates.iter_mut().filter(|node| is_before(node)).for_each(|node| *node = to);
    }
    false
}
