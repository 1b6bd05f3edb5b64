//! How are the samples of a metric kept? One map for each metric, from the values of its labels to a number, a histogram or
//! a summary.
//!
//! A family is made from its row in the catalogue, which is where its labels come from: a sample cannot have others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::catalogue::{Kind, Metric};
use super::exposition::{Exposition, Quantile};

/// Samples older than this are no longer part of the quantiles of a summary, as in the reference's client library.
const SUMMARY_AGE: Duration = Duration::from_secs(600);

/// A summary looks at so many samples at the most.
const SUMMARY_SAMPLES: usize = 1024;

/// The values of the labels of a sample, in the order of the metric's labels.
type Key = Vec<String>;

/// Labels of a metric, as a type.
pub(crate) trait Labels {
    /// What they are called.
    const NAMES: &'static [&'static str];

    /// Their values.
    fn values(&self) -> Vec<String>;
}

impl Labels for () {
    const NAMES: &'static [&'static str] = &[];

    fn values(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Defines labels as a struct whose fields are called as the labels are.
macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),+ $(,)? })+) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name { $(pub(crate) $field: $type),+ }

        impl $crate::metrics::families::Labels for $name {
            const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            fn values(&self) -> Vec<String> {
                vec![$(self.$field.to_string()),+]
            }
        }
    )+ };
}
pub(super) use labels;

/// What is counted for one set of labels.
#[derive(Debug, Clone)]
enum Sample {
    Number(f64),
    Histogram(Observed),
    Summary(Window),
}

/// How many observations there were, by size.
#[derive(Debug, Clone)]
struct Observed {
    bounds: &'static [f64],
    /// One for each bound, and one for what is beyond the last.
    counts: Vec<u64>,
    sum: f64,
}

/// The last observations, and all of them together.
#[derive(Debug, Clone, Default)]
struct Window {
    recent: VecDeque<(Instant, f64)>,
    count: u64,
    sum: f64,
}

/// All samples of a metric.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) metric: &'static Metric,
    samples: Mutex<BTreeMap<Key, Sample>>,
}

impl Family {
    fn new<L: Labels>(metric: &'static Metric) -> Arc<Family> {
        debug_assert!(
            metric.labels.iter().map(|label| label.name).eq(L::NAMES.iter().copied()),
            "{} has other labels: {:?}",
            metric.name,
            L::NAMES
        );
        Arc::new(Family::of(metric))
    }

    /// A family whose labels no type has: the values of a sample have to be as many.
    pub(super) fn of(metric: &'static Metric) -> Family {
        Family { metric, samples: Mutex::default() }
    }

    /// One more with these values of the labels.
    pub(super) fn inc(&self, values: Key) {
        At { family: self, key: values }.inc();
    }

    /// It happened with this size.
    pub(super) fn observe(&self, values: Key, size: f64) {
        At { family: self, key: values }.observe(size);
    }

    fn change(&self, key: Key, change: impl FnOnce(&mut Sample)) {
        debug_assert_eq!(key.len(), self.metric.labels.len(), "{} has other labels", self.metric.name);
        change(self.lock().entry(key).or_insert_with(|| Sample::of(self.metric.kind)));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Sample>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds every value of a label, if there is such a label.
    pub(super) fn values_of(&self, label: &str, values: &mut BTreeSet<String>) {
        if let Some(place) = self.place_of(label) {
            values.extend(self.lock().keys().filter_map(|key| key.get(place).cloned()));
        }
    }

    /// Forgets the samples whose label has such a value.
    pub(super) fn forget(&self, label: &str, is_gone: &dyn Fn(&str) -> bool) {
        if let Some(place) = self.place_of(label) {
            self.lock().retain(|key, _| !key.get(place).is_some_and(|value| is_gone(value)));
        }
    }

    fn place_of(&self, label: &str) -> Option<usize> {
        self.metric.labels.iter().position(|known| known.name == label)
    }

    /// Writes every sample down.
    pub(super) fn show(&self, page: &mut Exposition<'_>) {
        self.show_as(self.metric, page);
    }

    /// The same under the name of another metric.
    pub(super) fn show_as(&self, metric: &'static Metric, page: &mut Exposition<'_>) {
        let Some(mut lines) = page.of(metric) else { return };
        for (key, sample) in self.lock().iter() {
            match sample {
                Sample::Number(value) => lines.number(key, *value),
                Sample::Histogram(Observed { bounds, counts, sum }) => lines.histogram(key, bounds, counts, *sum),
                Sample::Summary(window) => lines.summary(key, &window.quantiles(), window.count, window.sum),
            }
        }
    }
}

impl Sample {
    fn of(kind: Kind) -> Sample {
        match kind {
            Kind::Counter | Kind::Gauge => Sample::Number(0.0),
            Kind::Histogram(bounds) => {
                Sample::Histogram(Observed { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 })
            }
            Kind::Summary => Sample::Summary(Window::default()),
        }
    }

    fn observe(&mut self, value: f64) {
        match self {
            Sample::Number(number) => *number = value,
            Sample::Histogram(Observed { bounds, counts, sum }) => {
                let at = bounds.partition_point(|bound| *bound < value);
                *sum += value;
                counts.iter_mut().skip(at).take(1).for_each(|count| *count += 1);
            }
            Sample::Summary(window) => window.observe(value),
        }
    }
}

impl Window {
    fn observe(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        if self.recent.len() >= SUMMARY_SAMPLES {
            self.recent.pop_front();
        }
        self.recent.push_back((Instant::now(), value));
    }

    /// As the reference has them; not a number where nothing was observed of late.
    fn quantiles(&self) -> [Quantile; 5] {
        let is_recent = |(at, _): &&(Instant, f64)| at.elapsed() <= SUMMARY_AGE;
        let mut values: Vec<f64> = self.recent.iter().filter(is_recent).map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().saturating_sub(1);
        let at = |share: f64| values.get((last as f64 * share).ceil() as usize).copied().unwrap_or(f64::NAN);
        [0.0, 0.5, 0.9, 0.99, 1.0].map(|share| Quantile { share, value: at(share) })
    }
}

/// What a gauge can be set to.
pub(crate) trait Amount {
    /// As it is shown.
    fn amount(self) -> f64;
}

impl Amount for f64 {
    fn amount(self) -> f64 {
        self
    }
}

impl Amount for i64 {
    fn amount(self) -> f64 {
        self as f64
    }
}

impl Amount for u64 {
    fn amount(self) -> f64 {
        self as f64
    }
}

impl Amount for usize {
    fn amount(self) -> f64 {
        self as f64
    }
}

/// A family with labels of this type.
#[derive(Debug)]
pub(crate) struct Series<L> {
    pub(super) family: Arc<Family>,
    labels: PhantomData<fn(L)>,
}

/// One sample of a family, by its labels. It is there as soon as it is asked for.
#[derive(Debug)]
pub(crate) struct At<'a> {
    family: &'a Family,
    key: Key,
}

impl<L: Labels> Series<L> {
    pub(super) fn new(metric: &'static Metric) -> Series<L> {
        Series { family: Family::new::<L>(metric), labels: PhantomData }
    }

    /// The sample with these labels.
    pub(crate) fn get_or_create(&self, labels: &L) -> At<'_> {
        let key = labels.values();
        self.family.change(key.clone(), |_| ());
        At { family: &self.family, key }
    }

    /// Forgets the sample with these labels.
    pub(crate) fn remove(&self, labels: &L) {
        self.family.lock().remove(&labels.values());
    }

    /// Forgets the samples whose labels have other values than these.
    pub(crate) fn retain(&self, is_kept: impl Fn(&[String]) -> bool) {
        self.family.lock().retain(|values, _| is_kept(values));
    }

    /// Forgets every sample.
    pub(crate) fn clear(&self) {
        self.family.lock().clear();
    }
}

impl At<'_> {
    /// One more.
    pub(crate) fn inc(&self) {
        self.inc_by(1_u64);
    }

    /// So many more.
    pub(crate) fn inc_by(&self, more: impl Amount) {
        let more = more.amount();
        self.family.change(self.key.clone(), |sample| {
            if let Sample::Number(number) = sample {
                *number += more;
            }
        });
    }

    /// It is this now.
    pub(crate) fn set(&self, value: impl Amount) {
        let value = value.amount();
        self.family.change(self.key.clone(), |sample| sample.observe(value));
    }

    /// It happened with this size.
    pub(crate) fn observe(&self, value: f64) {
        self.family.change(self.key.clone(), |sample| sample.observe(value));
    }
}
