//! Tells the owners of objects what was done and why not: one event for each new thing to say, not one for each pass.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde_json::{Value, json};

use crate::clock::Clock;

/// Who speaks, as `kubectl describe` shows it. The reference's name, so that filters on it go on working.
const REPORTER: &str = "karpenter";

/// The same words about the same object are said again only after this long, unless they say otherwise …
const SAID_FOR: SignedDuration = SignedDuration::from_mins(2);

/// … and then counted on the same event, unless that is so old that it may be gone: events live for an hour.
const KEPT_FOR: SignedDuration = SignedDuration::from_mins(50);

/// A bound on what is remembered; beyond it the oldest is forgotten, which at worst says something twice.
const REMEMBERED: usize = 4096;

/// An event is refused if its note is longer.
const NOTE_MAX: usize = 1000;

/// Publishes events.
pub(crate) struct Events {
    client: Client,
    clock: Clock,
    said: Mutex<BTreeMap<Key, Said>>,
    /// How many were said, for their names.
    number: AtomicU64,
}

/// Of which object, which reason, which words.
type Key = (String, String, String);

/// What was said before.
#[derive(Debug, Clone)]
struct Said {
    first: Timestamp,
    last: Timestamp,
    count: i32,
    name: String,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Saying {
    /// Whether somebody should look.
    pub(crate) is_warning: bool,
    /// A CamelCase word from a fixed list.
    pub(crate) reason: &'static str,
    /// One sentence with the next move.
    pub(crate) note: String,
    /// The same is said again only after this long.
    again_after: SignedDuration,
}

impl Saying {
    /// Something went as it should.
    pub(crate) fn normal(reason: &'static str, note: impl Into<String>) -> Saying {
        Saying { is_warning: false, reason, note: note.into(), again_after: SAID_FOR }
    }

    /// Somebody should look.
    pub(crate) fn warning(reason: &'static str, note: impl Into<String>) -> Saying {
        Saying { is_warning: true, reason, note: note.into(), again_after: SAID_FOR }
    }

    /// Says it again after this long.
    pub(crate) fn again_after(self, patience: SignedDuration) -> Saying {
        Saying { again_after: patience, ..self }
    }
}

impl Events {
    /// Publishes to the cluster whose objects are spoken of.
    pub(crate) fn new(client: Client, clock: Clock) -> Events {
        Events { client, clock, said: Mutex::new(BTreeMap::new()), number: AtomicU64::new(0) }
    }

    /// Says something of an object, unless the same was said of it just now. An event that cannot be published is logged
    /// and never stops the work it speaks of.
    pub(crate) async fn say<K>(&self, object: &K, saying: &Saying)
    where
        K: Resource<DynamicType = ()> + Send + Sync,
    {
        self.say_of(&object.object_ref(&()), saying).await;
    }

    /// The same for an object of which only a reference is at hand.
    pub(crate) async fn say_of(&self, object: &ObjectReference, saying: &Saying) {
        let key = (object.uid.clone().unwrap_or_default(), saying.reason.to_owned(), saying.note.clone());
        let (kind, name) = (object.kind.as_deref().unwrap_or_default(), object.name.as_deref().unwrap_or_default());
        let Some(said) = self.remember(key, name, saying.again_after) else { return };
        match (saying.is_warning, kind) {
            (true, _) => tracing::warn!(kind, name, reason = saying.reason, "{}", saying.note),
            // What becomes of each pod is told to its owner; the log tells what was made.
            (false, "Pod") => tracing::debug!(kind, name, reason = saying.reason, "{}", saying.note),
            (false, _) => tracing::info!(kind, name, reason = saying.reason, "{}", saying.note),
        }
        if let Err(error) = self.publish(object, saying, &said).await {
            tracing::warn!(kind, name, reason = saying.reason, %error, "an event could not be published");
        }
    }

    /// Objects without a namespace have their events in `default`, where kubectl looks for them.
    async fn publish(&self, object: &ObjectReference, saying: &Saying, said: &Said) -> Result<(), kube::Error> {
        let namespace = object.namespace.as_deref().unwrap_or("default");
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        if said.count > 1 {
            let series = json!({ "series": { "count": said.count, "lastObservedTime": MicroTime(said.last) } });
            let counted = events.patch(&said.name, &PatchParams::default(), &Patch::Merge(series)).await;
            match counted {
                Err(kube::Error::Api(refusal)) if refusal.code == 404 => {}
                other => return other.map(drop),
            }
        }
        let event = serde_json::from_value(written(object, saying, said)).map_err(kube::Error::SerdeError)?;
        events.create(&PostParams::default(), &event).await.map(drop)
    }

    /// Remembers that this is said now; `None` if it was said just before.
    fn remember(&self, key: Key, name: &str, again_after: SignedDuration) -> Option<Said> {
        let now = self.clock.now();
        let mut said = self.lock();
        said.retain(|_, known| known.first + KEPT_FOR > now);
        let next = match said.get(&key) {
            Some(known) if known.last + again_after > now => return None,
            Some(known) => Said { last: now, count: known.count.saturating_add(1), ..known.clone() },
            // The number besides: where time is simulated, much is said in the same nanosecond.
            None => {
                let number = self.number.fetch_add(1, Ordering::Relaxed);
                Said { first: now, last: now, count: 1, name: format!("{name}.{:x}.{number:x}", now.as_nanosecond()) }
            }
        };
        while said.len() >= REMEMBERED {
            let Some(oldest) = said.iter().min_by_key(|(_, known)| known.last).map(|(key, _)| key.clone()) else {
                break;
            };
            said.remove(&oldest);
        }
        said.insert(key, next.clone());
        Some(next)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Said>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn written(object: &ObjectReference, saying: &Saying, said: &Said) -> Value {
    json!({
        "metadata": { "name": said.name, "namespace": object.namespace.as_deref().unwrap_or("default") },
        "eventTime": MicroTime(said.last),
        "reportingController": REPORTER,
        "reportingInstance": REPORTER,
        "action": saying.reason,
        "reason": saying.reason,
        "note": cut(&saying.note),
        "type": if saying.is_warning { "Warning" } else { "Normal" },
        "regarding": object,
    })
}

/// At most as long as an event may be, at a character's edge.
fn cut(note: &str) -> String {
    if note.len() <= NOTE_MAX {
        return note.to_owned();
    }
    let end = (0..=NOTE_MAX - 3).rev().find(|end| note.is_char_boundary(*end)).unwrap_or_default();
    format!("{}...", note.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_cut_at_a_characters_edge() {
        assert_eq!(cut("short"), "short");
        let long = cut(&"é".repeat(600));
        assert!(long.len() <= NOTE_MAX && long.ends_with("..."), "{}", long.len());
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_words_are_said_once_and_counted_later() {
        let origin = tokio::time::Instant::now();
        let clock = Clock::Runtime { epoch: Timestamp::from_second(1_000_000).unwrap(), origin };
        let nobody = tower::service_fn(async |_: http::Request<kube::client::Body>| {
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
        });
        let events = Events::new(Client::new(nobody, "default"), clock);
        let after =
            |words: &str, patience| events.remember(("u".to_owned(), "R".to_owned(), words.to_owned()), "n", patience);
        let said = |words: &str| after(words, SAID_FOR);
        let first = said("a").unwrap();
        assert!(said("a").is_none());
        assert_ne!(said("b").unwrap().name, first.name, "said at the same moment");
        assert!(after("c", SignedDuration::from_mins(1)).is_some());
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        assert!(after("c", SignedDuration::from_mins(1)).is_some() && said("a").is_none(), "some are said more often");
        tokio::time::advance(std::time::Duration::from_secs(60)).await;
        let again = said("a").unwrap();
        assert_eq!((again.count, again.name.as_str()), (2, first.name.as_str()));
        tokio::time::advance(std::time::Duration::from_secs(3600)).await;
        assert_eq!(said("a").unwrap().count, 1, "by then the first event may be gone");
    }
}
