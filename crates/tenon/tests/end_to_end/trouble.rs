//! When something is wrong, is its owner told what and what to do, and does all go on by itself once it is mended?

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tenon_api::{NodePool, ProxmoxNodeClass, ProxmoxUnmanagedTemplate, names};
use tenon_sim::{FaultEffect, FaultMatch, FaultRule, TemplateSpec, TokenSpec};

use crate::asking::ANY;
use crate::bench::{from_json, quick_guests};
use crate::ground::{Kind, scenarios};
use crate::world::{NAMESPACE, TOKEN, World};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// That no size meets a pool is told once a minute, while pods wait for it.
const TOLD_AGAIN_WITHIN: Duration = Duration::from_secs(180);

scenarios! {
    what_is_missing_is_named_where_it_is_missed_and_nodes_come_once_it_is_there,
    a_wrong_secret_in_the_cloud_config_is_told_until_the_file_is_mended_and_read_again,
    a_full_storage_is_told_in_proxmox_words_and_tried_again_without_a_storm,
    without_room_for_first_boot_data_nothing_is_cloned_and_nodes_come_once_there_is_room,
    a_pool_that_no_size_meets_is_told_until_its_requirements_are_mended,
}

async fn what_is_missing_is_named_where_it_is_missed_and_nodes_come_once_it_is_there(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_template("debian-13").await?;
    world.add_pool(json!({})).await?;
    world.start_controller()?;
    a_class_is_missing(&world).await?;
    a_template_is_missing(&world).await?;
    no_host_is_large_enough(&world).await?;
    the_controller_counts(&world)?;
    assert!(world.is_controller_running()?);
    world.end().await
}

async fn a_class_is_missing(world: &World) -> anyhow::Result<()> {
    world.deploy("class", 1).await?;
    let words = "ProxmoxNodeClass default does not exist; create it";
    let told = world.until_condition::<NodePool>(("default", "NodeClassReady"), ("False", "NodeClassNotFound")).await?;
    assert!(told.contains(words), "{told}");
    world.until_told(("NodePool", "default"), "NodeClassReady", words).await?;
    world.until_pod_waits("class", words).await?;
    world.until_warned(words).await?;
    assert_eq!(world.claims().await?.len(), 0);

    world.add_class(json!({})).await?;
    world.until_running("class", 1).await?;
    world.until_condition::<NodePool>(("default", "Ready"), ("True", "Ready")).await?;
    Ok(())
}

async fn a_template_is_missing(world: &World) -> anyhow::Result<()> {
    let templates: Api<ProxmoxUnmanagedTemplate> = Api::all(world.admin.clone());
    let other = json!({ "spec": { "templateName": "alpine-3" } });
    templates.patch("debian", &PatchParams::default(), &Patch::Merge(other)).await?;
    let words = "no VM template named alpine-3; create one, or correct spec.templateName and spec.tags";
    let ready = ("debian", "ProxmoxVirtualMachineTemplateReady");
    let told = world.until_condition::<ProxmoxUnmanagedTemplate>(ready, ("False", "TemplatesNotFound")).await?;
    assert_eq!(told, words);
    let of_class = ("default", "InstanceTemplateReady");
    let told = world.until_condition::<ProxmoxNodeClass>(of_class, ("False", "TemplatesNotFound")).await?;
    assert!(told.contains("ProxmoxUnmanagedTemplate debian") && told.contains(words), "{told}");
    world.until_told(("ProxmoxUnmanagedTemplate", "debian"), ready.1, words).await?;
    world.until_told(("ProxmoxNodeClass", "default"), of_class.1, words).await?;
    world.deploy("template", 1).await?;
    world.until_pod_waits("template", words).await?;
    world.until_warned(words).await?;

    for (vmid, host) in [(9101, "pve1"), (9102, "pve2"), (9103, "pve3")] {
        let found = TemplateSpec { host: host.into(), vmid, name: "alpine-3".into(), ..TemplateSpec::default() };
        world.estate.add_template(&found)?;
    }
    world.until_running("template", 1).await
}

/// A pod hears what it would take, and what there is at most.
async fn no_host_is_large_enough(world: &World) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(world.admin.clone(), NAMESPACE);
    for (name, memory, words) in [
        (
            "vast",
            "500Gi",
            "no instance type has enough resources, memory: 500 GiB requested, but the largest instance type has",
        ),
        ("large", "100Gi", "no host has 128 GiB of memory free for instance type m1.16VCPU-128GB; the most is"),
    ] {
        let pod: Pod = from_json(json!({
            "metadata": { "name": name },
            "spec": { "containers": [{ "name": "c", "image": "registry.example/c:1",
                "resources": { "requests": { "memory": memory } } }] },
        }))?;
        pods.create(&PostParams::default(), &pod).await?;
        let told = world.until_told(("Pod", name), "FailedScheduling", words).await?;
        assert!(told.starts_with("NodePool default: "), "{told}");
        world.until_warned(words).await?;
        pods.delete(name, &kube::api::DeleteParams::default()).await?;
    }
    Ok(())
}

async fn a_pool_that_no_size_meets_is_told_until_its_requirements_are_mended(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_rules().await?;
    let pools: Api<NodePool> = Api::all(world.admin.clone());
    let require = |list: Value| Patch::Merge(json!({ "spec": { "template": { "spec": { "requirements": list } } } }));
    let unknown = json!([{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": ["nobody-has-this"] }]);
    pools.patch("default", &PatchParams::default(), &require(unknown)).await?;
    world.start_controller()?;
    world.deploy("any", 1).await?;
    let words = "No instance type meets the requirements of NodePool default; relax";
    world.until_told(("NodePool", "default"), "NoCompatibleInstanceTypes", words).await?;
    assert_eq!(world.claims().await?.len(), 0);
    let counted = world.until_within(TOLD_AGAIN_WITHIN, "its repetition is counted on the same event", async || {
        let list = Api::<Event>::all(world.admin.clone()).list(&ListParams::default()).await?.items;
        let told = list.into_iter().filter(|event| event.note.as_ref().is_some_and(|note| note.contains(words)));
        let counts: Vec<Option<i32>> = told.map(|event| event.series.map(|series| series.count)).collect();
        Ok(counts.iter().any(Option::is_some).then_some(counts))
    });
    assert_eq!(counted.await?, [Some(2)]);

    pools.patch("default", &PatchParams::default(), &require(json!([]))).await?;
    world.until_running("any", 1).await?;
    world.end().await
}

fn the_controller_counts(world: &World) -> anyhow::Result<()> {
    for path in ["/readyz", "/healthz"] {
        let answer = world.served("health", path)?;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    let counted = world.served("metrics", "/metrics")?;
    for name in ["karpenter_nodeclaims_created_total{", "karpenter_build_info{", "tenon_region_up{region=\"lab\"} 1"] {
        assert!(counted.contains(name), "{name} is not in {counted}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxmox_that_cannot_be_asked_is_named_and_used_again_once_it_can() -> anyhow::Result<()> {
    let Some(mut world) = World::running(Kind::Real).await? else { return Ok(()) };
    world.until_condition::<NodePool>(("default", "Ready"), ("True", "Ready")).await?;

    world.stop_serving().await;
    is_told_of(&world, "gone", ("cannot reach any Proxmox endpoint", "check the address")).await?;
    let counted = world.served("metrics", "/metrics")?;
    assert!(counted.contains("tenon_region_up{region=\"lab\"} 0"), "{counted}");
    world.serve_again().await?;
    recovers(&mut world, "gone").await?;

    world.estate.revoke_token(TOKEN.0);
    is_told_of(&world, "token", ("Authentication failed!", "check the token and its secret")).await?;
    let denied = ("False", "ProxmoxAccessDenied");
    world.until_condition::<ProxmoxNodeClass>(("default", "InstanceTemplateReady"), denied).await?;
    let told = world.until_condition::<NodePool>(("default", "NodeClassReady"), denied).await?;
    assert!(told.contains("check the token and its secret"), "{told}");
    world.estate.grant_token(TokenSpec::new(TOKEN.0, TOKEN.1));
    recovers(&mut world, "token").await?;

    world.stop_serving().await;
    let run_out = world.real()?.tls.run_out()?;
    world.serve(run_out).await?;
    is_told_of(&world, "expired", ("certificate expired", "check the address and the certificate settings")).await?;
    world.stop_serving().await;
    world.serve_again().await?;
    recovers(&mut world, "expired").await?;

    assert!(!world.log().contains(TOKEN.1), "the secret is in the log");
    world.end().await
}

/// A new pod, the template and the log say the cause and the next move. What was known of the template stays.
async fn is_told_of(world: &World, app: &str, (cause, next): (&str, &str)) -> anyhow::Result<()> {
    let ready = ("debian", "ProxmoxVirtualMachineTemplateReady");
    let told = world.until_condition::<ProxmoxUnmanagedTemplate>(ready, ("Unknown", "RegionUnreachable")).await?;
    assert!(told.contains("region lab") && told.contains(cause) && told.contains(next), "{told}");
    assert!(!told.contains(TOKEN.1), "the secret is in {told}");
    world.until_told(("ProxmoxUnmanagedTemplate", "debian"), ready.1, cause).await?;
    world.deploy(app, 1).await?;
    // A plan made of a listing of a moment ago would still find a host, and the pod would wait for that node.
    let is_refused = cause == "Authentication failed!";
    let sign = if is_refused { cause } else { "Proxmox API of region lab unavailable" };
    let told = world.until_pod_waits(app, sign).await?;
    let by_plan = told.starts_with("NodePool default: no host can be used for instance type ")
        && told.contains("Proxmox API of region lab unavailable");
    // A refusal makes the class unready, and that is said instead once it is.
    let by_class = is_refused && told.contains("region lab: ");
    assert!((by_plan || by_class) && told.contains(cause) && told.contains(next), "{told}");
    assert!(!told.contains(TOKEN.1), "the secret is in {told}");
    world.until_warned(cause).await
}

/// All is well again, without a restart.
async fn recovers(world: &mut World, app: &str) -> anyhow::Result<()> {
    world.until_running(app, 1).await?;
    let ready = ("debian", "Ready");
    world.until_condition::<ProxmoxUnmanagedTemplate>(ready, ("True", "Ready")).await?;
    assert!(world.is_controller_running()?, "{}", world.log());
    Ok(())
}

async fn a_wrong_secret_in_the_cloud_config_is_told_until_the_file_is_mended_and_read_again(
    kind: Kind,
) -> anyhow::Result<()> {
    const WRONG: &str = "99999999-8888-7777-6666-555555555555";
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.configure(WRONG)?;
    world.add_rules().await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let ready = ("debian", "ProxmoxVirtualMachineTemplateReady");
    let told = world.until_condition::<ProxmoxUnmanagedTemplate>(ready, ("Unknown", "RegionUnreachable")).await?;
    assert!(told.contains("Authentication failed!") && told.contains("check the token and its secret"), "{told}");
    world.until_pod_waits("web", "check the token and its secret").await?;
    world.until_warned("check the token and its secret").await?;
    assert!(world.is_controller_running()?);

    // The file is read when the controller starts.
    world.configure(TOKEN.1)?;
    world.kill_controller()?;
    world.start_controller()?;
    world.until_running("web", 1).await?;
    let events = format!("{:?}", world.events("FailedScheduling").await?);
    assert!(![WRONG, TOKEN.1].iter().any(|secret| world.log().contains(secret) || events.contains(secret)));
    world.end().await
}

async fn a_full_storage_is_told_in_proxmox_words_and_tried_again_without_a_storm(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    world.until_condition::<NodePool>(("default", "Ready"), ("True", "Ready")).await?;
    // The listing shows room, and every copy finds none: what is thin is given more than once.
    let copies = FaultMatch::call("POST", "/nodes/*/qemu/*/clone");
    world.estate.add_fault(FaultRule::new(copies, FaultEffect::FullStorage));
    world.deploy("web", 1).await?;
    let words = "No space left on device";
    let pod = world.pod("web").await?;
    let told = world.until_told(("Pod", &pod), "InsufficientCapacityError", words).await?;
    assert!(
        told.starts_with("Cannot create a node on host pve") && told.contains("make room on that storage"),
        "{told}"
    );
    world.until_told(("NodeClaim", ANY), "InsufficientCapacityError", words).await?;
    world.until_warned(words).await?;
    let healthy = ("default", "NodeRegistrationHealthy");
    let told = world.until_condition::<NodePool>(healthy, ("False", "LaunchFailed")).await?;
    assert!(told.contains(words), "{told}");
    nothing_is_leaked(&world).await?;

    let (before, window) = (world.changes("/clone"), Duration::from_secs(30));
    world.let_pass(window).await?;
    let tried = world.changes("/clone") - before;
    println!("{tried} copies were tried in {window:?}, {before} before");
    assert!((1..=5).contains(&tried), "{tried} copies were tried in {window:?}");
    assert!(world.is_controller_running()?);

    // What the listing shows to be full is not tried at all.
    world.estate.remove_faults();
    world.estate.set_storage_free("shared", 0)?;
    world.let_pass(Duration::from_secs(3)).await?;
    let before = world.changes("/clone");
    world.until_pod_waits("web", "storage shared has 0 GiB free, and a VM needs 1 GiB; free space on it").await?;
    assert!(world.changes("/clone") - before <= 1, "{}", world.tail());
    world.estate.set_storage_free("shared", 500 * GIB)?;
    world.until_running("web", 1).await?;
    assert_eq!((world.vms().len(), world.claims().await?.len()), (1, 1));
    world.end().await
}

async fn without_room_for_first_boot_data_nothing_is_cloned_and_nodes_come_once_there_is_room(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    world.until_condition::<NodePool>(("default", "Ready"), ("True", "Ready")).await?;
    // Room for neither a seed nor a disk; the seed is missed first.
    world.estate.set_storage_free("local", 0)?;
    world.estate.set_storage_free("shared", 4 * MIB)?;
    // Plans go by a listing that may be two seconds old.
    world.let_pass(Duration::from_secs(3)).await?;
    world.deploy("web", 1).await?;
    let words = "has room for first-boot data; free space";
    world.until_pod_waits("web", words).await?;
    world.until_warned(words).await?;
    nothing_is_leaked(&world).await?;
    assert!(world.clones().is_empty(), "{}", world.tail());

    world.estate.set_storage_free("local", 100 * GIB)?;
    world.until_pod_waits("web", "storage shared has 0 GiB free").await?;
    world.estate.set_storage_free("shared", 100 * GIB)?;
    world.until_running("web", 1).await?;
    assert!(world.is_controller_running()?);
    world.end().await
}

/// Between two tries there is a moment at which nothing is there: no VM, no volume, no token.
async fn nothing_is_leaked(world: &World) -> anyhow::Result<()> {
    world.until_nothing_is_left().await?;
    let nodes = world.nodes().await?;
    assert!(nodes.is_empty(), "{:?}", nodes.iter().map(ResourceExt::name_any).collect::<Vec<_>>());
    Ok(())
}
