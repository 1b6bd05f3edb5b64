//! The writes of one pass: so many, each on the object as it was read, and none that fails keeps the others from being made.

use std::fmt::Debug;

use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::kube_error;
use crate::writes::{self, Written};

/// Writes of one pass: a large cluster is taken over in several, and others get their turn in between.
const WRITES: usize = 100;

/// Writes, until it has written enough.
pub(super) struct Writer<'a> {
    client: &'a Client,
    left: usize,
    /// Whether something that should be written is not.
    is_behind: bool,
    failures: Vec<String>,
}

impl<'a> Writer<'a> {
    /// A fresh one.
    pub(super) fn new(client: &'a Client) -> Writer<'a> {
        Writer { client, left: WRITES, is_behind: false, failures: Vec::new() }
    }

    /// Whether everything is written that should be.
    pub(super) fn has_written_all(&self) -> bool {
        !self.is_behind
    }

    /// What could not be written, and why.
    pub(super) fn failures(self) -> Vec<String> {
        self.failures
    }

    /// Writes annotations. Returns the object as it is then; `None` if it is not written, and the next pass tries again.
    pub(super) async fn annotate<K>(&mut self, object: &K, annotations: Value) -> Option<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        self.take()?;
        let patch = json!({ "metadata": { "annotations": annotations } });
        let written = writes::merge(self.client, object, patch).await;
        self.note(object, "write the hash of", written)
    }

    /// Writes conditions, likewise.
    pub(super) async fn state<K>(&mut self, object: &K, conditions: Value) -> Option<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        self.take()?;
        let written = writes::merge_status(self.client, object, &json!({ "conditions": conditions })).await;
        self.note(object, "write the Drifted condition of", written)
    }

    fn take(&mut self) -> Option<()> {
        let left = self.left.checked_sub(1);
        self.is_behind |= left.is_none();
        self.left = left?;
        Some(())
    }

    /// Somebody who was faster is no trouble.
    fn note<K: Resource<DynamicType = ()>>(
        &mut self,
        object: &K,
        action: &str,
        written: Result<Written<K>, kube::Error>,
    ) -> Option<K> {
        match written {
            Ok(Written::Done(done)) => Some(*done),
            Ok(Written::Outdated) => {
                self.is_behind = true;
                None
            }
            Err(error) => {
                self.is_behind = true;
                let error = kube_error::message(&error);
                self.failures.push(format!("cannot {action} {} {}: {error}", K::kind(&()), object.name_any()));
                None
            }
        }
    }
}
