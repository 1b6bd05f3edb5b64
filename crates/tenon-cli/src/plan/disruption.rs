//! `tenon plan --disruption`: which nodes would be deleted or replaced, round after round, and why the others stay.

use std::time::{Duration, Instant};

use tenon_api::planning;
use tenon_engine::disruption::{
    Command, Destination, Disruption, KeptNode, PoolDisruption, RemovedNode, Replacement, Scanner, expected,
};
use tenon_model::{Price, RepairAction, Snapshot, TimespanOrNever, Timestamp};

use super::Input;
use super::disruption_report::{
    DisruptedNode, DisruptionReport, DisruptionStats, Kept, PodMove, PoolBudget, Reason, Round, RoundCommand,
};
use super::report::NewClaim;
use super::solve::{claim, micros};
use super::supply::Supply;

/// What was asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rounds {
    /// The time to plan for.
    pub now: Option<jiff::Timestamp>,
    /// How often it is planned at most, with what was planned carried out in between; unset: once.
    pub most: Option<u32>,
}

/// What decides about disruption besides what every plan looks at.
pub(super) fn prepare(snapshot: &mut Snapshot, input: &Input) {
    snapshot.disruption = planning::disruption_inputs(&input.objects, snapshot, &input.options);
    if matches!(input.supply, Supply::Catalog(_)) {
        adopt(snapshot);
    }
}

/// With instance types from a file, every kind of NodeClass is ours, and so is every VM.
fn adopt(snapshot: &mut Snapshot) {
    for node in &mut snapshot.nodes {
        let is_foreign = node.disruption.as_ref().is_some_and(|facts| facts.claim.has_foreign_vm);
        if let Some(facts) =
            is_foreign.then(|| std::sync::Arc::make_mut(node)).and_then(|node| node.disruption.as_mut())
        {
            std::sync::Arc::make_mut(facts).claim.has_foreign_vm = false;
        }
    }
}

/// Plans, carries out, and plans again until nothing is left to do.
pub(super) fn played(mut snapshot: Snapshot, rounds: Rounds) -> DisruptionReport {
    let begun = Instant::now();
    let now = Timestamp::from(snapshot.now).to_string();
    let before = totals(&snapshot);
    let patience = patience(&snapshot);
    let mut played = Vec::new();
    let (mut simulated, mut scanner) = (0, Scanner::default());
    let last = loop {
        let decided = scanner.decide(&snapshot);
        simulated += decided.simulated;
        if decided.commands.is_empty() {
            break decided;
        }
        let number = played.len() + 1;
        played.push(Round { commands: decided.commands.iter().map(command).collect() });
        for (index, command) in decided.commands.iter().enumerate() {
            snapshot = expected(&snapshot, command, &format!("round{number}-{}", index + 1));
        }
        snapshot.now.0 = snapshot.now.0.saturating_add(patience);
        if number >= usize::try_from(rounds.most.unwrap_or(1)).unwrap_or(usize::MAX) {
            break decided;
        }
    };
    let after = totals(&snapshot);
    DisruptionReport {
        now,
        stats: DisruptionStats {
            nodes: before.nodes,
            cost: before.cost,
            nodes_after: after.nodes,
            cost_after: after.cost,
            commands: played.iter().map(|round| round.commands.len()).sum(),
            moved_pods: played.iter().flat_map(|round| &round.commands).map(|command| command.moves.len()).sum(),
            settled: last.commands.is_empty(),
            simulated,
            scan_micros: micros(begun.elapsed()),
        },
        rounds: played,
        kept: last.kept.iter().map(kept).collect(),
        budgets: budgets(&last),
    }
}

/// A second longer than the longest `consolidateAfter`: then no node has to wait for the next round.
fn patience(snapshot: &Snapshot) -> i64 {
    let rules = snapshot.pools.iter().filter_map(|pool| pool.disruption.as_ref());
    let spans = rules.filter_map(|rules| match &rules.consolidate_after {
        Ok(TimespanOrNever::After(span)) => Some(span.as_duration()),
        _ => None,
    });
    let longest = spans.max().unwrap_or(Duration::ZERO);
    i64::try_from(longest.as_secs()).unwrap_or(i64::MAX).saturating_add(1)
}

/// Nodes with a NodeClaim, and what they cost together.
struct Totals {
    nodes: usize,
    cost: f64,
}

fn totals(snapshot: &Snapshot) -> Totals {
    let nodes = tenon_engine::disruption::prices(snapshot);
    Totals { nodes: nodes.len(), cost: nodes.iter().flatten().fold(0.0, |cost, price| cost + price.value()) }
}

fn command(command: &Command) -> RoundCommand {
    RoundCommand {
        method: command.method.to_string(),
        reason: format!("{:?}", command.method.reason()),
        nodes: command.removed.iter().map(node).collect(),
        replacements: command.replacements.iter().map(replacement).collect(),
        condition: command.repair.as_ref().map(|repair| repair.driver.to_string()),
        action: command.is_reboot().then(|| RepairAction::RebootNode.to_string()),
        terminate_first: command.terminate_first.map(|why| why.as_str().to_owned()),
        moves: command
            .moves
            .iter()
            .map(|place| PodMove {
                pod: place.pod.to_string(),
                node: match &place.to {
                    Destination::Node(node) => Some(node.clone()),
                    Destination::Replacement(_) => None,
                },
                replacement: match &place.to {
                    Destination::Node(_) => None,
                    Destination::Replacement(index) => Some(*index),
                },
            })
            .collect(),
        savings: command.savings,
        // JSON has no infinity.
        score: command.score().map(|score| score.min(f64::MAX)),
    }
}

fn node(removed: &RemovedNode) -> DisruptedNode {
    DisruptedNode {
        name: removed.node.clone(),
        node_claim: removed.claim.clone(),
        node_pool: removed.pool.clone(),
        instance_type: removed.instance_type.clone(),
        price: removed.price.map(Price::value),
        disruption_cost: removed.disruption_cost,
    }
}

fn replacement(replacement: &Replacement) -> NewClaim {
    match replacement {
        Replacement::Planned(new) => claim(new),
        Replacement::Template { pool } => NewClaim { node_pool: pool.clone(), ..NewClaim::default() },
    }
}

fn kept(kept: &KeptNode) -> Kept {
    let reason = |(method, why): &(tenon_engine::disruption::Method, tenon_engine::disruption::Kept)| Reason {
        method: method.to_string(),
        reason: why.to_string(),
    };
    Kept {
        name: kept.node.clone(),
        node_pool: kept.pool.clone().unwrap_or_default(),
        reasons: kept.reasons.iter().map(reason).collect(),
    }
}

fn budgets(decided: &Disruption) -> Vec<PoolBudget> {
    let budget = |pool: &PoolDisruption| PoolBudget {
        node_pool: pool.pool.clone(),
        allowed: pool.allowed,
        disrupting: pool.disrupting,
        nodes: pool.total,
    };
    decided.pools.iter().map(budget).collect()
}
