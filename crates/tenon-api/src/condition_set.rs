//! How conditions of an object hang together: a root that is true when all it depends on is, said of one generation.
//!
//! The rules are the reference's, so that tools which read its objects read ours alike.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::condition::{Condition, ConditionStatus};

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
        for type_ in dependents.iter().chain(&[ROOT]) {
            if set.get(type_).is_none() {
                set.conditions.push(Condition {
                    type_: (*type_).to_owned(),
                    status: ConditionStatus::Unknown,
                    last_transition_time: subject.created.clone(),
                    reason: "AwaitingReconciliation".to_owned(),
                    message: "object is awaiting reconciliation".to_owned(),
                    observed_generation: Some(subject.generation),
                });
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

    /// Says something of one aspect, and sums up anew.
    pub fn set(&mut self, statement: &Statement<'_>, subject: &Subject) {
        self.put(statement, subject);
        if subject.deleting {
            // Otherwise the root would turn unknown for every generation that deletion adds.
            self.conditions.iter_mut().for_each(|condition| condition.observed_generation = Some(subject.generation));
        }
        if self.dependents.contains(&statement.type_) {
            self.sum_up(subject);
        }
    }

    /// The conditions in the order they are stored: by their last change, the root last.
    pub fn into_conditions(mut self) -> Vec<Condition> {
        let key = |condition: &Condition| {
            (condition.type_ == ROOT, condition.last_transition_time.0, condition.type_.clone())
        };
        self.conditions.sort_by_key(key);
        self.conditions
    }

    fn put(&mut self, statement: &Statement<'_>, subject: &Subject) {
        let present = self.get(statement.type_);
        let unchanged = present.filter(|condition| condition.status == statement.status);
        let last_transition_time =
            unchanged.map_or_else(|| subject.now.clone(), |condition| condition.last_transition_time.clone());
        let condition = Condition {
            type_: statement.type_.to_owned(),
            status: statement.status,
            last_transition_time,
            reason: statement.reason.to_owned(),
            message: statement.message.to_owned(),
            observed_generation: Some(subject.generation),
        };
        match self.conditions.iter_mut().find(|present| present.type_ == statement.type_) {
            Some(present) => *present = condition,
            None => self.conditions.push(condition),
        }
    }

    fn sum_up(&mut self, subject: &Subject) {
        let is_current = |condition: &Condition| condition.observed_generation == Some(subject.generation);
        let of_root = self.conditions.iter().filter(|condition| self.dependents.contains(&condition.type_.as_str()));
        let mut unhealthy: Vec<&Condition> =
            of_root.filter(|condition| condition.status != ConditionStatus::True || !is_current(condition)).collect();
        // Newest first; by name where they changed together.
        unhealthy.sort_by(|a, b| {
            b.last_transition_time.0.cmp(&a.last_transition_time.0).then_with(|| a.type_.cmp(&b.type_))
        });
        let is_false =
            unhealthy.iter().any(|condition| condition.status == ConditionStatus::False && is_current(condition));
        let message: Vec<String> =
            unhealthy.iter().map(|condition| format!("{}={:?}", condition.type_, condition.status)).collect();
        let (status, reason) = match (unhealthy.is_empty(), is_false) {
            (true, _) => (ConditionStatus::True, ROOT),
            (false, true) => (ConditionStatus::False, "UnhealthyDependents"),
            (false, false) => (ConditionStatus::Unknown, "ReconcilingDependents"),
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
        assert_eq!(
            root(&set),
            (ConditionStatus::Unknown, "AwaitingReconciliation", "object is awaiting reconciliation")
        );
        assert_eq!(set.get("TemplateReady").unwrap().last_transition_time, time(0));
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
