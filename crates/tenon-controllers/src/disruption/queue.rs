//! The commands that run, in memory. All of it can be read off the NodeClaims again, but for what replacements are to be before
//! they are created: a command that was interrupted there is taken back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tenon_api::{DisruptionRecord, NodeClaim};
use tenon_engine::disruption_command::{Candidate, Failure};

use super::observe::CommandObjects;
use crate::context::Context;
use crate::moments::after;

/// Ids of commands that ended and are remembered: a cache that is behind may still show them.
const ENDED_MOST: usize = 1000;

/// The same move that failed is not tried again for so long, unless something about it changed.
const FAILED_FOR: SignedDuration = SignedDuration::from_hours(1);

/// A node whose command ended is left alone until the caches show it, and for so long at most.
const SETTLES_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// For so long at most nothing is decided because caches are behind what was just written.
const SHOWN_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// A command that runs.
#[derive(Debug, Clone)]
pub(super) struct Running {
    /// What is written on its claims.
    pub(super) record: DisruptionRecord,
    /// The replacements as they are created; none if another process decided.
    pub(super) planned: Option<Vec<NodeClaim>>,
    /// Nodes that pods are to move to.
    pub(super) destinations: BTreeSet<String>,
    /// Why it is being taken back, if it is.
    pub(super) failing: Option<Failure>,
}

/// The commands that run, and what is remembered of those that ended.
#[derive(Debug, Default)]
pub(super) struct Queue {
    running: BTreeMap<String, Running>,
    ended: VecDeque<String>,
    /// Nodes of commands that ended, until when they are left alone.
    settling: BTreeMap<String, Timestamp>,
    /// The move that failed for a node, and until when it is not tried again.
    failed: BTreeMap<String, (u64, Timestamp)>,
    /// When something was last written.
    written: Option<Timestamp>,
}

impl Queue {
    /// Takes up commands that stand on claims and that nobody runs: those of a controller that ended.
    pub(super) fn recover(&mut self, claims: &[Arc<NodeClaim>]) {
        for claim in claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none()) {
            let Some(Ok(mut record)) = DisruptionRecord::of(claim) else { continue };
            if let Some(known) = self.running.get_mut(&record.id) {
                // Of several claims some may have been written before the controller ended, and others not.
                known.record.replacing |= record.replacing && known.planned.is_none();
                continue;
            }
            // Whoever changes the list by hand must not make a claim go that does not name itself.
            if self.ended.contains(&record.id) || !record.candidates.contains(&claim.name_any()) {
                continue;
            }
            record.replacing &= !record.replacements.is_empty();
            tracing::info!(command = record.id, claim = claim.name_any(), "resuming disruption command");
            let running = Running { planned: None, destinations: BTreeSet::new(), failing: None, record };
            self.running.insert(running.record.id.clone(), running);
        }
    }

    /// Ids of all that run.
    pub(super) fn ids(&self) -> Vec<String> {
        self.running.keys().cloned().collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn get(&self, id: &str) -> Option<Running> {
        self.running.get(id).cloned()
    }

    /// Whether a claim with this name is in a command.
    pub(super) fn has(&self, claim: &str) -> bool {
        self.running.values().any(|running| running.record.candidates.iter().any(|name| name == claim))
    }

    /// How many nodes go.
    pub(super) fn nodes(&self) -> usize {
        self.running.values().map(|running| running.record.candidates.len()).sum()
    }

    /// Every node that goes, or went a moment ago.
    pub(super) fn in_progress(&self) -> BTreeSet<String> {
        let running = self.running.values().flat_map(|running| &running.record.candidates);
        running.chain(self.settling.keys()).cloned().collect()
    }

    /// A command begins, or is as it was just written.
    pub(super) fn put(&mut self, running: Running, now: Timestamp) {
        self.written = Some(now);
        self.running.insert(running.record.id.clone(), running);
    }

    /// A command ended.
    pub(super) fn end(&mut self, id: &str, now: Timestamp) {
        let Some(running) = self.running.remove(id) else { return };
        self.written = Some(now);
        self.settling.extend(running.record.candidates.into_iter().map(|name| (name, after(now, SETTLES_WITHIN))));
        self.ended.push_back(running.record.id);
        if self.ended.len() > ENDED_MOST {
            self.ended.pop_front();
        }
    }

    /// A command failed: the same is not tried again soon.
    pub(super) fn note_failure(&mut self, record: &DisruptionRecord, now: Timestamp) {
        let until = after(now, FAILED_FOR);
        let nodes = record.candidates.iter().cloned();
        self.failed.extend(nodes.map(|name| (name, (record.fingerprint, until))));
    }

    /// Moves that failed, by node.
    pub(super) fn failed(&mut self, now: Timestamp) -> BTreeMap<String, u64> {
        self.failed.retain(|_, (_, until)| *until > now);
        self.failed.iter().map(|(name, (fingerprint, _))| (name.clone(), *fingerprint)).collect()
    }

    /// Whether the caches show what was written, so that it can be decided again.
    pub(super) fn is_shown(&mut self, context: &Context, claims: &[Arc<NodeClaim>], now: Timestamp) -> bool {
        let by_name: BTreeMap<&str, &Arc<NodeClaim>> =
            claims.iter().filter_map(|claim| Some((claim.metadata.name.as_deref()?, claim))).collect();
        let stays = |name: &str| by_name.get(name).filter(|claim| claim.metadata.deletion_timestamp.is_none());
        self.settling.retain(|name, until| {
            let is_marked = |claim: &&&Arc<NodeClaim>| DisruptionRecord::of(claim).is_some();
            *until > now && stays(name).is_some_and(|claim| is_marked(&claim))
        });
        let is_late = self.written.is_some_and(|written| after(written, SHOWN_WITHIN) <= now);
        let is_shown = |running: &Running| {
            let seen = CommandObjects::cached(context, &running.record, claims);
            let is_behind = |name: &String| {
                matches!(seen.candidate(&running.record, name), Candidate::Unrecorded | Candidate::Recorded)
            };
            !running.record.candidates.iter().any(is_behind)
        };
        is_late || (self.settling.is_empty() && self.running.values().all(is_shown))
    }
}
