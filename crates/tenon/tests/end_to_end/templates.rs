//! VM templates that Tenon builds from images: nodes come from them, a new image replaces them, nothing of them is left.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::Context as _;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tenon_api::{NodePool, ProxmoxNodeClass, ProxmoxTemplate, names, template_record};
use tenon_model::{TemplateBuild, TemplateStep};
use tenon_sim::{Estate, EstateConfig, StorageSpec, VmView, WebCertificate, WebFile};

use crate::bench::{from_json, quick_guests};
use crate::ground::{Ground, Kind, scenarios};
use crate::world::{World, record_of};

scenarios! {
    a_node_comes_from_an_image_and_a_new_image_replaces_the_templates_once_their_clones_are_gone,
    a_controller_killed_while_it_builds_templates_finishes_them_and_leaves_nothing_else,
    one_template_on_shared_storage_serves_every_host,
    a_certificate_that_is_not_trusted_is_told_and_one_that_is_then_is_tried_at_once,
}

/// The example that the guide names.
const EXAMPLE: &str = include_str!("../../../../examples/managed-template.yaml");
const NEXT: &str = "https://images.example.com/debian-13-kubernetes-2.qcow2";
const READY: &str = "ProxmoxVirtualMachineTemplateReady";
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// An image that comes in about a second, with progress on the way.
fn image(tag: &str) -> WebFile {
    WebFile::image(tag, 3 * GIB, 160 * MIB).over(160 * MIB)
}

/// An object of the example.
fn example(kind: &str) -> anyhow::Result<Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(EXAMPLE)?;
    objects.into_iter().find(|object| object["kind"] == kind).with_context(|| format!("the example has no {kind}"))
}

fn url_of(template: &Value) -> anyhow::Result<String> {
    Ok(template["spec"]["sourceImage"]["url"].as_str().context("the example has no URL")?.to_owned())
}

/// A world with the objects of the example, the template changed by this, and its image published.
async fn with_example(kind: Kind, estate: Estate, spec: Value) -> anyhow::Result<Option<World>> {
    let Some(world) = World::on(estate, kind, quick_guests()).await? else { return Ok(None) };
    let mut template = example("ProxmoxTemplate")?;
    world.estate.publish(&url_of(&template)?, image("1"));
    if let (Some(fields), Value::Object(more)) = (template["spec"].as_object_mut(), spec) {
        fields.extend(more);
    }
    let params = PostParams::default();
    Api::<ProxmoxTemplate>::all(world.admin.clone()).create(&params, &from_json(template)?).await?;
    Api::<ProxmoxNodeClass>::all(world.admin.clone())
        .create(&params, &from_json(example("ProxmoxNodeClass")?)?)
        .await?;
    let mut pool = example("NodePool")?;
    // A node stays although its image is another: what its template waits for is looked at here.
    let kept = json!([{ "nodes": "100%" }, { "nodes": "0", "reasons": ["Drifted"] }]);
    pool["spec"]["disruption"] = json!({ "consolidateAfter": "1s", "budgets": kept });
    Api::<NodePool>::all(world.admin.clone()).create(&params, &from_json(pool)?).await?;
    Ok(Some(world))
}

fn templates(world: &World) -> Api<ProxmoxTemplate> {
    Api::all(world.admin.clone())
}

async fn builds(world: &World) -> anyhow::Result<Vec<TemplateBuild>> {
    let template = templates(world).get("debian").await?;
    let text = template.annotations().get(names::ANNOTATION_TEMPLATE_BUILDS).cloned();
    Ok(text.map(|text| template_record::read(&text)).transpose()?.unwrap_or_default())
}

/// The VM templates that new nodes are cloned from, as the status names them.
async fn zones(world: &World) -> anyhow::Result<BTreeSet<String>> {
    let status = templates(world).get("debian").await?.status.unwrap_or_default();
    Ok(status.zones.unwrap_or_default().into_iter().collect())
}

/// VMs that are no nodes and that the world did not begin with.
fn built(world: &World) -> Vec<VmView> {
    let vms = world.estate.vms().into_iter();
    vms.filter(|vm| (1000..9000).contains(&vm.vmid) || (9004..20_000).contains(&vm.vmid)).collect()
}

fn images(world: &World) -> Vec<String> {
    let files = world.estate.volumes().into_iter().filter(|volume| volume.content == "import");
    files.map(|volume| volume.volid).collect()
}

/// Waits until every host has a VM template that is ready and not among these.
async fn until_each_host_has_another(world: &World, old: &BTreeSet<String>) -> anyhow::Result<BTreeSet<String>> {
    world
        .until("every host has another template", async || {
            let zones = zones(world).await?;
            let hosts: BTreeSet<&str> = zones.iter().filter_map(|zone| zone.split('/').nth(1)).collect();
            Ok((hosts.len() == 3 && zones.len() == 3 && zones.is_disjoint(old)).then_some(zones))
        })
        .await
}

fn id_of(zone: &str) -> anyhow::Result<u32> {
    Ok(zone.rsplit('/').next().unwrap_or_default().parse()?)
}

async fn a_node_comes_from_an_image_and_a_new_image_replaces_the_templates_once_their_clones_are_gone(
    kind: Kind,
) -> anyhow::Result<()> {
    let estate = Estate::new(EstateConfig::default());
    let Some(mut world) = with_example(kind, estate, json!({})).await? else { return Ok(()) };
    world.start_controller()?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let first = until_each_host_has_another(&world, &BTreeSet::new()).await?;
    let template = templates(&world).get("debian").await?;
    let number = template.annotations().get(names::ANNOTATION_TEMPLATE_HASH).cloned().context("there is no hash")?;
    for vm in built(&world) {
        let description = vm.config.get("description").cloned().unwrap_or_default();
        let said = format!("The virtual machine managed by Karpenter, do not delete it. Hash: {number}");
        assert_eq!(description.lines().next(), Some(said.as_str()));
        assert_eq!((vm.config["template"].as_str(), vm.config["agent"].contains("enabled")), ("1", true), "{vm:?}");
    }
    assert_eq!((built(&world).len(), images(&world).len()), (3, 3), "one for each host, of a local storage");
    world.until_event("ImageDownloading", "debian-13-kubernetes-1.qcow2").await?;
    world.until_event("TemplateCreated", "on host pve2").await?;
    let claim = world.claims().await?.remove(0);
    let record = record_of(&claim)?;
    let cloned = format!("lab/{}/{}", record.host(), record.template);
    assert!(first.contains(&cloned), "{cloned} is none of {first:?}");

    // A new image: every host gets another template, and the one with a clone waits for it.
    world.estate.publish(NEXT, image("2"));
    let change = json!({ "spec": { "sourceImage": { "url": NEXT } } });
    templates(&world).patch("debian", &PatchParams::default(), &Patch::Merge(&change)).await?;
    let second = until_each_host_has_another(&world, &first).await?;
    let kept = id_of(&cloned)?;
    world
        .until("only the template with a clone is left of the old ones", async || {
            let ids: BTreeSet<u32> = built(&world).iter().map(|vm| vm.vmid).collect();
            let wanted: Result<BTreeSet<u32>, _> = second.iter().map(|zone| id_of(zone)).chain([Ok(kept)]).collect();
            Ok((ids == wanted?).then_some(()))
        })
        .await?;
    world.until_event("TemplateInUse", &format!("{kept}")).await?;
    status_is_shown(&mut world, kept, &claim.name_any())?;
    let drifted = Some("True ImageDrift".to_owned());
    world
        .until("the node says that its image is another", async || {
            Ok((world.drift_of(&claim.name_any()).await? == drifted).then_some(()))
        })
        .await?;
    assert_eq!(world.claims().await?.len(), 1, "{}", world.tail());

    // The clone goes, and the old template and its image go after it.
    world.scale("web", 0).await?;
    world
        .until("nothing is left of the old version", async || {
            let is_gone =
                world.estate.vm(kept).is_none() && images(&world).iter().all(|name| !name.contains("kubernetes-1"));
            Ok((is_gone && images(&world).len() == 3).then_some(()))
        })
        .await?;
    assert!(world.vms().is_empty());
    nothing_is_left_after_deletion(world).await
}

/// The template is deleted, and with it everything that was made for it.
async fn nothing_is_left_after_deletion(world: World) -> anyhow::Result<()> {
    templates(&world).delete("debian", &DeleteParams::default()).await?;
    world
        .until("the template is gone", async || Ok(templates(&world).get_opt("debian").await?.is_none().then_some(())))
        .await?;
    assert_eq!((built(&world), images(&world)), (Vec::new(), Vec::new()));
    world.until_nothing_is_left().await?;
    world.end().await
}

/// What `tenon template status` shows, where there is a kubeconfig for it.
fn status_is_shown(world: &mut World, retired: u32, claim: &str) -> anyhow::Result<()> {
    if !matches!(world.ground(), Ground::Real(_)) {
        return Ok(());
    }
    let kubeconfig = world.testbed()?.kubeconfig();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
        command.args(["template", "status"]).args(args).arg("--kubeconfig").arg(&kubeconfig).output()
    };
    let shown = run(&["debian", "-o", "json"])?;
    let shown: Value = serde_json::from_slice(&shown.stdout).with_context(|| format!("{shown:?}"))?;
    let rows = shown[0]["templates"].as_array().context("there are no rows")?;
    let row = rows.iter().find(|row| row["vmid"] == retired).context("the retired one is not shown")?;
    assert_eq!((&row["nodeClaims"], &row["current"], &row["retired"]), (&json!([claim]), &json!(false), &json!(true)));
    assert_eq!(rows.iter().filter(|row| row["inUse"] == true && row["current"] == true).count(), 3, "{rows:#?}");
    let text = String::from_utf8(run(&["debian"])?.stdout)?;
    assert!(text.starts_with("ProxmoxTemplate debian: Ready\n") && text.contains("Ready, in use"), "{text}");
    let missing = run(&["none"])?;
    let told = String::from_utf8(missing.stderr)?;
    assert!(
        !missing.status.success()
            && told.contains("none does not exist in the cluster, which has ProxmoxTemplate debian"),
        "{told}"
    );
    Ok(())
}

async fn a_controller_killed_while_it_builds_templates_finishes_them_and_leaves_nothing_else(
    kind: Kind,
) -> anyhow::Result<()> {
    let estate = Estate::new(EstateConfig::default());
    let Some(mut world) = with_example(kind, estate, json!({})).await? else { return Ok(()) };
    for step in [TemplateStep::Download, TemplateStep::Create, TemplateStep::Ready] {
        world.start_controller()?;
        world
            .until(&format!("a template is at step {}", step.as_str()), async || {
                Ok(builds(&world).await?.iter().any(|build| build.step >= step).then_some(()))
            })
            .await?;
        world.kill_controller()?;
    }
    world.start_controller()?;
    let zones = until_each_host_has_another(&world, &BTreeSet::new()).await?;
    let ids: BTreeSet<u32> = zones.iter().map(|zone| id_of(zone)).collect::<Result<_, _>>()?;
    assert_eq!(built(&world).iter().map(|vm| vm.vmid).collect::<BTreeSet<u32>>(), ids, "nothing was begun twice");
    assert_eq!(images(&world).len(), 3);
    nothing_is_left_after_deletion(world).await
}

async fn one_template_on_shared_storage_serves_every_host(kind: Kind) -> anyhow::Result<()> {
    let storages = vec![
        StorageSpec::new("shared", &["images", "iso", "import"], 1024 * GIB).shared(),
        StorageSpec::new("local", &["iso"], 256 * GIB),
    ];
    let estate = Estate::new(EstateConfig { storages, ..EstateConfig::default() });
    let Some(mut world) = with_example(kind, estate, json!({ "storageIDs": ["shared"] })).await? else { return Ok(()) };
    world.start_controller()?;
    world.deploy("web", 3).await?;
    world.until_running("web", 3).await?;
    let zones = zones(&world).await?;
    assert_eq!((zones.len(), images(&world).len(), built(&world).len()), (1, 1, 1));
    let records: Vec<_> = world.claims().await?.iter().map(record_of).collect::<Result<_, _>>()?;
    let hosts: BTreeSet<String> = records.iter().map(|record| record.host().to_string()).collect();
    assert_eq!(hosts.len(), 3, "{hosts:?}");
    for record in records {
        assert_eq!(record.template.get(), id_of(zones.iter().next().context("there is no zone")?)?);
    }
    world.scale("web", 0).await?;
    world.until("the nodes are gone", async || Ok(world.vms().is_empty().then_some(()))).await?;
    nothing_is_left_after_deletion(world).await
}

async fn a_certificate_that_is_not_trusted_is_told_and_one_that_is_then_is_tried_at_once(
    kind: Kind,
) -> anyhow::Result<()> {
    let estate = Estate::new(EstateConfig::default());
    let Some(mut world) = with_example(kind, estate, json!({})).await? else { return Ok(()) };
    let url = url_of(&example("ProxmoxTemplate")?)?;
    world.estate.publish(&url, image("1").certificate(WebCertificate::UnknownIssuer));
    world.start_controller()?;
    let told = world.until_condition::<ProxmoxTemplate>(("debian", READY), ("False", "TemplateBuildFailed")).await?;
    for words in ["storage local on host pve1", "doesn't have a known issuer", "insecureSkipTLSVerify"] {
        assert!(told.contains(words), "{told}");
    }
    world.until_told(("ProxmoxTemplate", "debian"), "TemplateBuildFailed", "doesn't have a known issuer").await?;
    assert!(built(&world).is_empty() && images(&world).is_empty());
    let checksum = image("1").sha256();
    let source = json!({ "insecureSkipTLSVerify": true, "checksum": checksum, "checksumType": "sha256" });
    let change = json!({ "spec": { "sourceImage": source } });
    templates(&world).patch("debian", &PatchParams::default(), &Patch::Merge(&change)).await?;
    until_each_host_has_another(&world, &BTreeSet::new()).await?;
    nothing_is_left_after_deletion(world).await
}
