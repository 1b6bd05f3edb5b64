//! What comes next for nodes that are disrupted together? One step at a time, from what is seen of them and of their replacements.
//!
//! Every step is written down before the next one is taken, so that whoever looks later, after a crash or as another leader, finds
//! the command where it stands and never has to guess.

use std::time::Duration;

use tenon_model::Timestamp;

/// A command has at least this long …
const LEAST: Duration = Duration::from_secs(10 * 60);
/// … so much more for each node that is disrupted at the same time …
const FOR_EACH: Duration = Duration::from_millis(80);
/// … and this long at most.
const MOST: Duration = Duration::from_secs(60 * 60);

/// How far a command has got, as it is written on the NodeClaims that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its nodes are marked, and its replacements are created.
    Marking,
    /// All replacements exist.
    Replacing,
}

/// A node that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// Its NodeClaim no longer exists.
    Gone,
    /// It is being deleted already.
    Deleting,
    /// Another command has it.
    Taken,
    /// The command is not written on it.
    Unrecorded,
    /// The command is written on it; new pods may still be scheduled to its node.
    Recorded,
    /// The command is written on it, and no new pods are scheduled to its node.
    Marked,
}

/// A NodeClaim that comes for nodes that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Successor {
    /// It does not exist, or does not any more.
    Absent,
    /// It is being deleted, or another object has its name.
    Lost,
    /// Its node does not take pods yet.
    Rising,
    /// Its node takes pods.
    Initialized,
}

/// A command, as it is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCommand {
    /// How far it has got.
    pub stage: Stage,
    /// The nodes that go.
    pub candidates: Vec<Candidate>,
    /// What comes for them.
    pub successors: Vec<Successor>,
    /// Whether whoever asks still knows what the replacements are to be: only the process that decided does.
    pub is_planned: bool,
    /// When it may take no longer.
    pub deadline: Timestamp,
}

/// What is done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStep {
    /// Write the command on all nodes that go.
    Record,
    /// Keep new pods off them, and say why they go.
    Mark,
    /// Create the replacements that do not exist yet.
    Create,
    /// Write down that all replacements exist.
    Advance,
    /// Wait until all replacements take pods.
    Await,
    /// Delete the nodes that go.
    Delete,
    /// Nothing is left to do.
    Done,
    /// Take back every mark: the nodes stay.
    RollBack(Failure),
}

/// Why the nodes of a command stay after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The controller ended before all replacements were created.
    Interrupted,
    /// A replacement was deleted before it took pods.
    ReplacementLost,
    /// It took too long.
    TimedOut,
    /// A node was deleted, or taken out of the command, by somebody else.
    CandidateLost,
}

impl Failure {
    /// Whether the replacement is to blame: then the same is not tried again at once.
    pub fn is_of_replacement(self) -> bool {
        matches!(self, Failure::ReplacementLost | Failure::TimedOut)
    }
}

/// How long a command may take while so many nodes are disrupted.
pub fn time_limit(nodes: usize) -> Duration {
    FOR_EACH.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX)).clamp(LEAST, MOST)
}

impl ObservedCommand {
    /// What is done next.
    pub fn next_step(&self, now: Timestamp) -> CommandStep {
        let is_over = |node: &Candidate| matches!(node, Candidate::Gone | Candidate::Deleting);
        if self.candidates.iter().all(is_over) {
            return CommandStep::Done;
        }
        if self.candidates.contains(&Candidate::Taken) {
            return CommandStep::RollBack(Failure::CandidateLost);
        }
        if self.has(Successor::Lost) {
            return CommandStep::RollBack(Failure::ReplacementLost);
        }
        let is_ready = self.successors.iter().all(|successor| *successor == Successor::Initialized);
        if now >= self.deadline && !(is_ready && self.stage == Stage::Replacing) {
            return CommandStep::RollBack(Failure::TimedOut);
        }
        match self.stage {
            Stage::Marking => self.marking(self.candidates.iter().any(is_over)),
            Stage::Replacing => self.replacing(is_ready),
        }
    }

    fn has(&self, state: Successor) -> bool {
        self.successors.contains(&state)
    }

    fn marking(&self, has_lost_some: bool) -> CommandStep {
        let is_missing = self.has(Successor::Absent);
        if !self.is_planned && (is_missing || self.successors.is_empty()) {
            return CommandStep::RollBack(Failure::Interrupted);
        }
        // What was to come for several is too much for what is left of them.
        if is_missing && has_lost_some {
            return CommandStep::RollBack(Failure::CandidateLost);
        }
        if self.candidates.contains(&Candidate::Unrecorded) {
            return CommandStep::Record;
        }
        if self.candidates.contains(&Candidate::Recorded) {
            return CommandStep::Mark;
        }
        match (is_missing, self.successors.is_empty()) {
            (true, _) => CommandStep::Create,
            (false, true) => CommandStep::Delete,
            (false, false) => CommandStep::Advance,
        }
    }

    fn replacing(&self, is_ready: bool) -> CommandStep {
        if self.candidates.contains(&Candidate::Unrecorded) {
            return CommandStep::RollBack(Failure::CandidateLost);
        }
        if self.has(Successor::Absent) {
            return CommandStep::RollBack(Failure::ReplacementLost);
        }
        if self.candidates.contains(&Candidate::Recorded) {
            return CommandStep::Mark;
        }
        if is_ready { CommandStep::Delete } else { CommandStep::Await }
    }
}

#[cfg(test)]
#[path = "disruption_command_tests.rs"]
mod tests;
