//! Plans from a live cluster and its Proxmox, without a file of instance types: what the controller would choose from.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_api::plan_options::{FeatureGates, PlanOptions};
use tenon_api::{NodePool, ProxmoxNodeClass, ProxmoxUnmanagedTemplate};
use tenon_controllers::RegistrationBook;
use tenon_controllers::first_boot::NodeSecrets;
use tenon_controllers::join::JoinChecks;
use tenon_controllers::status::{StatusContext, pass};
use tenon_model::InstanceType;
use tenon_pve::{Endpoint, Token, Transport};
use tenon_sim::{Cluster, ClusterConfig, Estate, EstateConfig, HostSpec, TemplateSpec};

use super::Input;
use super::collect::{Collected, Collector};
use super::live::list_all;
use super::report::Report;
use super::solve::solve;
use super::supply::{Proxmox, Supply, TypeSource};

const GROUP: &str = "karpenter.proxmox.sinextra.dev";

/// A cluster with a NodePool whose VMs may be created on a small host and on a larger one.
struct Site {
    client: Client,
    estate: Estate,
    regions: BTreeMap<String, tenon_pve::Client>,
}

impl Site {
    async fn new() -> Site {
        let hosts = vec![HostSpec::new("pve1", 2, 4 << 30), HostSpec::new("pve2", 8, 32 << 30)];
        let estate = Estate::new(EstateConfig { hosts, ..EstateConfig::default() });
        for (vmid, host) in [(9001, "pve1"), (9002, "pve2")] {
            let template =
                TemplateSpec { host: host.into(), vmid, name: "debian-13".into(), ..TemplateSpec::default() };
            estate.add_template(&template).unwrap();
        }
        let client = Cluster::new(ClusterConfig::default()).unwrap().client();
        for definition in tenon_api::definitions() {
            Api::all(client.clone()).create(&PostParams::default(), &definition).await.unwrap();
        }
        let regions = BTreeMap::from([("lab".to_owned(), pve(&estate, None))]);
        let site = Site { client, estate, regions };
        site.add_rules().await;
        site
    }

    /// What a user writes, and what the controller makes of it.
    async fn add_rules(&self) {
        let version = format!("{GROUP}/v1alpha1");
        self.create::<ProxmoxUnmanagedTemplate>(json!({ "apiVersion": version, "kind": "ProxmoxUnmanagedTemplate",
            "metadata": { "name": "debian" }, "spec": { "templateName": "debian-13" } }))
            .await;
        self.create::<ProxmoxNodeClass>(json!({ "apiVersion": version, "kind": "ProxmoxNodeClass",
            "metadata": { "name": "default" },
            "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } } }))
            .await;
        let class = json!({ "group": GROUP, "kind": "ProxmoxNodeClass", "name": "default" });
        self.create::<NodePool>(json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": { "name": "default" },
            "spec": { "template": { "spec": { "requirements": [], "nodeClassRef": class } } } }))
            .await;
        let context = StatusContext {
            workload: self.client.clone(),
            secrets: NodeSecrets::new(&self.client, None),
            regions: self.regions.clone().into(),
            gates: FeatureGates::default(),
            join: JoinChecks::none(),
            registrations: RegistrationBook::default(),
        };
        let now: Time = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        pass(&context, &now).await.unwrap();
    }

    async fn create<K>(&self, object: Value)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &object).await.unwrap();
    }

    /// A pod that fits nowhere.
    async fn add_pod(&self, name: &str, cpu: &str) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), "default");
        let container = json!({ "name": "c", "image": "i", "resources": { "requests": { "cpu": cpu } } });
        let pod = json!({ "metadata": { "name": name }, "spec": { "containers": [container] } });
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        let status = json!({ "status": { "conditions":
            [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] } });
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// The plan, and the notes about it.
    async fn plan(&self, regions: &BTreeMap<String, tenon_pve::Client>) -> (Report, Vec<String>) {
        let mut collector = Collector::default();
        list_all(&self.client, &mut collector).await.unwrap();
        let types = InstanceType::built_in();
        let known = Proxmox::look(&self.client, regions, types, &mut collector).await.unwrap();
        let Collected { objects, workloads, notes } = collector.finish().unwrap();
        let (supply, options) = (Supply::Proxmox(known), PlanOptions::default());
        (solve(&Input { objects, workloads, supply, options, disruption: None, loading: Duration::ZERO }), notes)
    }
}

/// The real client, over memory; with the estate's own secret unless another is given.
fn pve(estate: &Estate, secret: Option<&str>) -> tenon_pve::Client {
    let token = EstateConfig::default().tokens.into_iter().next().unwrap();
    let token = Token::new(&token.id, secret.unwrap_or(&token.secret)).unwrap();
    let transport = Transport::over(estate.service(), |_| false);
    tenon_pve::Client::new(vec![Endpoint::new("https://pve.example:8006").unwrap()], transport, token)
}

#[tokio::test(start_paused = true)]
async fn instance_types_and_room_come_from_the_controller_s_own_catalogue() {
    let site = Site::new().await;
    site.add_pod("small", "3").await;
    site.add_pod("huge", "12").await;
    let (report, _) = site.plan(&site.regions).await;
    let claim = &report.new_node_claims[0];
    assert_eq!((report.new_node_claims.len(), claim.pods.as_slice()), (1, &["default/small".to_owned()][..]));
    assert_eq!(claim.offering.zone, "pve2", "the small host has no room for it");
    let is_built_in = |name: &String| InstanceType::built_in().iter().any(|size| size.name == *name);
    assert!(claim.instance_types.iter().all(is_built_in), "{:?}", claim.instance_types);
    assert_eq!(report.unschedulable[0].pod, "default/huge");
    let reasons = report.unschedulable[0].reasons.join("; ");
    assert!(reasons.contains("NodePool default") && reasons.contains("pve2"), "{reasons}");
    let changed = site.estate.ledger().into_iter().filter(|call| call.method != "GET").count();
    assert_eq!(changed, 0, "{:?}", site.estate.ledger());
}

#[tokio::test(start_paused = true)]
async fn a_proxmox_that_refuses_is_noted_and_nothing_is_planned_on_it() {
    let site = Site::new().await;
    site.add_pod("small", "3").await;
    let wrong = pve(&site.estate, Some("99999999-2222-3333-4444-555555555555"));
    let (report, notes) = site.plan(&BTreeMap::from([("lab".to_owned(), wrong)])).await;
    assert!(notes.iter().any(|note| note.starts_with("ignored the hosts of region lab: ")), "{notes:?}");
    assert!(report.new_node_claims.is_empty());
    let reasons = report.unschedulable[0].reasons.join("; ");
    assert!(reasons.contains("Proxmox API of region lab unavailable"), "{reasons}");
}

#[tokio::test(start_paused = true)]
async fn workloads_of_a_cluster_have_the_pods_that_the_cluster_created() {
    let site = Site::new().await;
    let container = json!({ "name": "c", "image": "i" });
    let template = json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [container] } });
    let deployment: Deployment = serde_json::from_value(json!({ "metadata": { "name": "web" }, "spec": {
        "replicas": 3, "selector": { "matchLabels": { "app": "web" } }, "template": template } }))
    .unwrap();
    Api::namespaced(site.client.clone(), "default").create(&PostParams::default(), &deployment).await.unwrap();
    let (report, _) = site.plan(&site.regions).await;
    assert_eq!(report.stats.pods, 0);
}

/// The plan for some objects without a cluster and without a file of instance types.
fn built_in(objects: &str) -> Report {
    let mut collector = Collector::default();
    let supply = TypeSource::BuiltIn(InstanceType::built_in()).without_cluster(&mut collector).unwrap();
    super::load::read_text(&"x.yaml".into(), objects, &mut collector).unwrap();
    let Collected { objects, workloads, notes } = collector.finish().unwrap();
    assert!(notes[0].starts_with("--instance-types is not given: using the built-in instance types"), "{notes:?}");
    solve(&Input {
        objects,
        workloads,
        supply,
        options: PlanOptions::default(),
        disruption: None,
        loading: Duration::ZERO,
    })
}

#[test]
fn without_a_file_and_without_proxmox_the_built_in_instance_types_are_offered_in_every_zone() {
    let pool = |requirements: &str| {
        format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: p}}\nspec: {{template: {{spec: {{requirements: \
             [{requirements}], nodeClassRef: {{group: g, kind: k, name: n}}}}}}}}\n---\n"
        )
    };
    let pod = |name: &str, zone: &str| {
        let selector = format!("nodeSelector: {{topology.kubernetes.io/zone: {zone}}}, ");
        let selector = if zone.is_empty() { "" } else { &selector };
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{selector}containers: [{{name: c}}]}}\n---\n"
        )
    };
    let pods = pod("a", "pve1") + &pod("b", "pve2") + &pod("c", "");
    let zones = "{key: topology.kubernetes.io/zone, operator: In, values: [pve1, pve2]}, {key: \
                 topology.kubernetes.io/region, operator: In, values: [lab]}";
    for requirements in ["", zones] {
        let report = built_in(&format!("{}{pods}", pool(requirements)));
        assert_eq!((report.stats.nodes, report.unschedulable.len()), (2, 0), "{report:?}");
        assert_eq!(report.new_node_claims[0].offering.instance_type, "c1.1VCPU-2GB");
    }
    let elsewhere = built_in(&format!("{}{}", pool(zones), pod("a", "pve3")));
    assert_eq!((elsewhere.stats.nodes, elsewhere.unschedulable.len()), (0, 1));
}
