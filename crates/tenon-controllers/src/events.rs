//! Publishes events: one for each new thing to say about an object, not one for each pass.

mod bucket;
mod event;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as KubeEvent;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::kube_error;
use crate::moments::after;
use bucket::Bucket;
pub(crate) use event::Event;
use event::RateLimit;

/// The reporting controller, as `kubectl describe` shows it. The reference's name, so that filters on it go on working.
const REPORTER: &str = "karpenter";

/// A repeated event is counted on the first one, unless that is so old that it may be deleted: events live for an hour.
const KEPT_FOR: SignedDuration = SignedDuration::from_mins(50);

/// A bound on what is remembered; beyond it the oldest is forgotten, which at worst publishes something twice.
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
    /// How many were published, for their names.
    number: AtomicU64,
}

/// What was published, and how much may still be published of what is rate-limited.
#[derive(Debug, Default)]
struct Remembered {
    series: BTreeMap<Key, Series>,
    rate_limits: BTreeMap<RateLimit, Bucket>,
}

/// Of which object, which reason, what.
type Key = (String, &'static str, u64);

/// One event and its repetitions.
#[derive(Debug, Clone)]
struct Series {
    first: Timestamp,
    last: Timestamp,
    count: i32,
    name: String,
    /// How long it is remembered: it may be repeated only so long after its first.
    kept_for: SignedDuration,
}

impl Series {
    fn is_kept(&self, now: Timestamp) -> bool {
        after(self.last, self.kept_for) > now
    }
}

/// Whether an event was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    /// It was.
    Sent,
    /// The same was published not long ago.
    Duplicate,
    /// Too many of the kind were published just now. It may be published later.
    RateLimited,
}

/// An object, as far as its events need to know it.
#[derive(Debug, Clone, Copy)]
struct Regarding<'a> {
    uid: &'a str,
    name: &'a str,
}

impl Events {
    /// Publishes to the cluster whose objects are spoken of.
    pub(crate) fn new(client: Client, clock: Clock) -> Events {
        Events { client, clock, memory: Mutex::default(), number: AtomicU64::new(0) }
    }

    /// Publishes an event of an object, unless the same was published just now. An event that cannot be published is logged
    /// and never stops the work it speaks of.
    pub(crate) async fn publish<K>(&self, object: &K, event: &Event)
    where
        K: Resource<DynamicType = ()> + Send + Sync,
    {
        self.publish_for(&object.object_ref(&()), event).await;
    }

    /// The same for an object of which only a reference is at hand.
    pub(crate) async fn publish_for(&self, object: &ObjectReference, event: &Event) -> Published {
        let (kind, name) = (object.kind.as_deref().unwrap_or_default(), object.name.as_deref().unwrap_or_default());
        let regarding = Regarding { uid: object.uid.as_deref().unwrap_or_default(), name };
        let series = match self.remember(regarding, event) {
            Ok(series) => series,
            Err(published) => return published,
        };
        let reason = event.reason.name();
        match (event.is_warning(), kind) {
            (true, _) => tracing::warn!(kind, name, reason, "{}", event.note),
            // What becomes of each pod its events say; the log says what was changed.
            (false, "Pod") => tracing::debug!(kind, name, reason, "{}", event.note),
            (false, _) => tracing::info!(kind, name, reason, "{}", event.note),
        }
        if let Err(error) = self.send(object, event, &series).await {
            tracing::warn!(kind, name, reason, error = kube_error::message(&error), "cannot publish event");
        }
        Published::Sent
    }

    /// Objects without a namespace have their events in `default`, where kubectl looks for them.
    async fn send(&self, object: &ObjectReference, event: &Event, series: &Series) -> Result<(), kube::Error> {
        let namespace = object.namespace.as_deref().unwrap_or("default");
        let events: Api<KubeEvent> = Api::namespaced(self.client.clone(), namespace);
        if series.count > 1 {
            let patch = json!({ "series": { "count": series.count, "lastObservedTime": MicroTime(series.last) } });
            let counted = events.patch(&series.name, &PatchParams::default(), &Patch::Merge(patch)).await;
            match counted {
                Err(kube::Error::Api(refusal)) if refusal.code == 404 => {}
                other => return other.map(drop),
            }
        }
        let event = serde_json::from_value(written(object, event, series)).map_err(kube::Error::SerdeError)?;
        events.create(&PostParams::default(), &event).await.map(drop)
    }

    /// Remembers that this is published now, unless it is not to be.
    fn remember(&self, regarding: Regarding<'_>, event: &Event) -> Result<Series, Published> {
        let Regarding { uid, name } = regarding;
        let (now, key) = (self.clock.now(), (uid.to_owned(), event.reason.name(), event.gist()));
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let known = memory.series.get(&key).filter(|known| known.is_kept(now)).cloned();
        if known.as_ref().is_some_and(|known| after(known.last, event.repeat_after) > now) {
            return Err(Published::Duplicate);
        }
        // Asked last: what was rate-limited is published when there is room.
        if event.rate_limit.is_some_and(|limit| !memory.rate_limits.entry(limit).or_default().take(now)) {
            return Err(Published::RateLimited);
        }
        // One that is repeated seldom outlives its first event, and is then published anew.
        let known = known.filter(|known| after(known.first, KEPT_FOR) > now);
        let next = match known {
            Some(known) => Series { last: now, count: known.count.saturating_add(1), ..known },
            // The number besides: where time is simulated, many are published in the same nanosecond.
            None => {
                let number = self.number.fetch_add(1, Ordering::Relaxed);
                let name = if name.len() > NAME_MAX { uid } else { name };
                let name = format!("{name}.{:x}.{number:x}", now.as_nanosecond());
                Series { first: now, last: now, count: 1, name, kept_for: event.repeat_after.max(KEPT_FOR) }
            }
        };
        memory.make_room(now);
        memory.series.insert(key, next.clone());
        Ok(next)
    }
}

impl Remembered {
    /// Forgets what does not matter any more, and else the oldest.
    fn make_room(&mut self, now: Timestamp) {
        if self.series.len() < REMEMBERED {
            return;
        }
        self.series.retain(|_, known| known.is_kept(now));
        while self.series.len() >= REMEMBERED {
            let Some(oldest) = self.series.iter().min_by_key(|(_, known)| known.last).map(|(key, _)| key.clone())
            else {
                break;
            };
            self.series.remove(&oldest);
        }
    }
}

fn written(object: &ObjectReference, event: &Event, series: &Series) -> Value {
    json!({
        "metadata": { "name": series.name, "namespace": object.namespace.as_deref().unwrap_or("default") },
        "eventTime": MicroTime(series.last),
        "reportingController": REPORTER,
        "reportingInstance": REPORTER,
        "action": event.reason.name(),
        "reason": event.reason.name(),
        "note": cut(&event.note, NOTE_MAX),
        "type": event.reason.severity().as_str(),
        "regarding": object,
    })
}

/// At most so many bytes, at a character's edge.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most.saturating_sub(3)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{}...", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use tenon_api::event_reasons::LAUNCHED;

    use super::event::REPEAT_AFTER;
    use super::*;

    fn object<'a>(uid: &'a str, name: &'a str) -> Regarding<'a> {
        Regarding { uid, name }
    }

    #[test]
    fn a_note_is_cut_at_a_characters_edge() {
        assert_eq!(cut("short", NOTE_MAX), "short");
        let long = cut(&"é".repeat(600), NOTE_MAX);
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
    async fn i10_dedupe_the_same_words_are_said_once_and_counted_later() {
        let events = events();
        let after = |words: &str, patience| {
            events.remember(object("u", "n"), &Event::new(&LAUNCHED, words).repeat_after(patience)).ok()
        };
        let said = |words: &str| after(words, REPEAT_AFTER);
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
    async fn i10_override_what_is_said_once_a_day_is_not_said_every_hour() {
        let events = events();
        let daily = Event::new(&LAUNCHED, "a").repeat_after(SignedDuration::from_hours(24));
        let say = || events.remember(object("u", "n"), &daily).ok();
        let first = say().unwrap();
        pass(7200).await;
        assert!(say().is_none());
        pass(24 * 3600).await;
        let again = say().unwrap();
        assert_eq!(again.count, 1, "the first event is gone by now");
        assert_ne!(again.name, first.name);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_of_an_object_with_a_very_long_name_is_called_by_its_uid() {
        let long = "x".repeat(253);
        let said = |name: &str| events().remember(object("u", name), &Event::new(&LAUNCHED, "a")).unwrap().name;
        assert!(said(&long).starts_with("u.") && said("n").starts_with("n."));
    }

    #[tokio::test(start_paused = true)]
    async fn i10_override_why_a_pod_waits_is_said_every_five_minutes_or_when_more_than_numbers_changed() {
        let events = events();
        let said = |uid: &str, words: &str| events.remember(object(uid, "n"), &Event::failed_scheduling(words)).is_ok();
        assert!(said("u", "no host has 64 GiB free; the largest gap is 48 GiB on pve3"));
        assert!(said("v", "no host has 64 GiB free; the largest gap is 48 GiB on pve3"), "another pod");
        pass(299).await;
        assert!(!said("u", "no host has 64 GiB free; the largest gap is 16 GiB on pve1"));
        assert!(said("u", "there is no pool"), "that is news");
        pass(1).await;
        assert!(said("u", "no host has 64 GiB free; the largest gap is 16 GiB on pve1"));
    }

    #[tokio::test(start_paused = true)]
    async fn i10_rate_of_a_crowd_of_pods_only_some_are_told_where_they_go_and_the_others_a_little_later() {
        let events = events();
        let told = |numbers: std::ops::Range<u32>| -> Vec<Published> {
            let say = |number| events.remember(object(&format!("u{number}"), "n"), &Event::nominated("nodeclaim/a"));
            numbers.map(|number| say(number).map_or_else(|heard| heard, |_| Published::Sent)).collect()
        };
        let of = |now: usize, rest: Published, all: usize| [vec![Published::Sent; now], vec![rest; all - now]].concat();
        assert_eq!(told(0..30), of(10, Published::RateLimited, 30));
        assert_eq!(told(0..5), of(0, Published::Duplicate, 5), "what was said needs no room");
        pass(1).await;
        assert_eq!(told(10..30), of(5, Published::RateLimited, 20));
        assert!(
            events.remember(object("u", "n"), &Event::insufficient_capacity("full")).is_ok(),
            "it has a room of its own"
        );
        assert!(events.remember(object("u", "n"), &Event::failed_scheduling("full")).is_ok(), "and this needs none");
        pass(3600).await;
        assert_eq!(told(15..40), of(10, Published::RateLimited, 25), "patience saves up ten");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded_and_the_oldest_goes_first() {
        let events = events();
        let said =
            |number: usize| events.remember(object(&format!("u{number}"), "n"), &Event::failed_scheduling("x")).is_ok();
        assert!(said(0));
        pass(1).await;
        assert!((1..=REMEMBERED).all(said));
        assert_eq!(events.memory.lock().unwrap().series.len(), REMEMBERED);
        assert!(said(0) && !said(REMEMBERED));
    }
}
