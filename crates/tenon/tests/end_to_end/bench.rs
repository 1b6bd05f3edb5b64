//! What the tests of this binary share: one control plane, seeds, VMs, and patience with a bound.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use axum::body::Body;
use http::Request;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use tenon_cloudinit::{Bootstrap, Identity, Seed, SeedInput, Templates, render};
use tenon_model::VmId;
use tenon_sim::{Estate, GuestConfig, TemplateSpec, VmSpec};
pub(crate) use testbed::{eventually, shared_testbed};
use tower::ServiceExt as _;

/// The estate's usual token.
const PVE_TOKEN: &str = "PVEAPIToken=tenon@pve!sim=11111111-2222-3333-4444-555555555555";
/// The secret half of every bootstrap token.
const TOKEN_SECRET: &str = "0123456789abcdef";

/// An object written as JSON, which reads better than nested `Some`s.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> anyhow::Result<T> {
    serde_json::from_value(value).context("the test's own object does not parse")
}

/// A bootstrap token of the cluster.
pub(crate) async fn bootstrap_token(admin: &Client, id: &str, expiration: &str) -> anyhow::Result<String> {
    let secret: Secret = from_json(json!({
        "metadata": { "name": format!("bootstrap-token-{id}") },
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": id, "token-secret": TOKEN_SECRET, "expiration": expiration,
            "usage-bootstrap-authentication": "true",
        },
    }))?;
    Api::namespaced(admin.clone(), "kube-system").create(&PostParams::default(), &secret).await?;
    Ok(format!("{id}.{TOKEN_SECRET}"))
}

/// What a seed needs for one VM that joins the testbed.
pub(crate) fn seed_input(vmid: u32, name: &str, bootstrap: Bootstrap) -> anyhow::Result<SeedInput> {
    let mut input = SeedInput::new(Identity::new(VmId::try_from(vmid)?, name));
    input.identity.provider_id = format!("proxmox://lab/{vmid}");
    input.bootstrap = Some(bootstrap);
    Ok(input)
}

/// The seed of a VM about which nothing is unusual.
pub(crate) fn plain_seed(vmid: u32, name: &str, bootstrap: Bootstrap) -> anyhow::Result<Seed> {
    Ok(render(&seed_input(vmid, name, bootstrap)?, &Templates::default())?)
}

/// Starts a VM of four cores and 8 GiB, with the seed in its drive if there is one.
pub(crate) fn add_running_vm(estate: &Estate, vmid: u32, name: &str, seed: Option<&Seed>) -> anyhow::Result<()> {
    let mut config: BTreeMap<String, String> =
        [("cores", "4"), ("memory", "8192"), ("smbios1", &format!("uuid={}", uuid(vmid).to_uppercase()))]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
    if let Some(seed) = seed {
        let volid = format!("local:iso/seed-{vmid}.iso");
        estate.put_iso("pve1", &volid, seed.iso()?.into())?;
        config.insert("ide2".into(), format!("{volid},media=cdrom"));
    }
    let base = TemplateSpec { vmid, name: name.into(), cloudinit_drive: seed.is_none(), config, ..Default::default() };
    Ok(estate.add_vm(&VmSpec { base, running: true })?)
}

/// The SMBIOS uuid of the test's VM, as its kernel shows it.
pub(crate) fn uuid(vmid: u32) -> String {
    format!("1f0a2b3c-0000-4000-8000-{vmid:012x}")
}

/// Presses a button of a VM through the estate's API: `start` or `stop`.
pub(crate) async fn press(estate: &Estate, vmid: u32, button: &str) -> anyhow::Result<()> {
    let uri = format!("/api2/json/nodes/pve1/qemu/{vmid}/status/{button}");
    let request = Request::builder().method("POST").uri(uri).header("authorization", PVE_TOKEN).body(Body::empty())?;
    let Ok(response) = estate.service().oneshot(request).await;
    ensure!(response.status().is_success(), "{button} of VM {vmid} was refused: {}", response.status());
    Ok(())
}

/// Guests that waste no time.
pub(crate) fn quick_guests() -> GuestConfig {
    GuestConfig {
        boot_delay: Duration::from_millis(100),
        pod_start_delay: Duration::from_millis(100),
        max_grace: Duration::from_secs(1),
        lease_interval: Duration::from_secs(1),
        retry_first: Duration::from_millis(200),
        retry_most: Duration::from_secs(2),
        ..GuestConfig::default()
    }
}

/// The Node of this name once it is ready. If it never is, what its guest said is in the error.
pub(crate) async fn ready_node(admin: &Client, name: &str, log: impl Fn() -> Vec<String>) -> anyhow::Result<Node> {
    let nodes: Api<Node> = Api::all(admin.clone());
    let is_ready = |node: &Node| {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    let what = format!("node {name} is ready");
    let waited = eventually(&what, async || Ok(nodes.get_opt(name).await?.filter(is_ready)));
    waited.await.with_context(|| format!("the guest says {:#?}", log()))
}
