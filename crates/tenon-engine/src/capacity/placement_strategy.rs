//! Which of the hosts with room gets a new VM? What `spec.placementStrategy` of a ProxmoxNodeClass decides.
//!
//! Nothing here is asked unless offerings have hosts, and every rank is a whole number: the same everywhere.

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{HostRules, HostStrategy, Quantity, Resources};

use super::hosts::Hosts;
use crate::index::{Bits, HostIx, Id, Table, TemplateIx};
use crate::instance_types::Footprint;

/// Shares are counted in millionths.
const WHOLE: i64 = 1_000_000;

/// Amounts are compared in units of about a thousandth of a core and a kilobyte: so they fit into a word, with room for
/// [`WHOLE`] times as much on any machine.
const CPU_SHIFT: u32 = 20;
const MEMORY_SHIFT: u32 = 40;

/// What a share of nothing is: more than any other, and far from an overflow.
const FULL: i64 = i64::MAX / 4;

/// How a pool chooses its hosts.
#[derive(Debug, Default)]
pub(crate) struct HostChoice {
    strategy: HostStrategy,
    /// What a new VM must leave free.
    pub(crate) min_available: Footprint,
    /// Hosts that are never used.
    pub(crate) excluded: Bits<HostIx>,
    /// What is there before the plan.
    before: Turn,
}

/// What a pool has on each host, where that decides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    /// How many VMs; empty unless they are spread or packed.
    vms: Table<HostIx, u32>,
    /// The position of the host whose turn it is.
    next: usize,
}

/// The turns of every pool in a plan.
pub(crate) type Turns = Table<TemplateIx, Turn>;

/// A host that a VM fits on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    pub(crate) host: HostIx,
    /// What is free, and what the VM takes of it.
    pub(crate) free: Footprint,
    pub(crate) size: Footprint,
    /// Whether the node would be made there anyway, and counts among what the pool has there.
    pub(crate) is_own: bool,
}

/// How good a host is. More is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    by_strategy: i64,
    free_memory: Quantity,
}

impl HostChoice {
    pub(crate) fn new(rules: &HostRules, hosts: &Hosts) -> HostChoice {
        let excluded = rules.excluded.iter().filter_map(|place| hosts.at(place));
        let mut none: Bits<HostIx> = Bits::default();
        excluded.for_each(|host| none.insert(host));
        let vms = |host: HostIx| rules.vms.get(hosts.place(host)).copied().unwrap_or_default();
        let is_counted = matches!(rules.strategy, HostStrategy::Spread | HostStrategy::Pack);
        let vms = hosts.ids().filter(|_| is_counted).map(vms).collect();
        let next = rules.last.as_ref().map_or(0, |last| hosts.position_after(last));
        let min_available = Footprint::of(&at_least_zero(&rules.min_available));
        HostChoice { strategy: rules.strategy, min_available, excluded: none, before: Turn { vms, next } }
    }

    /// Nothing is planned yet.
    pub(crate) fn turn(&self) -> Turn {
        self.before.clone()
    }

    /// Whether the VM fits, and leaves what must stay free.
    pub(crate) fn fits(&self, spot: &Spot) -> bool {
        spot.size.plus(self.min_available).within(spot.free)
    }

    /// How good a host is.
    pub(crate) fn rank(&self, hosts: &Hosts, turn: &Turn, spot: &Spot) -> Rank {
        let by_strategy = match self.strategy {
            HostStrategy::Balanced => -hosts.scales[spot.host].share_used(spot.free.minus(spot.size)),
            HostStrategy::MaxMemory => 0,
            HostStrategy::MaxCpu => scaled(spot.free.cpu, CPU_SHIFT),
            HostStrategy::Spread => -others(turn, spot),
            HostStrategy::Pack => {
                let used = hosts.scales[spot.host].share_used(spot.free.minus(spot.size));
                others(turn, spot) * (WHOLE + 1) + used.clamp(0, WHOLE)
            }
            HostStrategy::BalancedLoad => -hosts.scales[spot.host].load(spot.free.minus(spot.size)),
            // A node that grows stays where it is, if there is room.
            HostStrategy::RoundRobin if spot.is_own => 1,
            HostStrategy::RoundRobin => -turn.distance(spot.host, hosts.len()),
        };
        Rank { by_strategy, free_memory: spot.free.memory }
    }
}

/// How many VMs a host has besides the node itself.
fn others(turn: &Turn, spot: &Spot) -> i64 {
    i64::from(turn.vms[spot.host]) - i64::from(spot.is_own)
}

impl Turn {
    /// How many hosts come before this one.
    fn distance(&self, host: HostIx, hosts: usize) -> i64 {
        let hosts = hosts.max(1);
        let distance = (host.position() + hosts - self.next % hosts) % hosts;
        i64::try_from(distance).unwrap_or(i64::MAX)
    }

    /// A planned node goes from one host to another.
    pub(crate) fn change(&mut self, before: Option<HostIx>, after: Option<HostIx>) {
        if before == after {
            return;
        }
        if !self.vms.is_empty() {
            before.into_iter().for_each(|host| self.vms[host] = self.vms[host].saturating_sub(1));
            after.into_iter().for_each(|host| self.vms[host] += 1);
        }
        after.into_iter().for_each(|host| self.next = host.position() + 1);
    }
}

/// What a host has, in units that shares are counted with.
#[derive(Debug)]
pub(crate) struct Scale {
    capacity: Footprint,
    cpu: i64,
    memory: i64,
    /// The load before the plan, and what is free then.
    load: Option<i64>,
    free: Footprint,
}

impl Scale {
    pub(super) fn of(host: &tenon_model::Host) -> Scale {
        let (capacity, free) = (Footprint::of(&host.capacity), Footprint::of(&host.free));
        let (cpu, memory) = (scaled(capacity.cpu, CPU_SHIFT), scaled(capacity.memory, MEMORY_SHIFT));
        let mut scale = Scale { capacity, cpu, memory, load: None, free };
        scale.load = host.load.as_ref().map(|load| {
            let rising = Footprint::of(&load.rising);
            i64::from(load.cpu) + i64::from(load.memory) + scale.share_of_cpu(rising) + scale.share_of_memory(rising)
        });
        scale
    }

    fn share_of_cpu(&self, used: Footprint) -> i64 {
        share(scaled(used.cpu, CPU_SHIFT), self.cpu)
    }

    fn share_of_memory(&self, used: Footprint) -> i64 {
        share(scaled(used.memory, MEMORY_SHIFT), self.memory)
    }

    /// The larger share in use where so much is free.
    fn share_used(&self, free: Footprint) -> i64 {
        let used = self.capacity.minus(free);
        self.share_of_cpu(used).max(self.share_of_memory(used))
    }

    /// The load with what is planned by now: of CPU and memory together. What is not measured, is what guests may use.
    fn load(&self, free: Footprint) -> i64 {
        let (measured, used) = match self.load {
            Some(load) => (load, self.free.minus(free)),
            None => (0, self.capacity.minus(free)),
        };
        measured + self.share_of_cpu(used) + self.share_of_memory(used)
    }
}

fn scaled(amount: Quantity, shift: u32) -> i64 {
    i64::try_from(amount.nanos() >> shift).unwrap_or(FULL)
}

/// How many millionths one amount is of another.
fn share(used: i64, of: i64) -> i64 {
    if of <= 0 { FULL } else { used.saturating_mul(WHOLE) / of }
}

/// Nothing instead of less than nothing.
fn at_least_zero(amounts: &Resources) -> Resources {
    [CPU, MEMORY].into_iter().map(|name| (name, amounts.get(name).at_least_zero())).collect()
}
