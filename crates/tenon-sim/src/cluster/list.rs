//! What is there: one object, or all that match, page by page?

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::ser::SerializeMap as _;
use serde_json::{Value, json};

use super::events;
use super::failure::{ApiResult, Failure};
use super::kinds::Kind;
use super::object;
use super::query::Query;
use super::selector::Selector;
use super::state::State;
use super::store::Key;
use super::target::Target;

/// A list, not yet bytes.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) metadata: Value,
    pub(crate) items: Vec<Arc<Value>>,
}

impl State {
    pub(crate) fn list(&self, target: &Target, query: &Query) -> ApiResult<List> {
        let kind = &target.kind;
        let selector = query.selector(kind)?;
        let (from, version) = match query.text("continue") {
            "" => (None, self.store.version().to_string()),
            token => read_token(token).map(|(key, version)| (Some(key), version))?,
        };
        let limit = query.number("limit").and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
        // All pages show what the first one saw.
        let past = from.as_ref().map(|_| self.past(target, &version)).transpose()?;
        let all: Box<dyn Iterator<Item = (&Key, &Arc<Value>)>> = match &past {
            Some(past) => Box::new(meant(past.iter(), target, &selector)),
            None => Box::new(self.matching(target, &selector)),
        };
        let mut matching = all.filter(|(key, _)| from.as_ref().is_none_or(|from| *key > from));
        let mut page: Vec<(&Key, Arc<Value>)> = Vec::new();
        for (key, found) in matching.by_ref() {
            page.push((key, view(kind, found)));
            if Some(page.len()) == limit {
                break;
            }
        }
        let rest = matching.count();
        let mut metadata = json!({ "resourceVersion": version });
        // Lists of custom resources name the place to go on even when there is none.
        if kind.custom.is_some() {
            metadata["continue"] = "".into();
        }
        if let Some((last, _)) = page.last().filter(|_| rest > 0) {
            metadata["continue"] = write_token(last, &version).into();
            if query.text("labelSelector").is_empty() && query.text("fieldSelector").is_empty() {
                metadata["remainingItemCount"] = rest.into();
            }
        }
        Ok(List { metadata, items: page.into_iter().map(|(_, found)| found).collect() })
    }

    /// Everything a target and a selector mean, in the order of lists.
    pub(crate) fn matching<'a>(
        &'a self,
        target: &'a Target,
        selector: &'a Selector,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        meant(self.store.objects(&target.kind.shelf()), target, selector)
    }

    /// The objects of a target as they were at a version.
    fn past(&self, target: &Target, version: &str) -> ApiResult<BTreeMap<Key, Arc<Value>>> {
        let objects = version.parse().ok().and_then(|version| self.store.objects_at(&target.kind.shelf(), version));
        let told = "The provided continue parameter is too old to display a consistent list result. You can start a \
                    new list without the continue parameter.";
        objects.ok_or_else(|| Failure::new(410, "Expired", told))
    }
}

fn meant<'a>(
    objects: impl Iterator<Item = (&'a Key, &'a Arc<Value>)>,
    target: &'a Target,
    selector: &'a Selector,
) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
    let inside = objects.filter(|(key, _)| target.namespace.is_empty() || key.0 == target.namespace);
    inside.filter(|(_, found)| selector.matches(found))
}

/// An object as one version of its kind shows it.
pub(crate) fn view(kind: &Kind, found: &Arc<Value>) -> Arc<Value> {
    if kind.is_new_event() {
        return Arc::new(events::to_new((**found).clone()));
    }
    let api_version = kind.api_version();
    if object::text(found, "/apiVersion") == api_version {
        return found.clone();
    }
    let mut shown = (**found).clone();
    object::set(&mut shown, "apiVersion", Some(api_version.into()));
    Arc::new(shown)
}

/// The bytes of a list.
pub(crate) fn render(kind: &Kind, list: &List) -> Vec<u8> {
    let mut bytes = Vec::new();
    let whole = Rendered { kind, list };
    // Writing JSON to memory cannot fail.
    let _ = serde_json::to_writer(&mut bytes, &whole);
    bytes
}

struct Rendered<'a> {
    kind: &'a Kind,
    list: &'a List,
}

impl Serialize for Rendered<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind.list_kind)?;
        map.serialize_entry("apiVersion", &self.kind.api_version())?;
        map.serialize_entry("metadata", &self.list.metadata)?;
        if self.kind.custom.is_some() {
            let items: Vec<&Value> = self.list.items.iter().map(|item| &**item).collect();
            map.serialize_entry("items", &items)?;
        } else {
            let items: Vec<Bare<'_>> = self.list.items.iter().map(|item| Bare(item)).collect();
            map.serialize_entry("items", &items)?;
        }
        map.end()
    }
}

/// Items of built-in kinds do not say in a list what they are.
struct Bare<'a>(&'a Value);

impl Serialize for Bare<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0.as_object().into_iter().flatten() {
            if key != "kind" && key != "apiVersion" {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

fn write_token((namespace, name): &Key, version: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({ "v": "meta.k8s.io/v1", "rv": version, "ns": namespace, "start": name }).to_string())
}

fn read_token(token: &str) -> ApiResult<(Key, String)> {
    let value = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let value = value.filter(|value| value["v"] == "meta.k8s.io/v1");
    let value = value.ok_or_else(|| Failure::bad_request("invalid continue token: continue key is not valid"))?;
    let owned = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    Ok(((owned("ns"), owned("start")), owned("rv")))
}
