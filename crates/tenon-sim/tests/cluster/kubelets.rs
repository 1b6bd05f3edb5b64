//! Simulated kubelets live in the cluster while its clock stands still between their steps.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use tenon_sim::{
    Cluster, ClusterConfig, Estate, EstateConfig, GuestConfig, GuestFault, GuestFaultRule, Guests, ImageJoin,
    TemplateSpec, VmSpec,
};

use crate::cluster::identity::{TOKEN, add_token};
use crate::cluster::{Asker, PODS, pod};

const EPOCH: u64 = 1_800_000_000;

/// A cluster with rights asked for, and one VM that boots into it.
async fn joined() -> (Cluster, Estate, Guests) {
    struck(&[]).await
}

/// The same with faults of guests.
async fn struck(faults: &[GuestFault]) -> (Cluster, Estate, Guests) {
    let cluster = Cluster::new(ClusterConfig { epoch_s: EPOCH, rbac: true, ..ClusterConfig::default() }).unwrap();
    cluster.bind_bootstrappers();
    add_token(&cluster, "2027-01-15T09:00:00Z").await;
    let join = ImageJoin {
        server: "https://10.0.0.1:6443".into(),
        ca_pem: cluster.ca_pem(),
        bootstrap_token: TOKEN.into(),
        node_labels: "pool=a".into(),
        kubelet_config: serde_json::Value::Null,
    };
    let config = GuestConfig {
        image_join: Some(join),
        connect: Arc::new(cluster.clone()),
        epoch_s: Some(EPOCH),
        faults: faults.iter().map(|fault| GuestFaultRule::of(20_001, fault.clone())).collect(),
        ..GuestConfig::default()
    };
    let estate = Estate::new(EstateConfig::default());
    let guests = Guests::start(&estate, config);
    let base = TemplateSpec { vmid: 20_001, name: "worker".into(), ..TemplateSpec::default() };
    estate.add_vm(&VmSpec { base, running: true }).unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    (cluster, estate, guests)
}

#[tokio::test(start_paused = true)]
async fn a_guest_joins_as_a_node_and_keeps_its_lease() {
    let (cluster, _estate, guests) = joined().await;
    let nodes: Api<Node> = Api::all(cluster.client());
    let node = nodes.get("worker").await.unwrap_or_else(|error| panic!("{error}: {:?}", guests.guest_log(20_001)));
    let ready = node.status.unwrap().conditions.unwrap().into_iter().find(|told| told.type_ == "Ready").unwrap();
    assert_eq!(ready.status, "True");
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "kube-node-lease");
    let renewed = async || leases.get("worker").await.unwrap().spec.unwrap().renew_time.unwrap().0;
    let before = renewed().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(renewed().await.duration_since(before).as_secs(), 60);
    nodes.delete("worker", &DeleteParams::default()).await.unwrap();
    assert!(leases.get_opt("worker").await.unwrap().is_none(), "a Lease goes with its Node");
    guests.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_runs_and_ends_after_its_grace() {
    let (cluster, _estate, guests) = joined().await;
    let (asker, pods) = (Asker(cluster.client()), Api::<Pod>::default_namespaced(cluster.client()));
    pods.create(&PostParams::default(), &serde_json::from_value(pod("a")).unwrap()).await.unwrap();
    let target = json!({ "kind": "Node", "name": "worker" });
    let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "a" }, "target": target });
    asker.make(&format!("{PODS}/a/binding"), binding).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let phase = async || pods.get_opt("a").await.unwrap().map(|pod| pod.status.unwrap().phase.unwrap());
    assert_eq!(phase().await.as_deref(), Some("Running"), "{:?}", guests.guest_log(20_001));
    pods.delete("a", &DeleteParams::default().grace_period(20)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(19)).await;
    assert_eq!(phase().await.as_deref(), Some("Running"));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(phase().await, None);
    guests.shutdown().await;
}

async fn node_names(cluster: &Cluster) -> Vec<String> {
    let nodes: Api<Node> = Api::all(cluster.client());
    let list = nodes.list(&ListParams::default()).await.unwrap();
    list.items.iter().filter_map(|node| node.metadata.name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_boots_slowly_joins_late() {
    let (cluster, _estate, guests) = struck(&[GuestFault::BootsSlowly { by: Duration::from_secs(120) }]).await;
    assert_eq!(node_names(&cluster).await, [""; 0]);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(node_names(&cluster).await, ["worker"]);
    guests.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_hangs_or_never_joins_is_no_node_and_runs_on() {
    for fault in [GuestFault::NeverJoins, GuestFault::Hangs { after: Duration::ZERO }] {
        let (cluster, estate, guests) = struck(std::slice::from_ref(&fault)).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(node_names(&cluster).await, [""; 0], "{fault:?}");
        assert_eq!((estate.vm(20_001).unwrap().status, guests.running()), ("running", vec![20_001]), "{fault:?}");
        guests.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_crashes_turns_its_vm_off() {
    let (cluster, estate, guests) = struck(&[GuestFault::Crashes { after: Duration::from_secs(60) }]).await;
    assert_eq!((node_names(&cluster).await.len(), estate.vm(20_001).unwrap().status), (1, "running"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((estate.vm(20_001).unwrap().status, guests.running()), ("stopped", vec![]));
    guests.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_joins_twice_has_two_nodes_of_one_system() {
    let (cluster, _estate, guests) = struck(&[GuestFault::JoinsTwice { name: Some("debian".into()) }]).await;
    assert_eq!(node_names(&cluster).await, ["debian", "worker"], "{:?}", guests.guest_log(20_001));
    let nodes: Api<Node> = Api::all(cluster.client());
    let uuid = async |name: &str| nodes.get(name).await.unwrap().status.unwrap().node_info.unwrap().system_uuid;
    assert_eq!(uuid("debian").await, uuid("worker").await);
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "kube-node-lease");
    assert!(leases.get_opt("debian").await.unwrap().is_none() && leases.get_opt("worker").await.unwrap().is_some());
    guests.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_of_the_wrong_name_joins_under_it() {
    let (cluster, _estate, guests) = struck(&[GuestFault::WrongName { name: None }]).await;
    assert_eq!(node_names(&cluster).await, ["vm-20001"]);
    guests.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_loses_its_network_stops_its_heartbeats_until_it_is_back() {
    let (after, lasts) = (Duration::from_secs(60), Some(Duration::from_secs(120)));
    let (cluster, estate, guests) = struck(&[GuestFault::LosesNetwork { after, lasts }]).await;
    let leases: Api<Lease> = Api::namespaced(cluster.client(), "kube-node-lease");
    let renewed = async || leases.get("worker").await.unwrap().spec.unwrap().renew_time.unwrap().0;
    tokio::time::sleep(Duration::from_secs(40)).await;
    let last = renewed().await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!((renewed().await, estate.vm(20_001).unwrap().status), (last, "running"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(renewed().await > last);
    guests.shutdown().await;
}
