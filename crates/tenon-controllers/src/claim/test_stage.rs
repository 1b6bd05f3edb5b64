//! A cluster in memory for tests of NodeClaims: one pool, one class, a Proxmox with a template, and a controller whose passes
//! are made one by one. Time stands still but for what a test lets pass.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_api::{Condition, NodeClaim, NodePool, ProxmoxNodeClass, launch_record, names};
use tenon_model::{InstanceType, LaunchRecord, Place};
use tenon_pve::{Endpoint, Token, Transport};
use tenon_sim::{Cluster, ClusterConfig, Estate, EstateConfig, TemplateSpec};
use tokio::task::JoinSet;

use super::reconcile::reconcile;
use crate::clock::Clock;
use crate::context::Context;
use crate::events::Events;
use crate::first_boot::NodeSecrets;
use crate::join::{Board, Reviewer};
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::provision::owner;
use crate::regions::Regions;
use crate::settings::Settings;
use crate::vm_id_book::VmIdBook;
use crate::watched::watch_all;

/// The cluster, and what a pass works with.
pub(crate) struct ClaimStage {
    pub(crate) context: Arc<Context>,
    pub(crate) client: Client,
    pub(crate) estate: Estate,
    _watching: JoinSet<()>,
}

impl ClaimStage {
    pub(crate) async fn new() -> ClaimStage {
        ClaimStage::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> ClaimStage {
        ClaimStage::on(ClusterConfig::default(), settings).await.0
    }

    /// On a cluster that is made so, which comes along.
    pub(crate) async fn on(config: ClusterConfig, settings: Settings) -> (ClaimStage, Cluster) {
        let epoch = Timestamp::from_second(i64::try_from(config.epoch_s).unwrap()).unwrap();
        let clock = Clock::Runtime { epoch, origin: tokio::time::Instant::now() };
        let cluster = Cluster::new(config).unwrap();
        cluster.bind_bootstrappers();
        let client = cluster.client();
        fill(&client).await;
        let (watched, watches) = watch_all(&client, settings.owners());
        let watching = watches.read();
        watched.ready().await;
        let estate = Estate::new(EstateConfig::default());
        let host = "pve1".to_owned();
        let template = TemplateSpec { host, vmid: 9001, name: "debian".to_owned(), ..TemplateSpec::default() };
        estate.add_template(&template).unwrap();
        let regions = Regions::from(BTreeMap::from([("lab".to_owned(), proxmox(&estate))]));
        let context = Context {
            workload: client.clone(),
            secrets: NodeSecrets::new(&client, None),
            settings,
            cluster_id: "c".to_owned(),
            clock,
            events: Events::new(client.clone(), clock),
            metrics: Arc::new(Metrics::with(regions.meter.clone())),
            regions,
            watched,
            memory: Memory::default(),
            ids: VmIdBook::new(client.clone(), "kube-system"),
            survey: crate::addresses::AddressSurvey::default(),
            cpus: crate::cpus::CpuSurvey::default(),
            board: Board::new(Arc::new(Reviewer::new(client.clone(), true))),
        };
        (ClaimStage { context: Arc::new(context), client, estate, _watching: watching }, cluster)
    }

    /// From now on the API server forbids the controller what this is true for, by method and path.
    pub(crate) fn forbid(&mut self, is_forbidden: fn(&str, &str) -> bool) {
        self.refuse(403, is_forbidden);
    }

    /// From now on the API server refuses the controller with this code what this is true for, by method and path.
    pub(crate) fn refuse(&mut self, code: u16, is_refused: fn(&str, &str) -> bool) {
        let client = self.client.clone();
        let refusing = tower::service_fn(move |request: http::Request<Body>| {
            let client = client.clone();
            async move {
                if !is_refused(request.method().as_str(), request.uri().path()) {
                    return client.send(request).await;
                }
                let reason = if code == 403 { "Forbidden" } else { "Refused" };
                let message = reason.to_lowercase();
                let told = json!({ "status": "Failure", "message": message, "reason": reason, "code": code });
                let answer = http::Response::builder().status(code).body(Body::from(told.to_string().into_bytes()));
                Ok(answer.unwrap())
            }
        });
        let context = Arc::get_mut(&mut self.context).unwrap();
        context.workload = Client::new(refusing, "default");
    }

    /// Lets the watches show what was written.
    pub(crate) async fn settle(&self) {
        // Time goes on only once nobody has anything left to do.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// One pass of a claim; when the next is due.
    pub(crate) async fn pass(&self, claim: &str) -> Option<Duration> {
        self.settle().await;
        let again = reconcile(claim, &self.context).await;
        self.settle().await;
        again
    }

    /// Passes of a claim, each when it is due, for so many seconds or until the claim is gone.
    pub(crate) async fn run(&self, claim: &str, seconds: u64) {
        let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
        while let Some(again) = self.pass(claim).await {
            let due = tokio::time::Instant::now() + again;
            tokio::time::sleep_until(due.min(end)).await;
            if due >= end {
                return;
            }
        }
    }

    /// A claim as it is planned, with more in it.
    pub(crate) async fn add_claim(&self, name: &str, more: Value) {
        let instance_type = &InstanceType::built_in()[0].name;
        let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
        let number = 20_000 + u32::try_from(self.claims().await.len()).unwrap();
        let pool = Api::<NodePool>::all(self.client.clone()).get("default").await.unwrap();
        let now = self.context.clock.seconds();
        let record = LaunchRecord::new(place, number.try_into().unwrap(), 9_001.try_into().unwrap(), now);
        let mut claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": name,
                "labels": {
                    names::LABEL_NODEPOOL: "default", names::LABEL_INSTANCE_TYPE: instance_type,
                    names::LABEL_ZONE: "pve1", names::LABEL_CAPACITY_TYPE: "on-demand",
                    names::LABEL_NODECLASS: "default",
                },
                "annotations": { names::ANNOTATION_LAUNCH: launch_record::write(&record) },
                "ownerReferences": [owner(&pool)],
            },
            "spec": {
                "expireAfter": "Never", "requirements": [],
                "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
            },
        });
        merge(&mut claim, more);
        self.create::<NodeClaim>(Api::all(self.client.clone()), claim).await;
    }

    /// A claim whose VM runs.
    pub(crate) async fn add_launched(&self, name: &str, more: Value) {
        self.add_claim(name, more).await;
        self.run(name, 30).await;
        assert_eq!(self.condition(name, "Launched").await.0, "True", "{:?}", self.claim(name).await);
    }

    /// A claim with a Node that takes pods.
    pub(crate) async fn add_initialized(&self, name: &str, more: Value) {
        self.add_launched(name, more).await;
        self.add_node(name, json!({})).await;
        self.run(name, 30).await;
        assert_eq!(self.condition(name, "Initialized").await.0, "True", "{:?}", self.claim(name).await);
    }

    /// The Node of a claim's VM, as its kubelet makes it, with more in it.
    pub(crate) async fn add_node(&self, name: &str, more: Value) {
        let unregistered = json!({ "key": names::TAINT_UNREGISTERED, "effect": "NoExecute" });
        let uuid = self.record(name).await.uuid.unwrap();
        let mut node = json!({
            "metadata": { "name": name }, "spec": { "taints": [unregistered] },
            "status": {
                "nodeInfo": { "systemUUID": uuid }, "allocatable": { "cpu": "1", "memory": "1Gi" },
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        merge(&mut node, more);
        // The server itself taints every new Node; nobody is here to take that off again.
        let taints = json!({ "spec": { "taints": node["spec"]["taints"] } });
        self.create::<Node>(self.nodes_api(), node).await;
        self.patch(self.nodes_api(), name, taints).await;
    }

    /// A pod that runs on a node, with more in it.
    pub(crate) async fn add_pod(&self, (node, name): (&str, &str), more: Value) {
        let mut pod = json!({
            "metadata": { "name": name, "namespace": "default", "labels": { "app": name } },
            "spec": { "nodeName": node, "containers": [{ "name": "c", "image": "x" }] },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        merge(&mut pod, more);
        self.create::<Pod>(self.pods_api(), pod).await;
    }

    /// A pod has ended, as its kubelet says.
    pub(crate) async fn end_pod(&self, name: &str) {
        self.pods_api().delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
    }

    /// Makes any object, with its status.
    pub(crate) async fn create<K>(&self, api: Api<K>, mut object: Value)
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
    {
        create(&api, &mut object).await;
        self.settle().await;
    }

    pub(crate) async fn patch<K>(&self, api: Api<K>, name: &str, patch: Value)
    where
        K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
    {
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        self.settle().await;
    }

    pub(crate) async fn patch_status<K>(&self, api: Api<K>, name: &str, status: Value)
    where
        K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
        self.settle().await;
    }

    /// What `kubectl delete --wait=false` does.
    pub(crate) async fn delete<K>(&self, api: Api<K>, name: &str)
    where
        K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
    {
        api.delete(name, &DeleteParams::default()).await.unwrap();
        self.settle().await;
    }

    pub(crate) fn claims_api(&self) -> Api<NodeClaim> {
        Api::all(self.client.clone())
    }

    pub(crate) fn nodes_api(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(crate) fn pods_api(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) async fn claims(&self) -> Vec<NodeClaim> {
        self.claims_api().list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) async fn claim(&self, name: &str) -> NodeClaim {
        self.claims_api().get(name).await.unwrap()
    }

    pub(crate) async fn is_gone(&self, claim: &str) -> bool {
        self.claims_api().get_opt(claim).await.unwrap().is_none()
    }

    pub(crate) async fn is_deleting(&self, claim: &str) -> bool {
        self.claim(claim).await.metadata.deletion_timestamp.is_some()
    }

    pub(crate) async fn node(&self, name: &str) -> Option<Node> {
        self.nodes_api().get_opt(name).await.unwrap()
    }

    pub(crate) async fn pod(&self, name: &str) -> Option<Pod> {
        self.pods_api().get_opt(name).await.unwrap()
    }

    /// Whether a pod, which must be there, was told to end.
    pub(crate) async fn is_leaving(&self, pod: &str) -> bool {
        self.pod(pod).await.unwrap().metadata.deletion_timestamp.is_some()
    }

    pub(crate) async fn record(&self, claim: &str) -> LaunchRecord {
        launch_record::read(&self.claim(claim).await.annotations()[names::ANNOTATION_LAUNCH]).unwrap()
    }

    /// VMs that are no template.
    pub(crate) fn vms(&self) -> Vec<u32> {
        self.estate.vms().iter().map(|vm| vm.vmid).filter(|vmid| *vmid >= 20_000).collect()
    }

    /// A condition of a claim: status, reason and message.
    pub(crate) async fn condition(&self, claim: &str, type_: &str) -> (String, String, String) {
        let status = self.claim(claim).await.status;
        let conditions: Vec<Condition> = status.and_then(|status| status.conditions).unwrap_or_default();
        let found = conditions.into_iter().find(|condition| condition.type_ == type_);
        found.map(|found| (format!("{:?}", found.status), found.reason, found.message)).unwrap_or_default()
    }

    /// What was said of an object, by reason.
    pub(crate) async fn told(&self, name: &str, reason: &str) -> Vec<String> {
        let list = Api::<Event>::all(self.client.clone()).list(&ListParams::default()).await.unwrap().items;
        let is_of = |event: &Event| event.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some(name);
        let said = list.into_iter().filter(|event| is_of(event) && event.reason.as_deref() == Some(reason));
        said.filter_map(|event| event.note).collect()
    }

    /// The value of a counter whose line has all of these words.
    pub(crate) fn counted(&self, metric: &str, labels: &[&str]) -> u64 {
        let text = self.context.metrics.text();
        let is_it = |line: &&str| line.starts_with(metric) && labels.iter().all(|label| line.contains(label));
        let values = text.lines().filter(is_it).filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        values.sum()
    }
}

/// Sets what `more` has in `object`, at any depth.
pub(crate) fn merge(object: &mut Value, more: Value) {
    match (object, more) {
        (Value::Object(object), Value::Object(more)) => {
            for (key, value) in more {
                merge(object.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more,
    }
}

async fn create<K>(api: &Api<K>, object: &mut Value)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let status = object.as_object_mut().unwrap().remove("status");
    let whole: K = serde_json::from_value(object.clone()).unwrap();
    let made = api.create(&PostParams::default(), &whole).await.unwrap();
    if let Some(status) = status {
        let patch = Patch::Merge(json!({ "status": status }));
        api.patch_status(&made.name_any(), &PatchParams::default(), &patch).await.unwrap();
    }
}

/// A Ready condition.
pub(crate) fn ready(status: &str) -> Value {
    json!([{ "type": "Ready", "status": status, "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }])
}

async fn fill(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in tenon_api::definitions() {
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }
    let mut class = json!({
        "metadata": { "name": "default" },
        "spec": {
            "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" },
            "metadataOptions": { "type": "none" },
        },
        "status": { "selectedZones": ["lab/pve1/9001"], "conditions": ready("True") },
    });
    create::<ProxmoxNodeClass>(&Api::all(client.clone()), &mut class).await;
    let mut pool = json!({
        "metadata": { "name": "default" },
        "spec": {
            "disruption": { "consolidateAfter": "1s" },
            "template": { "spec": {
                "requirements": [],
                "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
            } },
        },
        "status": { "conditions": ready("True") },
    });
    create::<NodePool>(&Api::all(client.clone()), &mut pool).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    if namespaces.get_opt("default").await.unwrap().is_none() {
        create::<Namespace>(&namespaces, &mut json!({ "metadata": { "name": "default" } })).await;
    }
}

fn proxmox(estate: &Estate) -> tenon_pve::Client {
    let transport = Transport::over(estate.service(), |never: &Infallible| match *never {});
    let token = Token::new("tenon@pve!sim", "11111111-2222-3333-4444-555555555555").unwrap();
    tenon_pve::Client::new(vec![Endpoint::new("https://pve.example:8006").unwrap()], transport, token)
}
