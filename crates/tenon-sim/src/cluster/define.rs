//! How does a definition become a kind that is served?

use std::sync::Arc;

use serde_json::{Value, json};

use super::failure::{ApiResult, Failure, invalid};
use super::kinds::{Custom, Kind, ScalePaths, ShelfName};
use super::object::{self, list, text};
use super::state::State;
use super::target::Target;

/// What a definition waits for before it goes.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn definitions() -> ShelfName {
    ("apiextensions.k8s.io".into(), "customresourcedefinitions".into())
}

impl State {
    /// Serves what a definition defines, and says so in its status.
    pub(crate) fn define(&mut self, definition: &mut Value) -> ApiResult<()> {
        complete(definition);
        let (group, plural) = (text(definition, "/spec/group"), text(definition, "/spec/names/plural"));
        let (group, plural) = (group.to_owned(), plural.to_owned());
        let expected = format!("{plural}.{group}");
        if object::name(definition) != expected {
            let name = object::name(definition).to_owned();
            let told = format!("Invalid value: {name:?}: must be spec.names.plural+\".\"+spec.group");
            let kind = self.built_in("apiextensions.k8s.io", "customresourcedefinitions");
            return Err(Failure::invalid(&kind, &name, &[invalid("metadata.name", told)]));
        }
        self.kinds.forget(&group, &plural);
        for version in list(definition, "/spec/versions") {
            if version.get("served").and_then(Value::as_bool).unwrap_or(false) {
                self.kinds.add(kind_of(definition, version));
            }
        }
        let stored: Vec<Value> = list(definition, "/spec/versions")
            .iter()
            .filter(|version| version["storage"] == true)
            .map(|version| version["name"].clone())
            .collect();
        let established = |kind: &str, reason: &str, message: &str| {
            let since = list(definition, "/status/conditions").iter().find(|told| text(told, "/type") == kind);
            let since = since.map_or_else(|| self.stamp(0), |told| told["lastTransitionTime"].clone());
            json!({ "type": kind, "status": "True", "lastTransitionTime": since, "reason": reason, "message": message })
        };
        let status = json!({
            "conditions": [
                established("NamesAccepted", "NoConflicts", "no conflicts found"),
                established("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            ],
            "acceptedNames": definition.pointer("/spec/names"),
            "storedVersions": stored,
        });
        object::set(definition, "status", Some(status));
        Ok(())
    }

    /// Begins the end of a definition: it goes when all its objects are gone.
    pub(crate) fn end_definition(&mut self, old: &Arc<Value>) -> Arc<Value> {
        let mut latest = old.clone();
        if !object::is_deleting(old) {
            let (mut new, now) = ((**old).clone(), self.stamp(0));
            object::set_meta(&mut new, "deletionTimestamp", Some(now));
            object::set_meta(&mut new, "finalizers", Some(json!([CLEANUP])));
            let told = json!({
                "type": "Terminating", "status": "True", "lastTransitionTime": self.stamp(0),
                "reason": "InstanceDeletionPending", "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            });
            if let Some(conditions) = new.pointer_mut("/status/conditions").and_then(Value::as_array_mut) {
                conditions.push(told);
            }
            latest = self.store.put(&definitions(), new);
        }
        let shelf = (text(old, "/spec/group").to_owned(), text(old, "/spec/names/plural").to_owned());
        let keys: Vec<_> = self.store.objects(&shelf).map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.end(&shelf, key));
        self.finish_definition(&shelf);
        latest
    }

    /// Removes a definition that is being deleted and has no objects, and stops serving it.
    pub(crate) fn finish_definition(&mut self, shelf: &ShelfName) {
        let key = (String::new(), format!("{}.{}", shelf.1, shelf.0));
        let is_ending = self.store.get(&definitions(), &key).is_some_and(|found| object::is_deleting(&found));
        if is_ending && self.store.objects(shelf).next().is_none() {
            self.kinds.forget(&shelf.0, &shelf.1);
            self.store.remove(&definitions(), &key);
        }
    }

    /// Refuses new objects of a definition that is being deleted.
    pub(crate) fn check_definition(&self, target: &Target) -> ApiResult<()> {
        let key = (String::new(), target.kind.qualified());
        let is_custom = target.kind.custom.is_some();
        let found = self.store.get(&definitions(), &key).filter(|found| is_custom && object::is_deleting(found));
        found.map_or(Ok(()), |_| {
            let told = "create not allowed while custom resource definition is terminating";
            Err(Failure::new(405, "MethodNotAllowed", told).with(target.kind.details("")))
        })
    }
}

/// What may be left out of a definition.
fn complete(definition: &mut Value) {
    let kind = text(definition, "/spec/names/kind").to_owned();
    object::with_part(definition, "spec", |spec| {
        object::default(spec, "conversion", json!({ "strategy": "None" }));
        object::with_part(spec, "names", |names| {
            object::default(names, "singular", kind.to_ascii_lowercase().into());
            object::default(names, "listKind", format!("{kind}List").into());
        });
    });
}

fn kind_of(definition: &Value, version: &Value) -> Kind {
    let names = |pointer: &str| text(definition, &format!("/spec/names/{pointer}")).to_owned();
    let words = |key: &str| {
        let words = list(definition, &format!("/spec/names/{key}")).iter().filter_map(Value::as_str);
        words.map(String::from).collect()
    };
    let scale = version.pointer("/subresources/scale").map(|scale| {
        let pointer = |key: &str| text(scale, key).replace('.', "/");
        let selector = Some(pointer("/labelSelectorPath")).filter(|pointer| !pointer.is_empty());
        ScalePaths { spec: pointer("/specReplicasPath"), status: pointer("/statusReplicasPath"), selector }
    });
    Kind {
        group: text(definition, "/spec/group").to_owned(),
        version: text(version, "/name").to_owned(),
        resource: names("plural"),
        singular: names("singular"),
        kind: names("kind"),
        list_kind: names("listKind"),
        short_names: words("shortNames"),
        categories: words("categories"),
        is_namespaced: text(definition, "/spec/scope") == "Namespaced",
        has_status: version.pointer("/subresources/status").is_some(),
        has_generation: true,
        needs_version: true,
        scale,
        custom: Some(Custom {
            schema: version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_else(|| json!({})),
            columns: list(version, "/additionalPrinterColumns").to_vec(),
        }),
    }
}
