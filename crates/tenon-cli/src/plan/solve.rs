//! The plan for what was read, and what it says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use tenon_api::planning::Surroundings;
use tenon_api::{NodeClaim, NodePool, names, pool_not_ready};
use tenon_engine::{Indexes, Prepared, check};
use tenon_model::{Catalog, NewNode, Overrides, Placement, Plan, Reason, Resources, Seconds, Snapshot, Unplaced};

use super::Input;
use super::report::{Demand, ExistingNode, NewClaim, Offering, Report, Stats, Waiting};

/// Plans, and reads the plan again: one that breaks its own rules is not shown.
pub fn solve(input: &Input) -> anyhow::Result<Report> {
    let begun = Instant::now();
    let now = Seconds(jiff::Timestamp::now().as_second());
    let snapshot = input.supply.to_snapshot(&input.objects, &input.options, now);
    let mut indexes = Indexes::default();
    let prepared = Prepared::new(&snapshot, &mut indexes);
    let built = Instant::now();
    let plan = prepared.solve();
    let solved = built.elapsed();
    hold(&snapshot, &plan)?;
    let report = Report {
        new_node_claims: plan.new_nodes.iter().map(claim).collect(),
        existing_nodes: existing(&plan.placements),
        unschedulable: plan.unplaced.iter().map(waiting).collect(),
        stats: Stats { solve_micros: micros(solved), build_micros: micros(built - begun), ..Stats::default() },
        ..Report::default()
    };
    Ok(report.settled(snapshot.pods.len() + snapshot.invalid.len()))
}

/// Whether the plan holds. The controller would make nothing from one that does not.
fn hold(snapshot: &Snapshot, plan: &Plan) -> anyhow::Result<()> {
    let broken: Vec<String> = check(snapshot, plan).iter().map(ToString::to_string).collect();
    ensure!(broken.is_empty(), "the plan does not hold and is not shown; please report this: {}", broken.join("; "));
    Ok(())
}

/// What files say: one catalogue for every pool, and a pool is ready unless it says otherwise.
pub(super) struct Files {
    pub(super) catalog: Arc<Catalog>,
}

impl Surroundings for Files {
    fn catalog(&self, _pool: &NodePool) -> Arc<Catalog> {
        self.catalog.clone()
    }

    fn not_ready(&self, pool: &NodePool) -> Option<String> {
        pool_not_ready(pool)
    }

    fn expected(&self, claim: &NodeClaim) -> Option<(Resources, Resources)> {
        let name = claim.metadata.labels.as_ref()?.get(names::LABEL_INSTANCE_TYPE)?;
        let size = self.catalog.find(name)?;
        Some((size.capacity.clone(), size.allocatable(&Overrides::default())))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn claim(node: &NewNode) -> NewClaim {
    let label = |label: &str| node.chosen.labels.get(label).cloned().unwrap_or_default();
    NewClaim {
        node_pool: node.pool.clone(),
        instance_types: node.instance_types.clone(),
        offering: Offering {
            instance_type: node.chosen.instance_type.clone(),
            zone: label(names::LABEL_ZONE),
            capacity_type: label(names::LABEL_CAPACITY_TYPE),
            price: node.chosen.price.value(),
        },
        requirements: node.requirements.written().into_iter().map(demand).collect(),
        requests: node.requests.iter().map(|(name, amount)| (name.to_owned(), amount.to_string())).collect(),
        pods: node.pods.iter().map(ToString::to_string).collect(),
    }
}

fn demand(demand: tenon_model::WrittenRequirement) -> Demand {
    let tenon_model::WrittenRequirement { label, operator, values, min_values } = demand;
    Demand { key: label, operator: operator.to_string(), values, min_values }
}

fn existing(placements: &[Placement]) -> Vec<ExistingNode> {
    let mut nodes: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for placement in placements {
        nodes.entry(&placement.node).or_default().push(placement.pod.to_string());
    }
    nodes.into_iter().map(|(name, pods)| ExistingNode { name: name.to_owned(), pods }).collect()
}

/// A reason for each pool, so that nobody has to take sentences apart.
fn waiting(unplaced: &Unplaced) -> Waiting {
    let reasons = match &unplaced.reason {
        Reason::Refused(refusals) => {
            refusals.iter().map(|(pool, refusal)| format!("NodePool {pool}: {refusal}")).collect()
        }
        other => vec![other.to_string()],
    };
    let (rejected, deferred) = (unplaced.reason.is_rejected(), unplaced.reason.is_deferred());
    Waiting { pod: unplaced.pod.to_string(), reasons, rejected, deferred }
}

#[cfg(test)]
mod tests {
    use tenon_model::PodKey;

    use super::*;

    #[test]
    fn a_plan_that_breaks_its_own_rules_is_an_error() {
        let snapshot = Snapshot::default();
        hold(&snapshot, &Plan::default()).unwrap();
        let pod = PodKey { namespace: "n".to_owned(), name: "p".to_owned(), uid: "u".to_owned() };
        let placements = vec![Placement { pod, node: "nowhere".to_owned() }];
        let said = hold(&snapshot, &Plan { placements, ..Plan::default() }).unwrap_err().to_string();
        assert!(said.contains("does not hold") && said.contains("pods nobody asked about"), "{said}");
    }
}
