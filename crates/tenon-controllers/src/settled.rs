//! May a loop leave out a pass? If nothing that it goes by changed since a pass that left nothing to do.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::reflector::{Lookup, Store};
use tokio::time::Instant;

use crate::context::Context;
use crate::metrics::Pass;
use crate::regions::RegionFacts;

/// A loop that also goes by what nobody tells it of, such as Secrets of others or the configuration of a template, makes a whole
/// pass this often, whatever changed.
pub(crate) const REFRESHED_EVERY: Duration = Duration::from_secs(60);

/// One that is told of everything makes a whole pass this often all the same: it may have missed something.
pub(crate) const REFRESHED_RARELY: Duration = Duration::from_secs(300);

/// The version of all objects of a kind: another as soon as one of them is written, made or gone. It says nothing of order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Version {
    /// Of these objects.
    pub(crate) fn of<'a, K: ResourceExt + 'a>(objects: impl IntoIterator<Item = &'a K>) -> Version {
        let one = |object: &K| {
            let mut hasher = DefaultHasher::new();
            let meta = object.meta();
            (&meta.namespace, &meta.name, &meta.uid, &meta.resource_version).hash(&mut hasher);
            hasher.finish()
        };
        Version(objects.into_iter().map(one).fold(0, u64::wrapping_add))
    }

    /// Of what a watch shows.
    pub(crate) fn shown<K>(store: &Store<K>) -> Version
    where
        K: ResourceExt + Lookup<DynamicType = ()> + Clone + 'static,
    {
        let objects: Vec<Arc<K>> = store.state();
        Version::of(objects.iter().map(AsRef::as_ref))
    }
}

/// What most loops go by: what is listed in Proxmox, and the objects of ours. It is taken before a pass looks: what changes
/// while it looks is a change for the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inputs {
    facts: RegionFacts,
    claims: Version,
    pools: Version,
    classes: Version,
}

impl Inputs {
    /// As they are now.
    pub(crate) fn of(context: &Context) -> Inputs {
        let watched = &context.watched;
        Inputs {
            facts: context.regions.facts(),
            claims: Version::shown(&watched.claims),
            pools: Version::shown(&watched.pools),
            classes: Version::shown(&watched.classes),
        }
    }
}

/// What the last pass that left nothing to do went by.
#[derive(Debug)]
pub(crate) struct Settled<I> {
    controller: &'static str,
    every: Duration,
    last: Option<(I, Instant)>,
}

impl<I: PartialEq> Settled<I> {
    /// Nothing is settled yet. A whole pass is made this often in any case.
    pub(crate) fn new(controller: &'static str, every: Duration) -> Settled<I> {
        Settled { controller, every, last: None }
    }

    /// Whether a pass would find what the last one found.
    pub(crate) fn holds(&self, inputs: &I) -> bool {
        self.last.as_ref().is_some_and(|(last, at)| at.elapsed() < self.every && last == inputs)
    }

    /// Whether this pass may be left out. It is counted either way.
    pub(crate) fn skips(&self, context: &Context, inputs: &I) -> bool {
        let pass = if self.holds(inputs) { "skipped" } else { "full" };
        context.metrics.passes.get_or_create(&Pass { controller: self.controller, pass }).inc();
        self.holds(inputs)
    }

    /// A whole pass is made whatever it would find, because somebody told of a change.
    pub(crate) fn count_full(&self, context: &Context) {
        context.metrics.passes.get_or_create(&Pass { controller: self.controller, pass: "full" }).inc();
    }

    /// Whether the last pass left nothing to do.
    pub(crate) fn is_any(&self) -> bool {
        self.last.is_some()
    }

    /// Nothing is settled any more.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    /// A pass ended. Whether something is left to do decides about the next.
    pub(crate) fn note(&mut self, inputs: I, is_done: bool) {
        self.last = is_done.then(|| (inputs, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use serde_json::json;

    use super::*;

    fn namespace(name: &str, version: &str) -> Namespace {
        serde_json::from_value(json!({ "metadata": { "name": name, "resourceVersion": version } })).unwrap()
    }

    #[test]
    fn a_version_moves_with_every_write_and_not_with_the_order() {
        let of = |objects: &[(&str, &str)]| {
            let objects: Vec<Namespace> = objects.iter().map(|(name, version)| namespace(name, version)).collect();
            Version::of(&objects)
        };
        let first = of(&[("a", "1"), ("b", "2")]);
        assert_eq!(first, of(&[("b", "2"), ("a", "1")]));
        for other in [&[("a", "1"), ("b", "3")][..], &[("a", "1")], &[("a", "2"), ("b", "1")], &[]] {
            assert_ne!(first, of(other), "{other:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_is_left_out_while_nothing_changes_but_never_for_longer_than_its_bound() {
        let mut settled = Settled::new("test", REFRESHED_EVERY);
        assert!(!settled.holds(&1), "before the first pass");
        settled.note(1, true);
        tokio::time::advance(REFRESHED_EVERY - Duration::from_secs(1)).await;
        assert!(settled.holds(&1) && !settled.holds(&2));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!settled.holds(&1));
        settled.note(1, false);
        assert!(!settled.holds(&1), "something was left to do");
    }
}
