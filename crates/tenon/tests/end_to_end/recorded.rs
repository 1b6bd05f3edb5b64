//! What was true at every instant? Read off every version that objects ever had, so that nothing between two looks is missed.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tenon_api::{NodeClaim, names};
use tokio::task::JoinHandle;

use crate::disrupting::marked;
use crate::world::World;

/// Seconds that a watch lasts; longer ones are cut by servers.
const WATCH_S: u32 = 290;

/// Every version of the objects of a kind since it was begun.
pub(crate) struct Recorded<K> {
    api: Api<K>,
    first: Vec<K>,
    later: Later<K>,
    task: JoinHandle<anyhow::Result<()>>,
}

type Later<K> = Arc<Mutex<Vec<Version<K>>>>;

/// One version of an object.
struct Version<K> {
    object: K,
    is_gone: bool,
}

impl<K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static> Recorded<K> {
    async fn of(api: Api<K>) -> anyhow::Result<Recorded<K>> {
        let list = api.list(&ListParams::default()).await?;
        let version = list.metadata.resource_version.context("the list has no version")?;
        let later: Later<K> = Arc::default();
        let task = tokio::spawn(follow(api.clone(), version, later.clone()));
        Ok(Recorded { api, first: list.items, later, task })
    }

    /// All objects as they were at each instant, once all is recorded that there is now.
    pub(crate) async fn end(self, world: &World) -> anyhow::Result<Vec<Vec<K>>> {
        world
            .until("all versions are recorded", async || {
                let list = self.api.list(&ListParams::default()).await?.items;
                let now: BTreeMap<_, _> = list.iter().map(version_of).collect();
                let seen: BTreeMap<_, _> = self.states().last().into_iter().flatten().map(version_of).collect();
                Ok((now == seen).then_some(()))
            })
            .await?;
        anyhow::ensure!(!self.task.is_finished(), "the watch ended, so versions are missing");
        self.task.abort();
        Ok(self.states())
    }

    fn states(&self) -> Vec<Vec<K>> {
        let mut now: BTreeMap<String, K> = self.first.iter().map(|one| (one.name_any(), one.clone())).collect();
        let mut states = vec![now.values().cloned().collect()];
        for version in self.later.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            match version.is_gone {
                true => now.remove(&version.object.name_any()),
                false => now.insert(version.object.name_any(), version.object.clone()),
            };
            states.push(now.values().cloned().collect());
        }
        states
    }
}

impl Recorded<NodeClaim> {
    pub(crate) async fn claims(world: &World) -> anyhow::Result<Recorded<NodeClaim>> {
        Recorded::of(Api::all(world.admin.clone())).await
    }
}

impl Recorded<Pod> {
    pub(crate) async fn pods(world: &World, namespace: &str) -> anyhow::Result<Recorded<Pod>> {
        Recorded::of(Api::namespaced(world.admin.clone(), namespace)).await
    }
}

/// The most nodes of a NodePool that were marked or drained at the same time.
pub(crate) fn most_disrupted(instants: &[Vec<NodeClaim>], pool: &str) -> usize {
    let is_its = |claim: &&NodeClaim| claim.labels().get(names::LABEL_NODEPOOL).is_some_and(|name| name == pool);
    let disrupted = |claims: &Vec<NodeClaim>| marked(&claims.iter().filter(is_its).cloned().collect::<Vec<_>>());
    instants.iter().map(disrupted).max().unwrap_or_default()
}

async fn follow<K>(api: Api<K>, mut version: String, later: Later<K>) -> anyhow::Result<()>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    loop {
        let params = WatchParams::default().timeout(WATCH_S);
        let mut events = Box::pin(api.watch(&params, &version).await?);
        while let Some(event) = events.next().await {
            let (object, is_gone) = match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(bookmark) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(error) => anyhow::bail!("the watch failed: {error:?}"),
            };
            version = object.resource_version().context("a version has no number")?;
            later.lock().unwrap_or_else(PoisonError::into_inner).push(Version { object, is_gone });
        }
    }
}

fn version_of<K: Resource>(object: &K) -> (String, Option<String>) {
    (object.name_any(), object.resource_version())
}
