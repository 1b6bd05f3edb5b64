//! What is disrupted now, asked again and again? What is the same as at the last scan is not read again.
//!
//! What is kept is the index of the snapshot, never an answer: each scan decides as if it were the first.

use tenon_model::Snapshot;

use super::command::{Command, Method};
use super::confirmation::{Rejection, confirmed};
use super::scan::{Disruption, Scan};
use crate::engine::Engine;

/// Scans a cluster again and again.
#[derive(Debug)]
pub struct Scanner {
    engine: Engine,
}

impl Default for Scanner {
    fn default() -> Scanner {
        Scanner { engine: Engine::for_scans() }
    }
}

impl Scanner {
    /// Decides what is disrupted in the cluster as it is now. The order of the snapshot's lists does not matter.
    pub fn decide(&mut self, snapshot: &Snapshot) -> Disruption {
        self.decide_telling(snapshot, &mut |_| {})
    }

    /// The same, which says when it is done with a method: whoever has a clock can tell how long each took. Before the first one the
    /// snapshot is read.
    pub fn decide_telling(&mut self, snapshot: &Snapshot, done: &mut dyn FnMut(Method)) -> Disruption {
        self.engine.advance(snapshot);
        Scan::new(snapshot, self.engine.what_ifs(false)).run(done)
    }

    /// The move, or what is left of it, if it still holds in the cluster as it is now. Of empty nodes those that are still empty are
    /// left; any other move holds as a whole or not at all.
    pub fn confirm(&mut self, command: &Command, snapshot: &Snapshot) -> Result<Command, Rejection> {
        if !command.method.is_confirmed() {
            return Ok(command.clone());
        }
        self.engine.advance(snapshot);
        confirmed(command, Scan::new(snapshot, self.engine.what_ifs(false)))
    }
}

/// Decides what is disrupted in a cluster that was never scanned before.
pub fn decide(snapshot: &Snapshot) -> Disruption {
    Scanner::default().decide(snapshot)
}

/// Whether a move still holds in a cluster that was never scanned before.
pub fn confirm(command: &Command, snapshot: &Snapshot) -> Result<Command, Rejection> {
    Scanner::default().confirm(command, snapshot)
}
