//! Demands on many labels, and whether one set of demands can be met by another.

use std::collections::BTreeMap;
use std::fmt;

use crate::labels::{HOSTNAME, WELL_KNOWN, canonical_label};
use crate::requirement::Requirement;

/// Demands by label. A label without a demand may have any value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Requirements {
    by_label: BTreeMap<String, Requirement>,
}

/// The first label whose demand cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// The label is asked for, and nothing is known about it.
    #[error("label {label} does not have known values{}", next_step(.hint.as_deref()))]
    Unknown {
        /// Which label.
        label: String,
        /// A label that may have been meant.
        hint: Option<String>,
    },
    /// The label has other values.
    #[error("label {label}: required {wanted}, available {offered}")]
    Excluded {
        /// Which label.
        label: String,
        /// What is asked for.
        wanted: Box<Requirement>,
        /// What can be had.
        offered: Box<Requirement>,
    },
}

/// A label that is misspelt is corrected on the pod; any other has to be set by a NodePool.
fn next_step(hint: Option<&str>) -> String {
    match hint {
        Some(hint) => format!(" (did you mean {hint}?)"),
        None => " (add it to the labels or requirements in spec.template of a NodePool)".to_owned(),
    }
}

impl Requirements {
    /// Labels as facts: each has just its value.
    pub fn from_labels<L: AsRef<str>, V: AsRef<str>>(labels: impl IntoIterator<Item = (L, V)>) -> Requirements {
        let facts =
            labels.into_iter().map(|(label, value)| (label.as_ref().to_owned(), Requirement::is(value.as_ref())));
        facts.collect()
    }

    /// Adds a demand to what is already asked of the label. An old name of a label is its new one.
    pub fn add(&mut self, label: impl Into<String>, requirement: &Requirement) {
        let label = canonical_owned(label.into());
        match self.by_label.get_mut(&label) {
            Some(present) => *present = present.and(requirement),
            None => {
                self.by_label.insert(label, requirement.clone());
            }
        }
    }

    /// Adds every demand of another set.
    pub fn add_all(&mut self, others: &Requirements) {
        for (label, requirement) in &others.by_label {
            self.add(label.clone(), requirement);
        }
    }

    /// What both sets demand together, as [`Requirements::add_all`] leaves it. Demands on labels that both speak of may name
    /// many values, and are not copied first.
    #[must_use]
    pub fn and(&self, others: &Requirements) -> Requirements {
        let both = |(label, present): (&String, &Requirement)| {
            let joined = others.by_label.get(label).map_or_else(|| present.clone(), |other| present.and(other));
            (label.clone(), joined)
        };
        let mut by_label: BTreeMap<String, Requirement> = self.by_label.iter().map(both).collect();
        let more = others.by_label.iter().filter(|(label, _)| !self.by_label.contains_key(*label));
        by_label.extend(more.map(|(label, other)| (label.clone(), other.clone())));
        Requirements { by_label }
    }

    /// Adds every demand of another set that the same pod makes. Unlike where demands of several parties meet, a label
    /// that one of them needs is needed still when only excluded values, or none at all, are left of it.
    pub fn join(&mut self, others: &Requirements) {
        for (label, requirement) in &others.by_label {
            let joined = self.get(label).map_or_else(|| requirement.clone(), |present| present.joined(requirement));
            self.by_label.insert(label.clone(), joined);
        }
    }

    /// The first demand that no node can meet.
    fn first_impossible(&self) -> Option<(&str, &Requirement)> {
        self.iter().find(|(_, requirement)| requirement.is_impossible())
    }

    /// The demand on a label, if there is one.
    pub fn get(&self, label: &str) -> Option<&Requirement> {
        self.by_label.get(label)
    }

    /// Whether a label may have this value; where nothing is asked, it may have any.
    pub fn admit(&self, label: &str, value: &str) -> bool {
        self.get(label).is_none_or(|requirement| requirement.has(value))
    }

    /// Takes the demand on a label away.
    pub fn remove(&mut self, label: &str) -> Option<Requirement> {
        self.by_label.remove(label)
    }

    /// Puts a demand in place of what was asked of the label.
    pub fn replace(&mut self, label: impl Into<String>, requirement: Requirement) {
        self.by_label.insert(canonical_owned(label.into()), requirement);
    }

    /// All labels with their demands, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Requirement)> {
        self.by_label.iter().map(|(label, requirement)| (label.as_str(), requirement))
    }

    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.by_label.is_empty()
    }

    /// Whether some label must keep a number of values.
    pub fn have_min_values(&self) -> bool {
        self.by_label.values().any(|requirement| requirement.min_values().is_some())
    }

    /// Whether the demands of `wanted` can be met here. A label of which nothing is known here is fine if `may_be_unknown`
    /// says so (labels that somebody will still decide), or if its absence is.
    pub fn meet(&self, wanted: &Requirements, may_be_unknown: impl Fn(&str) -> bool) -> Result<(), Incompatible> {
        if let Some((label, wanted)) = wanted.first_impossible() {
            let offered = Box::new(self.get(label).cloned().unwrap_or_else(Requirement::anything));
            return Err(Incompatible::Excluded { label: label.to_owned(), wanted: Box::new(wanted.clone()), offered });
        }
        match self.first_unknown(wanted, &may_be_unknown) {
            Some(label) => {
                let hint = self.hint(label, may_be_unknown).map(str::to_owned);
                Err(Incompatible::Unknown { label: label.to_owned(), hint })
            }
            None => self.intersect(wanted),
        }
    }

    /// The same question, answered without saying why.
    pub fn can_meet(&self, wanted: &Requirements, may_be_unknown: impl Fn(&str) -> bool) -> bool {
        wanted.first_impossible().is_none()
            && self.first_unknown(wanted, &may_be_unknown).is_none()
            && self.intersects(wanted)
    }

    /// Whether labels that both speak of can have a common value, or both may be absent.
    pub fn intersect(&self, wanted: &Requirements) -> Result<(), Incompatible> {
        match self.first_excluded(wanted) {
            Some((label, wanted, offered)) => {
                let (wanted, offered) = (Box::new(wanted.clone()), Box::new(offered.clone()));
                Err(Incompatible::Excluded { label: label.to_owned(), wanted, offered })
            }
            None => Ok(()),
        }
    }

    /// The same question, answered without saying why.
    pub fn intersects(&self, wanted: &Requirements) -> bool {
        self.first_excluded(wanted).is_none()
    }

    fn first_unknown<'a>(&self, wanted: &'a Requirements, known: &impl Fn(&str) -> bool) -> Option<&'a str> {
        let unknown = |(label, requirement): &(&str, &Requirement)| {
            self.get(label).is_none() && !requirement.permits_absence() && !known(label)
        };
        wanted.iter().find(unknown).map(|(label, _)| label)
    }

    fn first_excluded<'a>(&'a self, wanted: &'a Requirements) -> Option<(&'a str, &'a Requirement, &'a Requirement)> {
        let (few, many) = if self.by_label.len() < wanted.by_label.len() { (self, wanted) } else { (wanted, self) };
        let labels = few.by_label.keys().filter(|label| many.by_label.contains_key(*label));
        let pairs = labels.filter_map(|label| Some((label.as_str(), wanted.get(label)?, self.get(label)?)));
        pairs.into_iter().find(|(_, wanted, offered)| {
            let both_absent = offered.permits_absence() && wanted.permits_absence();
            !both_absent && !offered.intersects(wanted)
        })
    }

    /// A label that may have been meant: one that contains the other's name, or ends like it.
    fn hint(&self, label: &str, may_be_unknown: impl Fn(&str) -> bool) -> Option<&str> {
        let name = label.split_once('/').map_or(label, |(_, name)| name);
        let is_alike = |known: &&str| !name.is_empty() && (known.contains(label) || known.ends_with(name));
        let decided_later = WELL_KNOWN.into_iter().filter(|known| may_be_unknown(known)).find(is_alike);
        decided_later.or_else(|| self.by_label.keys().map(String::as_str).find(is_alike))
    }
}

impl fmt::Display for Requirements {
    /// Sorted; without the host name, which says nothing about why a node does not fit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.iter().filter(|(label, _)| *label != HOSTNAME);
        for (index, (label, requirement)) in shown.enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{label} {requirement}")?;
        }
        Ok(())
    }
}

/// Spares the copy of a label that has its name already.
fn canonical_owned(label: String) -> String {
    match canonical_label(&label) {
        // Some old names are as long as the new ones.
        same if same == label => label,
        new => new.to_owned(),
    }
}

impl FromIterator<(String, Requirement)> for Requirements {
    fn from_iter<I: IntoIterator<Item = (String, Requirement)>>(demands: I) -> Requirements {
        let mut requirements = Requirements::default();
        for (label, requirement) in demands {
            requirements.add(label, &requirement);
        }
        requirements
    }
}
