//! The controller's settings that change a plan, as a file: YAML or JSON, under any of the names they go by.
//!
//! What is not known is an error, so that a misspelt setting is not a silent default.

mod gates;
mod prices;
mod repair_policies;
mod scheduler_config;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use serde_json::Value;
use tenon_model::{PriceFormula, RepairPolicies};

use crate::yaml_words;

pub use gates::FeatureGates;
pub use tenon_model::{MinValuesPolicy, PreferencePolicy};

/// Millicores that nobody or nothing sensible was said about.
const DEFAULT_CPU_REQUESTS: i64 = 1_000;

/// The settings.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// Whether what pods prefer is tried first.
    pub preference_policy: PreferencePolicy,
    /// What happens where fewer values than wanted stay possible.
    pub min_values_policy: MinValuesPolicy,
    /// What is switched on.
    pub feature_gates: FeatureGates,
    /// Spread constraints of pods that have none of their own.
    pub default_spread: Vec<TopologySpreadConstraint>,
    /// Whether pods that ask for devices are left out.
    pub ignore_dra_requests: bool,
    /// How many millicores the controller has, which is how many types it looks at side by side.
    pub cpu_requests: i64,
    /// Which conditions of Nodes mean that they are broken, and what is done about each.
    pub repair_policies: RepairPolicies,
    /// Whether nodes on hosts that Proxmox lists as offline are repaired however many they are.
    pub repair_offline_hosts: bool,
    /// Whether the VM of a silent node is started again if it is stopped.
    pub start_stopped_vms: bool,
    /// What instance types cost that have no price of their own.
    pub prices: PriceFormula,
    /// What was read and has no effect.
    pub notes: Vec<String>,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            preference_policy: PreferencePolicy::default(),
            min_values_policy: MinValuesPolicy::default(),
            feature_gates: FeatureGates::default(),
            default_spread: Vec::new(),
            ignore_dra_requests: true,
            cpu_requests: DEFAULT_CPU_REQUESTS,
            repair_policies: RepairPolicies::default(),
            repair_offline_hosts: false,
            start_stopped_vms: false,
            prices: PriceFormula::default(),
            notes: Vec::new(),
        }
    }
}

/// A setting under its three names: in a file, as a flag, in the environment.
struct Setting {
    names: [&'static str; 3],
    apply: fn(&mut PlanOptions, &Value) -> Result<(), String>,
}

const SETTINGS: [Setting; 12] = [
    Setting { names: ["preferencePolicy", "preference-policy", "PREFERENCE_POLICY"], apply: preference_policy },
    Setting { names: ["minValuesPolicy", "min-values-policy", "MIN_VALUES_POLICY"], apply: min_values_policy },
    Setting { names: ["featureGates", "feature-gates", "FEATURE_GATES"], apply: gates::apply },
    Setting { names: ["schedulerConfig", "scheduler-config", "SCHEDULER_CONFIG"], apply: scheduler_config::apply },
    Setting { names: ["ignoreDRARequests", "ignore-dra-requests", "IGNORE_DRA_REQUESTS"], apply: ignore_dra_requests },
    Setting { names: ["cpuRequests", "cpu-requests", "CPU_REQUESTS"], apply: cpu_requests },
    Setting { names: ["repairPolicies", "repair-policies", "REPAIR_POLICIES"], apply: repair_policies::apply },
    Setting {
        names: ["repairOfflineHosts", "repair-offline-hosts", "REPAIR_OFFLINE_HOSTS"],
        apply: repair_offline_hosts,
    },
    Setting { names: ["startStoppedVMs", "start-stopped-vms", "START_STOPPED_VMS"], apply: start_stopped_vms },
    Setting { names: ["pricePerCPU", "price-per-cpu", "PRICE_PER_CPU"], apply: prices::per_cpu },
    Setting { names: ["pricePerGB", "price-per-gb", "PRICE_PER_GB"], apply: prices::per_gb },
    Setting { names: ["spotPriceFactor", "spot-price-factor", "SPOT_PRICE_FACTOR"], apply: prices::spot_factor },
];

impl PlanOptions {
    /// Takes one setting, by any of its names, from the text of a flag or a variable. An empty text decides nothing.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), PlanOptionsError> {
        let fail = |why: String| PlanOptionsError { line: None, why };
        let setting = SETTINGS.iter().find(|setting| setting.names.contains(&name));
        let setting = setting.ok_or_else(|| fail(unknown(name)))?;
        if text.trim().is_empty() {
            return Ok(());
        }
        (setting.apply)(self, &Value::String(text.to_owned())).map_err(fail)
    }
}

/// Reads a file of settings. An empty one decides nothing.
pub fn read(text: &str) -> Result<PlanOptions, PlanOptionsError> {
    let fail = |error: serde_saphyr::Error| PlanOptionsError {
        line: yaml_words::line(&error),
        why: yaml_words::words(&error),
    };
    let settings: Option<BTreeMap<String, Value>> =
        serde_saphyr::from_str_with_options(text, yaml_options()).map_err(fail)?;
    let mut options = PlanOptions::default();
    let mut seen: BTreeMap<&str, String> = BTreeMap::new();
    for (key, value) in settings.iter().flatten() {
        let fail = |why: String| PlanOptionsError { line: Some(line_of(text, key)), why: format!("{key}: {why}") };
        let setting = SETTINGS.iter().find(|setting| setting.names.contains(&key.as_str()));
        let setting = setting.ok_or_else(|| fail(unknown(key)))?;
        if let Some(other) = seen.insert(setting.names[0], key.clone()) {
            return Err(fail(format!("this is the same setting as {other}; keep one of them")));
        }
        // A setting without a value decides nothing.
        if !value.is_null() {
            (setting.apply)(&mut options, value).map_err(fail)?;
        }
    }
    Ok(options)
}

/// Only `true` and `false` are truth values; `no` is a word.
pub(crate) fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true, legacy_octal_numbers: true, with_snippet: false }
}

fn preference_policy(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    options.preference_policy = match value.as_str() {
        Some("Respect") => PreferencePolicy::Respect,
        Some("Ignore") => PreferencePolicy::Ignore,
        _ => return Err(format!("{value} is neither Respect nor Ignore")),
    };
    Ok(())
}

fn min_values_policy(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    options.min_values_policy = match value.as_str() {
        Some("Strict") => MinValuesPolicy::Strict,
        Some("BestEffort") => MinValuesPolicy::BestEffort,
        _ => return Err(format!("{value} is neither Strict nor BestEffort")),
    };
    Ok(())
}

fn ignore_dra_requests(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    options.ignore_dra_requests = flag(value)?;
    Ok(())
}

fn repair_offline_hosts(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    options.repair_offline_hosts = flag(value)?;
    Ok(())
}

fn start_stopped_vms(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    options.start_stopped_vms = flag(value)?;
    Ok(())
}

fn flag(value: &Value) -> Result<bool, String> {
    let told = match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => gates::truth(text),
        _ => None,
    };
    told.ok_or_else(|| format!("{value} is neither true nor false"))
}

fn cpu_requests(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    let number = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
    let number = number.ok_or_else(|| format!("{value} is not a whole number of millicores"))?;
    options.cpu_requests = if number > 0 { number } else { DEFAULT_CPU_REQUESTS };
    Ok(())
}

/// What to do about a key nobody knows.
fn unknown(key: &str) -> String {
    let plain = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let names = SETTINGS.iter().map(|setting| setting.names[0]);
    let near = names.clone().map(|name| (distance(&plain(name), &plain(key)), name)).min();
    match near {
        Some((errors, name)) if errors <= 3 => format!("no such setting; did you mean {name}?"),
        _ => format!("no such setting; use one of {}", names.collect::<Vec<_>>().join(", ")),
    }
}

/// How many letters must be changed, added or left out.
fn distance(a: &str, b: &str) -> usize {
    // A key may be as long as its file; one this long is no slip of the pen.
    if b.len() > 64 {
        return b.len();
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The line a key stands on, by its looks: it begins where a word may, and a colon follows.
fn line_of(text: &str, key: &str) -> usize {
    let is_key = |(begin, _): &(usize, &str)| {
        let (before, from) = text.split_at_checked(*begin).unwrap_or_default();
        let after = from.get(key.len()..).unwrap_or_default().trim_start_matches(['"', '\'', ' ']);
        !before.ends_with(|letter: char| letter.is_alphanumeric() || "-_./".contains(letter)) && after.starts_with(':')
    };
    let begin = text.match_indices(key).find(is_key).map_or(0, |(begin, _)| begin);
    1 + text.bytes().take(begin).filter(|byte| *byte == b'\n').count()
}

/// Why a file of settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOptionsError {
    line: Option<usize>,
    why: String,
}

impl std::error::Error for PlanOptionsError {}

impl std::fmt::Display for PlanOptionsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.line.iter().try_for_each(|line| write!(f, "line {line}: "))?;
        f.write_str(&self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_decides_nothing_gives_the_defaults() {
        for text in ["", "# nothing\n", "{}", "null", "preferencePolicy:\n"] {
            assert_eq!(read(text).unwrap(), PlanOptions::default(), "{text}");
        }
        let defaults = PlanOptions::default();
        assert!(defaults.ignore_dra_requests && defaults.feature_gates.reserved_capacity);
        assert_eq!(defaults.cpu_requests, 1_000);
    }

    #[test]
    fn a_setting_is_known_by_each_of_its_names() {
        for text in [
            "preferencePolicy: Ignore\nminValuesPolicy: BestEffort\nignoreDRARequests: false\ncpuRequests: 4000\n",
            "preference-policy: Ignore\nmin-values-policy: BestEffort\nignore-dra-requests: false\ncpu-requests: 4000\n",
            "PREFERENCE_POLICY: Ignore\nMIN_VALUES_POLICY: BestEffort\nIGNORE_DRA_REQUESTS: F\nCPU_REQUESTS: \"4000\"\n",
            r#"{"preferencePolicy": "Ignore", "minValuesPolicy": "BestEffort", "ignoreDRARequests": false, "cpuRequests": 4000}"#,
        ] {
            let options = read(text).unwrap();
            assert_eq!(options.preference_policy, PreferencePolicy::Ignore, "{text}");
            assert_eq!(options.min_values_policy, MinValuesPolicy::BestEffort, "{text}");
            assert_eq!((options.ignore_dra_requests, options.cpu_requests), (false, 4_000), "{text}");
        }
        assert_eq!(read("cpuRequests: -5").unwrap().cpu_requests, 1_000);
    }

    #[test]
    fn a_flag_says_the_same_as_a_file() {
        let mut options = PlanOptions::default();
        for (name, text) in [
            ("feature-gates", "NodeRepair=true,Fly=true"),
            (
                "SCHEDULER_CONFIG",
                "{podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}}",
            ),
            ("cpu-requests", "-1"),
            ("preferencePolicy", "Ignore"),
            ("min-values-policy", " "),
        ] {
            options.set(name, text).unwrap();
        }
        let file = "featureGates: {NodeRepair: true, Fly: true}\ncpuRequests: 0\npreferencePolicy: Ignore\nschedulerConfig:\n  podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}\n";
        assert_eq!(options, read(file).unwrap());
        let said = |name: &str, text: &str| PlanOptions::default().set(name, text).unwrap_err().to_string();
        assert_eq!(said("feature-gates", "NodeRepair=maybe"), "NodeRepair: `maybe` is neither true nor false");
        assert_eq!(said("cpu-requests", "1.5"), "\"1.5\" is not a whole number of millicores");
        assert!(said("scheduler-config", "podTopologySpread: {fly: 1}").contains("unknown field `fly`"));
        assert_eq!(said("cpu-request", "1"), "no such setting; did you mean cpuRequests?");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_line_and_a_hint() {
        for (text, words) in [
            ("a: 1", "line 1: a: no such setting; use one of preferencePolicy, minValuesPolicy"),
            (
                "\npreferencesPolicy: Ignore",
                "line 2: preferencesPolicy: no such setting; did you mean preferencePolicy?",
            ),
            ("preference_policy: Ignore", "did you mean preferencePolicy?"),
            ("{cpuRequests: 1,\n \"x\": {cpuRequest: 3}, cpuRequest : 2}", "line 2: cpuRequest: no such setting"),
            ("cpuRequests: 1\ncpu-requests: 2", "same setting as"),
            ("cpuRequests: 1\ncpuRequests: 2", "line 2: "),
            ("cpuRequests: lots", "\"lots\" is not a whole number of millicores"),
            ("preferencePolicy: ignore", "\"ignore\" is neither Respect nor Ignore"),
            ("minValuesPolicy: 3", "3 is neither Strict nor BestEffort"),
            ("ignoreDRARequests: no", "\"no\" is neither true nor false"),
            ("- a", "line 1"),
            ("a: [", "line "),
        ] {
            let said = read(text).unwrap_err().to_string();
            assert!(said.contains(words) && !said.contains('\n'), "{text}: {said}");
        }
    }
}
