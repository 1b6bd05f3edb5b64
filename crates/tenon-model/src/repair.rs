//! Which conditions of a Node mean that it is broken, and what is done about each?
//!
//! Policies come as a set that is checked as a whole: one policy without a pattern is the fallback for every condition that no
//! pattern fits. What follows from the conditions of a Node is decided in `repair_decision`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;

use crate::repair_decision::Unhealthy;
use crate::timestamp::Timestamp;

/// What is done about a broken node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairAction {
    /// Its VM is rebooted.
    RebootNode,
    /// Another node comes for it, and it is removed. The more disruptive of the two.
    ReplaceNode,
}

impl RepairAction {
    /// Its name, as in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            RepairAction::RebootNode => "RebootNode",
            RepairAction::ReplaceNode => "ReplaceNode",
        }
    }
}

/// A condition with which a Node is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPolicy {
    /// The type of the condition.
    pub condition: String,
    /// The status with which the Node is broken.
    pub status: String,
    /// What the reason of the condition must match somewhere; empty: the policy is the fallback.
    pub reason_regex: String,
    /// How long the condition must have that status before anything is done.
    pub toleration: Duration,
    /// How long pods have to leave; none: as long as their NodeClaim says.
    pub grace_period: Option<Duration>,
    /// Which of several conditions drives the repair: the higher one.
    pub priority: i64,
    /// What is done.
    pub action: RepairAction,
}

/// A kubelet that restarts, or a switch that is replaced, is back within this time.
const TOLERATION: Duration = Duration::from_secs(15 * 60);

/// The statuses that a condition can have.
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// The highest priority.
const PRIORITY_MOST: i64 = 100;

/// A set of policies that was checked.
#[derive(Debug, Clone)]
pub struct RepairPolicies(Arc<Vec<Known>>);

/// A policy of a set.
#[derive(Debug)]
struct Known {
    policy: Arc<RepairPolicy>,
    pattern: Option<Regex>,
    /// The place of its priority among those of the set, from 0.
    rank: u32,
}

/// Why policies are no set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RepairPolicyFault {
    /// There is none.
    #[error("there is no policy; give at least one, or leave the setting out to have the defaults")]
    Empty,
    /// One of them says something that cannot be.
    #[error("policy {number}: {why}")]
    Policy {
        /// Its place in the list, from 1.
        number: usize,
        /// What is wrong.
        why: String,
    },
    /// Not exactly one is the fallback.
    #[error(
        "{found} policies have no reasonRegex; exactly one must, as the fallback for reasons that no other policy matches"
    )]
    Fallbacks {
        /// How many are.
        found: usize,
    },
    /// The fallback does not replace the node.
    #[error("policy {number}: the policy without reasonRegex is the fallback, and its action must be ReplaceNode")]
    FallbackAction {
        /// Its place in the list, from 1.
        number: usize,
    },
}

/// A condition as a Node has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaidCondition<'a> {
    /// Its type.
    pub condition: &'a str,
    /// Its status.
    pub status: &'a str,
    /// Its reason, which may be empty.
    pub reason: &'a str,
    /// Since when it has this status.
    pub since: Timestamp,
}

impl RepairPolicies {
    /// The policies, if all of them together are a set.
    pub fn new(policies: Vec<RepairPolicy>) -> Result<RepairPolicies, RepairPolicyFault> {
        if policies.is_empty() {
            return Err(RepairPolicyFault::Empty);
        }
        let mut known = Vec::with_capacity(policies.len());
        let mut priorities: Vec<i64> = policies.iter().map(|policy| policy.priority).collect();
        priorities.sort_unstable();
        priorities.dedup();
        for (index, policy) in policies.into_iter().enumerate() {
            let pattern = checked(&policy).map_err(|why| RepairPolicyFault::Policy { number: index + 1, why })?;
            let rank = priorities.iter().position(|priority| *priority == policy.priority).unwrap_or_default();
            let rank = u32::try_from(rank).unwrap_or(u32::MAX);
            known.push(Known { policy: Arc::new(policy), pattern, rank });
        }
        let fallbacks: Vec<usize> = (0..known.len()).filter(|index| known[*index].pattern.is_none()).collect();
        match fallbacks.as_slice() {
            [one] if known[*one].policy.action != RepairAction::ReplaceNode => {
                Err(RepairPolicyFault::FallbackAction { number: one + 1 })
            }
            [_] => Ok(RepairPolicies(Arc::new(known))),
            _ => Err(RepairPolicyFault::Fallbacks { found: fallbacks.len() }),
        }
    }

    /// No policy: every Node is as good as it is.
    pub fn none() -> RepairPolicies {
        RepairPolicies(Arc::default())
    }

    /// What a condition means. A policy whose pattern fits keeps the fallback out, also while it still tolerates the condition.
    pub fn matches(&self, said: &SaidCondition<'_>) -> Vec<Unhealthy> {
        if !self.0.iter().any(|known| known.is_about(said)) {
            return Vec::new();
        }
        let specific = self.0.iter().filter(|known| known.is_about(said) && known.fits(said) == Some(true));
        let found: Vec<Unhealthy> = specific.map(|known| known.unhealthy(said)).collect();
        if !found.is_empty() {
            return found;
        }
        let fallback = self.0.iter().filter(|known| known.pattern.is_none());
        fallback.map(|known| Unhealthy { is_fallback: true, ..known.unhealthy(said) }).collect()
    }

    /// The same as Karpenter had it before version 1.15: no policy that reboots counts, and one without a pattern fits every
    /// reason of its own condition only.
    pub fn legacy_matches(&self, said: &SaidCondition<'_>) -> Vec<Unhealthy> {
        let replaces = |known: &&Known| known.policy.action == RepairAction::ReplaceNode;
        let fits = |known: &&Known| known.is_about(said) && known.fits(said) != Some(false);
        self.0.iter().filter(replaces).filter(fits).map(|known| known.unhealthy(said)).collect()
    }

    /// The policies, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &RepairPolicy> {
        self.0.iter().map(|known| &*known.policy)
    }
}

impl Known {
    fn is_about(&self, said: &SaidCondition<'_>) -> bool {
        self.policy.condition == said.condition && self.policy.status == said.status
    }

    /// Whether its pattern finds the reason; nothing if it has none.
    fn fits(&self, said: &SaidCondition<'_>) -> Option<bool> {
        self.pattern.as_ref().map(|pattern| pattern.is_match(said.reason))
    }

    fn unhealthy(&self, said: &SaidCondition<'_>) -> Unhealthy {
        Unhealthy {
            condition: said.condition.to_owned(),
            status: said.status.to_owned(),
            reason: said.reason.to_owned(),
            since: said.since,
            policy: Arc::clone(&self.policy),
            rank: self.rank,
            is_fallback: false,
        }
    }
}

/// Whether a policy by itself makes sense; its pattern.
fn checked(policy: &RepairPolicy) -> Result<Option<Regex>, String> {
    if policy.condition.is_empty() {
        return Err("conditionType is empty; give the type of a condition of Nodes, such as Ready".to_owned());
    }
    if !STATUSES.contains(&policy.status.as_str()) {
        return Err(format!("conditionStatus `{}` is none of True, False and Unknown", policy.status));
    }
    if !(0..=PRIORITY_MOST).contains(&policy.priority) {
        return Err(format!("priority {} is not between 0 and {PRIORITY_MOST}", policy.priority));
    }
    if policy.reason_regex.is_empty() {
        return Ok(None);
    }
    let pattern = Regex::new(&policy.reason_regex);
    // The message of the library draws the pattern over several lines; its last line says what is wrong.
    let why = |error: regex::Error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        format!("reasonRegex `{}` is no regular expression: {last}", policy.reason_regex)
    };
    pattern.map(Some).map_err(why)
}

impl Default for RepairPolicies {
    /// The policies of Karpenter's Proxmox provider: the kubelet says that the node cannot run pods, or nobody has heard of it.
    /// Both replace the node. Of the two, one has a pattern that fits every reason, because only one may be the fallback.
    fn default() -> RepairPolicies {
        let ready = |status: &str, reason_regex: &str| RepairPolicy {
            condition: "Ready".to_owned(),
            status: status.to_owned(),
            reason_regex: reason_regex.to_owned(),
            toleration: TOLERATION,
            grace_period: None,
            priority: 0,
            action: RepairAction::ReplaceNode,
        };
        RepairPolicies::new(vec![ready("False", ".*"), ready("Unknown", "")]).unwrap_or_else(|_| RepairPolicies::none())
    }
}

impl PartialEq for RepairPolicies {
    fn eq(&self, other: &RepairPolicies) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Display for RepairAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
