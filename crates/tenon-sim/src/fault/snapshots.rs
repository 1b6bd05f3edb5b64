//! What the estate looked like a while ago, for answers that are out of date.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::pools::Pool;
use crate::resources::Broadcast;
use crate::state::State;
use crate::vm::Vm;

/// Changes within this share a snapshot: the last of them counts.
const GRAIN_MS: u128 = 100;

#[derive(Debug)]
struct Snapshot {
    /// In grains since the estate was made.
    at: u128,
    vms: BTreeMap<u32, Vm>,
    pools: BTreeMap<String, Pool>,
    broadcast: Broadcast,
    dead: BTreeMap<String, Option<Duration>>,
}

/// As far back as the oldest rule looks; empty while there is none.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    taken: VecDeque<Snapshot>,
}

impl State {
    /// Remembers how things are now, while some rule may ask for it later.
    pub(crate) fn remember(&mut self) {
        let Some(age) = self.faults.longest_age() else {
            self.snapshots.taken.clear();
            return;
        };
        let at = self.now.as_millis() / GRAIN_MS;
        let horizon = at.saturating_sub(age.as_millis() / GRAIN_MS);
        let taken = &mut self.snapshots.taken;
        if taken.back().is_some_and(|last| last.at == at) {
            taken.pop_back();
        }
        // The last one before the horizon is what was true at the horizon.
        while taken.get(1).is_some_and(|next| next.at <= horizon) {
            taken.pop_front();
        }
        let dead = self.hosts.iter().map(|(name, host)| (name.clone(), host.dead_since)).collect();
        let (vms, pools, broadcast) = (self.vms.clone(), self.pools.clone(), self.broadcast.clone());
        taken.push_back(Snapshot { at, vms, pools, broadcast, dead });
    }

    /// Runs something that only reads, in the world as it was.
    pub(crate) fn as_of<R>(&mut self, age: Duration, read: impl FnOnce(&mut Self) -> R) -> R {
        let then = self.now.saturating_sub(age).as_millis() / GRAIN_MS;
        let known = self.snapshots.taken.iter().rposition(|snapshot| snapshot.at <= then);
        // Nobody remembers further back than the first snapshot.
        let Some(mut old) = self.snapshots.taken.remove(known.unwrap_or(0)) else { return read(self) };
        self.swap(&mut old);
        let result = read(self);
        self.swap(&mut old);
        self.snapshots.taken.insert(known.unwrap_or(0), old);
        result
    }

    fn swap(&mut self, old: &mut Snapshot) {
        std::mem::swap(&mut self.vms, &mut old.vms);
        std::mem::swap(&mut self.pools, &mut old.pools);
        std::mem::swap(&mut self.broadcast, &mut old.broadcast);
        for (name, dead) in &mut old.dead {
            if let Some(host) = self.hosts.get_mut(name) {
                std::mem::swap(&mut host.dead_since, dead);
            }
        }
    }
}
