//! A cluster in memory for tests of disruption: nodes with pods, a controller that looks as the real loop does, and kubelets that
//! join and end pods at once. A controller can be killed after any write, and another takes over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tenon_api::condition_reasons::INSTANCE_TERMINATING;
use tenon_api::{NodeClaim, NodePool, names};
use tokio::time::Instant;

use super::pass::Disruptor;
use crate::claim::is_true;
use crate::claim::test_stage::ClaimStage;
use crate::memory::Memory;
use crate::settings::Settings;

/// A cluster, and who disrupts it.
pub(super) struct Site {
    pub(super) stage: ClaimStage,
    pub(super) disruptor: Disruptor,
    next_pass: Instant,
    /// Claims whose Node never joins.
    pub(super) is_broken: fn(&NodeClaim) -> bool,
    /// The most nodes that were marked or drained at the same time.
    pub(super) most_disrupted: usize,
    /// Pods that were evicted and wait for a node: their name and the CPU they ask for, in thousandths.
    waiting: Vec<(String, u32)>,
}

impl Site {
    pub(super) async fn new() -> Site {
        Site::with(Settings::default()).await
    }

    pub(super) async fn with(settings: Settings) -> Site {
        let stage = ClaimStage::with(settings).await;
        let site = Site {
            stage,
            disruptor: Disruptor::default(),
            next_pass: Instant::now(),
            is_broken: |_| false,
            most_disrupted: 0,
            waiting: Vec::new(),
        };
        site.change_pool(json!({})).await;
        site
    }

    /// A node of the pool's first instance type, on which pods run that ask for so many thousandths of a CPU.
    pub(super) async fn add_node(&self, name: &str, pods: &[&str]) {
        self.add_node_with(name, pods, Value::Null).await;
    }

    /// The same with this `terminationGracePeriod`.
    pub(super) async fn add_node_with(&self, name: &str, pods: &[&str], grace: Value) {
        self.stage.add_launched(name, json!({ "spec": { "terminationGracePeriod": grace } })).await;
        self.join(name).await;
        self.stage.run(name, 30).await;
        assert_eq!(self.stage.condition(name, "Initialized").await.0, "True");
        for (number, cpu) in pods.iter().enumerate() {
            self.add_pod(name, &format!("{name}-{number}"), cpu).await;
        }
    }

    /// A pod that runs on a node.
    pub(super) async fn add_pod(&self, node: &str, name: &str, cpu: &str) {
        let container = json!({ "name": "c", "image": "x", "resources": { "requests": { "cpu": cpu } } });
        self.stage.add_pod((node, name), json!({ "spec": { "containers": [container] } })).await;
    }

    async fn join(&self, name: &str) {
        let room = json!({ "cpu": "1", "memory": "1Gi", "pods": "110", "ephemeral-storage": "30Gi" });
        let labels = json!({ names::LABEL_NODEPOOL: "default" });
        let more =
            json!({ "metadata": { "labels": labels }, "status": { "allocatable": room.clone(), "capacity": room } });
        self.stage.add_node(name, more).await;
    }

    /// The pool says this from now on.
    pub(super) async fn change_pool(&self, spec: Value) {
        let pools: Api<NodePool> = Api::all(self.stage.client.clone());
        self.stage.patch(pools.clone(), "default", json!({ "spec": spec })).await;
        // Nobody judges pools here.
        let pool = self.pool().await;
        let parts = ["ValidationSucceeded", "NodeClassReady", "Ready"];
        let mut conditions = pool.status.and_then(|status| status.conditions).unwrap_or_default();
        conditions.retain(|condition| !parts.contains(&condition.type_.as_str()));
        let mut conditions = json!(conditions);
        for type_ in parts {
            let holds = json!({
                "type": type_, "status": "True", "reason": type_, "message": "",
                "observedGeneration": pool.metadata.generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
            });
            conditions.as_array_mut().unwrap().push(holds);
        }
        self.stage.patch_status(pools, "default", json!({ "conditions": conditions })).await;
    }

    pub(super) async fn pool(&self) -> NodePool {
        Api::<NodePool>::all(self.stage.client.clone()).get("default").await.unwrap()
    }

    /// A node has drifted, as the look for drift says.
    pub(super) async fn drift(&self, name: &str) {
        let mut conditions = json!(self.stage.claim(name).await.status.unwrap().conditions);
        let time = self.stage.context.clock.time();
        let drifted = json!({ "type": "Drifted", "status": "True", "reason": "NodePoolDrifted", "message": "", "lastTransitionTime": time });
        conditions.as_array_mut().unwrap().push(drifted);
        self.stage.patch_status(self.stage.claims_api(), name, json!({ "conditions": conditions })).await;
    }

    /// It has not any more.
    pub(super) async fn undrift(&self, name: &str) {
        let mut conditions = self.stage.claim(name).await.status.unwrap().conditions.unwrap_or_default();
        conditions.retain(|condition| condition.type_ != "Drifted");
        self.stage.patch_status(self.stage.claims_api(), name, json!({ "conditions": conditions })).await;
    }

    /// Lets so many seconds pass, in which everybody does what is theirs.
    pub(super) async fn run(&mut self, seconds: u64) {
        for _ in 0..seconds {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.disrupt().await;
            self.live().await;
            // A node whose VM is being destroyed is none any more.
            let claims = self.stage.claims().await;
            let counts = |claim: &&NodeClaim| is_disrupted(claim) && !is_true(claim, &INSTANCE_TERMINATING);
            self.most_disrupted = self.most_disrupted.max(claims.iter().filter(counts).count());
        }
    }

    /// What the loop does in a second. Whether nothing failed.
    pub(super) async fn disrupt(&mut self) -> bool {
        let failures = if Instant::now() >= self.next_pass {
            let pass = self.disruptor.pass(&self.stage.context).await;
            let wait = if pass.is_again { 1 } else { 10 };
            self.next_pass = Instant::now() + Duration::from_secs(wait);
            pass.failures
        } else {
            self.disruptor.carry_on(&self.stage.context).await
        };
        if let Some(due) = self.disruptor.due() {
            self.next_pass = self.next_pass.min(due);
        }
        self.stage.settle().await;
        failures.is_empty()
    }

    /// The same without the controller whose client died: its writes are somebody else's business.
    pub(super) async fn live_without_controller(&mut self) {
        let client = self.stage.client.clone();
        let dying = std::mem::replace(&mut Arc::get_mut(&mut self.stage.context).unwrap().workload, client);
        self.live().await;
        Arc::get_mut(&mut self.stage.context).unwrap().workload = dying;
    }

    /// Claims are reconciled, nodes join, and pods that were told to end have ended.
    async fn live(&mut self) {
        self.move_pods().await;
        for claim in self.stage.claims().await {
            let name = claim.name_any();
            self.stage.pass(&name).await;
            let Some(claim) = self.stage.claims_api().get_opt(&name).await.unwrap() else { continue };
            let is_launched = self.stage.condition(&name, "Launched").await.0 == "True";
            let is_there = self.stage.node(&name).await.is_some() || claim.metadata.deletion_timestamp.is_some();
            if is_launched && !is_there && !(self.is_broken)(&claim) {
                self.join(&name).await;
            }
        }
    }

    /// Pods that were told to end have ended, and others come for them where there is room.
    async fn move_pods(&mut self) {
        let mut used: BTreeMap<String, u32> = BTreeMap::new();
        for pod in self.stage.pods_api().list(&ListParams::default()).await.unwrap().items {
            let (name, cpu) = (pod.name_any(), cpu_of(&pod));
            if pod.metadata.deletion_timestamp.is_some() {
                let now = DeleteParams::default().grace_period(0);
                let _ = self.stage.pods_api().delete(&name, &now).await;
                self.waiting.push((name, cpu));
            } else if let Some(node) = pod.spec.and_then(|spec| spec.node_name) {
                *used.entry(node).or_default() += cpu;
            }
        }
        for (name, cpu) in std::mem::take(&mut self.waiting) {
            let mut room = None;
            for node in self.staying().await {
                let is_ready = self.stage.condition(&node, "Initialized").await.0 == "True";
                let has_room = used.get(&node).copied().unwrap_or_default() + cpu <= 1000;
                if room.is_none() && is_ready && has_room && !self.is_tainted(&node).await {
                    room = Some(node);
                }
            }
            match room {
                Some(node) => {
                    *used.entry(node.clone()).or_default() += cpu;
                    self.add_pod(&node, &name, &format!("{cpu}m")).await;
                }
                None => self.waiting.push((name, cpu)),
            }
        }
    }

    /// How many nodes are marked or go.
    pub(super) async fn disrupted(&self) -> usize {
        let claims = self.stage.claims().await;
        claims.iter().filter(|claim| is_disrupted(claim)).count()
    }

    /// The names of claims that stay.
    pub(super) async fn staying(&self) -> Vec<String> {
        let claims = self.stage.claims().await;
        let stays = claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none());
        stays.map(ResourceExt::name_any).collect()
    }

    /// Everything that was said, for whoever reads why a test failed.
    pub(super) async fn told(&self) -> String {
        let events = Api::<Event>::all(self.stage.client.clone()).list(&ListParams::default()).await.unwrap().items;
        let line = |event: Event| {
            let name = event.regarding.and_then(|about| about.name).unwrap_or_default();
            format!("{name} {}: {}\n", event.reason.unwrap_or_default(), event.note.unwrap_or_default())
        };
        events.into_iter().map(line).collect()
    }

    /// Whether a node has the taint.
    pub(super) async fn is_tainted(&self, name: &str) -> bool {
        let node: Option<Node> = self.stage.node(name).await;
        let taints = node.and_then(|node| node.spec?.taints).unwrap_or_default();
        taints.iter().any(|taint| taint.key == names::TAINT_DISRUPTED)
    }

    /// The controller writes so many times more, and dies.
    pub(super) fn kill_after(&mut self, writes: usize) {
        let (client, left) = (self.stage.client.clone(), Arc::new(AtomicUsize::new(writes)));
        let dying = tower::service_fn(move |request: http::Request<Body>| {
            let (client, left) = (client.clone(), left.clone());
            async move {
                let is_event = request.uri().path().contains("/events");
                let is_write = request.method() != http::Method::GET && !is_event;
                let is_alive = |left: usize| if is_write { left.checked_sub(1) } else { (left > 0).then_some(left) };
                if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_alive).is_ok() {
                    return client.send(request).await;
                }
                let told = json!({ "status": "Failure", "message": "dead", "reason": "InternalError", "code": 500 });
                let answer = http::Response::builder().status(500).body(Body::from(told.to_string().into_bytes()));
                Ok(answer.unwrap())
            }
        });
        self.reborn(Client::new(dying, "default"));
    }

    /// Another controller begins, which remembers nothing.
    pub(super) fn restart(&mut self) {
        let client = self.stage.client.clone();
        self.reborn(client);
        self.disruptor = Disruptor::default();
        self.next_pass = Instant::now();
    }

    fn reborn(&mut self, client: Client) {
        let context = Arc::get_mut(&mut self.stage.context).unwrap();
        context.workload = client;
        context.memory = Memory::default();
    }
}

fn is_disrupted(claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_some() || claim.annotations().contains_key(names::ANNOTATION_DISRUPTION)
}

/// The CPU that a pod asks for, in thousandths.
fn cpu_of(pod: &Pod) -> u32 {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let requests = containers.filter_map(|container| container.resources.as_ref()?.requests.as_ref());
    let cpu = requests.filter_map(|requests| requests.get("cpu")?.0.strip_suffix('m')?.parse::<u32>().ok());
    cpu.sum()
}
