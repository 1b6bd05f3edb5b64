//! What a pass makes on a cluster whose watch shows claims late, or never, and whose pools change while it plans.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Namespace, Pod, Service};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tenon_api::planning::is_provisionable;
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, hash_stamp, names};
use tenon_model::{Plan, Snapshot};
use tenon_pve::{Endpoint, Token, Transport};
use tenon_sim::{Cluster, ClusterConfig, Estate, EstateConfig, TemplateSpec};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::gather::{Gathered, gather};
use super::pass::{create, pass};
use super::report::Report;
use super::snapshot::{Lookout, to_snapshot};
use crate::clock::Clock;
use crate::context::Context;
use crate::events::Events;
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::watched::{Changes, Watches, watch_all};

const EPOCH: i64 = 1_700_000_000;

/// A cluster with one pool and one pod that waits, and what a pass works with. Claims are never shown by their watch.
struct Stage {
    context: Context,
    client: Client,
    lookout: Mutex<Lookout>,
    _watching: JoinSet<()>,
    _unread: Changes<NodeClaim>,
}

impl Stage {
    async fn new() -> Stage {
        Stage::with(Settings::default()).await
    }

    /// One pass, by who saw those before.
    async fn pass(&self) {
        pass(&self.context, &mut *self.lookout.lock().await).await;
    }

    async fn with(settings: Settings) -> Stage {
        let cluster = Cluster::new(ClusterConfig::default()).unwrap();
        let client = cluster.client();
        fill(&client).await;
        let clock =
            Clock::Runtime { epoch: Timestamp::from_second(EPOCH).unwrap(), origin: tokio::time::Instant::now() };
        let (watched, watches) = watch_all(&client);
        let (watching, unread) = read(watches);
        watched.ready_but_claims().await;
        let context = Context {
            workload: client.clone(),
            regions: BTreeMap::from([("lab".to_owned(), proxmox())]),
            settings,
            cluster_id: "c".to_owned(),
            clock,
            events: Events::new(client.clone(), clock),
            metrics: Arc::new(Metrics::default()),
            watched,
            memory: Memory::default(),
        };
        Stage { context, client, lookout: Mutex::default(), _watching: watching, _unread: unread }
    }

    async fn claims(&self) -> Vec<NodeClaim> {
        Api::all(self.client.clone()).list(&ListParams::default()).await.unwrap().items
    }

    /// What the pod was told, by reason.
    async fn told(&self, reason: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let list = events.list(&ListParams::default()).await.unwrap().items;
        let said = list.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        said.filter_map(|event| event.note).collect()
    }

    fn pools(&self) -> Api<NodePool> {
        Api::all(self.client.clone())
    }

    async fn change_pool(&self, patch: &Value) {
        self.pools().patch("default", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Plans, lets the pool change and the watch show it, and only then makes what was planned.
    async fn make_late(&self, is_shown: impl Fn(Option<&NodePool>) -> bool, change: impl Future<Output = ()>) {
        let (gathered, snapshot, plan) = self.plan().await;
        assert_eq!(plan.new_nodes.len(), 1, "{plan:?}");
        change.await;
        let name = ObjectRef::<NodePool>::new("default");
        while !is_shown(self.context.watched.pools.get(&name).as_deref()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut report = Report::new(&self.context, &gathered);
        create(&self.context, &plan, (&gathered, &snapshot), &mut report).await;
    }

    /// Until the watch shows so many pods that wait.
    async fn until_waiting(&self, pods: usize) {
        while self.context.watched.pods.state_filter(is_provisionable).len() < pods {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn plan(&self) -> (Gathered, Snapshot, Plan) {
        let gathered = gather(&self.context).await;
        let snapshot = to_snapshot(&gathered, &self.context.settings.types);
        let plan = tenon_engine::plan(&snapshot);
        (gathered, snapshot, plan)
    }
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
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
async fn add_pod(client: &Client, name: &str, (cpu, more): (&str, Value)) {
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

/// Everything is read but claims.
fn read(watches: Watches) -> (JoinSet<()>, Changes<NodeClaim>) {
    let Watches { pods, nodes, daemons, pools, classes, templates, claims } = watches;
    let mut watching = JoinSet::new();
    watching.spawn(pods.for_each(async |_| {}));
    watching.spawn(nodes.for_each(async |_| {}));
    watching.spawn(daemons.for_each(async |_| {}));
    watching.spawn(pools.for_each(async |_| {}));
    watching.spawn(classes.for_each(async |_| {}));
    watching.spawn(templates.for_each(async |_| {}));
    (watching, claims)
}

fn proxmox() -> tenon_pve::Client {
    let estate = Estate::new(EstateConfig::default());
    let template =
        TemplateSpec { host: "pve1".to_owned(), vmid: 9001, name: "debian".to_owned(), ..TemplateSpec::default() };
    estate.add_template(&template).unwrap();
    let transport = Transport::over(estate.service(), |never: &Infallible| match *never {});
    let token = Token::new("tenon@pve!sim", "11111111-2222-3333-4444-555555555555").unwrap();
    tenon_pve::Client::new(vec![Endpoint::new("https://pve.example:8006").unwrap()], transport, token)
}

#[tokio::test(start_paused = true)]
async fn a_pass_right_after_another_makes_no_second_node_for_a_pod_though_the_watch_shows_no_claim_yet() {
    let stage = Stage::new().await;
    stage.pass().await;
    let claims = stage.claims().await;
    assert_eq!(claims.len(), 1);
    assert!(stage.context.watched.claims.is_empty(), "the watch showed it after all");
    stage.pass().await;
    assert_eq!(stage.claims().await.len(), 1);
    let name = claims[0].name_any();
    let told = stage.told("Nominated").await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.contains(&format!("it is expected on nodeclaim/{name}")), "{told:?}");
    let text = stage.context.metrics.text();
    let counted = "karpenter_nodeclaims_created_total{reason=\"provisioned\",nodepool=\"default\",min_values_relaxed=\"false\"} 1";
    assert!(text.contains(counted), "{text}");
    assert!(
        text.contains(
            "karpenter_scheduler_pending_pods_by_effective_zone_count{controller=\"provisioner\",zone=\"flexible\"} 1"
        ),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_the_watch_never_shows_counts_as_long_as_it_is_there() {
    let stage = Stage::new().await;
    stage.pass().await;
    let made = stage.claims().await.remove(0);
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(40)).await;
        stage.pass().await;
        assert_eq!(stage.claims().await.len(), 1);
    }
    let (api, name) = (Api::<NodeClaim>::all(stage.client.clone()), made.name_any());
    let let_go = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    api.patch(&name, &PatchParams::default(), &let_go).await.unwrap();
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    tokio::time::advance(Duration::from_secs(40)).await;
    stage.pass().await;
    let claims = stage.claims().await;
    assert_eq!(claims.len(), 1, "the pod waits again, and gets another");
    assert_ne!(claims[0].name_any(), name);
}

#[tokio::test(start_paused = true)]
async fn a_node_is_expected_to_be_used_for_twenty_seconds_from_the_last_pass_that_put_a_pod_there() {
    let stage = Stage::new().await;
    let begun = stage.context.clock.now();
    stage.pass().await;
    let name = stage.claims().await[0].name_any();
    let is_nominated =
        |seconds: i64| stage.context.memory.is_nominated(&name, begun + SignedDuration::from_secs(seconds));
    assert!(is_nominated(19));
    tokio::time::advance(Duration::from_secs(15)).await;
    stage.pass().await;
    assert!(is_nominated(34) && !is_nominated(36));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_goes_while_a_plan_is_made_gets_no_claim_and_its_pods_hear_why() {
    let stage = Stage::new().await;
    let go = async { drop(stage.pools().delete("default", &DeleteParams::default()).await.unwrap()) };
    stage.make_late(|pool| pool.is_none_or(|pool| pool.metadata.deletion_timestamp.is_some()), go).await;
    assert!(stage.claims().await.is_empty());
    assert_eq!(stage.told("FailedScheduling").await, ["NodePool default or its class is gone"]);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_fails_while_a_plan_is_made_gets_no_claim_and_its_pods_hear_why() {
    let stage = Stage::new().await;
    let fail = async {
        let unready = json!([{ "type": "Ready", "status": "False", "reason": "NodeClassReady", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
        let patch = Patch::Merge(json!({ "status": { "conditions": unready } }));
        stage.pools().patch_status("default", &PatchParams::default(), &patch).await.unwrap();
    };
    let is_false = |pool: &NodePool| format!("{:?}", pool.status).contains("NodeClassReady");
    stage.make_late(|pool| pool.is_some_and(is_false), fail).await;
    assert!(stage.claims().await.is_empty());
    assert_eq!(stage.told("FailedScheduling").await, ["NodePool default is not ready any more: NodeClassReady"]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_carries_the_hash_of_the_pool_it_was_planned_for_though_the_pool_changed_since() {
    let stage = Stage::new().await;
    let planned = stage.pools().get("default").await.unwrap();
    let labels = json!({ "spec": { "template": { "metadata": { "labels": { "team": "blue" } } } } });
    let is_blue = |pool: &NodePool| pool.spec.template.metadata.is_some();
    stage.make_late(|pool| pool.is_some_and(is_blue), stage.change_pool(&labels)).await;
    let claims = stage.claims().await;
    let of_then = hash_stamp::of_pool(&planned);
    let of_now = hash_stamp::of_pool(&stage.pools().get("default").await.unwrap());
    assert_ne!(of_then, of_now);
    assert!(of_then.iter().all(|(name, value)| claims[0].annotations().get(name) == Some(value)), "{claims:?}");
    assert!(!claims[0].labels().contains_key("team"), "it is made as it was planned");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_sank_below_what_the_pool_has_while_a_plan_was_made_stops_the_claim() {
    let stage = Stage::new().await;
    stage.pass().await;
    assert_eq!(stage.claims().await.len(), 1);
    // Another pod, which does not fit beside the first one.
    add_pod(&stage.client, "large", ("6", json!({}))).await;
    stage.until_waiting(2).await;
    let sunk = json!({ "spec": { "limits": { "cpu": "1" } } });
    let is_sunk = |pool: &NodePool| format!("{:?}", pool.spec.limits).contains("\"1\"");
    stage.make_late(|pool| pool.is_some_and(is_sunk), stage.change_pool(&sunk)).await;
    assert_eq!(stage.claims().await.len(), 1, "what was made stays, and nothing comes to it");
    let told = stage.told("FailedScheduling").await;
    assert_eq!(told, ["NodePool default has 4 of cpu, and its limit is 1 now; raise it or remove nodes"]);
}

#[tokio::test(start_paused = true)]
async fn services_are_looked_at_only_where_pods_are_spread_by_default() {
    let mut settings = Settings::default();
    let text =
        "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}";
    settings.planning.set("scheduler-config", text).unwrap();
    for (settings, services) in [(Settings::default(), 0), (settings, 1)] {
        let stage = Stage::with(settings).await;
        let service: Service = object(json!({
            "metadata": { "name": "s", "namespace": "default" },
            "spec": { "selector": { "app": "x" }, "ports": [{ "port": 80 }] },
        }));
        let api: Api<Service> = Api::namespaced(stage.client.clone(), "default");
        api.create(&PostParams::default(), &service).await.unwrap();
        let found = gather(&stage.context).await.services;
        assert_eq!(found.iter().filter(|found| found.name_any() == "s").count(), services);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_s_decision_is_timed_from_when_it_was_seen_to_wait() {
    let stage = Stage::new().await;
    let (stopper, stop) = crate::stop::stop();
    let context = Arc::new(stage.context);
    let running = tokio::spawn(super::run(context.clone(), stop));
    let took = || {
        let text = context.metrics.text();
        let sum = text.lines().find_map(|line| {
            let (name, seconds) = line.split_once(' ')?;
            (name == "karpenter_pods_scheduling_decision_duration_seconds_sum").then(|| seconds.parse::<f64>().unwrap())
        });
        sum.unwrap()
    };
    let undecided =
        "karpenter_pods_provisioning_scheduling_undecided_time_seconds{name=\"waits\",namespace=\"default\"} 0.5";
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(context.metrics.text().contains(undecided), "{}", context.metrics.text());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!((1.0..1.1).contains(&took()), "the window of a second, and no time to think: {}", took());
    assert!(!context.metrics.text().contains("undecided_time_seconds{"));
    stopper.tell();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_many_pods_that_wait_a_hundred_hear_why_in_one_pass_and_the_others_in_the_next() {
    let stage = Stage::new().await;
    for number in 0..130 {
        add_pod(&stage.client, &format!("huge-{number}"), ("1000", json!({}))).await;
    }
    stage.until_waiting(131).await;
    // Being told where one goes counts too.
    for told in [99, 130, 130] {
        stage.pass().await;
        assert_eq!(stage.told("FailedScheduling").await.len(), told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_no_node_can_be_right_for_is_ignored_and_hears_why_unless_it_wants_none_of_ours() {
    let stage = Stage::new().await;
    add_pod(&stage.client, "odd", ("1", json!({ "nodeSelector": { "karpenter.sh/initialized": "true" } }))).await;
    let none_of_ours = json!([{ "matchExpressions": [{ "key": names::LABEL_NODEPOOL, "operator": "DoesNotExist" }] }]);
    let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": none_of_ours } });
    add_pod(&stage.client, "elsewhere", ("1", json!({ "affinity": { "nodeAffinity": required } }))).await;
    add_pod(&stage.client, "huge", ("1000", json!({}))).await;
    stage.until_waiting(4).await;
    stage.pass().await;
    let told = stage.told("FailedScheduling").await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().any(|told| told.contains("karpenter.sh/initialized")), "{told:?}");
    let text = stage.context.metrics.text();
    assert!(text.contains("karpenter_scheduler_ignored_pods_count 2\n"), "{text}");
    assert!(text.contains("karpenter_scheduler_unschedulable_pods_count{controller=\"provisioner\"} 1\n"), "{text}");
}
