//! Pools that nodes are made from, and pools that are passed over (C2).

use std::sync::Arc;

use serde_json::{Value, json};
use tenon_api::NodePool;
use tenon_controllers::provision::{Gathered, to_snapshot};
use tenon_engine::plan;
use tenon_model::InstanceType;

use crate::decisions::claims::ready_world;
use crate::decisions::objects::spec;

/// A world with one pod and one pool, which is changed.
fn with_pool(change: impl Fn(&mut Value)) -> Gathered {
    let mut gathered = ready_world(1);
    let mut pool = serde_json::to_value(gathered.pools[0].as_ref()).unwrap();
    change(&mut pool);
    gathered.pools = vec![Arc::new(spec::<NodePool>(pool))];
    gathered
}

/// How many nodes are made, and why the pod waits if it does.
fn outcome(gathered: &Gathered) -> (usize, String) {
    let plan = plan(&to_snapshot(gathered, &InstanceType::built_in()));
    let why = plan.unplaced.first().map(|waiting| waiting.reason.to_string()).unwrap_or_default();
    (plan.new_nodes.len(), why)
}

#[test]
fn a_pool_that_is_ready_makes_nodes() {
    assert_eq!(outcome(&with_pool(|_| {})), (1, String::new()));
}

#[test]
fn a_pool_that_was_not_judged_yet_or_is_not_ready_makes_none_and_says_why() {
    let (made, why) = outcome(&with_pool(|pool| pool["status"] = json!({})));
    assert_eq!(made, 0);
    assert!(why.contains("its conditions are not set yet"), "{why}");
    let (made, why) = outcome(&with_pool(|pool| {
        pool["status"]["conditions"][0]["status"] = "False".into();
        pool["status"]["conditions"][0]["reason"] = "NodeClassNotReady".into();
    }));
    assert_eq!(made, 0);
    assert!(why.contains("NodeClassNotReady"), "{why}");
}

#[test]
fn a_pool_that_is_going_makes_none() {
    let (made, why) = outcome(&with_pool(|pool| {
        pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }));
    assert_eq!(made, 0);
    assert!(why.contains("no dynamic nodepools found"), "{why}");
}

#[test]
fn a_pool_of_somebody_elses_class_is_left_to_them() {
    for (field, other) in [("group", "other.example.com"), ("kind", "OtherNodeClass")] {
        let gathered = with_pool(|pool| pool["spec"]["template"]["spec"]["nodeClassRef"][field] = other.into());
        let (made, why) = outcome(&gathered);
        assert_eq!(made, 0, "{field}");
        assert!(why.contains("no dynamic nodepools found"), "{why}");
    }
}

#[test]
fn a_pool_of_fixed_size_makes_none_for_pods() {
    let (made, why) = outcome(&with_pool(|pool| pool["spec"]["replicas"] = 3.into()));
    assert_eq!(made, 0);
    assert!(why.contains("static NodePool"), "{why}");
}

#[test]
fn a_pool_whose_class_is_not_there_has_nothing_to_make_nodes_of() {
    let (made, why) = outcome(&with_pool(|pool| {
        pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "missing".into();
    }));
    assert_eq!(made, 0);
    assert!(why.contains("nodepool requirements filtered out all available instance types"), "{why}");
}
