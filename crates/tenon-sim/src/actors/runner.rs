//! When do the actors look? Whenever something changed, and now and then because time passes too.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use kube::{Client, Resource};
use tenon_api::kube_objects::{DaemonSet, Deployment, Job, Node, PodDisruptionBudget, ReplicaSet, WirePod as Pod};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::board::{Ages, Looks};
use super::{budgets, daemons, jobs, nodes, persistent_volumes, scheduler, silent_nodes, tokens, workloads};

/// Changes that come together are looked at together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Leases grow old and tokens expire without anybody telling.
const EVERY: Duration = Duration::from_secs(10);

/// The actors at work. Dropping them ends them.
pub struct Actors {
    tasks: JoinSet<()>,
    trouble: Arc<Mutex<Option<String>>>,
}

impl Actors {
    /// Starts them on a cluster, with this time now.
    pub fn start(client: Client, epoch: Timestamp) -> Actors {
        let (changed, trouble) = (Arc::new(Notify::new()), Arc::new(Mutex::new(None)));
        let mut tasks = JoinSet::new();
        for kind in kinds() {
            tasks.spawn(follow(client.clone(), kind, changed.clone()));
        }
        tasks.spawn(act(client, Clock { epoch, started: Instant::now() }, changed, trouble.clone()));
        Actors { tasks, trouble }
    }

    /// What went wrong last, if anything did.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends them.
    pub async fn shutdown(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Whatever an actor looks at.
fn kinds() -> [ApiResource; 12] {
    fn kind<K: Resource<DynamicType = ()>>() -> ApiResource {
        ApiResource::erase::<K>(&())
    }
    [
        kind::<Pod>(),
        kind::<Node>(),
        kind::<Deployment>(),
        kind::<ReplicaSet>(),
        kind::<DaemonSet>(),
        kind::<Job>(),
        kind::<PodDisruptionBudget>(),
        kind::<Namespace>(),
        kind::<PersistentVolumeClaim>(),
        kind::<PersistentVolume>(),
        kind::<StorageClass>(),
        kind::<CSINode>(),
    ]
}

/// Tells that something of a kind changed.
async fn follow(client: Client, kind: ApiResource, changed: Arc<Notify>) {
    let changes = watcher(Api::<DynamicObject>::all_with(client, &kind), Config::default()).default_backoff();
    changes.for_each(async |_| changed.notify_one()).await;
}

/// The time of the cluster: it was `epoch` when the actors started.
struct Clock {
    epoch: Timestamp,
    started: Instant,
}

impl Clock {
    fn now(&self) -> Timestamp {
        self.epoch + SignedDuration::try_from(self.started.elapsed()).unwrap_or_default()
    }
}

async fn act(client: Client, clock: Clock, changed: Arc<Notify>, trouble: Arc<Mutex<Option<String>>>) {
    let (mut is_news, mut looks) = (true, Looks::default());
    loop {
        let now = clock.now();
        let outcome = if is_news { pass(&client, now, &mut looks).await } else { tick(&client, now, &mut looks).await };
        if let Err(error) = outcome {
            *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
        is_news = tokio::time::timeout(EVERY, changed.notified()).await.is_ok();
        if is_news {
            tokio::time::sleep(TOGETHER).await;
        }
    }
}

/// What time alone brings about. As long as all nodes are well and no token is over, nobody looks at pods.
async fn tick(client: &Client, now: Timestamp, looks: &mut Looks) -> Result<(), kube::Error> {
    let ages = Ages::look(client).await?;
    let is_ill = |node: &Node| nodes::is_silent(&ages.leases, node, now) || silent_nodes::is_ending(node);
    if !ages.nodes.iter().any(is_ill) && !ages.tokens.iter().any(|token| tokens::is_over(token, now)) {
        return Ok(());
    }
    let board = looks.look(client, now).await?;
    tokens::clean(&board).await?;
    nodes::keep(&board).await?;
    silent_nodes::keep(&board).await
}

/// Each actor in turn, on a look of its own: what one did, the next sees.
async fn pass(client: &Client, now: Timestamp, looks: &mut Looks) -> Result<(), kube::Error> {
    workloads::keep_deployments(&*looks.look(client, now).await?).await?;
    workloads::keep_replica_sets(&*looks.look(client, now).await?).await?;
    let board = looks.look(client, now).await?;
    daemons::keep(&board).await?;
    jobs::keep(&board).await?;
    tokens::clean(&board).await?;
    nodes::keep(&board).await?;
    silent_nodes::keep(&board).await?;
    persistent_volumes::keep(&board).await?;
    budgets::count(&*looks.look(client, now).await?).await?;
    scheduler::schedule(&*looks.look(client, now).await?).await
}
