//! What happens to NodeClaims and pods, change by change: what is counted, and which bounds were broken.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tenon_api::{DisruptionRecord, NodeClaim, names};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The budget of every pool: a tenth, rounded up.
const BUDGET_PART: usize = 10;

/// A NodeClaim as it was seen last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Claim {
    pub(crate) pool: String,
    pub(crate) instance_type: String,
    pub(crate) method: Option<String>,
    pub(crate) has_vm: bool,
    is_initialized: bool,
    is_deleting: bool,
    is_destroyed: bool,
    born: Duration,
}

/// A pod as it was seen last.
#[derive(Debug, Clone)]
struct PodSeen {
    name: String,
    app: String,
    born: Duration,
    bound: Option<Duration>,
    is_ready: bool,
}

/// What was counted since the last day began.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) launched: usize,
    pub(crate) ended: usize,
    /// Nodes that went by commands, by method.
    pub(crate) moved: BTreeMap<String, usize>,
    /// Nodes that were deleted without a command: expired, or by hand.
    pub(crate) deleted: usize,
    pub(crate) taken_back: usize,
    /// The most nodes of one pool in commands at once, and what its budget allowed then.
    pub(crate) most_at_once: (usize, usize),
    /// How long each pod waited for its node.
    pub(crate) waits: Vec<Duration>,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) claims: BTreeMap<String, Claim>,
    pods: BTreeMap<String, PodSeen>,
    /// How many pods of a workload its PodDisruptionBudget lets be away at once.
    limits: BTreeMap<String, usize>,
    /// Nodes with the taint of a command, since when.
    pub(crate) tainted: BTreeMap<String, Duration>,
    pub(crate) longest_taint: (Duration, String),
    pub(crate) counts: Counts,
    /// When a command was begun last, or a NodeClaim created or deleted.
    pub(crate) last_move: Duration,
    pub(crate) broken: Vec<String>,
}

/// A watch on everything.
pub(crate) struct Watch {
    seen: Arc<Mutex<Seen>>,
    origin: Instant,
    _tasks: JoinSet<()>,
}

impl Watch {
    /// Watches; with how many pods of each workload its PodDisruptionBudget lets be away at once.
    pub(crate) fn start(client: &Client, limits: BTreeMap<String, usize>) -> Watch {
        let seen = Arc::new(Mutex::new(Seen { limits, ..Seen::default() }));
        let (origin, mut tasks) = (Instant::now(), JoinSet::new());
        tasks.spawn(follow(client.clone(), seen.clone(), move |seen, claim: NodeClaim, is_there| {
            seen.claim(origin.elapsed(), &claim, is_there);
        }));
        tasks.spawn(follow(client.clone(), seen.clone(), move |seen, pod: Pod, is_there| {
            seen.pod(origin.elapsed(), &pod, is_there);
        }));
        tasks.spawn(follow(client.clone(), seen.clone(), move |seen, node: Node, is_there| {
            seen.node(origin.elapsed(), &node, is_there);
        }));
        Watch { seen, origin, _tasks: tasks }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges evictions at the moment at which they are granted, by the pod's name.
    pub(crate) fn judge(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let (seen, origin) = (self.seen.clone(), self.origin);
        move |pod| seen.lock().unwrap_or_else(PoisonError::into_inner).judge_eviction(origin.elapsed(), pod)
    }
}

async fn follow<K>(client: Client, seen: Arc<Mutex<Seen>>, mut note: impl FnMut(&mut Seen, K, bool))
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let changes = watcher(Api::<K>::all(client), Config::default()).default_backoff();
    let mut changes = std::pin::pin!(changes);
    while let Some(change) = changes.next().await {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            Ok(Event::Apply(object) | Event::InitApply(object)) => note(&mut seen, object, true),
            Ok(Event::Delete(object)) => note(&mut seen, object, false),
            Ok(Event::Init | Event::InitDone) => {}
            Err(error) => seen.broken.push(format!("the watch of the test broke: {error}")),
        }
    }
}

impl Seen {
    fn claim(&mut self, now: Duration, claim: &NodeClaim, is_there: bool) {
        let name = claim.name_any();
        if !is_there {
            self.claims.remove(&name);
            self.counts.ended += 1;
            self.last_move = now;
            return;
        }
        let before = self.claims.get(&name).cloned();
        if before.is_none() {
            self.counts.launched += 1;
            self.last_move = now;
        }
        let before = before.unwrap_or_default();
        let after = claim_of(claim, if before.pool.is_empty() { now } else { before.born });
        self.claims.insert(name.clone(), after.clone());
        match (&before.method, &after.method) {
            (None, Some(method)) => {
                *self.counts.moved.entry(method.clone()).or_default() += 1;
                self.last_move = now;
                self.judge_budget(now, &name, &after, method);
            }
            (Some(_), None) if !after.is_deleting => self.counts.taken_back += 1,
            _ => {}
        }
        if after.is_deleting && !before.is_deleting && after.method.is_none() {
            self.counts.deleted += 1;
        }
    }

    /// A node began to go: are no more of its pool going than a tenth?
    fn judge_budget(&mut self, now: Duration, name: &str, claim: &Claim, method: &str) {
        let is_counted = |other: &&Claim| other.pool == claim.pool && other.is_initialized && !other.is_destroyed;
        let of_pool = || self.claims.values().filter(is_counted);
        let going = of_pool().filter(|other| other.method.is_some() || other.is_deleting).count();
        let allowed = of_pool().count().div_ceil(BUDGET_PART);
        self.counts.most_at_once = self.counts.most_at_once.max((going, allowed));
        if going > allowed {
            let told =
                format!("{now:?}: {name} goes by {method}: {going} of pool {} go at once, {allowed} may", claim.pool);
            self.broken.push(told);
        }
    }

    fn pod(&mut self, now: Duration, pod: &Pod, is_there: bool) {
        let Some(app) = pod.labels().get("app") else { return };
        let uid = pod.uid().unwrap_or_default();
        if !is_there {
            self.pods.remove(&uid);
            return;
        }
        let is_bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let is_up = conditions.into_iter().any(|told| told.type_ == "Ready" && told.status == "True");
        let fresh = PodSeen { name: pod.name_any(), app: app.clone(), born: now, bound: None, is_ready: false };
        let known = self.pods.entry(uid).or_insert(fresh);
        known.is_ready = is_up && pod.metadata.deletion_timestamp.is_none();
        if is_bound && known.bound.is_none() {
            known.bound = Some(now);
            self.counts.waits.push(now.saturating_sub(known.born));
        }
    }

    /// A pod is evicted: are as many of its workload ready as its PodDisruptionBudget demands, without it?
    fn judge_eviction(&mut self, now: Duration, name: &str) {
        let Some(app) = self.pods.values().find(|pod| pod.name == name).map(|pod| pod.app.clone()) else { return };
        let Some(limit) = self.limits.get(&app) else { return };
        let all = self.pods.values().filter(|pod| pod.app == app).count();
        let left = self.pods.values().filter(|pod| pod.app == app && pod.is_ready && pod.name != name).count();
        if left + limit < all {
            let told = format!("{now:?}: {name} is evicted: {left} of {all} are ready without it, {limit} may be away");
            self.broken.push(told);
        }
    }

    /// The pod that has waited for longest.
    pub(crate) fn longest_wait(&self, now: Duration) -> Option<(Duration, String)> {
        let waiting = self.pods.values().filter(|pod| pod.bound.is_none());
        waiting.map(|pod| (now.saturating_sub(pod.born), pod.app.clone())).max()
    }

    fn node(&mut self, now: Duration, node: &Node, is_there: bool) {
        let name = node.name_any();
        let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        if is_there && taints.any(|taint| taint.key == names::TAINT_DISRUPTED) {
            self.tainted.entry(name).or_insert(now);
        } else if let Some(since) = self.tainted.remove(&name) {
            self.longest_taint = self.longest_taint.clone().max((now.saturating_sub(since), name));
        }
    }

    /// How it stands, in short.
    pub(crate) fn told(&self) -> String {
        let (waiting, counts) = (self.pods.values().filter(|pod| pod.bound.is_none()).count(), &self.counts);
        let going = self.claims.values().filter(|claim| claim.method.is_some() || claim.is_deleting).count();
        format!(
            "{} NodeClaims, {going} of them go, {} pods, {waiting} wait; launched {}, ended {}, moved {:?}, deleted {}, taken back {}; broken {}",
            self.claims.len(),
            self.pods.len(),
            counts.launched,
            counts.ended,
            counts.moved,
            counts.deleted,
            counts.taken_back,
            self.broken.len(),
        )
    }

    /// NodeClaims that have a VM, or may have one.
    pub(crate) fn paid(&self) -> impl Iterator<Item = &Claim> {
        self.claims.values().filter(|claim| claim.has_vm)
    }
}

fn claim_of(claim: &NodeClaim, born: Duration) -> Claim {
    let label = |key: &str| claim.labels().get(key).cloned().unwrap_or_default();
    let is_true = |kind: &str| {
        let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|told| told.type_ == kind && told.status == tenon_api::ConditionStatus::True)
    };
    Claim {
        pool: label(names::LABEL_NODEPOOL),
        instance_type: label(names::LABEL_INSTANCE_TYPE),
        method: DisruptionRecord::of(claim).and_then(Result::ok).map(|record| record.method),
        has_vm: claim.status.as_ref().is_some_and(|status| status.provider_id.is_some()),
        is_initialized: is_true("Initialized"),
        is_deleting: claim.metadata.deletion_timestamp.is_some(),
        is_destroyed: is_true("InstanceTerminating"),
        born,
    }
}
