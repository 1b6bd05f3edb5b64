//! Does the scheduler put every pod where a node was made for it, whatever pools, daemons and pods ask for?
//!
//! Where a scenario says on which node a pod ends, the scheduler has no other choice: pods come one after the other, and
//! fill what they are on.

use std::collections::BTreeMap;

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use tenon_api::{NodePool, names};

use crate::bench::{from_json, quick_guests};
use crate::ground::{Kind, scenarios};
use crate::world::{NAMESPACE, World};

/// A node of this size takes one pod of a core and a half, and not a second one.
const TWO_CORES: &str = "c1.2VCPU-4GB";
const FOUR_CORES: &str = "c1.4VCPU-8GB";

scenarios! {
    pods_go_to_the_heaviest_pool_until_its_limit_of_cores_or_nodes_is_reached,
    a_pool_with_min_values_makes_nodes_only_for_pods_that_leave_it_enough_sizes,
    a_new_node_has_room_for_its_pods_and_for_the_daemons_that_come_to_it_and_no_others,
    pods_with_the_same_host_port_get_nodes_of_their_own_and_others_join_them,
    a_wish_that_a_pool_can_meet_is_met_and_one_that_none_can_meet_is_given_up,
    a_pool_that_would_rather_not_have_pods_gets_them_last,
}

impl World {
    /// A world with a controller and these pools, all of one class.
    async fn with_pools(kind: Kind, pools: &[(&str, Value)]) -> anyhow::Result<Option<World>> {
        let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(None) };
        world.add_template("debian-13").await?;
        world.add_class(json!({})).await?;
        for (name, spec) in pools {
            world.add_pool_named(name, spec.clone()).await?;
        }
        world.start_controller()?;
        // A pool that is judged later than another would be passed over until then.
        for (name, _) in pools {
            world.until_condition::<NodePool>((name, "Ready"), ("True", "Ready")).await?;
        }
        Ok(Some(world))
    }

    async fn node_of(&self, pod: &Pod) -> anyhow::Result<Node> {
        let name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).context("it is bound nowhere")?;
        Ok(Api::<Node>::all(self.admin.clone()).get(name).await?)
    }

    /// A label of the node that the only pod of a deployment is on.
    async fn label_at(&self, app: &str, label: &str) -> anyhow::Result<String> {
        let pods = self.pods(app).await?;
        let [pod] = pods.as_slice() else { anyhow::bail!("{app} has {} pods", pods.len()) };
        let node = self.node_of(pod).await?;
        node.labels().get(label).cloned().with_context(|| format!("{} has no label {label}", node.name_any()))
    }

    /// Waits until the only pod of a deployment runs, and says which pool its node is of.
    async fn until_in_pool(&self, app: &str) -> anyhow::Result<String> {
        self.until_running(app, 1).await?;
        self.label_at(app, names::LABEL_NODEPOOL).await
    }

    /// How many claims each pool has.
    async fn claims_by_pool(&self) -> anyhow::Result<BTreeMap<String, usize>> {
        let mut counts = BTreeMap::new();
        for claim in self.claims().await? {
            let pool = claim.labels().get(names::LABEL_NODEPOOL).cloned();
            *counts.entry(pool.context("a claim of no pool")?).or_default() += 1;
        }
        Ok(counts)
    }

    /// Every pod there is runs, as many as this, and no VM, node or claim is there without the others.
    async fn assert_all_run(&self, pods: usize, nodes: usize) -> anyhow::Result<()> {
        let list = Api::<Pod>::namespaced(self.admin.clone(), NAMESPACE).list(&ListParams::default()).await?.items;
        let is_running = |pod: &Pod| pod.status.as_ref().and_then(|told| told.phase.as_deref()) == Some("Running");
        let waiting: Vec<String> = list.iter().filter(|pod| !is_running(pod)).map(ResourceExt::name_any).collect();
        assert_eq!((list.len(), waiting), (pods, Vec::new()), "{}", self.tail());
        let made = (self.claims().await?.len(), self.nodes().await?.len(), self.vms().len());
        assert_eq!(made, (nodes, nodes, nodes), "{}", self.tail());
        Ok(())
    }
}

/// What a container asks for; memory is never what is short.
fn cores(cpu: &str) -> Value {
    json!({ "resources": { "requests": { "cpu": cpu, "memory": "256Mi" } } })
}

fn sizes(names: &[&str]) -> Value {
    json!({ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": names })
}

/// A template of nodes with these demands, labels and taints.
fn template(requirements: &Value, labels: &Value, taints: &Value) -> Value {
    json!({
        "metadata": { "labels": labels },
        "spec": {
            "requirements": requirements, "taints": taints,
            "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
        },
    })
}

/// Pods that would rather have a label with a value, by weight.
fn wishing(wishes: &[(u32, &str, &str)]) -> Value {
    let wish = |(weight, label, value): &(u32, &str, &str)| {
        let wanted = json!([{ "key": label, "operator": "In", "values": [value] }]);
        json!({ "weight": weight, "preference": { "matchExpressions": wanted } })
    };
    let wishes: Vec<Value> = wishes.iter().map(wish).collect();
    json!({ "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": wishes } } })
}

async fn pods_go_to_the_heaviest_pool_until_its_limit_of_cores_or_nodes_is_reached(kind: Kind) -> anyhow::Result<()> {
    let pools = [
        // By name they would be asked the other way round.
        ("c-first", json!({ "weight": 100, "limits": { "cpu": "2" } })),
        ("b-second", json!({ "weight": 50, "limits": { "nodes": "1" } })),
        ("a-third", json!({})),
    ];
    let Some(world) = World::with_pools(kind, &pools).await? else { return Ok(()) };
    world.deploy_pods(("burst", 2), cores("1500m"), json!({})).await?;
    world.until_running("burst", 2).await?;
    let once = |pools: &[&str]| -> BTreeMap<String, usize> { pools.iter().map(|pool| ((*pool).into(), 1)).collect() };
    assert_eq!(world.claims_by_pool().await?, once(&["b-second", "c-first"]), "{}", world.tail());

    world.deploy_pods(("late", 1), cores("1500m"), json!({})).await?;
    assert_eq!(world.until_in_pool("late").await?, "a-third", "{}", world.tail());
    assert_eq!(world.claims_by_pool().await?, once(&["a-third", "b-second", "c-first"]));
    for node in world.nodes().await? {
        assert_eq!(node.labels()[names::LABEL_INSTANCE_TYPE], TWO_CORES, "nothing larger is needed, or allowed");
    }
    world.assert_all_run(3, 3).await?;
    world.end().await
}

async fn a_pool_with_min_values_makes_nodes_only_for_pods_that_leave_it_enough_sizes(kind: Kind) -> anyhow::Result<()> {
    let mut wide = sizes(&["c1.1VCPU-2GB", TWO_CORES, FOUR_CORES]);
    wide["minValues"] = json!(2);
    let of = |requirement: Value| template(&json!([requirement]), &json!({}), &json!([]));
    let pools = [
        ("wide", json!({ "weight": 100, "template": of(wide) })),
        ("narrow", json!({ "template": of(sizes(&[FOUR_CORES])) })),
    ];
    let Some(world) = World::with_pools(kind, &pools).await? else { return Ok(()) };
    // Two of the three sizes are large enough for this one, and only one for the other.
    world.deploy_pods(("modest", 1), cores("1500m"), json!({})).await?;
    assert_eq!(world.until_in_pool("modest").await?, "wide");
    world.deploy_pods(("large", 1), cores("3"), json!({})).await?;
    assert_eq!(world.until_in_pool("large").await?, "narrow", "{}", world.tail());

    let claims = serde_json::to_value(world.claims().await?)?;
    let of_pool = |pool: &str| {
        let is_it = |claim: &&Value| claim["metadata"]["labels"][names::LABEL_NODEPOOL] == pool;
        let claim = claims.as_array().into_iter().flatten().find(is_it).cloned().unwrap_or_default();
        let requirements = claim["spec"]["requirements"].as_array().cloned().unwrap_or_default();
        requirements.into_iter().find(|entry| entry["key"] == names::LABEL_INSTANCE_TYPE).unwrap_or_default()
    };
    let (wide, narrow) = (of_pool("wide"), of_pool("narrow"));
    let mut listed: Vec<&str> = wide["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    listed.sort_unstable();
    assert_eq!((listed.as_slice(), &wide["minValues"]), ([TWO_CORES, FOUR_CORES].as_slice(), &json!(2)), "{wide}");
    assert_eq!((&narrow["values"], &narrow["minValues"]), (&json!([FOUR_CORES]), &Value::Null), "{narrow}");
    world.assert_all_run(2, 2).await?;
    world.end().await
}

async fn a_new_node_has_room_for_its_pods_and_for_the_daemons_that_come_to_it_and_no_others(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(world) = World::with_pools(kind, &[("default", json!({}))]).await? else { return Ok(()) };
    add_daemon(&world, ("log", "500m"), json!({})).await?;
    // With this one counted too, it would be sixteen cores.
    add_daemon(&world, ("gpu", "8"), json!({ "nodeSelector": { "example.com/gpu": "yes" } })).await?;
    // Two cores leave enough for the pod, and not for the daemon besides.
    world.deploy_pods(("web", 1), cores("1800m"), json!({})).await?;
    world.until_running("web", 1).await?;
    world.until_running("log", 1).await?;
    assert_eq!(world.label_at("web", names::LABEL_INSTANCE_TYPE).await?, FOUR_CORES);
    world.assert_all_run(2, 1).await?;
    world.end().await
}

async fn add_daemon(world: &World, (name, cpu): (&str, &str), more: Value) -> anyhow::Result<()> {
    let mut spec = json!({ "containers": [{
        "name": "c", "image": "registry.example/c:1", "resources": cores(cpu)["resources"],
    }] });
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    let set: DaemonSet = from_json(json!({
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": spec },
        },
    }))?;
    Api::namespaced(world.admin.clone(), NAMESPACE).create(&PostParams::default(), &set).await?;
    Ok(())
}

async fn pods_with_the_same_host_port_get_nodes_of_their_own_and_others_join_them(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::with_pools(kind, &[("default", json!({}))]).await? else { return Ok(()) };
    let on_port = |protocol: &str| {
        let mut container = cores("100m");
        container["ports"] = json!([{ "containerPort": 8080, "hostPort": 8080, "protocol": protocol }]);
        container
    };
    world.deploy_pods(("edge", 2), on_port("TCP"), json!({})).await?;
    world.until_running("edge", 2).await?;
    let mut homes = Vec::new();
    for pod in world.pods("edge").await? {
        homes.push(world.node_of(&pod).await?.name_any());
    }
    homes.sort();
    homes.dedup();
    assert_eq!(homes.len(), 2, "{}", world.tail());
    // The same number, but not the same port; and none at all.
    world.deploy_pods(("names", 2), on_port("UDP"), json!({})).await?;
    world.deploy_pods(("quiet", 1), cores("100m"), json!({})).await?;
    world.until_running("names", 2).await?;
    world.until_running("quiet", 1).await?;
    world.assert_all_run(5, 2).await?;
    world.end().await
}

async fn a_wish_that_a_pool_can_meet_is_met_and_one_that_none_can_meet_is_given_up(kind: Kind) -> anyhow::Result<()> {
    const TEAM: &str = "example.com/team";
    let of = |team: &str| template(&json!([sizes(&[TWO_CORES])]), &json!({ TEAM: team }), &json!([]));
    let pools = [("blue", json!({ "weight": 100, "template": of("blue") })), ("red", json!({ "template": of("red") }))];
    let Some(world) = World::with_pools(kind, &pools).await? else { return Ok(()) };
    // The heavier wish is given up first, and then the lighter one decides against the weight of the pools.
    world.deploy_pods(("modest", 1), cores("1500m"), wishing(&[(100, TEAM, "green"), (1, TEAM, "red")])).await?;
    assert_eq!(world.until_in_pool("modest").await?, "red", "{}", world.tail());
    assert_eq!(world.label_at("modest", TEAM).await?, "red");
    world.deploy_pods(("dreaming", 1), cores("1500m"), wishing(&[(100, TEAM, "green")])).await?;
    assert_eq!(world.until_in_pool("dreaming").await?, "blue", "{}", world.tail());
    world.assert_all_run(2, 2).await?;
    world.end().await
}

async fn a_pool_that_would_rather_not_have_pods_gets_them_last(kind: Kind) -> anyhow::Result<()> {
    const TIER: &str = "example.com/tier";
    let of = |tier: &str, taints: Value| template(&json!([sizes(&[TWO_CORES])]), &json!({ TIER: tier }), &taints);
    let reluctant = json!([{ "key": "example.com/spare", "effect": "PreferNoSchedule" }]);
    let pools = [
        ("spare", json!({ "weight": 100, "template": of("spare", reluctant) })),
        ("usual", json!({ "limits": { "nodes": "1" }, "template": of("usual", json!([])) })),
    ];
    let Some(world) = World::with_pools(kind, &pools).await? else { return Ok(()) };
    // Even its own wish is given up before the taint is overlooked.
    world.deploy_pods(("early", 1), cores("1500m"), wishing(&[(100, TIER, "spare")])).await?;
    assert_eq!(world.until_in_pool("early").await?, "usual", "{}", world.tail());
    world.deploy_pods(("late", 1), cores("1500m"), json!({})).await?;
    assert_eq!(world.until_in_pool("late").await?, "spare", "{}", world.tail());
    world.assert_all_run(2, 2).await?;
    world.end().await
}
