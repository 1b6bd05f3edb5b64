//! What is remembered between two passes and may be forgotten at any time: a restart costs patience, never correctness.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use tenon_api::{NodeClaim, names};
use tenon_model::{Host, Place};

use crate::claim::{CloneSlots, Comparisons, DeletionReason, Diagnoses, EvictionBackoff, RebootCalls, SeenVms};
use crate::csr::Undecided;
use crate::moments::after;
use crate::overlays::OverlayBook;
use crate::provision::LaunchSpot;
use crate::registration_book::RegistrationBook;

/// A claim we made is added to what the watch shows, which is a moment behind. After this long the watch should show it.
const FRESH_FOR: SignedDuration = SignedDuration::from_secs(30);

/// A host on which a launch of a class failed is left alone by that class this long; twice as long each time it fails again …
const AVOIDED_FIRST: SignedDuration = SignedDuration::from_secs(15);

/// … up to this.
const AVOIDED_MOST: SignedDuration = SignedDuration::from_mins(3);

/// How often it failed is forgotten so long after.
const AVOIDED_KEPT: SignedDuration = SignedDuration::from_mins(30);

/// The same failure of a claim is logged again only after this long.
const REPEAT_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Reasons of deletions that are remembered at most; each is forgotten when its claim is deleted.
const DELETIONS_MOST: usize = 10_000;

/// Short-term memory.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    inner: Mutex<Inner>,
    /// Pods whose eviction was refused.
    pub(crate) evictions: EvictionBackoff,
    /// When Proxmox was first asked to start VMs again.
    pub(crate) reboots: RebootCalls,
    /// How the last nodes of each pool ended.
    pub(crate) registrations: RegistrationBook,
    /// When each node was last compared with its claim.
    pub(crate) comparisons: Comparisons,
    /// What was found out of nodes that are late.
    pub(crate) diagnoses: Diagnoses,
    /// What was just read of VMs that are being launched.
    pub(crate) seen: SeenVms,
    /// The clones that run.
    pub(crate) clones: CloneSlots,
    /// Why certificates are not decided about.
    pub(crate) undecided: Undecided,
    /// What was found of NodeOverlays.
    pub(crate) overlays: OverlayBook,
}

#[derive(Debug, Default)]
struct Inner {
    fresh: Vec<(Arc<NodeClaim>, Timestamp)>,
    nominated: BTreeMap<String, Timestamp>,
    planned_for: BTreeMap<String, Vec<ObjectReference>>,
    avoided: BTreeMap<LaunchSpot, Avoided>,
    failures: BTreeMap<String, FailedPasses>,
    /// Since when a claim's launch is seen to stand still.
    blocked: BTreeMap<String, Timestamp>,
    /// When the VM of a claim was first seen to be lost.
    lost: BTreeMap<String, Timestamp>,
    deletions: BTreeMap<String, DeletionReason>,
    /// What was last logged of what a claim can do without.
    extras: BTreeMap<String, (String, Timestamp)>,
    /// The hosts as the last plan found them.
    planned_hosts: Arc<[Host]>,
}

/// How often passes of a claim failed in a row, and what was last reported of that.
#[derive(Debug, Default)]
struct FailedPasses {
    times: u32,
    reported: Option<(String, Timestamp)>,
}

/// A pass that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PassFailure {
    /// How many failed in a row.
    pub(crate) times: u32,
    /// Whether it says anything that was not reported just before.
    pub(crate) is_news: bool,
}

#[derive(Debug, Clone)]
struct Avoided {
    why: String,
    until: Timestamp,
    times: i32,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A claim was just made for these pods.
    pub(crate) fn add_claim(&self, claim: &NodeClaim, pods: Vec<ObjectReference>, now: Timestamp) {
        let mut inner = self.lock();
        inner.planned_for.insert(claim.name_any(), pods);
        inner.fresh.push((Arc::new(claim.clone()), now));
    }

    /// Claims the watch shows, and those we wrote that it does not show yet as we wrote them. One that it shows under the
    /// same name with another uid was made since: what we wrote is gone.
    pub(crate) fn with_fresh(&self, shown: Vec<Arc<NodeClaim>>) -> Vec<Arc<NodeClaim>> {
        let mut inner = self.lock();
        if inner.fresh.is_empty() {
            return shown;
        }
        let is_planned = |claim: &NodeClaim| claim.annotations().contains_key(names::ANNOTATION_LAUNCH);
        let mut known: BTreeMap<String, Arc<NodeClaim>> =
            shown.into_iter().map(|claim| (claim.name_any(), claim)).collect();
        let is_late = |fresh: &NodeClaim| {
            let shown = known.get(&fresh.name_any());
            shown.is_none_or(|shown| shown.uid() == fresh.uid() && !is_planned(shown))
        };
        inner.fresh.retain(|(fresh, _)| is_late(fresh));
        known.extend(inner.fresh.iter().map(|(fresh, _)| (fresh.name_any(), fresh.clone())));
        known.into_values().collect()
    }

    /// Claims the watch should show by now, if they are there.
    pub(crate) fn unconfirmed(&self, now: Timestamp) -> Vec<String> {
        let inner = self.lock();
        let late = inner.fresh.iter().filter(|(_, seen)| after(*seen, FRESH_FOR) <= now);
        late.map(|(claim, _)| claim.name_any()).collect()
    }

    /// A claim is there, whatever the watch shows.
    pub(crate) fn confirm(&self, claim: &str, now: Timestamp) {
        let mut inner = self.lock();
        inner.fresh.iter_mut().filter(|(fresh, _)| fresh.name_any() == claim).for_each(|(_, seen)| *seen = now);
    }

    /// The pods a claim was made for.
    pub(crate) fn pods_of(&self, claim: &str) -> Vec<ObjectReference> {
        self.lock().planned_for.get(claim).cloned().unwrap_or_default()
    }

    /// Pods are expected on a node or claim.
    pub(crate) fn nominate(&self, name: &str, until: Timestamp) {
        self.lock().nominated.insert(name.to_owned(), until);
    }

    /// Whether pods are expected.
    pub(crate) fn is_nominated(&self, name: &str, now: Timestamp) -> bool {
        let mut inner = self.lock();
        inner.nominated.retain(|_, until| *until > now);
        inner.nominated.contains_key(name)
    }

    /// A launch failed here.
    pub(crate) fn avoid(&self, spot: &LaunchSpot, why: &str, now: Timestamp) {
        let mut inner = self.lock();
        let times = inner.avoided.get(spot).map_or(0, |known| known.times);
        let patience = (0..times).fold(AVOIDED_FIRST, |patience, _| patience.saturating_mul(2).min(AVOIDED_MOST));
        let avoided = Avoided { why: why.to_owned(), until: after(now, patience), times: (times + 1).min(10) };
        // What was over long ago says nothing any more.
        inner.avoided.retain(|_, known| after(known.until, AVOIDED_KEPT) > now);
        inner.avoided.insert(spot.clone(), avoided);
    }

    /// A launch of a class succeeded on a host.
    pub(crate) fn trust(&self, place: &Place, class: &str) {
        self.lock().avoided.retain(|spot, _| spot.place != *place || spot.class != class);
    }

    /// Where nothing is launched for now, and why.
    pub(crate) fn avoided(&self, now: Timestamp) -> Vec<(LaunchSpot, String)> {
        let inner = self.lock();
        let known = inner.avoided.iter().filter(|(_, known)| known.until > now);
        known.map(|(spot, known)| (spot.clone(), known.why.clone())).collect()
    }

    /// A pass of a claim failed with this message.
    pub(crate) fn pass_failed(&self, claim: &str, message: &str, now: Timestamp) -> PassFailure {
        let mut inner = self.lock();
        let known = inner.failures.entry(claim.to_owned()).or_default();
        known.times = known.times.saturating_add(1);
        let is_repeated =
            known.reported.as_ref().is_some_and(|(last, at)| last == message && after(*at, REPEAT_AFTER) > now);
        if !is_repeated {
            known.reported = Some((message.to_owned(), now));
        }
        PassFailure { times: known.times, is_news: !is_repeated }
    }

    /// The launch of a claim stands still.
    pub(crate) fn blocked(&self, claim: &str, now: Timestamp) {
        self.lock().blocked.entry(claim.to_owned()).or_insert(now);
    }

    /// Since when the launch of a claim is seen to stand still; from now on if it was not.
    pub(crate) fn blocked_since(&self, claim: &str, now: Timestamp) -> Timestamp {
        self.lock().blocked.get(claim).copied().unwrap_or(now)
    }

    /// The launch of a claim goes on.
    pub(crate) fn not_blocked(&self, claim: &str) {
        self.lock().blocked.remove(claim);
    }

    /// The VM of a claim is seen to be lost; since when, in a row.
    pub(crate) fn vm_lost(&self, claim: &str, now: Timestamp) -> Timestamp {
        *self.lock().lost.entry(claim.to_owned()).or_insert(now)
    }

    /// The VM of a claim is there and runs.
    pub(crate) fn vm_found(&self, claim: &str) {
        self.lock().lost.remove(claim);
    }

    /// We delete a claim; why.
    pub(crate) fn deleting(&self, claim: &str, reason: DeletionReason) {
        let mut inner = self.lock();
        // Forgetting costs a word in a message.
        if inner.deletions.len() >= DELETIONS_MOST {
            inner.deletions.clear();
        }
        inner.deletions.insert(claim.to_owned(), reason);
    }

    /// A claim was not deleted after all.
    pub(crate) fn not_deleted(&self, claim: &str) {
        self.lock().deletions.remove(claim);
    }

    /// Why we delete a claim; nothing if somebody else does, or we did before a restart.
    pub(crate) fn deletion_reason(&self, claim: &str) -> Option<DeletionReason> {
        self.lock().deletions.get(claim).copied()
    }

    /// A pass of a claim succeeded.
    pub(crate) fn pass_succeeded(&self, claim: &str) {
        self.lock().failures.remove(claim);
    }

    /// Something that a pass can do without failed. It is logged unless the same was just before.
    pub(crate) fn warn_of_extra(&self, claim: &str, error: &str, now: Timestamp) {
        let mut inner = self.lock();
        let is_known = |(said, at): &(String, Timestamp)| said == error && after(*at, REPEAT_AFTER) > now;
        if inner.extras.get(claim).is_some_and(is_known) {
            return;
        }
        inner.extras.insert(claim.to_owned(), (error.to_owned(), now));
        tracing::warn!(claim, error, "part of reconciling NodeClaim failed; going on");
    }

    /// What the last plan found of hosts.
    pub(crate) fn note_hosts(&self, hosts: &[Host]) {
        self.lock().planned_hosts = hosts.into();
    }

    /// The hosts as the last plan found them.
    pub(crate) fn planned_hosts(&self) -> Arc<[Host]> {
        self.lock().planned_hosts.clone()
    }

    /// A claim is gone, and all about it may be forgotten.
    pub(crate) fn forget(&self, claim: &str) {
        self.comparisons.forget(claim);
        self.diagnoses.forget(claim);
        self.clones.give_back(claim);
        self.seen.file_deleted();
        let mut inner = self.lock();
        inner.fresh.retain(|(fresh, _)| fresh.name_any() != claim);
        inner.planned_for.remove(claim);
        inner.nominated.remove(claim);
        inner.failures.remove(claim);
        inner.blocked.remove(claim);
        inner.lost.remove(claim);
        inner.deletions.remove(claim);
        inner.extras.remove(claim);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    #[test]
    fn a_host_that_fails_again_is_left_alone_for_longer_until_it_works() {
        let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
        let of = |class: &str| LaunchSpot { place: place.clone(), class: class.to_owned(), storage: None };
        let (memory, spot) = (Memory::default(), of("default"));
        let is_avoided = |second| !memory.avoided(at(second)).is_empty();
        memory.avoid(&spot, "full", at(0));
        assert_eq!(memory.avoided(at(14)), [(spot.clone(), "full".to_owned())]);
        assert!(!is_avoided(15));
        memory.avoid(&spot, "full", at(20));
        assert!(is_avoided(49) && !is_avoided(50));
        for _ in 0..20 {
            memory.avoid(&spot, "full", at(100));
        }
        assert!(is_avoided(279) && !is_avoided(280));
        memory.trust(&place, "another");
        assert!(is_avoided(279), "that another class works says nothing of this one");
        memory.trust(&place, "default");
        memory.avoid(&spot, "full", at(1000));
        assert!(!is_avoided(1015));
    }

    #[test]
    fn a_claim_we_wrote_is_known_at_once_and_once_until_the_watch_shows_it_as_we_wrote_it() {
        let memory = Memory::default();
        let claim = |launch: Option<&str>| {
            let spec = json!({ "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" } });
            let mut claim = NodeClaim::new("a", serde_json::from_value(spec).unwrap());
            let launch = launch.map(|launch| [(names::ANNOTATION_LAUNCH.to_owned(), launch.to_owned())].into());
            claim.metadata.annotations = launch;
            Arc::new(claim)
        };
        let made_anew = || {
            let mut claim = NodeClaim::clone(&claim(None));
            claim.metadata.uid = Some("another".to_owned());
            Arc::new(claim)
        };
        let launches = |shown: Vec<Arc<NodeClaim>>| -> Vec<Option<String>> {
            let known = memory.with_fresh(shown);
            known.iter().map(|claim| claim.annotations().get(names::ANNOTATION_LAUNCH).cloned()).collect()
        };
        assert!(launches(vec![]).is_empty());
        memory.add_claim(&claim(Some("ours")), vec![], at(0));
        assert_eq!(launches(vec![]), [Some("ours".to_owned())], "before the watch shows it");
        assert_eq!(launches(vec![claim(None)]), [Some("ours".to_owned())], "shown as it was before we planned it");
        assert_eq!(
            launches(vec![claim(Some("later"))]),
            [Some("later".to_owned())],
            "the watch knows better from here on"
        );
        assert!(launches(vec![]).is_empty(), "it was shown, and is gone");
        memory.add_claim(&claim(Some("ours")), vec![], at(4));
        assert_eq!(launches(vec![made_anew()]), [None], "another of the same name is not the one we wrote");
        assert_eq!(launches(vec![made_anew()]), [None]);
        memory.add_claim(&claim(Some("ours")), vec![], at(4));
        memory.forget("a");
        assert!(launches(vec![]).is_empty());
    }

    #[test]
    fn the_same_failure_of_a_claim_is_news_once_in_five_minutes() {
        let memory = Memory::default();
        let failed = |message, second| memory.pass_failed("a", message, at(second));
        assert_eq!(failed("refused", 0), PassFailure { times: 1, is_news: true });
        assert_eq!(failed("refused", 1), PassFailure { times: 2, is_news: false });
        assert_eq!(failed("timed out", 3), PassFailure { times: 3, is_news: true });
        assert_eq!(failed("timed out", 302), PassFailure { times: 4, is_news: false });
        assert_eq!(failed("timed out", 303), PassFailure { times: 5, is_news: true });
        memory.pass_succeeded("a");
        assert_eq!(failed("timed out", 304), PassFailure { times: 1, is_news: true });
    }

    #[test]
    fn a_nomination_is_extended_by_the_next_one_and_ends_by_itself() {
        let memory = Memory::default();
        memory.nominate("a", at(20));
        assert!(memory.is_nominated("a", at(19)) && !memory.is_nominated("b", at(19)));
        memory.nominate("a", at(35));
        assert!(memory.is_nominated("a", at(34)) && !memory.is_nominated("a", at(35)));
    }
}
