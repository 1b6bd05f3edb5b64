//! What decides about pods besides nodes: their volumes, their namespaces and who selects them.
//!
//! A kind that the controller may not read stops only the pods that depend on it, and nothing else.

use std::collections::BTreeMap;
use std::fmt::Debug;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tenon_api::kube_objects::{
    CSINode, Lean, Namespace, PersistentVolume, PersistentVolumeClaim, ReplicaSet, ReplicationController, Service,
    StatefulSet, StorageClass,
};
use tenon_api::objects::{Kind, Objects};

use super::lean_store::{LeanStore, LeanWriter};
use super::{Filled, watched};
use crate::kube_error;

/// Everything that decides about pods besides nodes.
#[derive(Debug, Default)]
pub(crate) struct Related {
    /// Claims of storage.
    pub(crate) volume_claims: LeanStore<PersistentVolumeClaim>,
    /// How volumes are created.
    pub(crate) storage_classes: LeanStore<StorageClass>,
    volumes: LeanStore<PersistentVolume>,
    csi_nodes: LeanStore<CSINode>,
    namespaces: LeanStore<Namespace>,
    // Read only where an operator has spread constraints for pods that have none.
    services: LeanStore<Service>,
    replica_sets: LeanStore<ReplicaSet>,
    stateful_sets: LeanStore<StatefulSet>,
    replication_controllers: LeanStore<ReplicationController>,
    /// The kinds that are watched.
    pub(super) kinds: Vec<&'static str>,
}

/// Whether Services and controllers of pods are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owners {
    /// Default spread constraints are deduced from them.
    Watched,
    /// Nobody asks for them.
    Unwatched,
}

/// The watch of one kind. It tells whether something is different.
pub(crate) struct RelatedWatch {
    pub(crate) kind: &'static str,
    pub(crate) changes: BoxStream<'static, Result<bool, Interrupted>>,
}

/// A watch that does not work now.
#[derive(Debug)]
pub(crate) enum Interrupted {
    /// It is begun again.
    Reconnecting(String),
    /// The controller may not read the kind. A sentence, the first time.
    Forbidden(Option<String>),
}

impl Related {
    /// The objects of a snapshot that come from here.
    pub(crate) fn objects(&self) -> Objects {
        Objects {
            persistent_volume_claims: self.volume_claims.state(),
            persistent_volumes: self.volumes.state(),
            storage_classes: self.storage_classes.state(),
            csi_nodes: self.csi_nodes.state(),
            namespaces: self.namespaces.state(),
            services: self.services.state(),
            replica_sets: self.replica_sets.state(),
            stateful_sets: self.stateful_sets.state(),
            replication_controllers: self.replication_controllers.state(),
            ..Objects::default()
        }
    }

    /// Kinds that the controller may not read, and what to do about it.
    pub(crate) fn unreadable(&self) -> BTreeMap<Kind, String> {
        let needed = [
            (Kind::PersistentVolumeClaim, self.volume_claims.unreadable()),
            (Kind::PersistentVolume, self.volumes.unreadable()),
            (Kind::StorageClass, self.storage_classes.unreadable()),
            (Kind::Namespace, self.namespaces.unreadable()),
        ];
        needed.into_iter().filter_map(|(kind, why)| Some((kind, why?))).collect()
    }
}

/// The stores, empty, and the watches that fill them.
pub(super) fn watch_related(client: &Client, filled: &Filled, owners: Owners) -> (Related, Vec<RelatedWatch>) {
    let mut related = Related::default();
    let mut watches = vec![
        watch(client, filled, &related.volume_claims),
        watch(client, filled, &related.storage_classes),
        watch(client, filled, &related.volumes),
        watch(client, filled, &related.csi_nodes),
        watch(client, filled, &related.namespaces),
    ];
    if owners == Owners::Watched {
        watches.push(watch(client, filled, &related.services));
        watches.push(watch(client, filled, &related.replica_sets));
        watches.push(watch(client, filled, &related.stateful_sets));
        watches.push(watch(client, filled, &related.replication_controllers));
    }
    related.kinds = watches.iter().map(|watch| watch.kind).collect();
    (related, watches)
}

fn watch<K>(client: &Client, filled: &Filled, store: &LeanStore<K>) -> RelatedWatch
where
    K: k8s_openapi::Resource + Resource<DynamicType = ()> + Lean + Clone + PartialEq + DeserializeOwned,
    K: Debug + Send + Sync + 'static,
{
    let (filled, told) = (filled.clone(), filled.clone());
    let (mut writer, store) = (LeanWriter::new(store.clone()), store.clone());
    let changes = watched::<K>(client)
        .map_ok(move |mut change| {
            let is_whole = matches!(change, Event::InitDone);
            if let Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) = &mut change {
                object.make_lean();
            }
            let is_news = writer.apply(change);
            if is_whole {
                filled.tell(K::KIND);
            }
            is_news
        })
        .map_err(move |error| {
            let interrupted = interrupted(&store, K::KIND, K::URL_PATH_SEGMENT, &error);
            // Whoever waits for this kind would wait for ever.
            if matches!(interrupted, Interrupted::Forbidden(_)) {
                told.tell(K::KIND);
            }
            interrupted
        });
    RelatedWatch { kind: K::KIND, changes: changes.boxed() }
}

/// A list that was refused leaves nothing to go by. A watch that breaks later goes on with what it showed until then.
fn interrupted<K>(store: &LeanStore<K>, kind: &str, plural: &str, error: &watcher::Error) -> Interrupted {
    match error {
        watcher::Error::InitialListFailed(cause) if kube_error::is_unreadable(cause) => {
            let why = format!(
                "cannot list {kind}: {}; allow the controller to get, list and watch {plural} in the cluster",
                kube_error::message(cause)
            );
            let is_news = store.set_unreadable(why.clone());
            Interrupted::Forbidden(is_news.then_some(why))
        }
        error => Interrupted::Reconnecting(kube_error::of_watch(error)),
    }
}
