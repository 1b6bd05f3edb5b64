//! How conditions of an object hang together: a root that is true when all it depends on is, said of one generation.
//!
//! The rules are the reference's, so that tools which read its objects read ours alike.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::condition::{Condition, ConditionStatus};
use crate::condition_reasons::{AWAITING_RECONCILIATION, RECONCILING_DEPENDENTS, UNHEALTHY_DEPENDENTS};

/// The condition that sums up the others.
const ROOT: &str = "Ready";

/// What the object is, for whoever sets a condition on it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The generation the condition is said of.
    pub generation: i64,
    /// When the object was made: conditions nobody has set yet count from there.
    pub created: Time,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// The time of the change.
    pub now: Time,
}

/// The conditions of one object.
#[derive(Debug, Clone)]
pub struct ConditionSet {
    dependents: &'static [&'static str],
    conditions: Vec<Condition>,
}

/// What to say of one aspect.
#[derive(Debug, Clone)]
pub struct Statement<'a> {
    /// Which aspect.
    pub type_: &'a str,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one word.
    pub reason: &'a str,
    /// Why, as a sentence.
    pub message: &'a str,
}

impl<'a> Statement<'a> {
    /// It holds: the reason is the aspect itself, and there is nothing to add.
    pub fn holds(type_: &'a str) -> Statement<'a> {
        Statement { type_, status: ConditionStatus::True, reason: type_, message: "" }
    }
}

impl ConditionSet {
    /// The conditions an object has; those it should have and has not are unknown since it was made.
    pub fn new(dependents: &'static [&'static str], present: &[Condition], subject: &Subject) -> ConditionSet {
        let mut set = ConditionSet { dependents, conditions: present.to_vec() };
        for type_ in [ROOT].iter().chain(dependents) {
            if set.get(type_).is_none() {
                let (reason, message) = (AWAITING_RECONCILIATION.name(), AWAITING_RECONCILIATION.example());
                set.set(&Statement { type_, status: ConditionStatus::Unknown, reason, message }, subject);
            }
        }
        set
    }

    /// A condition by its name.
    pub fn get(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether a condition is there and holds.
    pub fn is_true(&self, type_: &str) -> bool {
        self.get(type_).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// Says something of one aspect, and sums up anew. Returns whether that changed anything.
    pub fn set(&mut self, statement: &Statement<'_>, subject: &Subject) -> bool {
        let is_new = self.put(statement, subject);
        if is_new && statement.type_ != ROOT {
            self.sum_up(subject);
        }
        is_new
    }

    /// Takes back what was said of an aspect the root does not depend on; the others must always say something. Returns
    /// whether it was there. The root is not summed up anew, as what went is none of its business.
    pub fn clear(&mut self, type_: &str) -> bool {
        if self.is_essential(type_) || self.get(type_).is_none() {
            return false;
        }
        self.conditions.retain(|condition| condition.type_ != type_);
        // The reference sorts so here and by time elsewhere. Tools see the order; so it is kept.
        self.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
        true
    }

    /// The conditions in the order they are stored: by their last change, the root last.
    pub fn into_conditions(self) -> Vec<Condition> {
        self.conditions
    }

    fn is_essential(&self, type_: &str) -> bool {
        type_ == ROOT || self.dependents.contains(&type_)
    }

    /// Puts a condition in its place; `false` if it stands there already, word for word.
    fn put(&mut self, statement: &Statement<'_>, subject: &Subject) -> bool {
        let present = self.get(statement.type_);
        let last_transition_time = match present {
            Some(condition) if condition.status == statement.status => &condition.last_transition_time,
            Some(_) => &subject.now,
            // Nobody has said anything of it since the object was made.
            None if self.is_essential(statement.type_) => &subject.created,
            None => &subject.now,
        };
        let condition = Condition {
            type_: statement.type_.to_owned(),
            status: statement.status,
            last_transition_time: last_transition_time.clone(),
            reason: statement.reason.to_owned(),
            message: statement.message.to_owned(),
            observed_generation: Some(subject.generation),
        };
        if present == Some(&condition) {
            return false;
        }
        self.conditions.retain(|other| other.type_ != condition.type_);
        if subject.deleting {
            // Otherwise the root would turn unknown for every generation that deletion adds.
            self.conditions.iter_mut().for_each(|other| other.observed_generation = Some(subject.generation));
        }
        self.conditions.push(condition);
        self.conditions.sort_by_key(|condition| (condition.type_ == ROOT, condition.last_transition_time.0));
        true
    }

    fn sum_up(&mut self, subject: &Subject) {
        let is_current = |condition: &Condition| condition.observed_generation == Some(subject.generation);
        let of_root = self.conditions.iter().filter(|condition| self.dependents.contains(&condition.type_.as_str()));
        let mut unhealthy: Vec<&Condition> =
            of_root.filter(|condition| condition.status != ConditionStatus::True || !is_current(condition)).collect();
        // Newest first; as they are stored where they changed together.
        unhealthy.sort_by_key(|condition| std::cmp::Reverse(condition.last_transition_time.0));
        let is_false =
            unhealthy.iter().any(|condition| condition.status == ConditionStatus::False && is_current(condition));
        let message: Vec<String> =
            unhealthy.iter().map(|condition| format!("{}={:?}", condition.type_, condition.status)).collect();
        let (status, reason) = match (unhealthy.is_empty(), is_false) {
            (true, _) => (ConditionStatus::True, ROOT),
            (false, true) => (ConditionStatus::False, UNHEALTHY_DEPENDENTS.name()),
            (false, false) => (ConditionStatus::Unknown, RECONCILING_DEPENDENTS.name()),
        };
        self.put(&Statement { type_: ROOT, status, reason, message: &message.join(", ") }, subject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: &[&str] = &["TemplateReady", "MetadataReady"];

    fn time(second: i64) -> Time {
        let text = format!("2026-01-01T00:00:{second:02}Z");
        serde_json::from_value(serde_json::json!(text)).unwrap()
    }

    fn subject(generation: i64, second: i64) -> Subject {
        Subject { generation, created: time(0), deleting: false, now: time(second) }
    }

    fn says(type_: &'static str, status: ConditionStatus) -> Statement<'static> {
        Statement { type_, status, reason: "Why", message: "because" }
    }

    fn root(set: &ConditionSet) -> (ConditionStatus, &str, &str) {
        let root = set.get(ROOT).unwrap();
        (root.status, &root.reason, &root.message)
    }

    #[test]
    fn what_nobody_has_said_anything_of_is_unknown_since_the_object_was_made() {
        let set = ConditionSet::new(PARTS, &[], &subject(1, 5));
        for part in PARTS {
            let told = set.get(part).unwrap();
            assert_eq!((told.status, told.reason.as_str()), (ConditionStatus::Unknown, "AwaitingReconciliation"));
            assert_eq!(told.message, "object is awaiting reconciliation");
            assert_eq!((&told.last_transition_time, told.observed_generation), (&time(0), Some(1)));
        }
        let parts = "TemplateReady=Unknown, MetadataReady=Unknown";
        assert_eq!(root(&set), (ConditionStatus::Unknown, "ReconcilingDependents", parts));
        let alone = ConditionSet::new(&[], &[], &subject(1, 5));
        assert_eq!(
            root(&alone),
            (ConditionStatus::Unknown, "AwaitingReconciliation", "object is awaiting reconciliation")
        );
    }

    #[test]
    fn what_is_there_is_not_started_anew() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        set.set(&Statement::holds("TemplateReady"), &subject(1, 3));
        let stored = set.into_conditions();
        assert_eq!(ConditionSet::new(PARTS, &stored, &subject(2, 9)).into_conditions(), stored);
    }

    #[test]
    fn an_aspect_the_root_does_not_depend_on_counts_from_when_it_is_said() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        assert!(set.set(&says("Drained", ConditionStatus::False), &subject(1, 5)));
        assert_eq!(set.get("Drained").unwrap().last_transition_time, time(5));
        assert_eq!(root(&set).0, ConditionStatus::Unknown, "it does not make the root false");
    }

    #[test]
    fn what_is_said_twice_changes_nothing() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        assert!(set.set(&says("TemplateReady", ConditionStatus::False), &subject(1, 2)));
        let before = set.clone().into_conditions();
        assert!(!set.set(&says("TemplateReady", ConditionStatus::False), &subject(1, 3)));
        assert_eq!(set.clone().into_conditions(), before);
        assert!(set.set(&says("TemplateReady", ConditionStatus::False), &subject(2, 3)), "of another generation");
    }

    #[test]
    fn whatever_is_said_the_root_is_summed_up_anew() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        for part in PARTS {
            set.set(&Statement::holds(part), &subject(1, 1));
        }
        assert!(set.is_true(ROOT));
        set.set(&says("Drained", ConditionStatus::True), &subject(2, 2));
        let both = "TemplateReady=True, MetadataReady=True";
        assert_eq!(root(&set), (ConditionStatus::Unknown, "ReconcilingDependents", both));
        set.set(&Statement::holds(ROOT), &subject(2, 3));
        assert!(set.is_true(ROOT), "said of the root itself, it stands");
    }

    #[test]
    fn a_failure_counts_only_for_the_generation_it_was_said_of() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        set.set(&says("TemplateReady", ConditionStatus::False), &subject(1, 2));
        assert_eq!(root(&set).0, ConditionStatus::False);
        set.set(&Statement::holds("MetadataReady"), &subject(2, 3));
        assert_eq!(root(&set), (ConditionStatus::Unknown, "ReconcilingDependents", "TemplateReady=False"));
    }

    #[test]
    fn the_newest_trouble_is_told_first_and_the_root_is_stored_last() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        set.set(&says("TemplateReady", ConditionStatus::False), &subject(1, 2));
        set.set(&says("MetadataReady", ConditionStatus::False), &subject(1, 3));
        assert_eq!(root(&set).2, "MetadataReady=False, TemplateReady=False");
        set.set(&says("Drained", ConditionStatus::True), &subject(1, 1));
        let types: Vec<String> = set.into_conditions().into_iter().map(|condition| condition.type_).collect();
        assert_eq!(types, ["Drained", "TemplateReady", "MetadataReady", "Ready"]);
    }

    #[test]
    fn only_what_the_root_does_not_depend_on_can_be_taken_back() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        set.set(&says("Drained", ConditionStatus::True), &subject(1, 4));
        let before = root(&set).2.to_owned();
        assert!(!set.clear("TemplateReady") && !set.clear(ROOT) && !set.clear("Missing"));
        assert!(set.clear("Drained"));
        assert_eq!(root(&set).2, before);
        let types: Vec<String> = set.into_conditions().into_iter().map(|condition| condition.type_).collect();
        assert_eq!(types, ["MetadataReady", "Ready", "TemplateReady"], "sorted by name, for once");
    }

    #[test]
    fn the_root_is_true_when_all_it_depends_on_is() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        set.set(&Statement::holds("TemplateReady"), &subject(1, 1));
        assert_eq!(root(&set), (ConditionStatus::Unknown, "ReconcilingDependents", "MetadataReady=Unknown"));
        set.set(&says("MetadataReady", ConditionStatus::False), &subject(1, 2));
        assert_eq!(root(&set), (ConditionStatus::False, "UnhealthyDependents", "MetadataReady=False"));
        set.set(&Statement::holds("MetadataReady"), &subject(1, 3));
        assert_eq!(root(&set), (ConditionStatus::True, "Ready", ""));
        assert_eq!(set.get("TemplateReady").unwrap().reason, "TemplateReady");
    }

    #[test]
    fn what_was_said_of_an_earlier_generation_does_not_count_until_it_is_said_again() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        for part in PARTS {
            set.set(&Statement::holds(part), &subject(1, 1));
        }
        set.set(&Statement::holds("TemplateReady"), &subject(2, 2));
        assert_eq!(root(&set), (ConditionStatus::Unknown, "ReconcilingDependents", "MetadataReady=True"));
        set.set(&Statement::holds("MetadataReady"), &subject(2, 3));
        assert!(set.is_true(ROOT));
    }

    #[test]
    fn the_time_of_a_change_is_kept_while_the_status_is() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        set.set(&says("TemplateReady", ConditionStatus::False), &subject(1, 5));
        set.set(&Statement { message: "still", ..says("TemplateReady", ConditionStatus::False) }, &subject(1, 9));
        let condition = set.get("TemplateReady").unwrap();
        assert_eq!((condition.last_transition_time.clone(), condition.message.as_str()), (time(5), "still"));
        let types: Vec<String> = set.into_conditions().into_iter().map(|condition| condition.type_).collect();
        assert_eq!(types, ["MetadataReady", "TemplateReady", "Ready"]);
    }

    #[test]
    fn an_object_that_is_being_deleted_does_not_lose_what_was_said() {
        let mut set = ConditionSet::new(PARTS, &[], &subject(1, 1));
        for part in PARTS {
            set.set(&Statement::holds(part), &subject(1, 1));
        }
        let going = Subject { deleting: true, ..subject(2, 2) };
        set.set(&says("Drained", ConditionStatus::Unknown), &going);
        set.set(&Statement::holds("TemplateReady"), &going);
        assert!(set.is_true(ROOT));
    }
}
