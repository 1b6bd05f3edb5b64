//! Demands on labels as people write them, and back: key, operator, values.

use std::fmt;

use crate::requirement::{Operator, Requirement};
use crate::requirements::Requirements;

/// One entry of a list of requirements.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WrittenRequirement {
    /// The label.
    pub label: String,
    /// How its value is compared.
    pub operator: Operator,
    /// What it is compared with.
    pub values: Vec<String>,
    /// How many values must stay possible.
    pub min_values: Option<u32>,
}

/// A demand that says nothing: a bound without exactly one number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("requirement on label {label}: operator {operator} needs exactly one value, a non-negative integer")]
pub struct RequirementError {
    /// The label.
    pub label: String,
    /// The operator.
    pub operator: Operator,
}

impl WrittenRequirement {
    /// What it asks for.
    pub fn requirement(&self) -> Result<Requirement, RequirementError> {
        let refused = || RequirementError { label: self.label.clone(), operator: self.operator };
        let asked = Requirement::new(self.operator, self.values.iter().cloned()).ok_or_else(refused)?;
        // Above the largest number there is nothing, so there is nothing to count either.
        let is_beyond = self.operator == Operator::Gt && asked.operator() == Operator::DoesNotExist;
        Ok(asked.with_min_values(self.min_values.filter(|_| !is_beyond)))
    }
}

impl Requirement {
    /// The demand as it is written in a list: bounds first, each as its own entry, and what they exclude besides.
    ///
    /// Karpenter loses excluded values where there are bounds; one more entry keeps them.
    pub fn written(&self, label: &str) -> Vec<WrittenRequirement> {
        let (min_values, (gte, lte)) = (self.min_values(), self.bounds());
        let demand = |operator, values| WrittenRequirement { label: label.to_owned(), operator, values, min_values };
        let least = gte.map(|least| demand(Operator::Gte, vec![least.to_string()]));
        let most = lte.map(|most| match most {
            // No schema takes a number below zero, so the bound is moved by one.
            -1 => demand(Operator::Lt, vec!["0".to_owned()]),
            most => demand(Operator::Lte, vec![most.to_string()]),
        });
        let mut demands: Vec<WrittenRequirement> = least.into_iter().chain(most).collect();
        if demands.is_empty() || !self.values().is_empty() {
            demands.push(demand(self.operator(), self.values().iter().cloned().collect()));
        }
        if demands.iter().all(|demand| demand.operator == Operator::NotIn) && !self.permits_absence() {
            demands.push(demand(Operator::Exists, Vec::new()));
        }
        demands
    }
}

impl Requirements {
    /// What a list of demands asks for together.
    pub fn read<'a>(
        demands: impl IntoIterator<Item = &'a WrittenRequirement>,
    ) -> Result<Requirements, RequirementError> {
        let mut requirements = Requirements::default();
        for demand in demands {
            requirements.add(demand.label.as_str(), &demand.requirement()?);
        }
        Ok(requirements)
    }

    /// The list of demands, sorted by label.
    pub fn written(&self) -> Vec<WrittenRequirement> {
        self.iter().flat_map(|(label, requirement)| requirement.written(label)).collect()
    }
}

impl fmt::Display for WrittenRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.label, self.operator)?;
        if self.values.is_empty() { Ok(()) } else { write!(f, " [{}]", self.values.join(", ")) }
    }
}
