//! Do our definitions accept, refuse, default and prune what they should, on both servers?

mod defaults;
mod people;
mod rows_of_conditions;
mod rows_of_core;
mod rows_of_proxmox;
mod samples;
mod trial;
mod walk;

use std::collections::BTreeSet;

use anyhow::ensure;

use crate::ground::Ground;
use samples::Kinds;
use walk::{Constraint, constraints};

/// A table row: constraints at some places, values that keep them, values that break them.
pub(crate) struct Row {
    /// Places such as `NodePool spec.weight`, separated by commas.
    pub(crate) places: &'static str,
    pub(crate) constraint: &'static str,
    pub(crate) good: Vec<serde_json::Value>,
    pub(crate) bad: Vec<serde_json::Value>,
}

impl Row {
    fn covers(&self, found: &Constraint) -> bool {
        found.name == self.constraint && self.places.split(", ").any(|place| place == found.place())
    }
}

/// Rows are written with JSON lists.
fn row(constraint: &'static str, places: &'static str, good: serde_json::Value, bad: serde_json::Value) -> Row {
    let list = |value: serde_json::Value| match value {
        serde_json::Value::Array(items) => items,
        other => vec![other],
    };
    Row { places, constraint, good: list(good), bad: list(bad) }
}

fn rows() -> Vec<Row> {
    [rows_of_core::rows(), rows_of_proxmox::rows(), rows_of_conditions::rows()].into_iter().flatten().collect()
}

#[test]
fn every_constraint_of_every_definition_has_cases() -> anyhow::Result<()> {
    let (found, rows) = (constraints()?, rows());
    let uncovered = found.iter().filter(|found| !rows.iter().any(|row| row.covers(found)));
    let uncovered: Vec<String> = uncovered.map(|found| format!("{} {}", found.place(), found.name)).collect();
    ensure!(uncovered.is_empty(), "constraints without a case:\n{}", uncovered.join("\n"));
    let known: BTreeSet<(String, &str)> = found.iter().map(|found| (found.place(), found.name.as_str())).collect();
    let stale: Vec<String> = rows
        .iter()
        .flat_map(|row| row.places.split(", ").map(move |place| (place.to_owned(), row.constraint)))
        .filter(|key| !known.contains(key))
        .map(|(place, name)| format!("{place} {name}"))
        .collect();
    ensure!(stale.is_empty(), "cases without a constraint:\n{}", stale.join("\n"));
    let idle: Vec<&str> =
        rows.iter().filter(|row| row.good.is_empty() || row.bad.is_empty()).map(|row| row.places).collect();
    ensure!(idle.is_empty(), "rows that accept or refuse nothing: {idle:?}");
    Ok(())
}

/// Tries every row on one server.
async fn every_case_holds(ground: &Ground) -> anyhow::Result<()> {
    ground.define().await?;
    let kinds = Kinds::read()?;
    let (found, rows) = (constraints()?, rows());
    let mut trial = trial::Trial::new(ground, &kinds);
    for constraint in &found {
        for row in rows.iter().filter(|row| row.covers(constraint)) {
            trial.run(constraint, row).await?;
        }
    }
    let wrong = trial.wrong.join("\n");
    ensure!(
        trial.wrong.is_empty(),
        "{}: {} of {} cases went wrong:\n{wrong}",
        ground.server(),
        trial.wrong.len(),
        trial.tried
    );
    // A walk that finds nothing would prove nothing.
    ensure!(found.len() > 300 && trial.tried > 1000, "only {} constraints, {} cases", found.len(), trial.tried);
    Ok(())
}

/// Both servers are held to the same expectations.
macro_rules! on_both_servers {
    ($($name:ident: $behaviour:path),* $(,)?) => {
        mod embedded {
            $(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                let ground = crate::ground::Ground::embedded(stringify!($name)).await?;
                ($behaviour)(&ground).await
            })*
        }

        mod real {
            $(#[tokio::test]
            async fn $name() -> anyhow::Result<()> {
                match crate::ground::Ground::real(stringify!($name)).await? {
                    Some(ground) => ($behaviour)(&ground).await,
                    None => Ok(()),
                }
            })*
        }
    };
}

on_both_servers! {
    what_keeps_a_constraint_is_accepted_and_what_breaks_it_is_refused: super::every_case_holds,
    what_is_left_out_is_filled_in_as_the_reference_does: super::defaults::what_is_left_out_is_filled_in,
    what_nobody_knows_is_dropped: super::defaults::what_nobody_knows_is_dropped,
    a_null_is_as_if_nothing_were_said: super::defaults::a_null_is_as_if_nothing_were_said,
    the_proxmox_kinds_need_no_spec: super::defaults::the_proxmox_kinds_need_no_spec,
    what_looks_wrong_and_is_not_checked_passes: super::defaults::what_is_not_checked_passes,
    a_rule_that_cannot_be_evaluated_refuses: super::defaults::a_rule_that_cannot_be_evaluated_refuses,
    a_claim_is_compared_as_it_is_stored: super::defaults::a_claim_is_compared_as_it_is_stored,
    a_pool_has_a_scale_only_with_replicas: super::defaults::a_pool_has_a_scale_only_with_replicas,
    conditions_of_the_proxmox_kinds_are_one_list: super::defaults::conditions_of_the_proxmox_kinds_are_one_list,
    examples_are_stored_as_written: super::people::examples_are_stored_as_written,
    the_additions_are_optional_and_get_no_default: super::defaults::the_additions_are_optional,
}
