//! Does kube-scheduler bind what a plan places? Nodes are made by hand as the plan says, and the pods are let go.
//!
//! `TENON_SCENARIOS` names a folder of scenarios; `cargo xtask diff scheduler` writes one from seeds. Without it, those that are
//! recorded are tried. A scenario with a `plan.json`, of Karpenter perhaps, is tried with that plan.

mod bench;
mod left_out;
mod namespaces;
mod scenario;
mod storage;
mod world;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use testbed::{Lookup, Testbed};

use self::bench::Bench;
use self::left_out::LeftOut;
use self::scenario::{Order, Scenario};

/// So many orders are tried.
const TRIES: usize = 8;

/// A plan says where pods go; whether they can depends on who is there already. So whoever is left goes first in another try, with
/// all pods of its kind: which of them is left says nothing.
async fn bound_in_some_order(scenario: &Scenario) -> anyhow::Result<(Vec<String>, Vec<LeftOut>)> {
    let (mut first, mut last) = (BTreeSet::new(), (Vec::new(), Vec::new()));
    for turn in 0..TRIES {
        let order = if turn % 2 == 0 { Order::EmptierDomainsFirst } else { Order::OneInEachZone };
        let testbed = Testbed::start_with(&Lookup::from_env()?)?;
        last = Bench { client: testbed.admin().await? }.all(scenario, (&first, order)).await?;
        if last.0.is_empty() {
            break;
        }
        first.extend(last.0.iter().flat_map(|told| scenario.kind_of(told.split(' ').next().unwrap_or_default())));
    }
    Ok(last)
}

fn scenarios() -> anyhow::Result<Vec<PathBuf>> {
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/scenarios");
    let folder = std::env::var("TENON_SCENARIOS").unwrap_or_else(|_| recorded.to_owned());
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))?;
    let mut folders: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    folders.sort();
    anyhow::ensure!(!folders.is_empty(), "there are no scenarios in {folder}");
    Ok(folders)
}

#[tokio::test]
async fn kube_scheduler_binds_every_pod_that_a_plan_places() -> anyhow::Result<()> {
    if testbed::shared_testbed()?.is_none() {
        return Ok(());
    }
    let (mut faults, mut left_out) = (Vec::new(), Vec::new());
    for folder in scenarios()? {
        let scenario = Scenario::read(&folder)?;
        let name = folder.file_name().unwrap_or_default().display().to_string();
        let (pending, bound) = match bound_in_some_order(&scenario).await {
            // The generator also writes pods that no server would have let in.
            Err(error) if error.to_string().contains("is invalid") => {
                println!("{name}: {error}");
                continue;
            }
            outcome => outcome?,
        };
        println!("{name}: {} placed, {} of them pending", scenario.placed().len(), pending.len());
        pending.iter().for_each(|told| println!("  pending: {told}"));
        for LeftOut { rules, told } in &bound {
            println!("  bound, although the plan leaves it out ({}): {told}", left_out::named(rules));
            if rules.is_empty() {
                faults.push(format!("{name}: bound, and no rule explains why the plan leaves it out: {told}"));
            }
        }
        if !pending.is_empty() {
            faults.push(format!("{name}: pending, although the plan places it: {}", pending.join(", ")));
        }
        left_out.extend(bound);
    }
    println!("pods that are bound although a plan leaves them out: {}", left_out::summary(left_out.iter()));
    anyhow::ensure!(faults.is_empty(), "kube-scheduler and plans disagree: {}", faults.join("; "));
    Ok(())
}
