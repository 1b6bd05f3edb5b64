//! Capacity that was set aside: who of the planned nodes holds how much of it.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::{Offering, ReservedMode, ReservedTrouble, Snapshot};

/// Names of reservations that a planned node holds.
pub(crate) type Held = BTreeSet<String>;

/// What is left of everything that was set aside.
pub(crate) struct Reservations {
    mode: ReservedMode,
    left: BTreeMap<String, u32>,
}

impl Reservations {
    /// Offerings that share a name share what it has; where they disagree, the least is believed.
    pub(crate) fn new(snapshot: &Snapshot) -> Reservations {
        let mut left: BTreeMap<String, u32> = BTreeMap::new();
        let types = snapshot.pools.iter().flat_map(|pool| pool.catalog.types());
        let ways = types.flat_map(|offered| &offered.offerings).filter(|way| way.is_reserved());
        for reservation in ways.filter_map(|way| way.reservation.as_ref()) {
            let known = left.entry(reservation.id.clone()).or_insert(reservation.capacity);
            *known = (*known).min(reservation.capacity);
        }
        Reservations { mode: snapshot.options.reserved, left }
    }

    /// Whether anything is set aside for anybody.
    pub(crate) fn are_used(&self) -> bool {
        self.mode != ReservedMode::Off
    }

    /// Whether trouble with them makes a pod wait instead of something else being taken.
    pub(crate) fn are_strict(&self) -> bool {
        self.mode == ReservedMode::Strict
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
            has_capacity |= reservation.capacity > 0;
            let is_left = self.left.get(&reservation.id).is_some_and(|left| *left > 0);
            // An offering of the same name may have more to give than the name has.
            if reservation.capacity > 0 && (is_left || held.contains(&reservation.id)) {
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
        for id in before.difference(after) {
            self.left.entry(id.clone()).and_modify(|left| *left += 1);
        }
        for id in after.difference(before) {
            self.left.entry(id.clone()).and_modify(|left| *left = left.saturating_sub(1));
        }
    }
}
