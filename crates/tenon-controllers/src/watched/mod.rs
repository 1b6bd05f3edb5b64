//! What Kubernetes says, kept at hand: one watch for each kind, one store that everybody reads.
//!
//! A store may be a moment behind. What must not be decided on old news is read again where it is decided, or written
//! with a precondition.

mod lean_store;
mod pod_lists;
mod pod_store;
mod related;
#[cfg(test)]
mod test_reading;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use tenon_api::kube_objects::{DaemonSet, Lean, Node, Pod, WirePod};

use futures::{Stream, StreamExt, stream};
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, ProxmoxUnmanagedTemplate};
use tokio::sync::{Notify, watch};

use self::pod_lists::{PodLists, listing};
use self::pod_store::PodWriter;
use self::related::watch_related;

pub(crate) use self::pod_store::PodStore;
pub(crate) use self::related::{Interrupted, Owners, Related, RelatedWatch};

/// A watch is begun again after this long, and five seconds later in any case: an API server that froze says nothing, and
/// nothing else tells it from a cluster in which nothing happens. Beginning again costs the server one small request.
pub(crate) const WATCHED_FOR_S: u32 = 20;

/// Everything that is watched.
pub(crate) struct Watched {
    /// All pods.
    pub(crate) pods: PodStore,
    /// All nodes.
    pub(crate) nodes: Store<Node>,
    /// All DaemonSets.
    pub(crate) daemons: Store<DaemonSet>,
    /// All pools.
    pub(crate) pools: Store<NodePool>,
    /// All classes.
    pub(crate) classes: Store<ProxmoxNodeClass>,
    /// All claims.
    pub(crate) claims: Store<NodeClaim>,
    /// What decides about pods besides nodes.
    pub(crate) related: Related,
    /// Something about pods, or what decides about them, changed.
    pub(crate) pods_changed: Arc<Notify>,
    /// Something about pools, classes or templates changed.
    pub(crate) rules_changed: Arc<Notify>,
    filled: Filled,
}

impl Watched {
    /// Ends when every store was filled once, but for kinds that only some pods depend on and nobody may read.
    pub(crate) async fn ready(&self) {
        self.ready_but_claims().await;
        self.filled.wait("NodeClaim").await;
    }

    /// The same without claims.
    pub(crate) async fn ready_but_claims(&self) {
        for kind in ["Pod", "Node", "DaemonSet", "NodePool", "ProxmoxNodeClass", "ProxmoxUnmanagedTemplate"] {
            self.filled.wait(kind).await;
        }
        for kind in &self.related.kinds {
            self.filled.wait(kind).await;
        }
    }
}

/// Which stores were filled. The stores' own way to wait for that wakes only one of several who wait.
#[derive(Clone)]
struct Filled(watch::Sender<BTreeSet<String>>);

impl Filled {
    fn tell(&self, kind: &str) {
        self.0.send_if_modified(|kinds| kinds.insert(kind.to_owned()));
    }

    async fn wait(&self, kind: &str) {
        // The sender is ours, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|kinds| kinds.contains(kind)).await;
    }
}

/// A stream of changes that fills a store while it is read.
pub(crate) type Changes<K> = stream::BoxStream<'static, watcher::Result<Event<K>>>;

/// The watches behind the stores: nothing is filled until they are read.
pub(crate) struct Watches {
    pub(crate) pods: Changes<Pod>,
    pub(crate) nodes: Changes<Node>,
    pub(crate) daemons: Changes<DaemonSet>,
    pub(crate) pools: Changes<NodePool>,
    pub(crate) classes: Changes<ProxmoxNodeClass>,
    pub(crate) templates: Changes<ProxmoxUnmanagedTemplate>,
    pub(crate) claims: Changes<NodeClaim>,
    pub(crate) related: Vec<RelatedWatch>,
}

/// The stores, empty, and the watches that fill them.
pub(crate) fn watch_all(client: &Client, owners: Owners) -> (Watched, Watches) {
    let filled = Filled(watch::Sender::default());
    let (pods, pod_changes) = watch_pods(client, &filled);
    let (nodes, node_changes) = watch_kind(client, &filled, Node::make_lean);
    let (daemons, daemon_changes) = watch_kind(client, &filled, |_| ());
    let (pools, pool_changes) = watch_kind(client, &filled, |_| ());
    let (classes, class_changes) = watch_kind(client, &filled, |_| ());
    // Templates are only watched to be judged anew when they change.
    let (_, template_changes) = watch_kind(client, &filled, |_| ());
    let (claims, claim_changes) = watch_kind(client, &filled, |_| ());
    let (related, related_watches) = watch_related(client, &filled, owners);
    let watched = Watched {
        pods,
        nodes,
        daemons,
        pools,
        classes,
        claims,
        related,
        pods_changed: Arc::new(Notify::new()),
        rules_changed: Arc::new(Notify::new()),
        filled: filled.clone(),
    };
    let watches = Watches {
        pods: pod_changes,
        nodes: node_changes,
        daemons: daemon_changes,
        pools: pool_changes,
        classes: class_changes,
        templates: template_changes,
        claims: claim_changes,
        related: related_watches,
    };
    (watched, watches)
}

/// Pods are made small before anybody sees them.
fn watch_pods(client: &Client, filled: &Filled) -> (PodStore, Changes<Pod>) {
    let store = PodStore::default();
    let (filled, mut writer, lists) = (filled.clone(), PodWriter::new(store.clone()), Arc::new(PodLists::default()));
    let changes = watched::<WirePod>(&listing(client, &lists)).flat_map(move |change| {
        let change = change.map(|change| small(change, &lists));
        let listed = if let Ok(Event::InitDone) = change { lists.take() } else { Vec::new() };
        stream::iter(listed.into_iter().map(|pod| Ok(Event::InitApply(pod))).chain([change]))
    });
    let changes = changes.inspect(move |change| {
        let Ok(change) = change else { return };
        writer.apply(change);
        if matches!(change, Event::InitDone) {
            filled.tell("Pod");
        }
    });
    (store, changes.boxed())
}

fn small(change: Event<WirePod>, lists: &PodLists) -> Event<Pod> {
    match change {
        Event::Apply(pod) => Event::Apply(lists.small(pod)),
        Event::Delete(pod) => Event::Delete(lists.small(pod)),
        Event::Init => Event::Init,
        Event::InitApply(pod) => Event::InitApply(lists.small(pod)),
        Event::InitDone => Event::InitDone,
    }
}

/// The changes of a kind, begun again whenever they end.
pub(crate) fn watched<K>(client: &Client) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher::watcher(Api::<K>::all(client.clone()), watcher::Config::default().timeout(WATCHED_FOR_S)).default_backoff()
}

/// Objects are kept as they were sent, but for what `drop_unread` takes away.
fn watch_kind<K>(client: &Client, filled: &Filled, drop_unread: fn(&mut K)) -> (Store<K>, Changes<K>)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let filled = filled.clone();
    let changes = watched(client)
        // Who set which field when is most of an object's size, and nobody here asks.
        .modify(move |object: &mut K| {
            object.managed_fields_mut().clear();
            drop_unread(object);
        })
        .reflect(writer)
        .inspect(move |change| {
            if let Ok(Event::InitDone) = change {
                filled.tell(&K::kind(&()));
            }
        });
    (store, changes.boxed())
}
