//! Which rules strike a call: their counts, their windows, their dice.

use std::time::Duration;

use super::rule::{FaultEffect, FaultRule, Repeat, glob};
use super::strike::Strike;
use crate::chance::Chance;

/// What the rules can ask about a call.
pub(crate) struct Occurrence<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Storages the call touches.
    pub(crate) storages: Vec<String>,
    /// VMs the call names.
    pub(crate) vmids: Vec<u32>,
    pub(crate) has_digest: bool,
    pub(crate) now: Duration,
}

impl Occurrence<'_> {
    fn host(&self) -> Option<&str> {
        self.path.strip_prefix("/nodes/")?.split('/').next()
    }
}

/// How often something could have struck and did. Its dice are its own, so that no other rule changes its luck.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    seen: u32,
    struck: u32,
    chance: Chance,
}

impl Tally {
    /// The `number` keeps rules of one seed apart.
    pub(crate) fn new(seed: u64, number: usize) -> Self {
        let mut mixer = Chance::new(seed ^ (number as u64).wrapping_add(1).wrapping_mul(0xa076_1d64_78bd_642f));
        Self { seen: 0, struck: 0, chance: Chance::new(mixer.next()) }
    }

    /// Counts one more case and tells whether it is struck.
    pub(crate) fn strikes(&mut self, repeat: &Repeat) -> bool {
        if repeat.times.is_some_and(|times| self.struck >= times) {
            return false;
        }
        self.seen = self.seen.saturating_add(1);
        let turn = repeat.nth.is_none_or(|nth| self.seen == nth)
            && repeat.every.is_none_or(|every| every > 0 && self.seen.is_multiple_of(every));
        // Dice are thrown only when they decide, so that a run can be told from its calls.
        let luck = turn && repeat.probability.is_none_or(|probability| self.chance.fraction() < probability);
        self.struck += u32::from(luck);
        luck
    }
}

#[derive(Debug)]
struct Entry {
    rule: FaultRule,
    tally: Tally,
}

/// All rules, in the order they were added.
#[derive(Debug)]
pub(crate) struct Book {
    entries: Vec<Entry>,
    added: usize,
    seed: u64,
}

impl Book {
    pub(crate) fn new(seed: u64) -> Self {
        Self { entries: Vec::new(), added: 0, seed }
    }

    pub(crate) fn add(&mut self, rule: FaultRule) {
        let tally = Tally::new(self.seed, self.added);
        self.added += 1;
        self.entries.push(Entry { rule, tally });
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// How far back somebody may want to look.
    pub(crate) fn longest_age(&self) -> Option<Duration> {
        let age = |entry: &Entry| match entry.rule.effect {
            FaultEffect::StaleListing { age } => Some(age),
            _ => None,
        };
        self.entries.iter().filter_map(age).max()
    }

    /// What happens to a call. Rules that are used up are forgotten.
    pub(crate) fn strike(&mut self, call: &Occurrence<'_>) -> Strike {
        let mut strike = Strike::default();
        for entry in &mut self.entries {
            if strike.has_room_for(&entry.rule.effect)
                && matches(&entry.rule, call)
                && entry.tally.strikes(&entry.rule.when.repeat)
            {
                strike.add(&entry.rule.effect);
            }
        }
        self.entries.retain(|entry| entry.rule.when.repeat.times.is_none_or(|times| entry.tally.struck < times));
        strike
    }
}

fn matches(rule: &FaultRule, call: &Occurrence<'_>) -> bool {
    let when = &rule.when;
    let applies = match rule.effect {
        FaultEffect::WrongDigest => call.has_digest,
        FaultEffect::StaleListing { .. } => call.method == "GET",
        _ => true,
    };
    applies
        && when.method.as_deref().is_none_or(|method| method == call.method)
        && when.path.as_deref().is_none_or(|pattern| glob(pattern, call.path))
        && when.host.as_deref().is_none_or(|host| call.host() == Some(host))
        && when.storage.as_ref().is_none_or(|storage| call.storages.contains(storage))
        && when.vmid.is_none_or(|vmid| call.vmids.contains(&vmid))
        && when.from.is_none_or(|from| from <= call.now)
        && when.until.is_none_or(|until| call.now < until)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(repeat: &Repeat, seed: u64) -> Vec<u32> {
        let mut tally = Tally::new(seed, 0);
        (1..=20).filter(|_| tally.strikes(repeat)).collect()
    }

    #[test]
    fn the_nth_every_nth_and_only_so_many_are_struck() {
        assert_eq!(struck(&Repeat { nth: Some(3), ..Repeat::default() }, 1), [3]);
        assert_eq!(struck(&Repeat { every: Some(6), ..Repeat::default() }, 1), [6, 12, 18]);
        assert_eq!(struck(&Repeat { every: Some(6), times: Some(2), ..Repeat::default() }, 1), [6, 12]);
        assert_eq!(struck(&Repeat { times: Some(3), ..Repeat::default() }, 1), [1, 2, 3]);
    }

    #[test]
    fn the_same_seed_throws_the_same_dice_and_another_does_not() {
        let half = Repeat { probability: Some(0.5), ..Repeat::default() };
        assert_eq!(struck(&half, 7), struck(&half, 7));
        assert_ne!(struck(&half, 7), struck(&half, 8));
        assert_eq!(struck(&Repeat { probability: Some(0.0), ..half.clone() }, 7), [0; 0]);
        assert_eq!(struck(&Repeat { probability: Some(1.0), ..half }, 7).len(), 20);
    }
}
