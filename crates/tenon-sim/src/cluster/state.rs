//! What is true in the cluster now?
//!
//! Pure: time is handed in, randomness is the state's own, nothing here waits or talks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::certificates::Authority;
use super::config::ClusterConfig;
use super::failure::{ApiResult, Failure};
use super::identity::User;
use super::kinds::{Kind, Kinds};
use super::object;
use super::store::Store;
use super::target::Target;
use crate::chance::Chance;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) config: ClusterConfig,
    pub(crate) chance: Chance,
    /// Time since the cluster was made.
    pub(crate) now: Duration,
    pub(crate) kinds: Kinds,
    pub(crate) store: Store,
    pub(crate) authority: Authority,
    /// Who was given which certificate, by its fingerprint.
    pub(crate) issued: BTreeMap<String, User>,
    /// The administrator's token.
    pub(crate) admin_token: String,
}

impl State {
    pub(crate) fn new(config: ClusterConfig) -> Result<Self, rcgen::Error> {
        let mut chance = Chance::new(config.seed);
        let authority = Authority::new(&mut chance)?;
        let admin_token = chance.uuid();
        let mut state = Self {
            chance,
            now: Duration::ZERO,
            kinds: Kinds::built_in(),
            store: Store::new(config.history),
            authority,
            issued: BTreeMap::new(),
            admin_token,
            config,
        };
        state.make_first_objects();
        Ok(state)
    }

    /// The time of day.
    pub(crate) fn time(&self) -> Timestamp {
        let start = i64::try_from(self.config.epoch_s).ok().and_then(|epoch| Timestamp::from_second(epoch).ok());
        let start = start.unwrap_or(Timestamp::UNIX_EPOCH);
        let elapsed = SignedDuration::try_from(self.now).unwrap_or(SignedDuration::ZERO);
        start.checked_add(elapsed).unwrap_or(start)
    }

    /// The time of day as objects carry it, so many seconds from now.
    pub(crate) fn stamp(&self, ahead_s: i64) -> Value {
        let time = self.time();
        let time = time.checked_add(SignedDuration::from_secs(ahead_s)).unwrap_or(time);
        time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
    }

    /// The object a target names.
    pub(crate) fn object(&self, target: &Target) -> ApiResult<Arc<Value>> {
        let found = self.store.get(&target.kind.shelf(), &target.key());
        found.ok_or_else(|| Failure::not_found(&target.kind, target.name()))
    }

    /// A built-in kind.
    pub(crate) fn built_in(&self, group: &str, resource: &str) -> Arc<Kind> {
        self.kinds.find(group, "v1", resource).unwrap_or_default()
    }

    /// A target of a built-in kind.
    pub(crate) fn target(&self, group: &str, resource: &str, key: (&str, &str)) -> Target {
        let kind = self.built_in(group, resource);
        Target { kind, namespace: key.0.into(), name: Some(key.1.into()), part: None }
    }

    /// Whether a namespace exists, and takes new objects.
    pub(crate) fn check_namespace(&self, target: &Target, name: &str) -> ApiResult<()> {
        if !target.kind.is_namespaced {
            return Ok(());
        }
        let namespace = &target.namespace;
        let found = self.object(&self.target("", "namespaces", ("", namespace)))?;
        if object::is_deleting(&found) {
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            let mut details = target.kind.details(name);
            details["causes"] = serde_json::json!([{
                "reason": "NamespaceTerminating",
                "message": format!("namespace {namespace} is being terminated"),
                "field": "metadata.namespace",
            }]);
            return Err(Failure::forbidden(&target.kind, name, &why).with(details));
        }
        Ok(())
    }
}
