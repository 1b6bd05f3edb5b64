//! The plan for what was read, and what it says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_api::planning::{self, Surroundings};
use tenon_api::{NodeClaim, NodePool, names, pool_not_ready};
use tenon_engine::Prepared;
use tenon_model::{Catalog, NewNode, Overrides, Placement, Reason, Resources, Seconds, Unplaced};

use super::Input;
use super::report::{Demand, ExistingNode, NewClaim, Offering, Report, Stats, Waiting};

/// Plans.
pub fn solve(input: &Input) -> Report {
    let begun = Instant::now();
    let files = Files { catalog: Arc::new(planning::catalog(&input.catalog)) };
    let now = Seconds(jiff::Timestamp::now().as_second());
    let snapshot = planning::to_snapshot(&input.objects, &files, &input.options, now);
    let prepared = Prepared::new(&snapshot);
    let built = Instant::now();
    let plan = prepared.solve();
    let solved = built.elapsed();
    let report = Report {
        new_node_claims: plan.new_nodes.iter().map(claim).collect(),
        existing_nodes: existing(&plan.placements),
        unschedulable: plan.unplaced.iter().map(waiting).collect(),
        stats: Stats { solve_micros: micros(solved), build_micros: micros(built - begun), ..Stats::default() },
        ..Report::default()
    };
    report.settled(snapshot.pods.len() + snapshot.invalid.len())
}

/// What files say: one catalogue for every pool, and a pool is ready unless it says otherwise.
struct Files {
    catalog: Arc<Catalog>,
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
        requirements: node.requirements.demands().into_iter().map(demand).collect(),
        requests: node.requests.iter().map(|(name, amount)| (name.to_owned(), amount.to_string())).collect(),
        pods: node.pods.iter().map(ToString::to_string).collect(),
    }
}

fn demand(demand: tenon_model::Demand) -> Demand {
    let tenon_model::Demand { label, operator, values, min_values } = demand;
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
