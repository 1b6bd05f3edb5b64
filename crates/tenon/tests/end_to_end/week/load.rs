//! How many pods of which kind does each moment of a week want? A wave for every workload, higher by day than by night and lower at
//! the weekend, with some chance.

use std::time::Duration;

use serde_json::{Value, json};

/// How often a workload is given another number of replicas.
const STEP_S: u64 = 1800;

const HOUR_S: u64 = 3600;

/// At which hour of the first day it begins: when more and more pods are wanted.
const BEGINS_H: u64 = 6;

/// Xorshift: the same numbers for the same seed, and no crate.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        // Seeds that are close give numbers that are close at first.
        for _ in 0..8 {
            dice.roll(2);
        }
        dice
    }

    /// From 0 on, `sides` numbers.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % sides.max(1)
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let count = u64::try_from(of.len()).unwrap_or(1);
        &of[usize::try_from(self.roll(count)).unwrap_or_default()]
    }
}

/// What a workload demands of its nodes besides room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    None,
    /// No more than one pod ahead on any node.
    SpreadOverNodes,
    /// No more than three pods ahead on any host.
    SpreadOverHosts,
}

/// A Deployment whose number of pods goes up and down.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) name: String,
    /// The NodePool it is bound to.
    pub(crate) pool: &'static str,
    pub(crate) cpu_m: u64,
    pub(crate) memory_mib: u64,
    pub(crate) rule: Rule,
    /// How many pods a PodDisruptionBudget lets be away at once, if there is one.
    pub(crate) max_unavailable: Option<usize>,
    low: u64,
    high: u64,
    /// The hour of the day at which it wants most.
    peak_h: u64,
    seed: u64,
    /// When within a step it is scaled.
    offset_s: u64,
}

/// Workloads that want nodes of `cores` cores together at their peak.
pub(crate) fn apps(seed: u64, cores: u64) -> Vec<App> {
    let mut dice = Dice::new(seed);
    let (mut apps, mut wanted_m) = (Vec::new(), 0);
    while wanted_m < cores * 1000 {
        let number = apps.len();
        let cpu_m = *dice.pick(&[250, 500, 500, 750, 1000, 1500, 2000]);
        let memory_mib = cpu_m * dice.pick(&[1, 2, 2, 3, 4]);
        // One pod of twelve is large: at most a fifth of all.
        let share_m = (cores * 1000 / 12).max(2 * cpu_m);
        let high = (share_m / 2 + dice.roll(share_m)) / cpu_m + 1;
        let rule = match dice.roll(6) {
            0 => Rule::SpreadOverNodes,
            1 => Rule::SpreadOverHosts,
            _ => Rule::None,
        };
        let has_budget = dice.roll(2) == 0;
        apps.push(App {
            name: format!("app{number}"),
            pool: if dice.roll(4) == 0 { "short" } else { "default" },
            cpu_m,
            memory_mib,
            rule,
            max_unavailable: has_budget.then(|| usize::try_from(high / 5).unwrap_or(1).max(1)),
            low: high / 4,
            high,
            peak_h: 10 + dice.roll(8),
            seed: dice.roll(1 << 30),
            offset_s: dice.roll(STEP_S / 60) * 60,
        });
        wanted_m += high * cpu_m;
    }
    apps
}

impl App {
    /// How many pods it has from this moment on.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a curve")]
    pub(crate) fn replicas(&self, at: Duration) -> u64 {
        let step = at.as_secs().saturating_sub(self.offset_s) / STEP_S;
        let begun_s = step * STEP_S + BEGINS_H * HOUR_S;
        let (hour, day) = (begun_s as f64 / HOUR_S as f64, begun_s / (24 * HOUR_S));
        let wave = 0.5 + 0.5 * ((hour - self.peak_h as f64) / 24.0 * std::f64::consts::TAU).cos();
        let weekend = if day % 7 >= 5 { 0.6 } else { 1.0 };
        let mean = self.low as f64 + (self.high - self.low) as f64 * wave * weekend;
        let noise = Dice::new(self.seed ^ (step + 1)).roll(21) as f64 / 100.0 - 0.10;
        (mean * (1.0 + noise)).round().max(1.0) as u64
    }

    pub(crate) fn container(&self) -> Value {
        let (cpu, memory) = (format!("{}m", self.cpu_m), format!("{}Mi", self.memory_mib));
        json!({ "resources": { "requests": { "cpu": cpu, "memory": memory } } })
    }

    /// What its pods are besides their container.
    pub(crate) fn pod(&self) -> Value {
        let mut pod = json!({
            "terminationGracePeriodSeconds": 5,
            "nodeSelector": { "karpenter.sh/nodepool": self.pool },
        });
        let spread = |key: &str, most: u32| {
            json!([{
                "maxSkew": most, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": { "matchLabels": { "app": self.name } },
            }])
        };
        match self.rule {
            Rule::None => {}
            Rule::SpreadOverNodes => pod["topologySpreadConstraints"] = spread("kubernetes.io/hostname", 1),
            Rule::SpreadOverHosts => pod["topologySpreadConstraints"] = spread("topology.kubernetes.io/zone", 3),
        }
        pod
    }
}
