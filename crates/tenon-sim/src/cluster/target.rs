//! What does a path mean?

use std::sync::Arc;

use super::failure::{ApiResult, Failure};
use super::kinds::{Kind, Kinds};
use super::store::Key;

/// A resource, an object of it, or a part of that object.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) kind: Arc<Kind>,
    /// Empty for objects of the whole cluster and for lists over all namespaces.
    pub(crate) namespace: String,
    pub(crate) name: Option<String>,
    pub(crate) part: Option<String>,
}

impl Target {
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn key(&self) -> Key {
        (self.namespace.clone(), self.name().to_owned())
    }

    /// As a list of kinds shows it: `pods/eviction`.
    pub(crate) fn spelled(&self) -> String {
        let resource = self.kind.qualified();
        self.part.as_ref().map_or(resource.clone(), |part| format!("{resource}/{part}"))
    }

    /// `None`: the path is not below a served version, and may be one of discovery.
    pub(crate) fn find(kinds: &Kinds, path: &str) -> ApiResult<Option<Self>> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => return Ok(None),
        };
        let is_custom = kinds.all().filter(|kind| kind.group == group).all(|kind| kind.custom.is_some());
        // A group of custom resources has no handler of its own for what it does not know.
        let unknown = || if is_custom { Failure::page_not_found() } else { Failure::no_resource() };
        let kind = |resource: &str| kinds.find(group, version, resource).ok_or_else(unknown);
        let owned = |name: &str| Some(name.to_owned());
        let target = match rest {
            ["namespaces", name, part @ ("status" | "finalize")] => {
                let (kind, namespace) = (kind("namespaces")?, String::new());
                Self { kind, namespace, name: owned(name), part: owned(part) }
            }
            ["namespaces", namespace, resource, rest @ ..] => {
                let (kind, namespace) = (kind(resource)?, (*namespace).to_owned());
                if !kind.is_namespaced {
                    return Err(unknown());
                }
                Self::below(kind, namespace, rest).ok_or_else(unknown)?
            }
            [resource, rest @ ..] => {
                let kind = kind(resource)?;
                if kind.is_namespaced && !rest.is_empty() {
                    return Err(unknown());
                }
                Self::below(kind, String::new(), rest).ok_or_else(unknown)?
            }
            [] => return Ok(None),
        };
        Ok(Some(target))
    }

    fn below(kind: Arc<Kind>, namespace: String, rest: &[&str]) -> Option<Self> {
        let owned = |text: &&str| Some((*text).to_owned());
        let (name, part) = match rest {
            [] => (None, None),
            [name] => (owned(name), None),
            [name, part] => (owned(name), owned(part)),
            _ => return None,
        };
        Some(Self { kind, namespace, name, part })
    }
}
