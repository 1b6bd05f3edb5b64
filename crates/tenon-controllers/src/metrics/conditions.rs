//! What becomes of conditions and of objects that are being deleted? Two looks at the stores are compared; what comes and
//! goes between two looks is missed, as in the reference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use super::catalogue::by_kind::{ByKind, KINDS};
use super::catalogue::karpenter;
use super::exposition::Exposition;
use super::families::{Family, Series};

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
    Left { group: "group", kind: "kind", of_type: "type", status: "status", to_status: "to_status" }
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
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShownObject {
    pub(crate) group: &'static str,
    /// The metrics of its kind.
    pub(crate) by_kind: &'static ByKind,
    pub(crate) name: String,
    /// The values of its labels that its kind shows.
    pub(crate) labels: Vec<String>,
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
    /// The same by kind, in the order of the table.
    by_kind: Vec<KindBook>,
    last: Mutex<BTreeMap<(&'static str, String), ShownObject>>,
}

impl Default for ConditionBook {
    fn default() -> ConditionBook {
        ConditionBook {
            left: Series::new(&karpenter::CONDITION_TRANSITION),
            reached: Series::new(&karpenter::CONDITION_TRANSITIONS),
            terminations: Series::new(&karpenter::TERMINATION_DURATION),
            by_kind: KINDS.iter().map(|kind| KindBook::of(kind)).collect(),
            last: Mutex::default(),
        }
    }
}

/// What was counted of a kind.
#[derive(Debug)]
struct KindBook {
    kind: &'static ByKind,
    left: Family,
    reached: Family,
    terminations: Family,
}

impl KindBook {
    fn of(kind: &'static ByKind) -> KindBook {
        let (left, reached) = (Family::of(&kind.transition), Family::of(&kind.transitions));
        KindBook { kind, left, reached, terminations: Family::of(&kind.termination) }
    }

    fn families(&self) -> [&Family; 3] {
        [&self.left, &self.reached, &self.terminations]
    }
}

impl ConditionBook {
    /// Compares all objects with the last look.
    pub(crate) fn look(&self, objects: Vec<ShownObject>, now: Timestamp) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gone = std::mem::take(&mut *last);
        for object in objects {
            let key = (object.by_kind.kind, object.name.clone());
            self.compare(gone.remove(&key).as_ref(), &object);
            last.insert(key, object);
        }
        for object in gone.into_values() {
            if let Some(deleted) = object.deleted {
                let took = now.duration_since(deleted).as_secs_f64().max(0.0);
                let of = OfKind { group: object.group.to_owned(), kind: object.by_kind.kind.to_owned() };
                self.terminations.get_or_create(&of).observe(took);
                self.books_of(&object).for_each(|book| book.terminations.observe(object.labels.clone(), took));
            }
        }
    }

    fn compare(&self, before: Option<&ShownObject>, object: &ShownObject) {
        for condition in &object.conditions {
            let before = before.and_then(|before| before.conditions.iter().find(|it| it.of_type == condition.of_type));
            if before.is_some_and(|before| before.status == condition.status) {
                continue;
            }
            self.count_reached(object, condition);
            if let Some(before) = before
                && let (Some(since), Some(until)) = (before.since, condition.since)
            {
                let took = until.duration_since(since).as_secs_f64().max(0.0);
                self.count_left(object, (&before.status, condition), took);
            }
        }
    }

    fn count_reached(&self, object: &ShownObject, condition: &ShownCondition) {
        let ShownCondition { of_type, status, reason, .. } = condition.clone();
        let values = [&[of_type.clone(), status.clone(), reason.clone()], object.labels.as_slice()].concat();
        self.books_of(object).for_each(|book| book.reached.inc(values.clone()));
        let (group, kind) = (object.group.to_owned(), object.by_kind.kind.to_owned());
        self.reached.get_or_create(&Reached { group, kind, of_type, status, reason }).inc();
    }

    fn count_left(&self, object: &ShownObject, (before, now): (&str, &ShownCondition), took: f64) {
        let (of_type, status, to_status) = (now.of_type.clone(), before.to_owned(), now.status.clone());
        let values = [&[of_type.clone(), status.clone(), to_status.clone()], object.labels.as_slice()].concat();
        self.books_of(object).for_each(|book| book.left.observe(values.clone(), took));
        let (group, kind) = (object.group.to_owned(), object.by_kind.kind.to_owned());
        self.left.get_or_create(&Left { group, kind, of_type, status, to_status }).observe(took);
    }

    fn books_of(&self, object: &ShownObject) -> impl Iterator<Item = &KindBook> {
        self.by_kind.iter().filter(|book| book.kind.kind == object.by_kind.kind)
    }

    /// Adds every value of a label.
    pub(super) fn values_of(&self, label: &str, values: &mut BTreeSet<String>) {
        self.by_kind.iter().flat_map(KindBook::families).for_each(|family| family.values_of(label, values));
    }

    /// Forgets the samples whose label has such a value.
    pub(super) fn forget(&self, label: &str, is_gone: &dyn Fn(&str) -> bool) {
        self.by_kind.iter().flat_map(KindBook::families).for_each(|family| family.forget(label, is_gone));
    }

    /// Writes down what was counted.
    pub(super) fn show(&self, page: &mut Exposition<'_>) {
        self.left.family.show(page);
        self.reached.family.show(page);
        self.terminations.family.show(page);
        self.by_kind.iter().flat_map(KindBook::families).for_each(|family| family.show(page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalogue::by_kind::NODECLAIM;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn claim(status: &str, since: i64, deleted: Option<i64>) -> ShownObject {
        let (of_type, status, reason) = ("Launched".to_owned(), status.to_owned(), "LaunchPending".to_owned());
        let condition = ShownCondition { of_type, status, reason, since: Some(at(since)) };
        let (group, labels) = ("karpenter.sh", vec!["small".to_owned(), "default".to_owned()]);
        let (by_kind, name, deleted) = (&NODECLAIM, "a".to_owned(), deleted.map(at));
        ShownObject { group, by_kind, name, labels, conditions: vec![condition], deleted }
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
        let with = "karpenter_proxmox_sinextra_dev_proxmoxnodeclass=\"small\",karpenter_sh_nodepool=\"default\"";
        let left = "type=\"Launched\",status=\"Unknown\",to_status=\"True\"";
        for line in [
            format!(
                "operator_status_condition_transitions_total{{{of},type=\"Launched\",status=\"Unknown\",reason=\"LaunchPending\"}} 1"
            ),
            format!(
                "operator_status_condition_transitions_total{{{of},type=\"Launched\",status=\"True\",reason=\"LaunchPending\"}} 1"
            ),
            format!("operator_status_condition_transition_seconds_sum{{{of},{left}}} 15"),
            format!("operator_termination_duration_seconds_sum{{{of}}} 12"),
            format!(
                "operator_nodeclaim_status_condition_transitions_total{{type=\"Launched\",status=\"True\",reason=\"LaunchPending\",{with}}} 1"
            ),
            format!("operator_nodeclaim_status_condition_transition_seconds_sum{{{left},{with}}} 15"),
            format!("operator_nodeclaim_termination_duration_seconds_sum{{{with}}} 12"),
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
        }
        assert!(book.last.lock().unwrap().is_empty());
    }
}
