//! Does a disruption command survive the death of its controller after every single call that changes something outside?
//!
//! One world for each kind of command: the same move again and again, and each time the controller dies one call later, until it does
//! not die any more before the move is over. Where the budget makes two commands of a roll-out, it dies in the first one.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tenon_api::{NodePool, names};
use tenon_sim::GuestConfig;

use crate::bench::quick_guests;
use crate::disrupting::{marked, uids};
use crate::ground::Kind;
use crate::many_vms::container;
use crate::recorded::{Recorded, most_disrupted};
use crate::world::World;

/// A move and what follows a death take less than this.
const PATIENCE: Duration = Duration::from_secs(900);

/// Marks are gone, and whatever is left over was removed.
const SETTLED: Duration = Duration::from_secs(15);

/// One kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Two nodes become one.
    MultiNode,
    /// One node becomes a smaller one.
    SingleNode,
    /// Three nodes are empty.
    Emptiness,
    /// Two nodes with pods have drifted.
    Drift,
    /// So have two of a static NodePool.
    StaticDrift,
}

/// What a command needs and what it may do.
pub(crate) struct Bounds {
    /// Copies of templates.
    pub(crate) clones: usize,
    /// Pods that move.
    pub(crate) evictions: usize,
    /// Nodes that are disrupted at the same time.
    pub(crate) disrupted: usize,
    /// Nodes that are left.
    pub(crate) nodes: usize,
}

impl Command {
    pub(crate) fn bounds(self) -> Bounds {
        let bounds = |clones, evictions, disrupted, nodes| Bounds { clones, evictions, disrupted, nodes };
        match self {
            Command::MultiNode => bounds(1, 2, 2, 1),
            Command::SingleNode => bounds(1, 1, 1, 1),
            Command::Emptiness => bounds(0, 0, 2, 0),
            Command::Drift => bounds(2, 2, 1, 2),
            Command::StaticDrift => bounds(2, 0, 1, 2),
        }
    }

    /// Whether all nodes go with one command.
    fn is_one(self) -> bool {
        !matches!(self, Command::Drift | Command::StaticDrift)
    }

    pub(crate) fn pool(self) -> &'static str {
        if self == Command::StaticDrift { "fixed" } else { "default" }
    }

    async fn world(self) -> anyhow::Result<World> {
        let guests = GuestConfig { lease_interval: Duration::from_secs(10), ..quick_guests() };
        let world = World::new(Kind::Embedded, guests).await?;
        let mut world = world.ok_or_else(|| anyhow::anyhow!("an embedded world is always there"))?;
        self.add_rules(&mut world).await?;
        world.start_controller()?;
        Ok(world)
    }

    /// The NodePool, and deployments without pods.
    pub(crate) async fn add_rules(self, world: &mut World) -> anyhow::Result<()> {
        world.add_template("debian-13").await?;
        world.add_class(json!({})).await?;
        if self == Command::StaticDrift {
            let disruption = json!({ "budgets": [{ "nodes": "1" }] });
            let spec = json!({ "replicas": 2, "limits": { "nodes": 3 }, "disruption": disruption });
            world.add_pool_named("fixed", spec).await?;
            world.switch("StaticCapacity=true");
        } else {
            world.add_pool(json!({})).await?;
        }
        // A node holds one large pod with a small one, and no second small one.
        for (name, cpu) in [("big", "9"), ("small", "3600m"), ("web", "9")] {
            world.deploy_pods((name, 0), container(cpu, "2Gi"), json!({})).await?;
        }
        Ok(())
    }

    /// Until nodes stand that the command is about.
    pub(crate) async fn prepare(self, world: &World) -> anyhow::Result<()> {
        let is_first = world.claims().await?.is_empty();
        match self {
            Command::MultiNode => halved(world, 2).await,
            Command::SingleNode => halved(world, 1).await,
            Command::Emptiness => {
                stands(world, self).await?;
                placed(world, "web", 3).await?;
                placed(world, "web", 0).await
            }
            Command::Drift if is_first => {
                stands(world, self).await?;
                placed(world, "web", 2).await
            }
            Command::StaticDrift if is_first => {
                slowly(world, "both nodes stand", async || Ok(world.vms().len() == 2)).await?;
                world.let_pass(SETTLED).await
            }
            Command::Drift | Command::StaticDrift => Ok(()),
        }
    }

    pub(crate) async fn begin(self, world: &World, round: usize) -> anyhow::Result<()> {
        let pools: Api<NodePool> = Api::all(world.admin.clone());
        let labels = json!({ "example.com/batch": format!("b{round}") });
        let budgets = json!([{ "nodes": self.bounds().disrupted.to_string() }]);
        let spec = match self {
            Command::Drift | Command::StaticDrift => json!({ "template": { "metadata": { "labels": labels } } }),
            _ => json!({ "disruption": { "consolidateAfter": "1s", "budgets": budgets } }),
        };
        pools.patch(self.pool(), &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await?;
        Ok(())
    }

    /// Until the move is done: none of the old nodes is left, and all new ones take pods.
    pub(crate) async fn until_over(self, world: &World, old: &BTreeSet<String>) -> anyhow::Result<()> {
        let wanted = self.bounds().nodes;
        slowly(world, "the move is over", async || {
            let claims = world.claims().await?;
            let is_old = |uid: Option<String>| uid.is_some_and(|uid| old.contains(&uid));
            let is_moved = !claims.iter().any(|claim| is_old(claim.uid())) && claims.len() == wanted;
            Ok(is_moved && marked(&claims) == 0 && world.vms().len() == wanted)
        })
        .await?;
        match self {
            Command::MultiNode => world.until_running("small", 2).await,
            Command::SingleNode => world.until_running("small", 1).await,
            Command::Drift => world.until_running("web", 2).await,
            Command::Emptiness | Command::StaticDrift => Ok(()),
        }
    }
}

/// No node goes by itself from now on.
async fn stands(world: &World, command: Command) -> anyhow::Result<()> {
    let budgets = json!([{ "nodes": command.bounds().disrupted.to_string() }]);
    world.disrupt_with(json!({ "consolidateAfter": "Never", "budgets": budgets })).await
}

/// A deployment has so many pods, which run, and not one more that still ends.
async fn placed(world: &World, app: &str, pods: usize) -> anyhow::Result<()> {
    world.scale(app, u32::try_from(pods)?).await?;
    slowly(world, "the pods run, and no others are left", async || {
        let now = world.pods(app).await?;
        let is_running = |pod: &Pod| pod.status.as_ref().and_then(|told| told.phase.as_deref()) == Some("Running");
        Ok(now.len() == pods && now.iter().all(is_running))
    })
    .await
}

/// Waits, and looks once a second: whoever looks more often spends most of the time of a test.
async fn slowly(world: &World, what: &str, mut ask: impl AsyncFnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    world
        .until_within(PATIENCE, what, async || {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(ask().await?.then_some(()))
        })
        .await
}

/// So many nodes with a large and a small pod each, of which the large one went.
async fn halved(world: &World, nodes: usize) -> anyhow::Result<()> {
    let command = if nodes == 1 { Command::SingleNode } else { Command::MultiNode };
    placed(world, "small", 0).await?;
    slowly(world, "nothing is left", async || Ok(world.claims().await?.is_empty() && world.vms().is_empty())).await?;
    stands(world, command).await?;
    placed(world, "big", nodes).await?;
    placed(world, "small", nodes).await?;
    placed(world, "big", 0).await
}

/// After every so manyth call the controller dies. All of them take some minutes; with TENON_CRASHES=all none is left out.
fn step() -> usize {
    if std::env::var("TENON_CRASHES").is_ok_and(|which| which == "all") { 1 } else { 3 }
}

/// The row of the matrix for a command. Returns how many calls it takes.
async fn row(command: Command) -> anyhow::Result<usize> {
    let mut world = command.world().await?;
    let fuse = world.embedded()?.fuse.clone();
    let bounds = command.bounds();
    let mut deaths = 0;
    for calls in (1..).step_by(step()) {
        command.prepare(&world).await?;
        let (old, clones) = (uids(&world).await?, world.clones().len());
        let recorded = Recorded::claims(&world).await?;
        fuse.take_evictions();
        fuse.set(Some(calls));
        command.begin(&world, calls).await?;
        let mut is_first = true;
        let last = tokio::select! {
            biased;
            last = fuse.burnt() => Some(last),
            over = command.until_over(&world, &old) => over.map(|()| None)?,
        };
        fuse.set(None);
        if last.is_some() {
            deaths += 1;
            world.kill_controller()?;
            is_first = uids(&world).await?.is_superset(&old);
            world.start_controller()?;
            command.until_over(&world, &old).await?;
        }
        let after =
            format!("{command:?}, killed after {calls} calls, the last of which was {last:?}\n{}", world.tail());
        world.let_pass(SETTLED).await?;
        let made = world.clones().len() - clones;
        assert_eq!(made, bounds.clones, "copies of templates: {after}");
        assert_eq!((marked(&world.claims().await?), world.vms().len()), (0, bounds.nodes), "{after}");
        assert_eq!(world.claims().await?.len(), bounds.nodes, "{after}");
        no_mark_is_left(&world, &after).await?;
        let evictions = fuse.take_evictions();
        assert!(evictions.values().all(|asked| *asked == 1), "{evictions:#?}: {after}");
        assert_eq!(evictions.len(), bounds.evictions, "{evictions:#?}: {after}");
        let disrupted = most_disrupted(&recorded.end(&world).await?, command.pool());
        assert!(disrupted <= bounds.disrupted, "{disrupted} nodes at once: {after}");
        if last.is_none() || !(is_first || command.is_one()) {
            println!("{command:?}: killed at {deaths} of {calls} points");
            return Ok(calls);
        }
    }
    Ok(0)
}

pub(crate) async fn no_mark_is_left(world: &World, after: &str) -> anyhow::Result<()> {
    for node in world.nodes().await? {
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        assert!(taints.iter().all(|taint| taint.key != names::TAINT_DISRUPTED), "{taints:?}: {after}");
    }
    for claim in world.claims().await? {
        let conditions = claim.status.and_then(|status| status.conditions).unwrap_or_default();
        assert!(conditions.iter().all(|condition| condition.type_ != "DisruptionReason"), "{conditions:?}: {after}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn embedded_two_nodes_become_one_whatever_call_the_controller_dies_after() -> anyhow::Result<()> {
    assert!(row(Command::MultiNode).await? > 30);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn embedded_a_node_becomes_a_smaller_one_whatever_call_the_controller_dies_after() -> anyhow::Result<()> {
    assert!(row(Command::SingleNode).await? > 30);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn embedded_empty_nodes_go_whatever_call_the_controller_dies_after() -> anyhow::Result<()> {
    assert!(row(Command::Emptiness).await? > 20);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn embedded_drifted_nodes_are_replaced_whatever_call_the_controller_dies_after() -> anyhow::Result<()> {
    assert!(row(Command::Drift).await? > 30);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn embedded_drifted_nodes_of_a_static_pool_are_replaced_whatever_call_the_controller_dies_after()
-> anyhow::Result<()> {
    assert!(row(Command::StaticDrift).await? > 30);
    Ok(())
}
