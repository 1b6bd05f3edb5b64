//! What is left of capacity that was set aside, and who of the planned nodes holds how much of it?

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::{Offering, Options, ReservedMode, ReservedTrouble, Snapshot};

/// Names of reservations that a planned node holds.
pub(crate) type Held = BTreeSet<String>;

/// Everything that was set aside, as it is, and what happens where it is taken.
#[derive(Debug, Default)]
pub(crate) struct Reserved {
    left: BTreeMap<String, u32>,
    options: Options,
}

impl Reserved {
    /// Offerings that share a name share what it has; where they disagree, the least is believed. What is supposed to be
    /// free again comes on top.
    pub(crate) fn new(snapshot: &Snapshot, options: Options) -> Reserved {
        let mut left: BTreeMap<String, u32> = BTreeMap::new();
        let types = snapshot.pools.iter().flat_map(|pool| pool.catalog.types());
        let ways = types.flat_map(|size| &size.offerings).filter(|way| way.reservation.is_some());
        for reservation in ways.filter(|way| way.is_reserved()).filter_map(|way| way.reservation.as_ref()) {
            let known = left.entry(reservation.id.clone()).or_insert(reservation.capacity);
            *known = (*known).min(reservation.capacity);
        }
        left.iter_mut().for_each(|(id, left)| *left = left.saturating_add(options.credit(id)));
        Reserved { left, options }
    }
}

/// What is left of everything that was set aside.
#[derive(Debug, Clone)]
pub(crate) struct Reservations<'a> {
    options: &'a Options,
    left: BTreeMap<String, u32>,
}

impl<'a> Reservations<'a> {
    pub(crate) fn new(reserved: &'a Reserved) -> Reservations<'a> {
        Reservations { options: &reserved.options, left: reserved.left.clone() }
    }

    /// Whether a machine could be made from an offering, with what is supposed to be free again.
    pub(crate) fn can_launch(&self, way: &Offering) -> bool {
        self.options.can_launch(way)
    }

    /// Whoever holds reserved capacity uses that; whoever does not, uses none.
    pub(crate) fn may_use(&self, way: &Offering, held: &Held) -> bool {
        match way.reservation.as_ref().filter(|_| way.is_reserved()) {
            _ if !self.are_used() => true,
            Some(reservation) => held.contains(&reservation.id),
            None => held.is_empty(),
        }
    }

    /// Whether anything is set aside for anybody.
    pub(crate) fn are_used(&self) -> bool {
        self.options.reserved != ReservedMode::Off
    }

    /// Whether trouble with them makes a pod wait instead of something else being taken.
    pub(crate) fn are_strict(&self) -> bool {
        self.options.reserved == ReservedMode::Strict
    }

    /// What a node would hold that has these offerings left, of which each may become the one it is made from. All that
    /// can be held is held, since nobody knows yet which it will be.
    pub(crate) fn choose<'o>(
        &self,
        held: &Held,
        offerings: impl Iterator<Item = &'o Offering>,
    ) -> Result<Held, ReservedTrouble> {
        let (mut chosen, mut has_capacity, mut has_other, mut has_reserved) = (Held::new(), false, false, false);
        for way in offerings {
            has_reserved |= way.is_reserved();
            has_other |= !way.is_reserved();
            let Some(reservation) = way.reservation.as_ref().filter(|_| way.is_reserved()) else { continue };
            let may_have = reservation.capacity > 0 || self.options.credit(&reservation.id) > 0;
            has_capacity |= may_have;
            let is_left = self.left.get(&reservation.id).is_some_and(|left| *left > 0);
            // An offering of the same name may have more to give than the name has.
            if may_have && (is_left || held.contains(&reservation.id)) {
                chosen.insert(reservation.id.clone());
            }
        }
        let trouble = match chosen.is_empty() {
            true if has_capacity => Some(ReservedTrouble::Taken),
            true if has_reserved && !has_other => Some(ReservedTrouble::Full),
            true if !held.is_empty() => Some(ReservedTrouble::WouldLose),
            _ => None,
        };
        match trouble {
            Some(trouble) if self.are_strict() || trouble == ReservedTrouble::Full => Err(trouble),
            _ => Ok(chosen),
        }
    }

    /// A node holds other reservations than before.
    pub(crate) fn change(&mut self, before: &Held, after: &Held) {
        if before.is_empty() && after.is_empty() {
            return;
        }
        for id in before.difference(after) {
            self.left.entry(id.clone()).and_modify(|left| *left += 1);
        }
        for id in after.difference(before) {
            self.left.entry(id.clone()).and_modify(|left| *left = left.saturating_sub(1));
        }
    }
}
