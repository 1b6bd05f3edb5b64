//! A demand on one label: a set of allowed values, or all but a set, within bounds.

use std::collections::BTreeSet;
use std::fmt;

/// How a demand is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values; absent is fine.
    NotIn,
    /// There, with any value.
    Exists,
    /// Absent.
    DoesNotExist,
    /// A number above the value.
    Gt,
    /// A number below the value.
    Lt,
    /// The value or above.
    Gte,
    /// The value or below.
    Lte,
}

/// The values of a label that are allowed.
///
/// Invariant: bounds are set only together with `complement`; a concrete set holds just the values within them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    complement: bool,
    values: BTreeSet<String>,
    gte: Option<i64>,
    lte: Option<i64>,
    min_values: Option<u32>,
}

impl Requirement {
    /// A demand from how it is written. `None` if a bound is not exactly one whole number that is not negative.
    pub fn new(operator: Operator, values: impl IntoIterator<Item = String>) -> Option<Requirement> {
        let values: BTreeSet<String> = values.into_iter().collect();
        let bound = || {
            let number = values.first().filter(|_| values.len() == 1)?.parse::<i64>().ok()?;
            (number >= 0).then_some(number)
        };
        Some(match operator {
            Operator::In => Requirement::concrete(values),
            Operator::NotIn => Requirement { values, ..Requirement::anything() },
            Operator::Exists => Requirement::anything(),
            Operator::DoesNotExist => Requirement::absent(),
            // Nothing is above the largest number.
            Operator::Gt => bound()?.checked_add(1).map_or_else(Requirement::absent, Requirement::at_least),
            Operator::Lt => Requirement { lte: Some(bound()? - 1), ..Requirement::anything() },
            Operator::Gte => Requirement::at_least(bound()?),
            Operator::Lte => Requirement { lte: Some(bound()?), ..Requirement::anything() },
        })
    }

    /// Exactly this value.
    pub fn is(value: impl Into<String>) -> Requirement {
        Requirement::concrete(BTreeSet::from([value.into()]))
    }

    /// There, with any value.
    pub fn anything() -> Requirement {
        Requirement { complement: true, values: BTreeSet::new(), gte: None, lte: None, min_values: None }
    }

    /// Absent.
    pub fn absent() -> Requirement {
        Requirement::concrete(BTreeSet::new())
    }

    fn concrete(values: BTreeSet<String>) -> Requirement {
        Requirement { complement: false, values, gte: None, lte: None, min_values: None }
    }

    fn at_least(number: i64) -> Requirement {
        Requirement { gte: Some(number), ..Requirement::anything() }
    }

    /// The same, asking that this many values stay possible.
    #[must_use]
    pub fn with_min_values(self, min_values: Option<u32>) -> Requirement {
        Requirement { min_values, ..self }
    }

    /// How many values must stay possible.
    pub fn min_values(&self) -> Option<u32> {
        self.min_values
    }

    /// How it would be written; a demand with bounds reads as `Exists`.
    pub fn operator(&self) -> Operator {
        match (self.complement, self.values.is_empty()) {
            (true, false) => Operator::NotIn,
            (true, true) => Operator::Exists,
            (false, false) => Operator::In,
            (false, true) => Operator::DoesNotExist,
        }
    }

    /// The values it names: allowed ones, or for `NotIn` the others.
    pub fn values(&self) -> &BTreeSet<String> {
        &self.values
    }

    /// The least and the largest number allowed.
    pub fn bounds(&self) -> (Option<i64>, Option<i64>) {
        (self.gte, self.lte)
    }

    /// Whether a label with this value is allowed.
    pub fn has(&self, value: &str) -> bool {
        self.values.contains(value) != self.complement && self.is_within(value)
    }

    /// Whether a node without the label is allowed.
    pub fn permits_absence(&self) -> bool {
        matches!(self.operator(), Operator::NotIn | Operator::DoesNotExist)
    }

    fn is_within(&self, value: &str) -> bool {
        if self.gte.is_none() && self.lte.is_none() {
            return true;
        }
        let Ok(number) = value.parse::<i64>() else { return false };
        self.gte.is_none_or(|least| least <= number) && self.lte.is_none_or(|most| number <= most)
    }

    /// What both allow.
    #[must_use]
    pub fn and(&self, other: &Requirement) -> Requirement {
        let gte = self.gte.max(other.gte);
        let lte = [self.lte, other.lte].into_iter().flatten().min();
        let min_values = self.min_values.max(other.min_values);
        if let (Some(least), Some(most)) = (gte, lte)
            && least > most
        {
            return Requirement::absent().with_min_values(min_values);
        }
        let complement = self.complement && other.complement;
        let values: BTreeSet<String> = match (self.complement, other.complement) {
            (true, true) => self.values.union(&other.values).cloned().collect(),
            (true, false) => other.values.difference(&self.values).cloned().collect(),
            (false, true) => self.values.difference(&other.values).cloned().collect(),
            (false, false) => self.values.intersection(&other.values).cloned().collect(),
        };
        let bounded = Requirement { complement, values, gte, lte, min_values };
        let values = bounded.values.iter().filter(|value| bounded.is_within(value)).cloned().collect();
        let (gte, lte) = if complement { (gte, lte) } else { (None, None) };
        Requirement { complement, values, gte, lte, min_values }
    }

    /// Whether some value is allowed by both. Two open sets always share one, unless their bounds exclude each other.
    pub fn intersects(&self, other: &Requirement) -> bool {
        let both = self.and(other);
        both.complement || !both.values.is_empty()
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        match self.operator() {
            Operator::In => write!(f, "In [{}]", values.join(", "))?,
            Operator::NotIn => write!(f, "NotIn [{}]", values.join(", "))?,
            Operator::DoesNotExist => f.write_str("DoesNotExist")?,
            _ => f.write_str("Exists")?,
        }
        if let Some(least) = self.gte {
            write!(f, " >= {least}")?;
        }
        if let Some(most) = self.lte {
            write!(f, " <= {most}")?;
        }
        Ok(())
    }
}
