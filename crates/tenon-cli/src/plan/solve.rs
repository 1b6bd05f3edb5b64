//! The plan for what was read, and the report about it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenon_api::planning::{OverlaidCatalogs, Surroundings};
use tenon_api::{NodeClaim, NodePool, names, pool_not_ready};
use tenon_engine::{CheckedPlan, Engine, sound_part};
use tenon_model::{Catalog, NewNode, Overrides, Placement, Plan, Reason, Resources, Seconds, Snapshot, Unplaced};

use super::report::{Demand, ExistingNode, NewClaim, Offering, Report, Stats, Unschedulable};
use super::{Input, disruption, overlays};

/// Violations that are named before the rest is only counted: one bug may break a rule for each of many pods.
const VIOLATIONS_NAMED: usize = 5;

/// Plans, and checks the plan. What breaks a rule is dropped from it, as in the controller.
pub fn solve(input: &Input) -> Report {
    let begun = Instant::now();
    let now = input.disruption.and_then(|rounds| rounds.now).unwrap_or_else(jiff::Timestamp::now);
    let mut snapshot = input.supply.to_snapshot(&input.objects, &input.options, Seconds(now.as_second()));
    if input.disruption.is_some() {
        disruption::prepare(&mut snapshot, input);
    }
    let engine = Engine::of(&snapshot);
    let built = Instant::now();
    let plan = engine.plan();
    let solved = built.elapsed();
    let mut report = report(&snapshot, plan);
    (report.stats.solve_micros, report.stats.build_micros) = (micros(solved), micros(built - begun));
    report.warnings.extend(overlays::warnings(&input.supply, &input.objects, &input.options));
    report.disruption = input.disruption.map(|rounds| disruption::played(snapshot, rounds));
    report
}

/// The report about the sound part of a plan.
fn report(snapshot: &Snapshot, plan: Plan) -> Report {
    let CheckedPlan { plan, violations } = sound_part(snapshot, plan);
    let named: Vec<String> = violations.iter().take(VIOLATIONS_NAMED).map(ToString::to_string).collect();
    let rest = violations.len() - named.len();
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    let warning = || {
        format!(
            "part of the plan failed its check and was dropped; this is a bug in Tenon, please report it: {}{more}",
            named.join("; ")
        )
    };
    let report = Report {
        new_node_claims: plan.new_nodes.iter().map(claim).collect(),
        existing_nodes: existing(&plan.placements),
        unschedulable: plan.unplaced.iter().map(unschedulable).collect(),
        stats: Stats::default(),
        warnings: (!named.is_empty()).then(warning).into_iter().collect(),
        ..Report::default()
    };
    report.settled(snapshot.pods.len() + snapshot.invalid.len())
}

/// What files say: one catalogue for every NodePool but for what NodeOverlays change, and a NodePool is ready unless its status
/// says otherwise.
pub(super) struct Files {
    pub(super) catalog: Arc<Catalog>,
    pub(super) overlaid: OverlaidCatalogs,
}

impl Surroundings for Files {
    fn catalog(&self, pool: &NodePool) -> Arc<Catalog> {
        let overlaid = pool.metadata.name.as_deref().and_then(|name| self.overlaid.get(name));
        overlaid.unwrap_or(&self.catalog).clone()
    }

    fn not_ready(&self, pool: &NodePool) -> Option<String> {
        pool_not_ready(pool)
    }

    fn expected(&self, claim: &NodeClaim) -> Option<(Resources, Resources)> {
        let labels = claim.metadata.labels.as_ref()?;
        let annotations = claim.metadata.annotations.as_ref();
        let is_overlaid = annotations.is_some_and(|told| told.contains_key(names::ANNOTATION_CAPACITY_OVERLAY));
        let pool = labels.get(names::LABEL_NODEPOOL).filter(|_| is_overlaid);
        let catalog = pool.and_then(|pool| self.overlaid.get(pool)).unwrap_or(&self.catalog);
        let size = catalog.find(labels.get(names::LABEL_INSTANCE_TYPE)?)?;
        Some((size.capacity.clone(), size.allocatable(&Overrides::default())))
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

pub(super) fn claim(node: &NewNode) -> NewClaim {
    let label = |label: &str| node.chosen.labels.get(label).cloned().unwrap_or_default();
    NewClaim {
        node_pool: node.pool.clone(),
        instance_types: node.instance_types.to_vec(),
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

/// A reason for each NodePool, so that nobody has to take sentences apart.
fn unschedulable(unplaced: &Unplaced) -> Unschedulable {
    let reasons = match &unplaced.reason {
        Reason::Refused(refusals) => {
            refusals.iter().map(|(pool, refusal)| format!("NodePool {pool}: {refusal}")).collect()
        }
        other => vec![other.to_string()],
    };
    let (rejected, deferred) = (unplaced.reason.is_rejected(), unplaced.reason.is_deferred());
    Unschedulable { pod: unplaced.pod.to_string(), reasons, rejected, deferred }
}

#[cfg(test)]
mod tests {
    use tenon_model::{NodeState, Pod, PodKey};

    use super::*;

    #[test]
    fn what_breaks_a_rule_is_dropped_from_the_plan_and_reported_as_a_bug() {
        assert!(report(&Snapshot::default(), Plan::default()).warnings.is_empty());
        let key = |name: &str| Arc::new(PodKey { namespace: "n".into(), name: name.into(), uid: name.into() });
        let pod = |name: &str| Arc::new(Pod { key: key(name), ..Pod::default() });
        let node = Arc::new(NodeState { name: "there".to_owned(), ..NodeState::default() });
        let snapshot = Snapshot { pods: vec![pod("a"), pod("b")], nodes: vec![node], ..Snapshot::default() };
        let place = |pod: &str, node: &str| Placement { pod: key(pod), node: node.to_owned() };
        let placements = vec![place("a", "there"), place("b", "nowhere")];
        let report = report(&snapshot, Plan { placements, ..Plan::default() });
        assert_eq!(report.existing_nodes, [ExistingNode { name: "there".to_owned(), pods: vec!["n/a".to_owned()] }]);
        assert_eq!((report.unschedulable.len(), report.unschedulable[0].pod.as_str()), (1, "n/b"));
        let reason = &report.unschedulable[0].reasons[0];
        assert!(reason.contains("node nowhere takes pods, but does not exist; this is a bug in Tenon"), "{reason}");
        assert_eq!(report.warnings.len(), 1);
        assert!(report.warnings[0].ends_with("please report it: node nowhere takes pods, but does not exist"));
    }
}
