//! Which metrics are there? Every one has a row here, and nothing is served that has none.

pub(crate) mod by_kind;
pub(crate) mod karpenter;
pub(crate) mod labels;
pub(crate) mod tenon;

/// Bounds of everything that is timed, in seconds, as dashboards of the reference expect them.
pub(crate) const DURATIONS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    150.0, 300.0, 450.0, 600.0,
];

/// The bounds that Prometheus' Go library takes where nobody names others.
pub(crate) const GO_DEFAULT: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Bounds of requests to Kubernetes: twenty, each half as much again as the one before, from a millisecond.
pub(crate) const KUBE_BOUNDS: &[f64] = &[
    0.001,
    0.0015,
    0.002_25,
    0.003_375,
    0.005_062_5,
    0.007_593_75,
    0.011_390_625,
    0.017_085_937_5,
    0.025_628_906_25,
    0.038_443_359_375,
    0.057_665_039_062_5,
    0.086_497_558_593_75,
    0.129_746_337_890_625,
    0.194_619_506_835_937_5,
    0.291_929_260_253_906_25,
    0.437_893_890_380_859_4,
    0.656_840_835_571_289_1,
    0.985_261_253_356_933_6,
    1.477_891_880_035_400_4,
    2.216_837_820_053_100_6,
];

/// Bounds of requests to Proxmox: an answer comes within milliseconds, or a lock is waited for.
pub(crate) const REQUESTS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 30.0];

/// Bounds of tasks of Proxmox: a linked clone takes a second, a full one minutes.
pub(crate) const TASKS: &[f64] = &[0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0];

/// Eleven bounds, each twice the one before, from a second.
pub(crate) const DOUBLING_11: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// The same with a twelfth.
pub(crate) const DOUBLING_12: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0];

/// Eight bounds, each twice the one before, from ten seconds.
pub(crate) const DOUBLING_8_FROM_10: &[f64] = &[10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0];

/// Fifteen bounds, each twice the one before, from half a second.
pub(crate) const DOUBLING_15: &[f64] =
    &[0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0];

/// What policy `Balanced` is asked for: half is enough.
pub(crate) const SCORES: &[f64] = &[0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0];

/// How long nodes live: from 15 minutes to 30 days.
pub(crate) const LIFETIMES: &[f64] = &[
    900.0,
    1800.0,
    2700.0,
    3600.0,
    7200.0,
    14_400.0,
    21_600.0,
    28_800.0,
    43_200.0,
    86_400.0,
    172_800.0,
    432_000.0,
    864_000.0,
    1_296_000.0,
    1_728_000.0,
    2_592_000.0,
];

/// A metric.
#[derive(Debug, PartialEq)]
pub struct Metric {
    /// As it is served.
    pub name: &'static str,
    /// How it is counted.
    pub kind: Kind,
    /// What a value of 1 is.
    pub unit: Unit,
    /// Its labels, in the order they are served in.
    pub labels: &'static [Label],
    /// What it shows, in a sentence.
    pub help: &'static str,
    /// Whose name it is.
    pub origin: Origin,
    /// Whether `--disable-cluster-state-observability` leaves it out, as it does in Karpenter.
    pub is_cluster_state: bool,
}

/// A label, and what bounds how many values it can have.
#[derive(Debug, PartialEq, Eq)]
pub struct Label {
    /// As it is served.
    pub name: &'static str,
    /// What its values are.
    pub values: &'static str,
}

/// How a metric is counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Observations by size, up to these bounds.
    Histogram(&'static [f64]),
    /// Quantiles of the observations of the last ten minutes.
    Summary,
}

/// What a value of 1 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// One of what is counted.
    Count,
    /// A second.
    Seconds,
    /// A second since 1970.
    UnixTime,
    /// One of the resource in label `resource_type`: a core, a byte, a pod.
    Resource,
    /// A core.
    Cores,
    /// A byte.
    Bytes,
    /// A hundredth.
    Percent,
    /// The unit of prices of instance types.
    Price,
    /// True; 0 is false.
    Truth,
}

/// Whose name a metric has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Karpenter defines it.
    Karpenter,
    /// A library of Karpenter defines it.
    KarpenterLibrary,
    /// Karpenter's provider for AWS defines it, and dashboards for Karpenter show it.
    KarpenterAws,
    /// Only Tenon has it.
    Tenon,
}

impl Kind {
    /// As Prometheus calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
            Kind::Summary => "summary",
        }
    }
}

impl Metric {
    /// Every metric, by name.
    pub fn all() -> Vec<&'static Metric> {
        let by_kind = by_kind::KINDS.iter().flat_map(|kind| kind.metrics());
        let mut all: Vec<&Metric> = karpenter::ALL.iter().chain(tenon::ALL).copied().chain(by_kind).collect();
        all.sort_by_key(|metric| metric.name);
        all
    }

    /// Whether a sample of this name belongs to it.
    pub fn has_sample(&self, name: &str) -> bool {
        let suffixes: &[&str] = match self.kind {
            Kind::Counter | Kind::Gauge => &[""],
            Kind::Histogram(_) => &["_bucket", "_sum", "_count"],
            Kind::Summary => &["", "_sum", "_count"],
        };
        name.strip_prefix(self.name).is_some_and(|rest| suffixes.contains(&rest))
    }
}

/// A metric of Karpenter's; what is not said of it here is said with the functions below.
const fn metric(name: &'static str, kind: Kind, labels: &'static [Label], help: &'static str) -> Metric {
    Metric { name, kind, unit: Unit::Count, labels, help, origin: Origin::Karpenter, is_cluster_state: false }
}

impl Metric {
    const fn unit(self, unit: Unit) -> Metric {
        Metric { unit, ..self }
    }

    const fn by(self, origin: Origin) -> Metric {
        Metric { origin, ..self }
    }

    const fn cluster_state(self) -> Metric {
        Metric { is_cluster_state: true, ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_has_one_row_and_a_name_that_says_its_kind_and_unit() {
        let mut names = BTreeSet::new();
        for metric in Metric::all() {
            let Metric { name, kind, unit, labels, help, origin, .. } = metric;
            assert!(names.insert(name), "{name} has two rows");
            assert!(labels.iter().map(|label| label.name).collect::<BTreeSet<_>>().len() == labels.len(), "{name}");
            assert!(labels.iter().all(|label| !label.values.is_empty()), "{name}: what bounds its labels?");
            assert!(!help.is_empty() && !help.ends_with('.'), "{name}: {help}");
            assert_eq!(*origin == Origin::Tenon, name.starts_with("tenon_"), "{name}");
            if *origin == Origin::Tenon {
                assert_eq!(*kind == Kind::Counter, name.ends_with("_total"), "{name}");
                assert_eq!(*unit == Unit::Seconds, name.ends_with("_seconds") && *unit != Unit::UnixTime, "{name}");
            }
        }
        assert!(names.len() > 70, "{}", names.len());
    }

    #[test]
    fn bounds_rise() {
        for metric in Metric::all() {
            if let Kind::Histogram(bounds) = metric.kind {
                assert!(bounds.is_sorted() && !bounds.is_empty(), "{}", metric.name);
            }
        }
    }
}
