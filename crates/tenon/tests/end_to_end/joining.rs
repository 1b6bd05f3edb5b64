//! What nodes need to join is checked before any VM is made, and their tokens are gone when nobody needs them.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use anyhow::Context as _;
use http::{Request, Response};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, names};
use tenon_sim::GuestConfig;

use crate::bench::{from_json, quick_guests};
use crate::ground::{Kind, scenarios};
use crate::world::World;

scenarios! {
    without_the_bindings_the_pool_says_what_to_type_and_nodes_come_once_it_is_typed,
    a_token_is_deleted_when_its_node_has_registered,
}

/// The example that the guide names.
const EXAMPLE: &str = include_str!("../../../../examples/bootstrap-rbac.yaml");
const ROLES: [&str; 2] =
    ["system:node-bootstrapper", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"];

/// Takes away what lets bootstrap tokens join, and waits until the API server knows that.
pub(crate) async fn unbind(world: &World, roles: &[&str]) -> anyhow::Result<()> {
    let bindings: Api<ClusterRoleBinding> = Api::all(world.admin.clone());
    for binding in bindings.list(&ListParams::default()).await?.items {
        if roles.contains(&binding.role_ref.name.as_str()) {
            bindings.delete(&binding.name_any(), &DeleteParams::default()).await?;
        }
    }
    let subresource = if roles.contains(&ROLES[0]) { "" } else { "nodeclient" };
    let review: SubjectAccessReview = from_json(json!({
        "metadata": {},
        "spec": {
            "user": "system:bootstrap:abcdef", "groups": ["system:bootstrappers", names::BOOTSTRAP_GROUP],
            "resourceAttributes": {
                "verb": "create", "group": "certificates.k8s.io", "resource": "certificatesigningrequests",
                "subresource": subresource,
            },
        },
    }))?;
    let reviews: Api<SubjectAccessReview> = Api::all(world.admin.clone());
    world
        .until("bootstrap tokens may not join", async || {
            let told = reviews.create(&PostParams::default(), &review).await?;
            Ok(told.status.is_some_and(|status| !status.allowed).then_some(()))
        })
        .await
}

/// The bindings as the lines of a message would create them: name, role, group.
fn typed(message: &str) -> BTreeSet<[String; 3]> {
    let lines = message.split("kubectl create clusterrolebinding ").skip(1);
    let word = |line: &str, flag: &str| {
        let mut words = line.split_whitespace();
        words.find_map(|word| word.strip_prefix(flag)).unwrap_or_default().to_owned()
    };
    let name = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    lines.map(|line| [name(line), word(line, "--clusterrole="), word(line, "--group=")]).collect()
}

async fn without_the_bindings_the_pool_says_what_to_type_and_nodes_come_once_it_is_typed(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    unbind(&world, &ROLES).await?;
    world.add_rules().await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let told = world
        .until_within(Duration::from_secs(20), "the pool says so", async || {
            let found = world.condition::<NodePool>("default", "NodeClassReady").await?;
            Ok(found.filter(|told| told.reason == "BootstrapBindingsMissing").map(|told| told.message))
        })
        .await?;
    let of_class = world.condition::<ProxmoxNodeClass>("default", "InstanceMetadataOptionsReady").await?;
    assert_eq!(
        of_class.map(|told| (told.reason, told.message)),
        Some(("BootstrapBindingsMissing".into(), told.clone()))
    );
    let examples: Vec<ClusterRoleBinding> = serde_saphyr::from_multiple(EXAMPLE)?;
    let of_example = |binding: &ClusterRoleBinding| {
        let group = binding.subjects.iter().flatten().map(|subject| subject.name.clone()).collect();
        [binding.name_any(), binding.role_ref.name.clone(), group]
    };
    assert_eq!(typed(&told), examples.iter().map(of_example).collect(), "the example is what the message says: {told}");
    // Other passes go by, and still no VM is made.
    world.let_pass(Duration::from_secs(10)).await?;
    assert_eq!((world.clones().len(), world.vms()), (0, Vec::new()));
    for binding in &examples {
        Api::all(world.admin.clone()).create(&PostParams::default(), binding).await?;
    }
    world.until_running("web", 1).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

fn tokens(world: &World) -> (Api<Secret>, ListParams) {
    let ours = ListParams::default().labels(&format!("{}=true", names::LABEL_BOOTSTRAP_TOKEN));
    (Api::namespaced(world.admin.clone(), "kube-system"), ours)
}

async fn until_token(world: &World) -> anyhow::Result<Secret> {
    let (secrets, ours) = tokens(world);
    world.until("a token exists", async || Ok(secrets.list(&ours).await?.items.pop())).await
}

async fn until_no_token(world: &World) -> anyhow::Result<()> {
    let (secrets, ours) = tokens(world);
    world
        .until_within(Duration::from_secs(600), "no token is left", async || {
            Ok(secrets.list(&ours).await?.items.is_empty().then_some(()))
        })
        .await
}

async fn a_token_is_deleted_when_its_node_has_registered(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_template("debian-13").await?;
    world.add_class(json!({})).await?;
    let template = json!({ "spec": {
        "requirements": [],
        "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
        "startupTaints": [{ "key": "example.com/not-yet", "effect": "NoSchedule" }],
    } });
    world.add_pool(json!({ "template": template })).await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let token = until_token(&world).await?;
    let claim = world.claims().await?.pop().context("no claim")?;
    assert_eq!(token.annotations().get(names::ANNOTATION_CLAIM_UID), claim.uid().as_ref());
    world.until_condition::<NodeClaim>((&claim.name_any(), "Registered"), ("True", "Registered")).await?;
    let (secrets, ours) = tokens(&world);
    world.until("the token is gone", async || Ok(secrets.list(&ours).await?.items.is_empty().then_some(()))).await?;
    // Its taint keeps it from being initialized.
    let taint = ("Unknown", "StartupTaintsExist");
    world.until_condition::<NodeClaim>((&claim.name_any(), "Initialized"), taint).await?;
    world.scale("web", 0).await?;
    world.delete_claim(&claim.name_any()).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// A world whose guests never come, with one claim whose VM runs.
async fn waiting() -> anyhow::Result<(World, NodeClaim)> {
    let mut world =
        World::new(Kind::Embedded, GuestConfig::default()).await?.context("an embedded world is always there")?;
    world.replace_guests(None).await;
    world.add_rules().await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let is_launched = |record: &tenon_model::LaunchRecord| record.step == tenon_model::LaunchStep::Launched;
    let (claim, _) = world.until_launch("a VM runs", is_launched).await?;
    Ok((world, claim))
}

async fn end_of(world: World) -> anyhow::Result<()> {
    world.scale("web", 0).await?;
    for claim in world.claims().await? {
        world.delete_claim(&claim.name_any()).await?;
    }
    world.until_nothing_is_left().await?;
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn embedded_a_token_whose_claim_was_removed_while_nobody_looked_is_swept() -> anyhow::Result<()> {
    let (mut world, claim) = waiting().await?;
    world.kill_controller()?;
    world.scale("web", 0).await?;
    let claims: Api<NodeClaim> = Api::all(world.admin.clone());
    let free = json!({ "metadata": { "finalizers": null } });
    claims.patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(free)).await?;
    claims.delete(&claim.name_any(), &DeleteParams::default()).await?;
    // Somebody else's, of the same label: it has not expired, and stays.
    let other: Secret = from_json(json!({
        "metadata": { "name": "bootstrap-token-other1", "labels": { names::LABEL_BOOTSTRAP_TOKEN: "true" } },
        "type": "bootstrap.kubernetes.io/token",
        "stringData": { "token-id": "other1", "token-secret": "0123456789abcdef", "expiration": "2100-01-01T00:00:00Z" },
    }))?;
    let (secrets, ours) = tokens(&world);
    secrets.create(&PostParams::default(), &other).await?;
    world.start_controller()?;
    world
        .until_within(Duration::from_secs(600), "only the other token is left", async || {
            let left: Vec<String> = secrets.list(&ours).await?.items.iter().map(ResourceExt::name_any).collect();
            Ok((left == ["bootstrap-token-other1"]).then_some(()))
        })
        .await?;
    let past = json!({ "stringData": { "expiration": "2020-01-01T00:00:00Z" } });
    secrets.patch("bootstrap-token-other1", &PatchParams::default(), &Patch::Merge(past)).await?;
    until_no_token(&world).await?;
    // The orphaned VM goes first, and its seed after it.
    let is_seed = |volume: &tenon_sim::VolumeView| volume.content == "iso";
    world.until("no seed is left", async || Ok((!world.estate.volumes().iter().any(is_seed)).then_some(()))).await?;
    end_of(world).await
}

#[tokio::test(start_paused = true)]
async fn embedded_a_token_that_would_expire_before_its_node_joins_is_extended() -> anyhow::Result<()> {
    let (world, _) = waiting().await?;
    let token = until_token(&world).await?;
    let (secrets, _) = tokens(&world);
    let epoch = i64::try_from(tenon_sim::ClusterConfig::default().epoch_s)?;
    let soon = k8s_openapi::jiff::Timestamp::from_second(epoch + 600)?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = json!({ "stringData": { "expiration": soon } });
    secrets.patch(&token.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    world
        .until_within(Duration::from_secs(300), "the token is extended", async || {
            let data = secrets.get(&token.name_any()).await?.data.unwrap_or_default();
            Ok((data.get("expiration").map(|bytes| bytes.0.as_slice()) > Some(soon.as_bytes())).then_some(()))
        })
        .await?;
    end_of(world).await
}

#[tokio::test(start_paused = true)]
async fn embedded_a_token_that_was_deleted_before_the_vm_has_it_is_made_anew() -> anyhow::Result<()> {
    let mut world = World::new(Kind::Embedded, quick_guests()).await?.context("an embedded world is always there")?;
    world.add_rules().await?;
    world.estate.hold_tasks("qmclone");
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let token = until_token(&world).await?;
    let (secrets, _) = tokens(&world);
    world.until("a clone is under way", async || Ok((world.clones().len() == 1).then_some(()))).await?;
    secrets.delete(&token.name_any(), &DeleteParams::default()).await?;
    world.estate.release_tasks();
    world.until_running("web", 1).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn embedded_join_data_that_is_missing_shows_on_the_pool_before_any_vm_is_made() -> anyhow::Result<()> {
    let mut world = World::new(Kind::Embedded, quick_guests()).await?.context("an embedded world is always there")?;
    let maps: Api<ConfigMap> = Api::namespaced(world.admin.clone(), "kube-system");
    let roots = maps.get("kube-root-ca.crt").await?;
    maps.delete("kube-root-ca.crt", &DeleteParams::default()).await?;
    world.add_rules().await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let told = world.until_condition::<NodePool>(("default", "NodeClassReady"), ("False", "JoinDataMissing")).await?;
    assert_eq!(
        told,
        "Nodes cannot join: ConfigMap kube-system/kube-root-ca.crt does not exist; check --system-namespace"
    );
    assert_eq!(world.clones().len(), 0);
    let again: Value = json!({ "metadata": { "name": "kube-root-ca.crt" }, "data": roots.data });
    maps.create(&PostParams::default(), &from_json(again)?).await?;
    world.until_running("web", 1).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// A client to whom requests below these paths are forbidden.
fn limited(client: Client, paths: &'static [&'static str]) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, path) = (client.clone(), request.uri().path().to_owned());
        async move {
            if !paths.iter().any(|forbidden| path.ends_with(forbidden)) {
                return client.send(request).await.map_err(io::Error::other);
            }
            let status = json!({
                "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
                "message": format!("{path} is forbidden"), "metadata": {},
            });
            let body = Body::from(status.to_string().into_bytes());
            Response::builder().status(403).body(body).map_err(io::Error::other)
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn embedded_without_the_rights_to_look_nodes_come_unchecked_and_that_is_said_once() -> anyhow::Result<()> {
    let mut world = World::new(Kind::Embedded, quick_guests()).await?.context("an embedded world is always there")?;
    world.connect(limited(world.admin.clone(), &["/subjectaccessreviews", "/certificatesigningrequests"]))?;
    world.add_rules().await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    world.let_pass(Duration::from_secs(80)).await?;
    let told = world.events("AccessReviewFailed").await?;
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains("is forbidden (Kubernetes API, HTTP 403); grant the controller create on"), "{}", told[0]);
    // A node that does not come is told of with what else is known.
    world.replace_guests(None).await;
    world.deploy("more", 1).await?;
    let said = world
        .until_within(Duration::from_secs(300), "a late node", async || Ok(world.events("NodeNotJoined").await?.pop()))
        .await?;
    assert!(said.contains("started: read cloud-init and kubelet on the VM's console"), "{said}");
    world.end().await
}
