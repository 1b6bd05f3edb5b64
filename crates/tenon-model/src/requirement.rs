//! A demand on one label: a set of allowed values, or all but a set, within bounds.
//!
//! How demands are written and read is in `written_requirement.rs`, several labels at once in `requirements.rs`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// How a demand is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

impl Operator {
    /// All of them.
    pub const ALL: [Operator; 8] = [
        Operator::In,
        Operator::NotIn,
        Operator::Exists,
        Operator::DoesNotExist,
        Operator::Gt,
        Operator::Lt,
        Operator::Gte,
        Operator::Lte,
    ];

    /// How it is spelled.
    pub fn as_str(self) -> &'static str {
        match self {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
            Operator::Gt => "Gt",
            Operator::Lt => "Lt",
            Operator::Gte => "Gte",
            Operator::Lte => "Lte",
        }
    }

    /// Whether it compares numbers.
    pub fn is_bound(self) -> bool {
        matches!(self, Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no [`Operator`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an operator: use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte")]
pub struct OperatorError(pub String);

impl FromStr for Operator {
    type Err = OperatorError;

    fn from_str(text: &str) -> Result<Operator, OperatorError> {
        Operator::ALL
            .into_iter()
            .find(|operator| operator.as_str() == text)
            .ok_or_else(|| OperatorError(text.to_owned()))
    }
}

/// The values of a label that are allowed.
///
/// Invariant: bounds are set only together with `complement`; a concrete set holds just the values within them. `present`
/// is set only where what is left would allow the label to be absent, and one of several demands of a pod does not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    complement: bool,
    values: BTreeSet<String>,
    gte: Option<i64>,
    lte: Option<i64>,
    min_values: Option<u32>,
    present: bool,
}

impl Requirement {
    /// A demand from how it is written. `None` if a bound is not exactly one whole number that is not negative; then it
    /// is no demand, and whoever wrote it is told by `validation.rs`.
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
        Requirement {
            complement: true,
            values: BTreeSet::new(),
            gte: None,
            lte: None,
            min_values: None,
            present: false,
        }
    }

    /// Absent.
    pub fn absent() -> Requirement {
        Requirement::concrete(BTreeSet::new())
    }

    fn concrete(values: BTreeSet<String>) -> Requirement {
        Requirement { complement: false, values, gte: None, lte: None, min_values: None, present: false }
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
        self.values.contains(value) != self.complement && Bounds::of(self).hold(value)
    }

    /// Whether a node without the label is allowed.
    pub fn permits_absence(&self) -> bool {
        matches!(self.operator(), Operator::NotIn | Operator::DoesNotExist) && !self.present
    }

    /// Whether the label has to be there and no value is left for it.
    pub fn is_impossible(&self) -> bool {
        self.present && self.operator() == Operator::DoesNotExist
    }

    /// How many values are allowed; an open set counts from the largest number down.
    pub fn size(&self) -> u64 {
        let named = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        if self.complement { (i64::MAX as u64).saturating_sub(named) } else { named }
    }

    /// One value that is allowed, always the same: what a node gets as its label where nobody says more. Nothing if no
    /// value is, or only numbers below zero, which no label can have.
    pub fn any(&self) -> Option<String> {
        if !self.complement {
            return self.values.first().cloned();
        }
        let (from, to) = (self.gte.unwrap_or(0), self.lte.unwrap_or(i64::MAX));
        (from..=to).map(|number| number.to_string()).find(|number| !self.values.contains(number))
    }

    /// What two demands of one pod allow together: what both allow, and absent only if both allow that.
    ///
    /// Karpenter reads `Exists` with `NotIn` as `NotIn`, and `In` with another `In` as `DoesNotExist`, and puts the pod on
    /// a node without the label, where it cannot run.
    #[must_use]
    pub fn joined(&self, other: &Requirement) -> Requirement {
        let both = self.and(other);
        let present = both.permits_absence() && !(self.permits_absence() && other.permits_absence());
        Requirement { present: both.present || present, ..both }
    }

    /// What both allow.
    #[must_use]
    pub fn and(&self, other: &Requirement) -> Requirement {
        let bounds = Bounds::of(self).and(Bounds::of(other));
        let min_values = self.min_values.max(other.min_values);
        let present = self.present || other.present;
        if bounds.are_empty() {
            return Requirement { min_values, present, ..Requirement::absent() };
        }
        let kept = |values: &mut dyn Iterator<Item = &String>| -> BTreeSet<String> {
            values.filter(|value| bounds.hold(value)).cloned().collect()
        };
        let values = match (self.complement, other.complement) {
            (true, true) => kept(&mut self.values.union(&other.values)),
            (true, false) => kept(&mut other.values.difference(&self.values)),
            (false, true) => kept(&mut self.values.difference(&other.values)),
            (false, false) => kept(&mut self.values.intersection(&other.values)),
        };
        if self.complement && other.complement {
            let Bounds { gte, lte } = bounds;
            let present = present && !values.is_empty();
            return Requirement { complement: true, values, gte, lte, min_values, present };
        }
        Requirement { min_values, present: present && values.is_empty(), ..Requirement::concrete(values) }
    }

    /// Whether some value is allowed by both. Two open sets always share one, unless their bounds exclude each other.
    ///
    /// The same as asking whether [`Requirement::and`] leaves something, without making it.
    pub fn intersects(&self, other: &Requirement) -> bool {
        let bounds = Bounds::of(self).and(Bounds::of(other));
        if bounds.are_empty() {
            return false;
        }
        let shares = |few: &Requirement, many: &Requirement| {
            few.values.iter().any(|value| many.values.contains(value) != many.complement && bounds.hold(value))
        };
        match (self.complement, other.complement) {
            (true, true) => true,
            (true, false) => shares(other, self),
            (false, true) => shares(self, other),
            (false, false) if self.values.len() <= other.values.len() => shares(self, other),
            (false, false) => shares(other, self),
        }
    }
}

/// The least and the largest number allowed.
#[derive(Clone, Copy)]
struct Bounds {
    gte: Option<i64>,
    lte: Option<i64>,
}

impl Bounds {
    fn of(requirement: &Requirement) -> Bounds {
        Bounds { gte: requirement.gte, lte: requirement.lte }
    }

    fn and(self, other: Bounds) -> Bounds {
        let lte = [self.lte, other.lte].into_iter().flatten().min();
        Bounds { gte: self.gte.max(other.gte), lte }
    }

    fn are_empty(self) -> bool {
        matches!((self.gte, self.lte), (Some(least), Some(most)) if least > most)
    }

    /// Whether a value is within; with any bound at all, only numbers are.
    fn hold(self, value: &str) -> bool {
        if self.gte.is_none() && self.lte.is_none() {
            return true;
        }
        let Ok(number) = value.parse::<i64>() else { return false };
        self.gte.is_none_or(|least| least <= number) && self.lte.is_none_or(|most| number <= most)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        match self.operator() {
            Operator::In => write!(f, "In [{}]", values.join(", "))?,
            Operator::NotIn if self.present => write!(f, "Exists NotIn [{}]", values.join(", "))?,
            Operator::NotIn => write!(f, "NotIn [{}]", values.join(", "))?,
            Operator::DoesNotExist if self.present => f.write_str("In []")?,
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
