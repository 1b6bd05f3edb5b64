//! A cluster in memory for tests of planning: one pool, one pod that waits, and a Proxmox with a template.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tenon_api::planning::is_provisionable;
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, names};
use tenon_model::{Plan, Snapshot};
use tenon_pve::{Endpoint, Token, Transport};
use tenon_sim::{Cluster, ClusterConfig, Estate, EstateConfig, TemplateSpec};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::gather::{Gathered, gather};
use super::pass::{Planned, create, pass};
use super::report::Report;
use super::snapshot::{Lookout, to_snapshot};
use crate::clock::Clock;
use crate::context::Context;
use crate::events::Events;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::watched::{Changes, watch_all};

const EPOCH: i64 = 1_700_000_000;

/// A cluster with one pool and one pod that waits, and what a pass works with. Claims are never shown by their watch.
pub(super) struct Stage {
    pub(super) context: Context,
    pub(super) client: Client,
    lookout: Mutex<Lookout>,
    /// How often Proxmox was asked something.
    pub(super) asked: Arc<AtomicUsize>,
    watching: JoinSet<()>,
    unread: Option<Changes<NodeClaim>>,
}

impl Stage {
    pub(super) async fn new() -> Stage {
        Stage::with(Settings::default()).await
    }

    /// One pass, by who saw those before.
    pub(super) async fn pass(&self) {
        pass(&self.context, &mut *self.lookout.lock().await).await;
    }

    pub(super) async fn with(settings: Settings) -> Stage {
        Stage::forbidden(settings, |_| false).await
    }

    /// The watches are refused what this is true for, by path.
    pub(super) async fn forbidden(settings: Settings, is_forbidden: fn(&str) -> bool) -> Stage {
        let cluster = Cluster::new(ClusterConfig::default()).unwrap();
        let client = cluster.client();
        fill(&client).await;
        let clock =
            Clock::Runtime { epoch: Timestamp::from_second(EPOCH).unwrap(), origin: tokio::time::Instant::now() };
        let (watched, watches) = watch_all(&refusing(&client, is_forbidden), settings.owners());
        let (watching, unread) = watches.read_but_claims();
        watched.ready_but_claims().await;
        let asked = Arc::new(AtomicUsize::new(0));
        let context = Context {
            workload: client.clone(),
            secrets: crate::first_boot::NodeSecrets::new(&client, None),
            regions: BTreeMap::from([("lab".to_owned(), proxmox(asked.clone()))]).into(),
            settings,
            cluster_id: "c".to_owned(),
            clock,
            events: Events::new(client.clone(), clock),
            metrics: Arc::new(Metrics::default()),
            watched,
            memory: Memory::default(),
            ids: crate::vm_id_book::VmIdBook::new(client.clone(), "kube-system"),
            survey: crate::addresses::AddressSurvey::default(),
            cpus: crate::cpus::CpuSurvey::default(),
            board: crate::join::Board::new(Arc::new(crate::join::Reviewer::new(client.clone(), true))),
        };
        Stage { context, client, lookout: Mutex::default(), asked, watching, unread: Some(unread) }
    }

    /// The watch of claims, which nobody reads yet.
    pub(super) fn take_unread(&mut self) -> Changes<NodeClaim> {
        self.unread.take().unwrap()
    }

    /// From here on the watch shows claims.
    pub(super) async fn show_claims(&mut self) {
        let claims = self.take_unread();
        self.watching.spawn(claims.for_each(async |_| {}));
        self.context.watched.ready().await;
    }

    /// Makes claims as a person would, a second apart, that ask for so many cores, and waits until the watch shows them.
    pub(super) async fn add_claims(&self, names: &[&str], cpu: &str) {
        for name in names {
            let claim = object(json!({
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
                "metadata": { "name": name, "finalizers": [names::FINALIZER] },
                "spec": {
                    "requirements": [],
                    "resources": { "requests": { "cpu": cpu } },
                    "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
                },
            }));
            Api::<NodeClaim>::all(self.client.clone()).create(&PostParams::default(), &claim).await.unwrap();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let is_shown = |name: &&str| self.context.watched.claims.get(&ObjectRef::new(name)).is_some();
        while !names.iter().all(is_shown) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(super) async fn claims(&self) -> Vec<NodeClaim> {
        Api::all(self.client.clone()).list(&ListParams::default()).await.unwrap().items
    }

    /// What the pod was told, by reason.
    pub(super) async fn told(&self, reason: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let list = events.list(&ListParams::default()).await.unwrap().items;
        let said = list.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        said.filter_map(|event| event.note).collect()
    }

    pub(super) fn pools(&self) -> Api<NodePool> {
        Api::all(self.client.clone())
    }

    pub(super) async fn change_pool(&self, patch: &Value) {
        self.pools().patch("default", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Plans, lets the pool change and the watch show it, and only then makes what was planned.
    pub(super) async fn make_late(
        &self,
        is_shown: impl Fn(Option<&NodePool>) -> bool,
        change: impl Future<Output = ()>,
    ) {
        let (gathered, snapshot, plan) = self.plan().await;
        assert_eq!(plan.new_nodes.len(), 1, "{plan:?}");
        change.await;
        let name = ObjectRef::<NodePool>::new("default");
        while !is_shown(self.context.watched.pools.get(&name).as_deref()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut report = Report::new(&self.context, &gathered);
        let planned = Planned { plan: &plan, snapshot: &snapshot, gathered: &gathered };
        create(&self.context, &planned, &mut report).await;
    }

    /// Until the watch shows so many pods that wait.
    pub(super) async fn until_waiting(&self, pods: usize) {
        while self.context.watched.pods.state_filter(is_provisionable).len() < pods {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(super) async fn plan(&self) -> (Gathered, Snapshot, Plan) {
        let gathered = gather(&self.context).await;
        let snapshot = to_snapshot(&gathered, &self.context.settings.types);
        let plan = tenon_engine::plan(&snapshot);
        (gathered, snapshot, plan)
    }
}

/// A client that is refused what this is true for, by path.
fn refusing(client: &Client, is_forbidden: fn(&str) -> bool) -> Client {
    let client = client.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            if !is_forbidden(request.uri().path()) {
                return client.send(request).await;
            }
            let told = json!({ "status": "Failure", "message": "forbidden", "reason": "Forbidden", "code": 403 });
            let answer = http::Response::builder().status(403).body(Body::from(told.to_string().into_bytes()));
            Ok(answer.unwrap())
        }
    });
    Client::new(service, "default")
}

/// An object of the test's own.
pub(super) fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn ready() -> Value {
    json!([{ "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }])
}

async fn fill(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in tenon_api::definitions() {
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }
    let class: ProxmoxNodeClass = object(json!({
        "metadata": { "name": "default" },
        "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } },
    }));
    let status = json!({ "selectedZones": ["lab/pve1/9001"], "conditions": ready() });
    with_status(Api::all(client.clone()), class, status).await;
    let pool: NodePool = object(json!({
        "metadata": { "name": "default" },
        "spec": {
            "limits": { "cpu": "64" },
            "disruption": { "consolidateAfter": "1s" },
            "template": { "spec": {
                "requirements": [],
                "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
            } },
        },
    }));
    with_status(Api::all(client.clone()), pool, json!({ "conditions": ready() })).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    if namespaces.get_opt("default").await.unwrap().is_none() {
        let namespace = object(json!({ "metadata": { "name": "default" } }));
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    }
    add_pod(client, "waits", ("2", json!({}))).await;
}

/// A pod that fits nowhere, with these cores, and more in its spec.
pub(super) async fn add_pod(client: &Client, name: &str, (cpu, more): (&str, Value)) {
    let container = json!({ "name": "c", "image": "x", "resources": { "requests": { "cpu": cpu } } });
    let mut spec = more;
    spec["containers"] = json!([container]);
    let pod: Pod = object(json!({ "metadata": { "name": name, "namespace": "default" }, "spec": spec }));
    let unschedulable = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" });
    let status = json!({ "phase": "Pending", "conditions": [unschedulable] });
    with_status(Api::namespaced(client.clone(), "default"), pod, status).await;
}

async fn with_status<K>(api: Api<K>, object: K, status: Value)
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let made = api.create(&PostParams::default(), &object).await.unwrap();
    let patch = Patch::Merge(json!({ "status": status }));
    api.patch_status(&made.name_any(), &PatchParams::default(), &patch).await.unwrap();
}

fn proxmox(asked: Arc<AtomicUsize>) -> tenon_pve::Client {
    let estate = Estate::new(EstateConfig::default());
    let template =
        TemplateSpec { host: "pve1".to_owned(), vmid: 9001, name: "debian".to_owned(), ..TemplateSpec::default() };
    estate.add_template(&template).unwrap();
    let service = tower::ServiceExt::map_request(estate.service(), move |request| {
        asked.fetch_add(1, Ordering::Relaxed);
        request
    });
    let transport = Transport::over(service, |never: &Infallible| match *never {});
    let token = Token::new("tenon@pve!sim", "11111111-2222-3333-4444-555555555555").unwrap();
    tenon_pve::Client::new(vec![Endpoint::new("https://pve.example:8006").unwrap()], transport, token)
}
