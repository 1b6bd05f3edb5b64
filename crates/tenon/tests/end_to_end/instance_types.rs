//! Has a node what its instance type and its class say, and is it planned with just that?

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use serde_json::{Value, json};
use tenon_api::names;
use tenon_model::Quantity;
use tenon_sim::TemplateSpec;

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::world::{World, record_of};

/// One size, of which an eighth of the memory is set aside.
const WITH_PAGES: &str = r#"[{
  "name": "pages.2VCPU-4GB",
  "capacity": { "cpu": "2", "memory": "4Gi", "pods": "20", "ephemeral-storage": "20Gi", "hugepages-2Mi": "512Mi" },
  "overhead": { "KubeReserved": { "cpu": "100m", "memory": "256Mi" }, "EvictionThreshold": { "memory": "100Mi" } }
}]"#;

scenarios! {
    plans_claims_vms_and_nodes_have_the_disk_and_the_pods_of_their_class,
    pods_with_huge_pages_get_nodes_that_set_them_aside,
    a_node_says_its_family_its_processor_and_its_image,
}

/// An amount of a node's capacity.
fn capacity(node: &Node, resource: &str) -> anyhow::Result<Quantity> {
    let capacity =
        node.status.as_ref().and_then(|status| status.capacity.as_ref()).context("a node without capacity")?;
    Ok(capacity.get(resource).map(|amount| amount.0.parse()).transpose()?.unwrap_or_default())
}

fn requests(requests: &Value) -> Value {
    json!({ "resources": { "requests": requests, "limits": requests } })
}

async fn plans_claims_vms_and_nodes_have_the_disk_and_the_pods_of_their_class(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_template("debian-13").await?;
    world.add_class(json!({ "bootDevice": { "size": "100G" }, "kubeletConfiguration": { "maxPods": 10 } })).await?;
    world.add_pool(json!({})).await?;
    world.start_controller()?;

    // More than any instance type has by itself.
    world
        .deploy_pods(("cache", 1), requests(&json!({ "cpu": "100m", "ephemeral-storage": "60Gi" })), json!({}))
        .await?;
    world.until_running("cache", 1).await?;
    let claims = world.claims().await?;
    let [claim] = claims.as_slice() else { anyhow::bail!("{} claims", claims.len()) };
    let status = serde_json::to_value(claim.status.as_ref())?;
    for told in [&status["capacity"], &status["allocatable"]] {
        assert_eq!((&told["ephemeral-storage"], &told["pods"]), (&json!("100Gi"), &json!("10")), "{status}");
    }
    let vm = world.estate.vm(record_of(claim)?.vmid.get()).context("no VM")?;
    assert!(vm.config.values().any(|value| value.contains("size=100G")), "{:?}", vm.config);
    let node = world.nodes().await?.pop().context("no node")?;
    assert_eq!(capacity(&node, "ephemeral-storage")?, "100Gi".parse()?);
    assert_eq!(capacity(&node, "pods")?, Quantity::whole(10));

    // Nine fit beside the first one.
    world.deploy_pods(("many", 12), requests(&json!({ "cpu": "1m", "memory": "1Mi" })), json!({})).await?;
    world.until_running("many", 12).await?;
    assert_eq!(world.claims().await?.len(), 2, "{}", world.tail());
    world.end().await
}

async fn pods_with_huge_pages_get_nodes_that_set_them_aside(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.use_instance_types(WITH_PAGES)?;
    world.add_rules().await?;
    world.start_controller()?;
    let wanted = json!({ "cpu": "100m", "memory": "64Mi", "hugepages-2Mi": "256Mi" });
    world.deploy_pods(("database", 3), requests(&wanted), json!({})).await?;
    world.until_running("database", 3).await?;

    let nodes = world.nodes().await?;
    assert_eq!(nodes.len(), 2, "two fit on a node: {}", world.tail());
    for node in &nodes {
        assert_eq!(capacity(node, "hugepages-2Mi")?, "512Mi".parse()?);
        assert_eq!(capacity(node, "memory")?, "4Gi".parse()?);
    }
    for claim in world.claims().await? {
        let status = serde_json::to_value(claim.status.as_ref())?;
        let allocatable: Quantity = status["allocatable"]["memory"].as_str().context("no memory")?.parse()?;
        assert_eq!(allocatable, "3228Mi".parse()?, "{status}");
        let vm = world.estate.vm(record_of(&claim)?.vmid.get()).context("no VM")?;
        assert_eq!(vm.config["memory"], "4096", "the VM has all of it");
        assert!(!vm.config.contains_key("hugepages"), "only root may set that");
    }
    // More pages than any node has.
    world.deploy_pods(("greedy", 1), requests(&json!({ "cpu": "1m", "hugepages-2Mi": "514Mi" })), json!({})).await?;
    world.until_event("FailedScheduling", "hugepages-2Mi").await?;
    assert_eq!(world.claims().await?.len(), 2);
    world.end().await
}

async fn a_node_says_its_family_its_processor_and_its_image(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    let config = [("cpu", "host,flags=+aes"), ("description", "kept by a controller, Hash: 4711")];
    let config = config.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    world.estate.add_template(&TemplateSpec {
        vmid: 9011,
        name: "ubuntu-26".into(),
        config,
        ..TemplateSpec::default()
    })?;
    world.add_template("ubuntu-26").await?;
    world.add_class(json!({})).await?;
    world.add_pool(json!({})).await?;
    world.start_controller()?;
    let family = json!({ "nodeSelector": { names::LABEL_INSTANCE_FAMILY: "m1" } });
    world.deploy_pods(("web", 1), requests(&json!({ "cpu": "100m" })), family).await?;
    world.until_running("web", 1).await?;

    let (claim, node) = (world.claims().await?.pop(), world.nodes().await?.pop());
    let (claim, node) = (claim.context("no claim")?, node.context("no node")?);
    for labels in [claim.labels(), node.labels()] {
        assert_eq!(labels[names::LABEL_INSTANCE_FAMILY], "m1");
        assert_eq!(labels[names::LABEL_INSTANCE_TYPE], "m1.1VCPU-8GB");
        assert_eq!(labels[names::LABEL_CAPACITY_TYPE], "on-demand");
        assert_eq!(labels[names::LABEL_INSTANCE_CPU_TYPE], "host");
        assert_eq!(labels[names::LABEL_INSTANCE_IMAGE_ID], "4711");
    }
    assert_eq!(claim.status.as_ref().and_then(|status| status.image_id.as_deref()), Some("4711"));

    // Which processor a VM gets is known once it runs: no node is made for it, rather than one after the other.
    let processor = json!({ "nodeSelector": { names::LABEL_INSTANCE_CPU_TYPE: "kvm64" } });
    world.deploy_pods(("picky", 1), requests(&json!({ "cpu": "100m" })), processor).await?;
    world.until_event("FailedScheduling", names::LABEL_INSTANCE_CPU_TYPE).await?;
    assert_eq!(world.claims().await?.len(), 1, "{}", world.tail());
    world.end().await
}
