//! Scanning until nothing is left to do ends, each move makes the cluster cheaper or more as it should be, and no move is unsafe.

use std::sync::Arc;

use proptest::prelude::*;
use tenon_engine::check;
use tenon_engine::disruption::{Command, Destination, Disruption, Method, Replacement, decide, expected};
use tenon_model::{Placement, Plan, Price, Snapshot};

use super::world::{told, world};
use crate::packing::cluster::label;
use crate::packing::laws::SEED;

/// Longer than any `consolidateAfter` of these clusters.
const HOUR: i64 = 3600;
/// No cluster of ten nodes needs more moves: each node goes a few times at most, always for a cheaper one.
const ROUNDS_MOST: usize = 60;

/// What must fall with each move: nodes that drifted, then what all cost in billionths, then how many there are.
#[expect(clippy::cast_possible_truncation, reason = "prices of a test are small")]
pub(crate) fn measure(snapshot: &Snapshot) -> (usize, i64, usize) {
    let drifted = snapshot.nodes.iter().filter_map(|node| node.disruption.as_ref()?.claim.drifted_since).count();
    let nodes = || snapshot.nodes.iter().filter(|node| node.disruption.is_some());
    let price = |node: &tenon_model::NodeState| {
        let pool = snapshot.pools.iter().find(|pool| Some(&pool.name) == node.pool.as_ref())?;
        let size = pool.catalog.find(node.labels.get(&label("instance-type"))?)?;
        let is_it = |key: &str, way: &tenon_model::Offering| {
            node.labels.get(&label(key)).is_some_and(|value| way.requirements.admit(&label(key), value))
        };
        size.offerings.iter().find(|way| is_it("zone", way) && is_it("capacity-type", way)).map(|way| way.price)
    };
    let price = |node| (price(node).map_or(0.0, Price::value) * 1e9).round() as i64;
    (drifted, nodes().map(|node| price(node)).sum(), nodes().count())
}

/// The snapshot without the nodes of a move, and with their pods waiting; and the plan the move is for them.
fn as_plan(snapshot: &Snapshot, command: &Command) -> (Snapshot, Plan) {
    let names = command.names();
    let mut without = snapshot.clone();
    let is_going = |node: &tenon_model::NodeState| names.contains(&node.name.as_str());
    without.nodes.retain(|node| !is_going(node));
    for node in snapshot.nodes.iter().filter(|node| is_going(node)) {
        let moving = node.pods.iter().filter(|pod| pod.needs_another_node());
        without.pods.extend(moving.map(|pod| Arc::new(pod.unbound())));
    }
    super::world::sum_up(&mut without);
    let new_nodes = command.replacements.iter().filter_map(|replacement| match replacement {
        Replacement::Planned(new) => Some(tenon_model::NewNode::clone(new)),
        Replacement::Template { .. } => None,
    });
    let placements = command.moves.iter().filter_map(|place| match &place.to {
        Destination::Node(node) => Some(Placement { pod: place.pod.clone(), node: node.clone() }),
        Destination::Replacement(_) => None,
    });
    let plan = Plan { new_nodes: new_nodes.collect(), placements: placements.collect(), unplaced: Vec::new() };
    (without, plan)
}

/// No pod is lost, and no rule is broken where it goes.
pub(crate) fn unsafe_in(snapshot: &Snapshot, command: &Command) -> Vec<String> {
    if matches!(command.method, Method::StaticDrift) {
        return Vec::new();
    }
    let (without, plan) = as_plan(snapshot, command);
    check(&without, &plan).iter().map(ToString::to_string).collect()
}

/// All moves until there are none, one round after the other; and what must fall before each.
pub(crate) fn settle(mut snapshot: Snapshot, mut look: impl FnMut(&Snapshot, &Disruption)) -> Snapshot {
    for round in 0.. {
        assert!(round < ROUNDS_MOST, "it does not settle");
        let decided = decide(&snapshot);
        look(&snapshot, &decided);
        if decided.commands.is_empty() {
            break;
        }
        for (number, command) in decided.commands.iter().enumerate() {
            snapshot = expected(&snapshot, command, &format!("r{round}c{number}"));
        }
        snapshot.now.0 += HOUR;
    }
    snapshot
}

fn any_node(index: usize) -> impl Strategy<Value = String> {
    let pod = (1_u32..20, 0..12_u8);
    (0..4_usize, 0..2_usize, 0..2_usize, 0..12_u8, proptest::collection::vec(pod, 0..5)).prop_map(
        move |(size, zone, kind, state, pods)| {
            let pool = ["web", "web", "db"][index % 3];
            let more = match state {
                0 => "drifted=60",
                1 => "keep",
                2 => "nominated",
                3 => "not-ready",
                _ => "",
            };
            let kind = ["on-demand", "spot"][kind];
            let zone = ["a", "b"][zone];
            let node = format!("node n{index} is=t{size} zone={zone} kind={kind} pool={pool} {more}");
            let pods = pods.iter().enumerate().map(|(number, (cpu, rule))| {
                let rule = match rule {
                    0 => "label:app=x apart=hostname:app=x",
                    1 => "label:app=y spread=zone:1:app=y",
                    2 => "label:app=y spread=hostname:1:app=y",
                    3 => "label:app=x with=zone:app=x",
                    4 => "need:zone=In:a",
                    5 => "keep=true",
                    6 => "pdb=now",
                    7 => "prefer:5:zone=In:b cost=50000000",
                    _ => "label:app=y",
                };
                format!("bound p{index}-{number} on=n{index} cpu={}m {rule}", cpu * 50)
            });
            std::iter::once(node).chain(pods).collect::<Vec<_>>().join("\n")
        },
    )
}

pub(crate) fn any_world() -> impl Strategy<Value = String> {
    let nodes = (1..9_usize).prop_flat_map(|count| (0..count).map(any_node).collect::<Vec<_>>());
    let prices = (2_u32..9, 4_u32..18, 8_u32..36);
    (nodes, prices, 0..3_usize, 0..4_usize).prop_map(|(nodes, (two, four, eight), policy, budget)| {
        let policy = ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"][policy];
        let budget = ["", "budget=1", "budget=34%", "budget=0@Drifted budget=3"][budget];
        format!(
            "type t0 cpu=1 memory=4Gi price=3 zone=a,b capacity-type=spot,on-demand\n\
             type t1 cpu=2 memory=8Gi price={two} zone=a,b capacity-type=spot,on-demand\n\
             type t2 cpu=4 memory=16Gi price={four} zone=a,b capacity-type=spot,on-demand\n\
             type t3 cpu=8 memory=32Gi price={eight} zone=a,b capacity-type=on-demand\n\
             pool web after=30s {budget}\npool db policy={policy} need:capacity-type=In:on-demand\n{}",
            nodes.join("\n")
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: SEED, ..ProptestConfig::default() })]

    #[test]
    fn each_move_is_safe_and_lowers_what_must_fall_until_nothing_is_left_to_do(text in any_world()) {
        let mut faults = Vec::new();
        settle(world(&text), |snapshot, decided| {
            let before = measure(snapshot);
            let mut after = snapshot.clone();
            for command in &decided.commands {
                let broken = unsafe_in(&after, command);
                if !broken.is_empty() {
                    faults.push(format!("{}: {}", told(command), broken.join("; ")));
                }
                after = expected(&after, command, "next");
            }
            if !decided.commands.is_empty() && measure(&after) >= before {
                let moves: Vec<String> = decided.commands.iter().map(told).collect();
                faults.push(format!("{before:?} becomes {:?} by {}", measure(&after), moves.join(", ")));
            }
        });
        prop_assert!(faults.is_empty(), "{}\n{}", text, faults.join("\n"));
    }

    #[test]
    fn the_order_of_the_input_does_not_matter_to_moves(text in any_world()) {
        let snapshot = world(&text);
        let mut turned = snapshot.clone();
        turned.nodes.reverse();
        turned.pools.reverse();
        prop_assert_eq!(decide(&turned), decide(&snapshot));
    }

    #[test]
    fn every_node_goes_or_has_a_reason_to_stay(text in any_world()) {
        let snapshot = world(&text);
        let decided = decide(&snapshot);
        let gone: usize = decided.commands.iter().map(|command| command.removed.len()).sum();
        prop_assert_eq!(gone + decided.kept.len(), snapshot.nodes.len());
        let silent: Vec<_> = decided.kept.iter().filter(|kept| kept.reasons.is_empty()).collect();
        prop_assert!(silent.is_empty(), "{:?}", silent);
    }
}
