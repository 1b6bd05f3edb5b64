//! Tells the owners of objects what was done and why not: one event for each new thing to say, not one for each pass.

mod bucket;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde_json::{Value, json};

use crate::clock::Clock;
use bucket::Bucket;

/// Who speaks, as `kubectl describe` shows it. The reference's name, so that filters on it go on working.
const REPORTER: &str = "karpenter";

/// The same words about the same object are said again only after this long, unless they say otherwise …
const SAID_FOR: SignedDuration = SignedDuration::from_mins(2);

/// … and then counted on the same event, unless that is so old that it may be gone: events live for an hour.
const KEPT_FOR: SignedDuration = SignedDuration::from_mins(50);

/// That no node is made for a pod is said again only after this long, as long as nothing but numbers in it changed: how much
/// room hosts have left changes all the time, and is no news to a pod that does not fit.
const UNSCHEDULABLE_SAID_FOR: SignedDuration = SignedDuration::from_mins(5);

/// A bound on what is remembered; beyond it the oldest is forgotten, which at worst says something twice.
const REMEMBERED: usize = 20_000;

/// An event is refused if its note is longer.
const NOTE_MAX: usize = 1000;

/// A name that leaves room for what tells events apart: 253 letters are allowed.
const NAME_MAX: usize = 220;

/// Publishes events.
pub(crate) struct Events {
    client: Client,
    clock: Clock,
    memory: Mutex<Remembered>,
    /// How many were said, for their names.
    number: AtomicU64,
}

/// What was said, and how much may still be said of what comes in crowds.
#[derive(Debug, Default)]
struct Remembered {
    said: BTreeMap<Key, Said>,
    paces: BTreeMap<Pace, Bucket>,
}

/// Of which object, which reason, what.
type Key = (String, &'static str, u64);

/// What was said before.
#[derive(Debug, Clone)]
struct Said {
    first: Timestamp,
    last: Timestamp,
    count: i32,
    name: String,
}

/// What may concern very many objects at once, and is therefore said of a few only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pace {
    Nominated,
    InsufficientCapacity,
}

/// Whether something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It was.
    Now,
    /// The same was said not long ago.
    Before,
    /// Too much of the kind was said just now. It may be said later.
    NotYet,
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
    /// Whether other numbers make it something else.
    numbers_matter: bool,
    pace: Option<Pace>,
}

impl Saying {
    /// Something went as it should.
    pub(crate) fn normal(reason: &'static str, note: impl Into<String>) -> Saying {
        let (is_warning, again_after) = (false, SAID_FOR);
        Saying { is_warning, reason, note: note.into(), again_after, numbers_matter: true, pace: None }
    }

    /// Somebody should look.
    pub(crate) fn warning(reason: &'static str, note: impl Into<String>) -> Saying {
        Saying { is_warning: true, ..Saying::normal(reason, note) }
    }

    /// A pod has a node to go to.
    pub(crate) fn nominated(note: impl Into<String>) -> Saying {
        Saying { pace: Some(Pace::Nominated), ..Saying::normal("Nominated", note) }
    }

    /// No node is made for a pod or a claim.
    pub(crate) fn failed_scheduling(note: impl Into<String>) -> Saying {
        let saying = Saying::warning("FailedScheduling", note).again_after(UNSCHEDULABLE_SAID_FOR);
        Saying { numbers_matter: false, ..saying }
    }

    /// A node was to be made, and there was no room.
    pub(crate) fn insufficient_capacity(note: impl Into<String>) -> Saying {
        Saying { pace: Some(Pace::InsufficientCapacity), ..Saying::warning("InsufficientCapacityError", note) }
    }

    /// Says it again after this long.
    pub(crate) fn again_after(self, patience: SignedDuration) -> Saying {
        Saying { again_after: patience, ..self }
    }

    /// What it says, as far as it matters.
    fn gist(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let matters = |letter: &char| self.numbers_matter || !letter.is_ascii_digit();
        self.note.chars().filter(matters).for_each(|letter| letter.hash(&mut hasher));
        hasher.finish()
    }
}

impl Events {
    /// Publishes to the cluster whose objects are spoken of.
    pub(crate) fn new(client: Client, clock: Clock) -> Events {
        Events { client, clock, memory: Mutex::default(), number: AtomicU64::new(0) }
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
    pub(crate) async fn say_of(&self, object: &ObjectReference, saying: &Saying) -> Heard {
        let (kind, name) = (object.kind.as_deref().unwrap_or_default(), object.name.as_deref().unwrap_or_default());
        let said = match self.remember((object.uid.as_deref().unwrap_or_default(), name), saying) {
            Ok(said) => said,
            Err(heard) => return heard,
        };
        match (saying.is_warning, kind) {
            (true, _) => tracing::warn!(kind, name, reason = saying.reason, "{}", saying.note),
            // What becomes of each pod is told to its owner; the log tells what was made.
            (false, "Pod") => tracing::debug!(kind, name, reason = saying.reason, "{}", saying.note),
            (false, _) => tracing::info!(kind, name, reason = saying.reason, "{}", saying.note),
        }
        if let Err(error) = self.publish(object, saying, &said).await {
            tracing::warn!(kind, name, reason = saying.reason, %error, "an event could not be published");
        }
        Heard::Now
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

    /// Remembers that this is said now, unless it is not to be.
    fn remember(&self, (uid, name): (&str, &str), saying: &Saying) -> Result<Said, Heard> {
        let (now, key) = (self.clock.now(), (uid.to_owned(), saying.reason, saying.gist()));
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let known = memory.said.get(&key).filter(|known| known.first + KEPT_FOR > now).cloned();
        if known.as_ref().is_some_and(|known| known.last + saying.again_after > now) {
            return Err(Heard::Before);
        }
        // Asked last: what was not said for want of room is said when there is some.
        if saying.pace.is_some_and(|pace| !memory.paces.entry(pace).or_default().take(now)) {
            return Err(Heard::NotYet);
        }
        let next = match known {
            Some(known) => Said { last: now, count: known.count.saturating_add(1), ..known },
            // The number besides: where time is simulated, much is said in the same nanosecond.
            None => {
                let number = self.number.fetch_add(1, Ordering::Relaxed);
                let name = if name.len() > NAME_MAX { uid } else { name };
                Said { first: now, last: now, count: 1, name: format!("{name}.{:x}.{number:x}", now.as_nanosecond()) }
            }
        };
        memory.make_room(now);
        memory.said.insert(key, next.clone());
        Ok(next)
    }
}

impl Remembered {
    /// Forgets what does not matter any more, and else the oldest.
    fn make_room(&mut self, now: Timestamp) {
        if self.said.len() < REMEMBERED {
            return;
        }
        self.said.retain(|_, known| known.first + KEPT_FOR > now);
        while self.said.len() >= REMEMBERED {
            let Some(oldest) = self.said.iter().min_by_key(|(_, known)| known.last).map(|(key, _)| key.clone()) else {
                break;
            };
            self.said.remove(&oldest);
        }
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

    /// Events on a clock that stands still, which nobody reads.
    fn events() -> Events {
        let origin = tokio::time::Instant::now();
        let clock = Clock::Runtime { epoch: Timestamp::from_second(1_000_000).unwrap(), origin };
        let nobody = tower::service_fn(async |_: http::Request<kube::client::Body>| {
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
        });
        Events::new(Client::new(nobody, "default"), clock)
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(std::time::Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_words_are_said_once_and_counted_later() {
        let events = events();
        let after =
            |words: &str, patience| events.remember(("u", "n"), &Saying::normal("R", words).again_after(patience)).ok();
        let said = |words: &str| after(words, SAID_FOR);
        let first = said("a").unwrap();
        assert!(said("a").is_none());
        assert_ne!(said("b").unwrap().name, first.name, "said at the same moment");
        assert!(after("c", SignedDuration::from_mins(1)).is_some());
        pass(61).await;
        assert!(after("c", SignedDuration::from_mins(1)).is_some() && said("a").is_none(), "some are said more often");
        pass(60).await;
        let again = said("a").unwrap();
        assert_eq!((again.count, again.name.as_str()), (2, first.name.as_str()));
        pass(3600).await;
        assert_eq!(said("a").unwrap().count, 1, "by then the first event may be gone");
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_of_an_object_with_a_very_long_name_is_called_by_its_uid() {
        let long = "x".repeat(253);
        let said = |name: &str| events().remember(("u", name), &Saying::normal("R", "a")).unwrap().name;
        assert!(said(&long).starts_with("u.") && said("n").starts_with("n."));
    }

    #[tokio::test(start_paused = true)]
    async fn why_a_pod_waits_is_said_every_five_minutes_or_when_more_than_numbers_changed() {
        let events = events();
        let said = |uid: &str, words: &str| events.remember((uid, "n"), &Saying::failed_scheduling(words)).is_ok();
        assert!(said("u", "no host has 64 GiB free; the largest gap is 48 GiB on pve3"));
        assert!(said("v", "no host has 64 GiB free; the largest gap is 48 GiB on pve3"), "another pod");
        pass(299).await;
        assert!(!said("u", "no host has 64 GiB free; the largest gap is 16 GiB on pve1"));
        assert!(said("u", "there is no pool"), "that is news");
        pass(1).await;
        assert!(said("u", "no host has 64 GiB free; the largest gap is 16 GiB on pve1"));
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_crowd_of_pods_only_some_are_told_where_they_go_and_the_others_a_little_later() {
        let events = events();
        let told = |numbers: std::ops::Range<u32>| -> Vec<Heard> {
            let say = |number| events.remember((&format!("u{number}"), "n"), &Saying::nominated("nodeclaim/a"));
            numbers.map(|number| say(number).map_or_else(|heard| heard, |_| Heard::Now)).collect()
        };
        let of = |now: usize, rest: Heard, all: usize| [vec![Heard::Now; now], vec![rest; all - now]].concat();
        assert_eq!(told(0..30), of(10, Heard::NotYet, 30));
        assert_eq!(told(0..5), of(0, Heard::Before, 5), "what was said needs no room");
        pass(1).await;
        assert_eq!(told(10..30), of(5, Heard::NotYet, 20));
        assert!(
            events.remember(("u", "n"), &Saying::insufficient_capacity("full")).is_ok(),
            "it has a room of its own"
        );
        assert!(events.remember(("u", "n"), &Saying::failed_scheduling("full")).is_ok(), "and this needs none");
        pass(3600).await;
        assert_eq!(told(15..40), of(10, Heard::NotYet, 25), "patience saves up ten");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded_and_the_oldest_goes_first() {
        let events = events();
        let said =
            |number: usize| events.remember((&format!("u{number}"), "n"), &Saying::failed_scheduling("x")).is_ok();
        assert!(said(0));
        pass(1).await;
        assert!((1..=REMEMBERED).all(said));
        assert_eq!(events.memory.lock().unwrap().said.len(), REMEMBERED);
        assert!(said(0) && !said(REMEMBERED));
    }
}
