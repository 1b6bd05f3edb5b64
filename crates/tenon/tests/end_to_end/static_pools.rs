//! Does a pool with `replicas` have just so many nodes, whoever scales it and whatever happens meanwhile?

use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use http::{Method, Request};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, NodePool, names};

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::world::{World, record_of};

/// What pools of fixed size need.
const GATE: &str = "StaticCapacity=true";

/// The pool of fixed size.
const POOL: &str = "fixed";

scenarios! {
    a_pool_of_fixed_size_grows_and_shrinks_to_its_number_and_keeps_the_node_with_pods,
    a_limit_of_nodes_bounds_a_pool_of_fixed_size_and_lets_more_be_made_when_it_is_raised,
    a_controller_that_is_killed_while_its_pool_grows_makes_just_as_many_nodes_as_wanted,
    claims_that_no_host_has_room_for_count_and_are_the_first_to_go,
    a_pool_of_fixed_size_says_that_its_gate_is_off,
    the_nodes_of_a_pool_of_fixed_size_are_replaced_one_for_one_when_they_drift,
}

impl World {
    /// A world with a controller and a pool of fixed size.
    async fn with_fixed(kind: Kind, gates: &str, spec: Value) -> anyhow::Result<Option<World>> {
        let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(None) };
        world.add_template("debian-13").await?;
        world.add_class(json!({})).await?;
        world.add_pool_named(POOL, spec).await?;
        world.switch(gates);
        world.start_controller()?;
        Ok(Some(world))
    }

    /// `kubectl scale nodepool`.
    async fn scale_pool(&self, replicas: u32) -> anyhow::Result<()> {
        let pools: Api<NodePool> = Api::all(self.admin.clone());
        let patch = json!({ "spec": { "replicas": replicas } });
        pools.patch_scale(POOL, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    async fn change_fixed(&self, spec: Value) -> anyhow::Result<()> {
        let pools: Api<NodePool> = Api::all(self.admin.clone());
        pools.patch(POOL, &PatchParams::default(), &Patch::Merge(json!({ "spec": spec }))).await?;
        Ok(())
    }

    async fn claims_of(&self, pool: &str) -> anyhow::Result<Vec<NodeClaim>> {
        let is_its = |claim: &NodeClaim| claim.labels().get(names::LABEL_NODEPOOL).is_some_and(|name| name == pool);
        Ok(self.claims().await?.into_iter().filter(is_its).collect())
    }

    /// Waits until the pool has so many nodes that are ready, and not a claim or VM more; their names.
    async fn until_fixed_at(&self, count: usize) -> anyhow::Result<BTreeSet<String>> {
        self.until(&format!("{POOL} has just {count} ready nodes"), async || {
            let nodes = self.nodes().await?;
            let ours =
                nodes.iter().filter(|node| node.labels().get(names::LABEL_NODEPOOL).is_some_and(|pool| pool == POOL));
            let ready: BTreeSet<String> = ours.filter(|node| is_ready(node)).map(ResourceExt::name_any).collect();
            let (claims, vms) = (self.claims_of(POOL).await?.len(), self.vms().len());
            Ok((ready.len() == count && claims == count && vms == count && nodes.len() == count).then_some(ready))
        })
        .await
    }

    async fn until_said_at(&self, count: i64) -> anyhow::Result<()> {
        let pools: Api<NodePool> = Api::all(self.admin.clone());
        self.until(&format!("the status of {POOL} says {count}"), async || {
            let said = pools.get_scale(POOL).await?.status.map(|status| status.replicas);
            Ok((said.map(i64::from) == Some(count)).then_some(()))
        })
        .await
    }
}

fn is_ready(node: &Node) -> bool {
    let initialized = node.labels().get(names::LABEL_INITIALIZED).is_some_and(|value| value == "true");
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    initialized && conditions.any(|told| told.type_ == "Ready" && told.status == "True")
}

/// A container that fits every size, and where its pods may run.
fn small() -> Value {
    json!({ "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } } })
}

fn in_pool(pool: &str) -> Value {
    json!({ "nodeSelector": { names::LABEL_NODEPOOL: pool } })
}

async fn the_nodes_of_a_pool_of_fixed_size_are_replaced_one_for_one_when_they_drift(kind: Kind) -> anyhow::Result<()> {
    let disruption = json!({ "budgets": [{ "nodes": "1" }] });
    let spec = json!({ "replicas": 2, "limits": { "nodes": 3 }, "disruption": disruption });
    let Some(world) = World::with_fixed(kind, GATE, spec).await? else { return Ok(()) };
    let before = world.until_fixed_at(2).await?;
    world.change_fixed(json!({ "template": { "metadata": { "labels": { "example.com/batch": "next" } } } })).await?;
    let mut most = 0;
    let rolled = Duration::from_secs(240);
    world
        .until_within(rolled, "both nodes are replaced", async || {
            let claims = world.claims_of(POOL).await?;
            most = most.max(claims.len());
            Ok((!claims.iter().any(|claim| before.contains(&claim.name_any()))).then_some(()))
        })
        .await?;
    assert_eq!(most, 3, "never more than the limit\n{}", world.tail());
    assert!(world.until_fixed_at(2).await?.is_disjoint(&before));
    world.scale_pool(0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_pool_of_fixed_size_grows_and_shrinks_to_its_number_and_keeps_the_node_with_pods(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(world) = World::with_fixed(kind, GATE, json!({ "replicas": 3 })).await? else { return Ok(()) };
    let three = world.until_fixed_at(3).await?;
    world.until_said_at(3).await?;
    for claim in world.claims_of(POOL).await? {
        let listed = claim.spec.requirements.iter().any(|wanted| wanted.key == names::LABEL_INSTANCE_TYPE);
        assert!(!listed && claim.labels().contains_key(names::LABEL_INSTANCE_TYPE), "no size is asked for: {claim:?}");
        assert!(claim.annotations().contains_key("karpenter.sh/nodepool-hash"), "{:?}", claim.annotations());
    }
    let served = world.served("metrics", "/metrics")?;
    let counted =
        "karpenter_nodeclaims_created_total{reason=\"provisioned\",nodepool=\"fixed\",min_values_relaxed=\"false\"} 3";
    assert!(served.contains(counted), "{served}");

    // Its nodes take pods, but no more nodes are made for pods.
    world.deploy_pods(("cart", 1), small(), in_pool(POOL)).await?;
    world.until_running("cart", 1).await?;
    world.deploy_pods(("whale", 1), json!({ "resources": { "requests": { "cpu": "9" } } }), in_pool(POOL)).await?;
    world.until_pod_waits("whale", "static NodePool").await?;
    let home = home_of(&world, "cart").await?;
    assert!(three.contains(&home), "{home} {three:?}");

    // Empty nodes of another pool go while those of this one, which were empty for longer, stay.
    world.add_pool_named("flexible", json!({})).await?;
    world.deploy_pods(("brief", 1), small(), in_pool("flexible")).await?;
    world.until_running("brief", 1).await?;
    world.scale("brief", 0).await?;
    world
        .until("the other pool is empty", async || Ok(world.claims_of("flexible").await?.is_empty().then_some(())))
        .await?;
    assert_eq!(world.until_fixed_at(3).await?, three, "{}", world.tail());
    for claim in &three {
        assert_eq!(world.condition::<NodeClaim>(claim, "Consolidatable").await?, None, "{claim}");
    }

    world.scale_pool(1).await?;
    assert_eq!(world.until_fixed_at(1).await?, BTreeSet::from([home.clone()]), "{}", world.tail());
    assert_eq!(home_of(&world, "cart").await?, home, "its pod never moved");
    world.until_said_at(1).await?;
    world.scale_pool(0).await?;
    world.until_nothing_is_left().await?;
    world.until_said_at(0).await?;
    assert_eq!(world.clones().len(), 4, "{}", world.tail());
    world.end().await
}

async fn home_of(world: &World, app: &str) -> anyhow::Result<String> {
    let pods = world.pods(app).await?;
    let [pod] = pods.as_slice() else { anyhow::bail!("{app} has {} pods", pods.len()) };
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).context("it is bound nowhere")
}

async fn a_limit_of_nodes_bounds_a_pool_of_fixed_size_and_lets_more_be_made_when_it_is_raised(
    kind: Kind,
) -> anyhow::Result<()> {
    let spec = json!({ "replicas": 3, "limits": { "nodes": "2" } });
    let Some(world) = World::with_fixed(kind, GATE, spec).await? else { return Ok(()) };
    world.until_told(("NodePool", POOL), "NodeLimitReached", "lacks 1 of 3 Nodes").await?;
    let two = world.until_fixed_at(2).await?;
    world.change_fixed(json!({ "limits": { "nodes": "3" } })).await?;
    let three = world.until_fixed_at(3).await?;
    assert!(two.is_subset(&three), "{two:?} {three:?}");
    // A node that goes is replaced only when it is gone: until then it counts.
    let first = two.first().context("there is none")?;
    world.delete_claim(first).await?;
    world
        .until("another took its place", async || {
            let names: BTreeSet<String> = world.claims_of(POOL).await?.iter().map(ResourceExt::name_any).collect();
            assert!(names.len() <= 3, "{names:?}\n{}", world.tail());
            Ok((names.len() == 3 && !names.contains(first)).then_some(()))
        })
        .await?;
    world.until_fixed_at(3).await?;
    world.end().await
}

async fn a_controller_that_is_killed_while_its_pool_grows_makes_just_as_many_nodes_as_wanted(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::with_fixed(kind, GATE, json!({ "replicas": 2 })).await? else { return Ok(()) };
    for wanted in [4, 6] {
        world.until("a claim is there", async || Ok((!world.claims_of(POOL).await?.is_empty()).then_some(()))).await?;
        world.kill_controller()?;
        world.scale_pool(wanted).await?;
        world.start_controller()?;
    }
    world.until_fixed_at(6).await?;
    assert_eq!(world.clones().len(), 6, "{}", world.tail());
    world.end().await
}

async fn claims_that_no_host_has_room_for_count_and_are_the_first_to_go(kind: Kind) -> anyhow::Result<()> {
    // Each of these takes a host of its own, and there are three hosts.
    let sizes = json!([{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": ["c1.16VCPU-32GB"] }]);
    let spec = json!({
        "replicas": 5,
        "template": { "spec": {
            "requirements": sizes,
            "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
        } },
    });
    let Some(world) = World::with_fixed(kind, GATE, spec).await? else { return Ok(()) };
    let placed = |claims: &[NodeClaim]| claims.iter().filter(|claim| record_of(claim).is_ok()).count();
    world.until("three have a host", async || Ok((placed(&world.claims_of(POOL).await?) == 3).then_some(()))).await?;
    world.until_told(("NodeClaim", crate::asking::ANY), "FailedScheduling", "no host has 16 CPU free").await?;
    assert_eq!(world.claims_of(POOL).await?.len(), 5, "{}", world.tail());
    world.scale_pool(3).await?;
    let three = world.until_fixed_at(3).await?;
    assert_eq!((three.len(), world.clones().len()), (3, 3), "{}", world.tail());
    world.end().await
}

async fn a_pool_of_fixed_size_says_that_its_gate_is_off(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::with_fixed(kind, "", json!({ "replicas": 2 })).await? else { return Ok(()) };
    let told = world.until_condition::<NodePool>((POOL, "ValidationSucceeded"), ("False", "FeatureGateOff")).await?;
    assert!(told.contains("--feature-gates StaticCapacity=true"), "{told}");
    world.until_warned("spec.replicas needs the feature gate StaticCapacity").await?;
    assert!(world.claims().await?.is_empty());
    world.kill_controller()?;
    world.switch(GATE);
    world.start_controller()?;
    world.until_fixed_at(2).await?;
    // Switched off again, nothing that is there is touched.
    world.kill_controller()?;
    world.switch("");
    world.scale_pool(1).await?;
    world.start_controller()?;
    world.until_condition::<NodePool>((POOL, "ValidationSucceeded"), ("False", "FeatureGateOff")).await?;
    world.until_fixed_at(2).await?;
    world.end().await
}

/// What becomes of an answer to a request for a claim, which was made all the same.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It never comes.
    Awaited,
    /// The connection breaks instead.
    Broken,
}

/// A way to the API server on which every third answer to a request for a claim has this fate. How many were asked for,
/// and how many answers did not come.
fn unreliable(client: Client, fate: Fate) -> (Client, Arc<AtomicUsize>) {
    let lost = Arc::new(AtomicUsize::new(0));
    let (asked, counted) = (Arc::new(AtomicUsize::new(0)), lost.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        let is_claim = request.method() == Method::POST && request.uri().path().ends_with("/nodeclaims");
        let is_lost = is_claim && asked.fetch_add(1, Ordering::SeqCst) % 3 == 2;
        let (client, counted) = (client.clone(), counted.clone());
        async move {
            let answer = client.send(request).await.map_err(io::Error::other);
            if is_lost {
                counted.fetch_add(1, Ordering::SeqCst);
                match fate {
                    Fate::Awaited => pending::<()>().await,
                    Fate::Broken => return Err(io::Error::from(io::ErrorKind::ConnectionReset)),
                }
            }
            answer
        }
    });
    (Client::new(service, "default"), lost)
}

#[tokio::test(start_paused = true)]
async fn no_answer_that_is_lost_makes_a_node_too_many() -> anyhow::Result<()> {
    let Some(mut world) = World::with_fixed(Kind::Embedded, GATE, json!({ "replicas": 0 })).await? else {
        return Ok(());
    };
    world.kill_controller()?;
    let (client, lost) = unreliable(world.admin.clone(), Fate::Broken);
    world.connect(client)?;
    world.start_controller()?;
    // More than may wait for a host at once.
    world.scale_pool(24).await?;
    world.until_fixed_at(24).await?;
    assert_eq!((lost.load(Ordering::SeqCst), world.clones().len()), (8, 24), "{}", world.tail());
    assert!(world.events("DisruptionTerminating").await?.is_empty(), "none was too many: {}", world.tail());
    world.scale_pool(0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_between_two_claims_makes_no_node_too_many() -> anyhow::Result<()> {
    let Some(mut world) = World::with_fixed(Kind::Embedded, GATE, json!({ "replicas": 0 })).await? else {
        return Ok(());
    };
    world.kill_controller()?;
    world.scale_pool(7).await?;
    for killed in 1..=2 {
        let (client, lost) = unreliable(world.admin.clone(), Fate::Awaited);
        world.connect(client)?;
        world.start_controller()?;
        let is_lost = || (lost.load(Ordering::SeqCst) == 1).then_some(());
        world.until("a claim is made that nobody hears of", async || Ok(is_lost())).await?;
        world.kill_controller()?;
        assert_eq!(world.claims_of(POOL).await?.len(), 3 * killed, "{}", world.tail());
    }
    world.connect(world.admin.clone())?;
    world.start_controller()?;
    world.until_fixed_at(7).await?;
    assert_eq!(world.clones().len(), 7, "{}", world.tail());
    assert!(world.events("DisruptionTerminating").await?.is_empty(), "none was too many: {}", world.tail());
    world.end().await
}
