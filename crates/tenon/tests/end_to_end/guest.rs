//! A VM that is started becomes a Node of a real cluster, does its work, and is silent once its power is cut.

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tenon_cloudinit::{Bootstrap, Seed, Taint, TaintEffect, Templates, render};
use tenon_sim::{Estate, EstateConfig, GuestConfig, Guests, ImageJoin};
use testbed::Testbed;

use crate::bench::{
    add_running_vm, bootstrap_token, eventually, from_json, press, quick_guests, ready_node, seed_input,
    shared_testbed, uuid,
};

const VMID: u32 = 20_001;
const NAME: &str = "default-7f2c";
/// Long past the life of any test.
const FAR: &str = "2099-01-01T00:00:00Z";

async fn joining_seed(testbed: &Testbed, admin: &Client) -> anyhow::Result<Seed> {
    let token = bootstrap_token(admin, "guest1", FAR).await?.parse()?;
    let bootstrap = Bootstrap { api_server: testbed.server().to_owned(), ca_pem: testbed.ca_pem(), token };
    let mut input = seed_input(VMID, NAME, bootstrap)?;
    let kubelet = &mut input.kubelet;
    kubelet.node_labels.insert("team".into(), "red".into());
    kubelet.kube_reserved.insert("cpu".into(), "200m".into());
    kubelet.kube_reserved.insert("memory".into(), "1Gi".into());
    kubelet.max_pods = Some(30);
    kubelet.register_with_taints.push(Taint {
        key: "gpu".into(),
        value: "yes".into(),
        effect: TaintEffect::NoSchedule,
    });
    Ok(render(&input, &Templates::default())?)
}

#[tokio::test]
async fn a_started_vm_becomes_a_node_that_runs_pods_until_its_power_is_cut() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let admin = testbed.admin().await?;
    let estate = Estate::new(EstateConfig::default());
    let guests = Guests::start(&estate, quick_guests());
    add_running_vm(&estate, VMID, NAME, Some(&joining_seed(testbed, &admin).await?))?;

    let node = ready_node(&admin, NAME, || guests.guest_log(VMID)).await?;
    assert_node_is_as_the_seed_says(&serde_json::to_value(&node)?);
    assert_joined_by_signing_request(&admin).await?;
    run_and_delete_a_pod(&admin).await?;

    press(&estate, VMID, "stop").await?;
    eventually("the guest is gone", async || Ok(guests.running().is_empty().then_some(()))).await?;
    let last = renewed_at(&admin).await?;
    // Three times the interval of renewal, in which a living guest would have renewed.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(renewed_at(&admin).await?, last, "{:#?}", guests.guest_log(VMID));

    press(&estate, VMID, "start").await?;
    eventually("the lease is renewed again", async || Ok((renewed_at(&admin).await? != last).then_some(()))).await?;
    let again = Api::<Node>::all(admin.clone()).get(NAME).await?;
    assert_eq!(again.metadata.uid, node.metadata.uid);
    let boot_id = |node: &Node| Some(node.status.as_ref()?.node_info.as_ref()?.boot_id.clone());
    assert_ne!(boot_id(&again), boot_id(&node));
    let log = guests.guest_log(VMID);
    assert_eq!(log.iter().filter(|line| *line == "received a certificate").count(), 1, "{log:#?}");

    estate.remove_vm(VMID)?;
    eventually("the guest is gone", async || Ok(guests.running().is_empty().then_some(()))).await?;
    guests.shutdown().await;
    Ok(())
}

fn assert_node_is_as_the_seed_says(node: &Value) {
    let at = |pointer: &str| node.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(at("/spec/providerID"), "proxmox://lab/20001");
    assert_eq!(at("/metadata/labels/team"), "red");
    assert_eq!(at("/metadata/labels/kubernetes.io~1hostname"), NAME);
    assert_eq!(at("/metadata/labels/kubernetes.io~1os"), "linux");
    assert_eq!(at("/status/nodeInfo/systemUUID"), uuid(VMID));
    assert_eq!(at("/status/nodeInfo/kubeletVersion"), "v1.36.3");
    assert_eq!(at("/status/capacity/cpu"), "4");
    assert_eq!(at("/status/allocatable/cpu"), "3800m");
    assert_eq!(at("/status/allocatable/memory"), format!("{}Mi", 8192 - 1024 - 100));
    assert_eq!(at("/status/allocatable/pods"), "30");
    let taints = at("/spec/taints").as_array().cloned().unwrap_or_default();
    let has = |key: &str, effect: &str| taints.iter().any(|taint| taint["key"] == key && taint["effect"] == effect);
    assert!(has("karpenter.sh/unregistered", "NoExecute") && has("gpu", "NoSchedule"), "{taints:?}");
}

/// The bootstrap token asked, and the cluster's own controllers approved and signed.
async fn assert_joined_by_signing_request(admin: &Client) -> anyhow::Result<()> {
    let requests: Api<CertificateSigningRequest> = Api::all(admin.clone());
    let list = requests.list(&ListParams::default()).await?.items;
    let ours = list.iter().find(|request| request.spec.username.as_deref() == Some("system:bootstrap:guest1"));
    let ours = ours.context("nobody asked with the seed's token")?;
    assert_eq!(ours.spec.signer_name, "kubernetes.io/kube-apiserver-client-kubelet");
    assert!(ours.status.as_ref().is_some_and(|status| status.certificate.is_some()));
    Ok(())
}

async fn run_and_delete_a_pod(admin: &Client) -> anyhow::Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), "default");
    eventually("the default ServiceAccount exists", async || Ok(accounts.get_opt("default").await?)).await?;
    let pods: Api<Pod> = Api::namespaced(admin.clone(), "default");
    let pod: Pod = from_json(json!({
        "metadata": { "name": "guest-work" },
        "spec": {
            "nodeSelector": { "team": "red" },
            "tolerations": [{ "operator": "Exists" }],
            "terminationGracePeriodSeconds": 600,
            "containers": [{ "name": "main", "image": "registry.example/main:1" }],
        },
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    let running = eventually("the pod runs and is ready", async || {
        let pod = pods.get("guest-work").await?;
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let is_true = |kind| conditions.clone().any(|c| c.type_ == kind && c.status == "True");
        let ready = is_true("Ready") && is_true("PodScheduled");
        Ok(ready.then_some(pod))
    })
    .await?;
    assert_eq!(running.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some(NAME));
    let status = running.status.unwrap_or_default();
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert!(status.pod_ip.is_some());

    pods.delete("guest-work", &DeleteParams::default()).await?;
    eventually("the pod is gone", async || Ok(pods.get_opt("guest-work").await?.is_none().then_some(()))).await
}

async fn renewed_at(admin: &Client) -> anyhow::Result<MicroTime> {
    let leases: Api<Lease> = Api::namespaced(admin.clone(), "kube-node-lease");
    let lease = leases.get(NAME).await?;
    assert!(lease.owner_references().iter().any(|owner| owner.kind == "Node"));
    lease.spec.and_then(|spec| spec.renew_time).context("the lease was never renewed")
}

#[tokio::test]
async fn an_image_that_brings_its_own_join_needs_no_seed() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let admin = testbed.admin().await?;
    let (vmid, name) = (20_050, "image-node");
    let join = ImageJoin {
        // An address that nobody has: the guests' own way to the server takes its place.
        server: "https://192.0.2.1:6443".into(),
        ca_pem: testbed.ca_pem(),
        bootstrap_token: bootstrap_token(&admin, "guest2", FAR).await?,
        node_labels: "from=image".into(),
        kubelet_config: Value::Null,
    };
    let guest_api = Some(testbed.server().to_owned());
    let estate = Estate::new(EstateConfig::default());
    // The VM runs already when the guests are told of it.
    add_running_vm(&estate, vmid, name, None)?;
    let guests = Guests::start(&estate, GuestConfig { guest_api, image_join: Some(join), ..quick_guests() });

    let node = ready_node(&admin, name, || guests.guest_log(vmid)).await?;
    assert_eq!(node.labels().get("from").map(String::as_str), Some("image"));
    assert_eq!(node.spec.and_then(|spec| spec.provider_id), None);
    let info = node.status.and_then(|status| status.node_info).context("it has no nodeInfo")?;
    assert_eq!(info.system_uuid, uuid(vmid));
    guests.shutdown().await;
    Ok(())
}
