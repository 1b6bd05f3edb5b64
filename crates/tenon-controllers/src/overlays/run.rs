//! When are NodeOverlays looked at? When one of them, a NodePool or a class changed, and now and then.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, Event};
use tenon_api::{NodeOverlay, ProxmoxNodeClass};
use tokio::time::Instant;

use super::pass::{Left, pass};
use crate::context::Context;
use crate::kube_error;
use crate::metrics::Loop;
use crate::stop::Stop;
use crate::watched::watched;

/// As often as Karpenter looks while nothing changes.
const EVERY: Duration = Duration::from_secs(6 * 3600);

/// What was not done is tried again after this long.
const AGAIN: Duration = Duration::from_secs(10);

/// What somebody else wrote just before is looked at again after this long.
const AFTER_CONFLICT: Duration = Duration::from_millis(500);

/// NodePools and classes are compared this often.
const COMPARED_EVERY: Duration = Duration::from_secs(1);

/// Changes that come together are looked at together.
const TOGETHER: Duration = Duration::from_millis(100);

/// How the loop is called in metrics.
const LOOP: &str = "nodeoverlay.controller";

/// Looks until told to stop; never while the gate is off.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    if !context.settings.planning.feature_gates.node_overlay {
        return;
    }
    let (store, writer) = reflector::store();
    let mut changes = watched::<NodeOverlay>(&context.workload).reflect(writer).boxed();
    let mut looks =
        Looks { store, is_listed: false, seen: None, due: Instant::now(), failed: BTreeSet::new(), unread: None };
    let mut compare = Instant::now() + COMPARED_EVERY;
    loop {
        tokio::select! {
            biased;
            () = stop.wait() => return,
            change = changes.next() => match change {
                Some(change) => {
                    looks.note(change);
                    compare = compare.min(Instant::now() + TOGETHER);
                }
                None => return,
            },
            () = tokio::time::sleep_until(compare) => {
                looks.look_if_due(&context).await;
                compare = Instant::now() + COMPARED_EVERY;
            }
        }
    }
}

struct Looks {
    store: Store<NodeOverlay>,
    /// Whether all overlays were listed once.
    is_listed: bool,
    /// What the last look went by.
    seen: Option<u64>,
    /// When it is looked in any case.
    due: Instant,
    /// What was logged last: the same again is no news.
    failed: BTreeSet<String>,
    unread: Option<String>,
}

impl Looks {
    /// A cluster without the kind has no overlay; one that nobody may list has perhaps.
    fn note(&mut self, change: watcher::Result<Event<NodeOverlay>>) {
        match change {
            Ok(Event::InitDone) => (self.is_listed, self.unread) = (true, None),
            Ok(_) => {}
            Err(watcher::Error::InitialListFailed(kube::Error::Api(refusal))) if refusal.code == 404 => {
                self.is_listed = true;
                let error = "the cluster does not have the kind NodeOverlay; install chart tenon-crds, or turn the feature gate \
                             NodeOverlay off";
                self.warn(error.to_owned());
            }
            Err(error) => {
                let error = kube_error::of_watch(&error);
                self.warn(format!("cannot watch NodeOverlays: {error}"));
            }
        }
    }

    fn warn(&mut self, error: String) {
        if self.unread.as_ref() != Some(&error) {
            tracing::warn!(error, "cannot read NodeOverlays; retrying");
            self.unread = Some(error);
        }
    }

    async fn look_if_due(&mut self, context: &Context) {
        let inputs = inputs(context, &self.store);
        if !self.is_listed || (self.seen == Some(inputs) && Instant::now() < self.due) {
            return;
        }
        let began = Instant::now();
        let Left { is_outdated, errors } = pass(context, self.store.state()).await;
        let is_done = !is_outdated && errors.is_empty();
        context.metrics.reconciled(LOOP, began, if errors.is_empty() { "success" } else { "error" });
        self.seen = Some(inputs);
        self.due = Instant::now()
            + match (is_outdated, is_done) {
                (true, _) => AFTER_CONFLICT,
                (_, true) => EVERY,
                (_, false) => AGAIN,
            };
        for error in errors.iter().filter(|error| !self.failed.contains(*error)) {
            context.metrics.errors.get_or_create(&Loop { controller: LOOP }).inc();
            tracing::warn!(error, "NodeOverlays are not applied everywhere; retrying");
        }
        self.failed = errors.into_iter().collect();
    }
}

/// Everything a look goes by, as one number. The status of overlays and pools is our own word; that of a class says which
/// hosts there are.
fn inputs(context: &Context, overlays: &Store<NodeOverlay>) -> u64 {
    let zones = |class: &ProxmoxNodeClass| class.status.as_ref().and_then(|status| status.selected_zones.clone());
    let mut seen: Vec<u64> = overlays.state().iter().map(|overlay| hash_of(&overlay.metadata, None)).collect();
    seen.extend(context.watched.pools.state().iter().map(|pool| hash_of(&pool.metadata, None)));
    seen.extend(context.watched.classes.state().iter().map(|class| hash_of(&class.metadata, zones(class))));
    seen.sort_unstable();
    let mut hasher = DefaultHasher::new();
    seen.hash(&mut hasher);
    hasher.finish()
}

/// The uid tells objects of one kind from those of another.
fn hash_of(meta: &ObjectMeta, zones: Option<Vec<String>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&meta.name, &meta.uid, meta.generation, meta.deletion_timestamp.is_some(), zones).hash(&mut hasher);
    hasher.finish()
}
