//! Reads the watch of one kind for as long as the controllers run.

use std::borrow::Cow;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::runtime::watcher::Event;

use crate::context::Context;
use crate::kube_error;
use crate::panics::survived;
use crate::stop::Stop;
use crate::watched::{Changes, Interrupted, RelatedWatch};

/// The watch of one kind.
pub(crate) struct KindWatch<K> {
    pub(crate) kind: Cow<'static, str>,
    pub(crate) changes: Changes<K>,
}

/// Reads a watch to keep its store filled, and tells of every change.
pub(crate) async fn follow<K>(
    context: Arc<Context>,
    watch: KindWatch<K>,
    mut stop: Stop,
    mut tell: impl FnMut(&Event<K>) + Send,
) where
    K: Send + Sync + 'static,
{
    let KindWatch { kind, mut changes } = watch;
    loop {
        let change = tokio::select! {
            biased;
            change = changes.next() => change,
            () = stop.wait() => return,
        };
        match change {
            Some(Ok(event)) => survived(&context.metrics, "state", &kind, || tell(&event)),
            Some(Err(error)) => {
                let error = kube_error::of_watch(&error);
                tracing::warn!(%kind, error, "watch interrupted; reconnecting");
            }
            None => return,
        }
    }
}

/// Reads a watch of what decides about pods to keep its store filled, and wakes whoever plans when something is different.
pub(crate) async fn follow_related(context: Arc<Context>, watch: RelatedWatch, mut stop: Stop) {
    let RelatedWatch { kind, mut changes } = watch;
    loop {
        let change = tokio::select! {
            biased;
            change = changes.next() => change,
            () = stop.wait() => return,
        };
        match change {
            Some(Ok(true)) => context.watched.pods_changed.notify_one(),
            Some(Ok(false) | Err(Interrupted::Forbidden(None))) => {}
            Some(Err(Interrupted::Forbidden(Some(error)))) => {
                tracing::error!(kind, error, "cannot watch this kind; pods that depend on it stay pending");
            }
            Some(Err(Interrupted::Reconnecting(error))) => {
                tracing::warn!(kind, error, "watch interrupted; reconnecting");
            }
            None => return,
        }
    }
}
