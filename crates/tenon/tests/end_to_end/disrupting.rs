//! Do nodes move as they should: a workload that shrinks is consolidated and then left alone, a changed template rolls through
//! within the budget, and a controller that is killed in the middle leaves nothing behind?

use std::collections::BTreeSet;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, NodePool, names};

use crate::ground::{Kind, scenarios};
use crate::recorded::{Recorded, most_disrupted};
use crate::world::World;

/// Moves take a launch and a drain each, and some follow one another.
const PATIENCE: Duration = Duration::from_secs(240);

/// Nothing may move for three of these once all is done.
const QUIET: Duration = Duration::from_secs(60);

scenarios! {
    a_workload_that_shrinks_is_consolidated_and_then_nothing_moves,
    a_changed_template_rolls_through_one_node_at_a_time,
    a_controller_killed_while_it_replaces_a_node_finishes_it,
}

async fn a_workload_that_shrinks_is_consolidated_and_then_nothing_moves(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    world.disrupt_with(json!({ "consolidateAfter": "1s", "budgets": [{ "nodes": "1" }] })).await?;
    let recorded = Recorded::claims(&world).await?;
    let small = json!({ "resources": { "requests": { "cpu": "2", "memory": "1Gi" } } });
    world.deploy_pods(("web", 10), small, json!({})).await?;
    world.until_running("web", 10).await?;
    for replicas in [8, 5, 3] {
        world.scale("web", replicas).await?;
        world.until_running("web", usize::try_from(replicas)?).await?;
        world.let_pass(Duration::from_secs(20)).await?;
    }
    world
        .until_within(PATIENCE, "one node is left, which runs all pods", async || {
            let is_settled = world.claims().await?.len() == 1 && world.vms().len() == 1;
            Ok(is_settled.then_some(()))
        })
        .await?;
    world.until_running("web", 3).await?;
    // A last move may make the node cheaper still; from then on nothing does.
    world.let_pass(Duration::from_secs(60)).await?;
    let (claims, clones) = (uids(&world).await?, world.clones().len());
    for _ in 0..3 {
        world.let_pass(QUIET).await?;
        assert_eq!((uids(&world).await?, world.clones().len()), (claims.clone(), clones), "{}", world.tail());
    }
    assert_eq!(marked(&world.claims().await?), 0, "{}", world.tail());
    let instants = recorded.end(&world).await?;
    println!("{} versions of NodeClaims", instants.len());
    assert_eq!(most_disrupted(&instants, "default"), 1, "{}", world.tail());
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_changed_template_rolls_through_one_node_at_a_time(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    world.disrupt_with(json!({ "consolidateAfter": "Never", "budgets": [{ "nodes": "1" }] })).await?;
    world.deploy("web", 2).await?;
    world.until_running("web", 2).await?;
    let before = uids(&world).await?;
    let recorded = Recorded::claims(&world).await?;
    world.relabel("rolled").await?;
    world
        .until_within(PATIENCE, "both nodes are replaced", async || {
            let claims = world.claims().await?;
            let is_old = |claim: &NodeClaim| claim.uid().is_some_and(|uid| before.contains(&uid));
            Ok((!claims.iter().any(is_old)).then_some(()))
        })
        .await?;
    assert_eq!(most_disrupted(&recorded.end(&world).await?, "default"), 1, "{}", world.tail());
    world.until_running("web", 2).await?;
    let note = world.until_event("DisruptionTerminating", "has drifted; replacement NodeClaim").await?;
    assert!(note.ends_with("is ready"), "{note}");
    world.disrupt_with(json!({ "consolidateAfter": "1s", "budgets": [{ "nodes": "100%" }] })).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_controller_killed_while_it_replaces_a_node_finishes_it(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let before = uids(&world).await?;
    world.estate.hold_tasks("qmclone");
    world.relabel("killed").await?;
    world
        .until("the node waits for its replacement", async || {
            let claims = world.claims().await?;
            Ok((claims.len() == 2 && marked(&claims) == 1).then_some(()))
        })
        .await?;
    world.kill_controller()?;
    world.estate.release_tasks();
    world.start_controller()?;
    world
        .until_within(PATIENCE, "the node is replaced", async || {
            let now = uids(&world).await?;
            Ok((now.len() == 1 && now.is_disjoint(&before)).then_some(()))
        })
        .await?;
    world.until_running("web", 1).await?;
    assert_eq!(marked(&world.claims().await?), 0, "{}", world.tail());
    assert_eq!(world.clones().len(), 2, "one copy for each node\n{}", world.tail());
    for node in world.nodes().await? {
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        assert!(taints.iter().all(|taint| taint.key != names::TAINT_DISRUPTED), "{taints:?}");
    }
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

impl World {
    pub(crate) async fn disrupt_with(&self, disruption: Value) -> anyhow::Result<()> {
        self.change_default(json!({ "disruption": disruption })).await
    }

    /// Makes every node drift.
    pub(crate) async fn relabel(&self, value: &str) -> anyhow::Result<()> {
        self.change_default(json!({ "template": { "metadata": { "labels": { "example.com/batch": value } } } })).await
    }

    pub(crate) async fn change_default(&self, spec: Value) -> anyhow::Result<()> {
        let pools: Api<NodePool> = Api::all(self.admin.clone());
        pools.patch("default", &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await?;
        Ok(())
    }
}

/// How many nodes are marked and not deleted yet, or still drained.
pub(crate) fn marked(claims: &[NodeClaim]) -> usize {
    let is_destroyed = |claim: &NodeClaim| {
        let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|condition| condition.type_ == "InstanceTerminating")
    };
    let is_marked = |claim: &&NodeClaim| claim.annotations().contains_key(names::ANNOTATION_DISRUPTION);
    claims.iter().filter(is_marked).filter(|claim| !is_destroyed(claim)).count()
}

pub(crate) async fn uids(world: &World) -> anyhow::Result<BTreeSet<String>> {
    Ok(world.claims().await?.iter().filter_map(ResourceExt::uid).collect())
}
