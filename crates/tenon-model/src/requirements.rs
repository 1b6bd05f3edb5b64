//! Demands on many labels, and whether one set of demands can be met by another.

use std::collections::BTreeMap;

use crate::requirement::Requirement;

/// Demands by label. A label without a demand may have any value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirements {
    by_label: BTreeMap<String, Requirement>,
}

/// The first label whose demand cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// The label is asked for, and nothing is known about it.
    #[error("label {label} does not have known values")]
    Unknown {
        /// Which label.
        label: String,
    },
    /// The label has other values.
    #[error("label {label} wants {wanted}, but there is {offered}")]
    Excluded {
        /// Which label.
        label: String,
        /// What is asked for.
        wanted: Box<Requirement>,
        /// What can be had.
        offered: Box<Requirement>,
    },
}

impl Requirements {
    /// Labels as facts: each has just its value.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> Requirements {
        labels.into_iter().map(|(label, value)| (label.clone(), Requirement::is(value))).collect()
    }

    /// Adds a demand to what is already asked of the label.
    pub fn add(&mut self, label: impl Into<String>, requirement: &Requirement) {
        let label = label.into();
        let both = self.by_label.get(&label).map_or_else(|| requirement.clone(), |present| present.and(requirement));
        self.by_label.insert(label, both);
    }

    /// Adds every demand of another set.
    pub fn add_all(&mut self, others: &Requirements) {
        for (label, requirement) in &others.by_label {
            self.add(label.clone(), requirement);
        }
    }

    /// The demand on a label, if there is one.
    pub fn get(&self, label: &str) -> Option<&Requirement> {
        self.by_label.get(label)
    }

    /// All labels with their demands, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Requirement)> {
        self.by_label.iter().map(|(label, requirement)| (label.as_str(), requirement))
    }

    /// Whether the demands of `wanted` can be met here. A label of which nothing is known here is fine if `may_be_unknown`
    /// says so (labels that somebody will still decide), or if its absence is.
    pub fn meet(&self, wanted: &Requirements, may_be_unknown: impl Fn(&str) -> bool) -> Result<(), Incompatible> {
        let unknown = wanted.iter().find(|(label, requirement)| {
            !may_be_unknown(label) && self.get(label).is_none() && !requirement.permits_absence()
        });
        match unknown {
            Some((label, _)) => Err(Incompatible::Unknown { label: label.to_owned() }),
            None => self.intersect(wanted),
        }
    }

    /// Whether labels that both speak of can have a common value, or both may be absent.
    pub fn intersect(&self, wanted: &Requirements) -> Result<(), Incompatible> {
        for (label, requirement) in wanted.iter() {
            let Some(offered) = self.get(label) else { continue };
            let both_absent = offered.permits_absence() && requirement.permits_absence();
            if !both_absent && !offered.intersects(requirement) {
                let (wanted, offered) = (Box::new(requirement.clone()), Box::new(offered.clone()));
                return Err(Incompatible::Excluded { label: label.to_owned(), wanted, offered });
            }
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Operator;

    fn set(demands: &[(&str, Operator, &[&str])]) -> Requirements {
        let demand = |(label, operator, values): &(&str, Operator, &[&str])| {
            let values = values.iter().map(ToString::to_string);
            ((*label).to_owned(), Requirement::new(*operator, values).unwrap())
        };
        demands.iter().map(demand).collect()
    }

    #[test]
    fn what_is_unknown_is_fine_only_where_somebody_decides_it_later() {
        let offered = set(&[("zone", Operator::In, &["a", "b"])]);
        let wanted = set(&[("team", Operator::In, &["red"])]);
        assert_eq!(offered.meet(&wanted, |_| false), Err(Incompatible::Unknown { label: "team".to_owned() }));
        assert_eq!(offered.meet(&wanted, |label| label == "team"), Ok(()));
        assert_eq!(offered.meet(&set(&[("team", Operator::NotIn, &["red"])]), |_| false), Ok(()));
        assert_eq!(offered.meet(&set(&[("team", Operator::DoesNotExist, &[])]), |_| false), Ok(()));
    }

    #[test]
    fn demands_on_one_label_are_joined() {
        let both = set(&[("zone", Operator::In, &["a", "b"]), ("zone", Operator::NotIn, &["a"])]);
        assert_eq!(both.get("zone"), Some(&Requirement::is("b")));
        let error = both.meet(&set(&[("zone", Operator::In, &["a"])]), |_| false).unwrap_err();
        assert_eq!(error.to_string(), "label zone wants In [a], but there is In [b]");
    }

    #[test]
    fn two_that_may_be_absent_agree_on_absence() {
        let offered = set(&[("gpu", Operator::DoesNotExist, &[])]);
        assert_eq!(offered.meet(&set(&[("gpu", Operator::NotIn, &["x"])]), |_| false), Ok(()));
        assert!(offered.meet(&set(&[("gpu", Operator::Exists, &[])]), |_| false).is_err());
    }
}
