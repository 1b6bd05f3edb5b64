//! Whether a node that was planned may still be made when its turn comes.

use std::sync::Arc;

use serde_json::json;
use tenon_api::NodePool;
use tenon_controllers::provision::{ClaimError, Gathered, Usage, to_claims, to_snapshot};
use tenon_engine::plan;
use tenon_model::{InstanceType, NewNode};

use crate::decisions::claims::ready_world;
use crate::decisions::objects::spec;

/// A pool with these limits, and what one node of sixteen cores counts as.
fn planned() -> (Gathered, NewNode) {
    let gathered = ready_world(1);
    let node = plan(&to_snapshot(&gathered, &InstanceType::built_in())).new_nodes.remove(0);
    (gathered, node)
}

fn limited(gathered: &Gathered, limits: serde_json::Value) -> NodePool {
    let mut pool = gathered.pools[0].as_ref().clone();
    pool.spec.limits = spec(limits);
    pool
}

#[test]
fn what_a_pool_has_may_reach_its_limit_but_not_be_above_it_when_the_next_claim_is_made() {
    let (gathered, node) = planned();
    let types = InstanceType::built_in();
    let snapshot = to_snapshot(&gathered, &types);
    let mut usage = Usage::at(&snapshot);
    let allows = |usage: &Usage, limits| usage.allows(&gathered.pools[0], Some(&limited(&gathered, limits)));
    assert_eq!(allows(&usage, json!({ "nodes": "0", "cpu": "0" })), Ok(()), "it has nothing yet");
    usage.add(&node, &snapshot);
    assert_eq!(allows(&usage, json!({ "nodes": "1", "cpu": "16" })), Ok(()), "equal is not above");
    let above = ClaimError::OverLimit {
        pool: "default".to_owned(),
        resource: "cpu".to_owned(),
        used: "16".parse().unwrap(),
        limit: "15500m".parse().unwrap(),
    };
    assert_eq!(allows(&usage, json!({ "nodes": "1", "cpu": "15500m" })), Err(above.clone()));
    assert_eq!(
        above.to_string(),
        "NodePool default uses 16 cpu, more than its limit of 15500m; raise spec.limits or remove nodes"
    );
    assert!(allows(&usage, json!({ "nodes": "0" })).is_err(), "a claim counts as a node from the moment it is made");
    assert_eq!(allows(&usage, json!({ "nvidia.com/gpu": "0" })), Ok(()), "what it has none of is not above");
}

#[test]
fn a_claim_that_is_only_written_down_counts_toward_the_limits_of_the_next_plan() {
    let (mut gathered, node) = planned();
    let types = InstanceType::built_in();
    let planned = plan(&to_snapshot(&gathered, &types));
    let mut claim =
        to_claims(&planned, &to_snapshot(&gathered, &InstanceType::built_in()), &gathered).remove(0).unwrap();
    claim.metadata.name = Some("default-x".to_owned());
    gathered.claims = vec![Arc::new(claim)];
    let snapshot = to_snapshot(&gathered, &types);
    let mut made = Usage::default();
    made.add(&node, &snapshot);
    let at = Usage::at(&snapshot);
    assert_eq!(snapshot.pools[0].used.get("cpu"), "16".parse().unwrap());
    for limits in [json!({ "cpu": "15" }), json!({ "memory": "1Gi" }), json!({ "nodes": "0" }), json!({ "nodes": "1" })]
    {
        let pool = limited(&gathered, limits);
        let now = Some(&pool);
        assert_eq!(at.allows(&gathered.pools[0], now), made.allows(&gathered.pools[0], now), "{:?}", pool.spec.limits);
    }
}

#[test]
fn a_plan_right_after_a_claim_was_made_opens_no_second_node_for_its_pods() {
    let (mut gathered, _) = planned();
    let types = InstanceType::built_in();
    let first = plan(&to_snapshot(&gathered, &types));
    let mut claim = to_claims(&first, &to_snapshot(&gathered, &InstanceType::built_in()), &gathered).remove(0).unwrap();
    claim.metadata.name = Some("default-x".to_owned());
    gathered.claims = vec![Arc::new(claim)];
    let second = plan(&to_snapshot(&gathered, &types));
    assert!(second.new_nodes.is_empty() && second.unplaced.is_empty(), "{second:?}");
    assert_eq!(second.placements.iter().map(|placed| placed.node.as_str()).collect::<Vec<_>>(), ["default-x"]);
}

#[test]
fn no_claim_is_made_for_a_pool_that_went_or_came_anew_or_cannot_be_used() {
    let (gathered, _) = planned();
    let (usage, planned) = (Usage::default(), gathered.pools[0].as_ref());
    let gone = Err(ClaimError::NotFound("default".to_owned()));
    assert_eq!(usage.allows(planned, None), gone);
    let change = |change: &dyn Fn(&mut NodePool)| {
        let mut pool = planned.clone();
        change(&mut pool);
        usage.allows(planned, Some(&pool))
    };
    assert_eq!(change(&|_| {}), Ok(()));
    assert_eq!(change(&|pool| pool.metadata.uid = Some("another".to_owned())), gone);
    let going = |pool: &mut NodePool| pool.metadata.deletion_timestamp = Some(spec(json!("2026-01-01T00:00:00Z")));
    assert_eq!(change(&going), gone);
    let unjudged = change(&|pool| pool.status = None).unwrap_err();
    assert_eq!(unjudged.to_string(), "NodePool default is no longer Ready: its conditions are not set yet");
}
