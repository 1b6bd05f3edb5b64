//! How the last nodes of each pool ended, by the pool's uid: shared by those who see a node end and those who judge pools.
//!
//! A restart loses it; the condition of the pool says enough to begin again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenon_api::condition_reasons::NODE_REGISTRATION_HEALTHY;
use tenon_api::{Condition, ConditionStatus, NodePool};
use tenon_engine::registration_health::{RegistrationHealth, RegistrationHistory};

/// Pools that are remembered at most. One that is forgotten begins again from its condition.
const POOLS: usize = 10_000;

/// Claims whose end is remembered at most; one that is forgotten was deleted long ago.
const CLAIMS: usize = 10_000;

/// The histories of all pools. Cheap to clone; clones share them.
#[derive(Debug, Clone, Default)]
pub struct RegistrationBook {
    histories: Arc<Mutex<BTreeMap<String, RegistrationHistory>>>,
    /// Uids of claims whose end was counted: a pass that is repeated counts it once.
    counted: Arc<Mutex<BTreeSet<String>>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl RegistrationBook {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, RegistrationHistory>> {
        self.histories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One ending at a time: two that are judged by the same history would both miss what they are together.
    pub(crate) async fn turn(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.turn.clone().lock_owned().await
    }

    /// What is known of a pool: what was seen, or else what its condition says.
    pub(crate) fn seed(&self, uid: &str, pool: &NodePool) {
        let mut histories = self.lock();
        if histories.len() >= POOLS {
            histories.clear();
        }
        let history = histories.entry(uid.to_owned()).or_default();
        if history.is_empty() {
            *history = RegistrationHistory::seeded(told(pool));
        }
    }

    /// What would be known of a pool if one more ended so.
    pub(crate) fn health_with(&self, uid: &str, is_registered: bool) -> RegistrationHealth {
        self.lock().get(uid).cloned().unwrap_or_default().with(is_registered).health()
    }

    /// One more ended so.
    pub(crate) fn add(&self, uid: &str, is_registered: bool) {
        let mut histories = self.lock();
        let history = histories.entry(uid.to_owned()).or_default();
        *history = history.with(is_registered);
    }

    /// Whether the end of a claim is to be counted still.
    pub(crate) fn is_uncounted(&self, claim_uid: &str) -> bool {
        !self.counted.lock().unwrap_or_else(PoisonError::into_inner).contains(claim_uid)
    }

    /// The end of a claim was counted.
    pub(crate) fn count(&self, claim_uid: &str) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.len() >= CLAIMS {
            counted.clear();
        }
        counted.insert(claim_uid.to_owned());
    }

    /// The pool is another one now.
    pub(crate) fn reset(&self, uid: &str) {
        self.lock().remove(uid);
    }
}

/// The condition of a pool that says whether its nodes register.
pub(crate) fn condition(pool: &NodePool) -> Option<&Condition> {
    let mut conditions = pool.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|condition| condition.type_ == NODE_REGISTRATION_HEALTHY.name())
}

fn told(pool: &NodePool) -> RegistrationHealth {
    match condition(pool).map(|condition| condition.status) {
        Some(ConditionStatus::True) => RegistrationHealth::Healthy,
        Some(ConditionStatus::False) => RegistrationHealth::Unhealthy,
        Some(ConditionStatus::Unknown) | None => RegistrationHealth::Unknown,
    }
}
