//! What can be asked of the engine? A snapshot is read once and kept; plans are made from it, and nothing is used up by that.

use std::collections::BTreeMap;

use tenon_model::{Plan, Snapshot};

use crate::base::{Base, Purpose, is_out_of_use};
use crate::plan::{effective_zones, finished, improve};
use crate::solver::{Effort, Memo, Ties, Trust, Work};
use crate::what_ifs::WhatIfs;

/// Decides what is to be made for the pods that need a node. The order of the snapshot's lists does not matter.
pub fn plan(snapshot: &Snapshot) -> Plan {
    Engine::of(snapshot).plan()
}

/// A snapshot, indexed.
#[derive(Debug, Default)]
pub struct Engine {
    base: Base,
    purpose: Purpose,
}

impl Engine {
    /// Reads a snapshot.
    pub fn of(snapshot: &Snapshot) -> Engine {
        Engine::reading(snapshot, Purpose::Plans)
    }

    /// Reads a snapshot with the pods that are on nodes, so that it can be asked what would be if nodes were gone.
    pub fn with_pods_on_nodes(snapshot: &Snapshot) -> Engine {
        Engine::reading(snapshot, Purpose::WhatIfs)
    }

    /// Has read nothing yet, and will read snapshots to say what is disrupted.
    pub(crate) fn for_scans() -> Engine {
        Engine { base: Base::default(), purpose: Purpose::Scans }
    }

    fn reading(snapshot: &Snapshot, purpose: Purpose) -> Engine {
        Engine { base: Base::of(snapshot, Base::default(), purpose), purpose }
    }

    /// What would be planned if nodes were gone. With `shadow`, whatever is remembered to be refused is asked again.
    pub fn what_ifs(&self, shadow: bool) -> WhatIfs<'_> {
        WhatIfs::new(&self.base, if shadow { Trust::Shadow } else { Trust::Remembered })
    }

    /// Reads the next snapshot. What is the same as in the last one is not read again; the plans are those of a new engine, and so is
    /// what would be if nodes were gone.
    pub fn advance(&mut self, snapshot: &Snapshot) {
        self.base = Base::of(snapshot, std::mem::take(&mut self.base), self.purpose);
    }

    /// Pools that could make nodes, but what they demand leaves nothing to make them of.
    pub fn pools_without_sizes(&self) -> Vec<&str> {
        let empty = self.base.pools.iter().filter(|(pool, template)| template.is_none() && !is_out_of_use(pool));
        empty.map(|(pool, _)| pool.name.as_str()).collect()
    }

    /// How many pods of this snapshot, which was read last, wait for which zone: its name, `flexible` where several will do, `none`
    /// where none does. Pods that run, pods that are over, and pods that ask for what can never be are not counted.
    pub fn effective_zones(&self, snapshot: &Snapshot) -> BTreeMap<String, u64> {
        effective_zones(&self.base, snapshot)
    }

    /// Places the pods.
    pub fn plan(&self) -> Plan {
        let mut work = self.solved(Trust::Remembered);
        improve(&mut work);
        finished(&mut work)
    }

    /// Places the pods once, and says how much was done for that. With `shadow`, whatever was refused before is asked again
    /// and must be refused again: a test panics where what is remembered is wrong.
    pub fn measure(&self, shadow: bool) -> (Plan, Effort) {
        let trust = if shadow { Trust::Shadow } else { Trust::Remembered };
        let mut work = self.solved(trust);
        let effort = work.effort;
        (finished(&mut work), effort)
    }

    fn solved(&self, trust: Trust) -> Work<'_> {
        let mut work = Work::new(&self.base, Memo::new(&self.base), (Ties::usual(&self.base), trust));
        work.solve();
        work
    }
}
