//! What becomes of conditions and of objects that are being deleted? Two looks at the stores are compared; what comes and
//! goes between two looks is missed, as in the reference.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use super::catalogue::karpenter;
use super::exposition::Exposition;
use super::families::Series;

/// The name `type` is a word of the language, so these labels are written out.
macro_rules! condition_labels {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $label:literal),+ })+) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        struct $name { $($field: String),+ }

        impl super::families::Labels for $name {
            const NAMES: &'static [&'static str] = &[$($label),+];

            fn values(&self) -> Vec<String> {
                vec![$(self.$field.clone()),+]
            }
        }
    )+ };
}

condition_labels! {
    /// A status that a condition left.
    Left { group: "group", kind: "kind", of_type: "type", status: "status" }
    /// A status that a condition got, and why.
    Reached { group: "group", kind: "kind", of_type: "type", status: "status", reason: "reason" }
    /// Objects of a kind.
    OfKind { group: "group", kind: "kind" }
}

/// A condition of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownCondition {
    pub(crate) of_type: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    /// When it got this status.
    pub(crate) since: Option<Timestamp>,
}

/// An object, as far as its conditions go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownObject {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) conditions: Vec<ShownCondition>,
    /// When it was deleted, if it was.
    pub(crate) deleted: Option<Timestamp>,
}

/// What the last look showed, and what was counted since the first.
#[derive(Debug)]
pub(crate) struct ConditionBook {
    left: Series<Left>,
    reached: Series<Reached>,
    terminations: Series<OfKind>,
    last: Mutex<BTreeMap<(&'static str, String), ShownObject>>,
}

impl Default for ConditionBook {
    fn default() -> ConditionBook {
        ConditionBook {
            left: Series::new(&karpenter::CONDITION_TRANSITION),
            reached: Series::new(&karpenter::CONDITION_TRANSITIONS),
            terminations: Series::new(&karpenter::TERMINATION_DURATION),
            last: Mutex::default(),
        }
    }
}

impl ConditionBook {
    /// Compares all objects with the last look.
    pub(crate) fn look(&self, objects: Vec<ShownObject>, now: Timestamp) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gone = std::mem::take(&mut *last);
        for object in objects {
            let key = (object.kind, object.name.clone());
            self.compare(gone.remove(&key).as_ref(), &object);
            last.insert(key, object);
        }
        for object in gone.into_values() {
            if let Some(deleted) = object.deleted {
                let of = OfKind { group: object.group.to_owned(), kind: object.kind.to_owned() };
                self.terminations.get_or_create(&of).observe(now.duration_since(deleted).as_secs_f64().max(0.0));
            }
        }
    }

    fn compare(&self, before: Option<&ShownObject>, object: &ShownObject) {
        let (group, kind) = (object.group.to_owned(), object.kind.to_owned());
        for condition in &object.conditions {
            let before = before.and_then(|before| before.conditions.iter().find(|it| it.of_type == condition.of_type));
            if before.is_some_and(|before| before.status == condition.status) {
                continue;
            }
            let (of_type, status) = (condition.of_type.clone(), condition.status.clone());
            let reason = condition.reason.clone();
            let of = Reached { group: group.clone(), kind: kind.clone(), of_type: of_type.clone(), status, reason };
            self.reached.get_or_create(&of).inc();
            if let Some(before) = before
                && let (Some(since), Some(until)) = (before.since, condition.since)
            {
                let of = Left { group: group.clone(), kind: kind.clone(), of_type, status: before.status.clone() };
                self.left.get_or_create(&of).observe(until.duration_since(since).as_secs_f64().max(0.0));
            }
        }
    }

    /// Writes down what was counted.
    pub(super) fn show(&self, page: &mut Exposition<'_>) {
        self.left.family.show(page);
        self.reached.family.show(page);
        self.terminations.family.show(page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn claim(status: &str, since: i64, deleted: Option<i64>) -> ShownObject {
        let (of_type, status, reason) = ("Launched".to_owned(), status.to_owned(), "LaunchPending".to_owned());
        let condition = ShownCondition { of_type, status, reason, since: Some(at(since)) };
        let (group, kind, name) = ("karpenter.sh", "NodeClaim", "a".to_owned());
        ShownObject { group, kind, name, conditions: vec![condition], deleted: deleted.map(at) }
    }

    #[test]
    fn a_condition_that_changes_is_counted_with_how_long_it_was_what_it_was() {
        let book = ConditionBook::default();
        for object in [claim("Unknown", 10, None), claim("Unknown", 10, None), claim("True", 25, None)] {
            book.look(vec![object], at(30));
        }
        book.look(vec![claim("True", 25, Some(40))], at(40));
        book.look(vec![], at(52));
        let mut page = Exposition::without(|_| false);
        book.show(&mut page);
        let text = page.text();
        let of = "group=\"karpenter.sh\",kind=\"NodeClaim\"";
        for line in [
            format!(
                "operator_status_condition_transitions_total{{{of},type=\"Launched\",status=\"Unknown\",reason=\"LaunchPending\"}} 1"
            ),
            format!(
                "operator_status_condition_transitions_total{{{of},type=\"Launched\",status=\"True\",reason=\"LaunchPending\"}} 1"
            ),
            format!("operator_status_condition_transition_seconds_sum{{{of},type=\"Launched\",status=\"Unknown\"}} 15"),
            format!("operator_termination_duration_seconds_sum{{{of}}} 12"),
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
        }
        assert!(book.last.lock().unwrap().is_empty());
    }
}
