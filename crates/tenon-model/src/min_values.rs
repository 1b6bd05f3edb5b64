//! Do enough different values of a label stay possible over a list of sizes?

use std::collections::{BTreeMap, BTreeSet};

use crate::requirement::{Operator, Requirement};
use crate::requirements::Requirements;

/// What too few values were found for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", shown(.reached))]
pub struct TooFewValues {
    /// Each label that wants more, and how many values there were.
    pub reached: BTreeMap<String, u32>,
}

fn shown(reached: &BTreeMap<String, u32>) -> String {
    let possible = |(label, count): (&String, &u32)| match count {
        1 => format!("label {label} has only 1 possible value"),
        _ => format!("label {label} has only {count} possible values"),
    };
    reached.iter().map(possible).collect::<Vec<_>>().join(", ")
}

impl Requirements {
    /// How many of the types, taken in their order, are needed for every label to have as many values as is asked. Only
    /// values that are still allowed count. Nothing is needed where nothing is asked.
    pub fn min_values_satisfied_by<'a>(
        &self,
        types: impl IntoIterator<Item = &'a Requirements>,
    ) -> Result<usize, TooFewValues> {
        let mut missing: Vec<_> = self
            .iter()
            .filter_map(|(label, asked)| Some((label, asked, asked.min_values()?, BTreeSet::<&'a str>::new())))
            .collect();
        if missing.is_empty() {
            return Ok(0);
        }
        for (index, offered) in types.into_iter().enumerate() {
            for (label, asked, _, found) in &mut missing {
                let concrete = offered.get(label).filter(|offered| offered.operator() == Operator::In);
                let values = concrete.into_iter().flat_map(Requirement::values);
                found.extend(values.map(String::as_str).filter(|value| asked.has(value)));
            }
            if missing.iter().all(|(_, _, wanted, found)| count(found) >= *wanted) {
                return Ok(index + 1);
            }
        }
        let short = missing.into_iter().filter(|(_, _, wanted, found)| count(found) < *wanted);
        Err(TooFewValues { reached: short.map(|(label, _, _, found)| (label.to_owned(), count(&found))).collect() })
    }
}

fn count(found: &BTreeSet<&str>) -> u32 {
    u32::try_from(found.len()).unwrap_or(u32::MAX)
}
