//! What an operator decides about planning, and what whoever asks for a plan supposes.

use std::collections::BTreeMap;

use crate::catalog::Offering;

/// What an operator decides about planning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether wishes of pods count.
    pub preferences: PreferencePolicy,
    /// What happens where too few values of a label stay possible.
    pub min_values: MinValuesPolicy,
    /// What happens where capacity set aside is taken.
    pub reserved: ReservedMode,
    /// The most sizes a claim lists.
    pub max_types: usize,
    /// Whether pods that ask for devices by claim are refused.
    pub ignore_resource_claims: bool,
    /// Machines that are supposed to be free again in reservations, by name: what would be if those who use them went.
    /// A name that nothing is offered under means nothing.
    pub credits: BTreeMap<String, u32>,
}

/// Whether wishes of pods count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PreferencePolicy {
    /// They are demands until they cannot be met.
    #[default]
    Respect,
    /// They are never looked at.
    Ignore,
}

/// What happens where too few values of a label stay possible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MinValuesPolicy {
    /// No node is made.
    #[default]
    Strict,
    /// As many as there are will do for a new node.
    BestEffort,
}

/// What happens where capacity set aside could serve a pod, but is taken by others in the same plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReservedMode {
    /// The pod waits for the next plan.
    #[default]
    Strict,
    /// Something else is taken.
    Fallback,
    /// Nothing is set aside for anybody: reserved offerings are like others.
    Off,
}

/// More sizes than this make a claim too large to be stored.
const MAX_TYPES: usize = 600;

impl Default for Options {
    fn default() -> Options {
        Options {
            preferences: PreferencePolicy::default(),
            min_values: MinValuesPolicy::default(),
            reserved: ReservedMode::default(),
            max_types: MAX_TYPES,
            ignore_resource_claims: true,
            credits: BTreeMap::new(),
        }
    }
}

impl Options {
    /// How many machines a reservation is supposed to have besides those it has.
    pub fn credit(&self, reservation: &str) -> u32 {
        self.credits.get(reservation).copied().unwrap_or_default()
    }

    /// Whether a machine could be made from an offering, with what is supposed to be free again.
    pub fn can_launch(&self, way: &Offering) -> bool {
        let is_credited = || way.reservation.as_ref().is_some_and(|held| self.credit(&held.id) > 0);
        way.is_launchable() || (way.available && way.is_reserved() && is_credited())
    }
}
