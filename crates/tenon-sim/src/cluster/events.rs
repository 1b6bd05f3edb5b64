//! How do the two shapes of an event become one?
//!
//! Events are kept as `v1` has them; `events.k8s.io/v1` is another view of the same objects.

use serde_json::Value;

use super::object;

/// Old name, new name.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// From `events.k8s.io/v1` to `v1`.
pub(crate) fn to_old(event: Value) -> Value {
    renamed(event, |(old, new)| (new, old), "v1")
}

/// From `v1` to `events.k8s.io/v1`.
pub(crate) fn to_new(event: Value) -> Value {
    renamed(event, |names| names, "events.k8s.io/v1")
}

fn renamed(
    mut event: Value,
    order: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
    api_version: &str,
) -> Value {
    object::edit(&mut event, |map| {
        for (from, to) in NAMES.map(order) {
            if let Some(value) = map.remove(from) {
                map.insert(to.to_owned(), value);
            }
        }
    });
    object::set(&mut event, "apiVersion", Some(api_version.into()));
    event
}
