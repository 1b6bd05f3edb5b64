//! Settings that change a plan, as flags and variables of the reference.

use clap::{ArgAction, Args, ValueEnum};
use tenon_api::plan_options::{self, FeatureGates, MinValuesPolicy, PlanOptions, PreferencePolicy};

/// How plans are made.
#[derive(Debug, Args)]
pub(super) struct PlanningArgs {
    /// Whether what pods prefer is tried before it is given up.
    #[arg(long, value_name = "POLICY", env = "PREFERENCE_POLICY", default_value = "Respect")]
    preference_policy: Preferences,
    /// What happens where fewer values of a label stay possible than a pool asks for.
    #[arg(long, value_name = "POLICY", env = "MIN_VALUES_POLICY", default_value = "Strict")]
    min_values_policy: MinValues,
    /// Make no nodes for pods that ask for devices by resource claims.
    #[arg(long, value_name = "BOOL", env = "IGNORE_DRA_REQUESTS", action = ArgAction::Set, num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "true", default_value = "true")]
    ignore_dra_requests: bool,
    /// What is switched on and off, such as StaticCapacity=true,NodeRepair=false.
    #[arg(long, value_name = "GATES", env = "FEATURE_GATES", default_value = "", value_parser = gates)]
    feature_gates: FeatureGates,
}

/// Feature gates as the text of a flag.
fn gates(text: &str) -> Result<FeatureGates, String> {
    let quoted = serde_json::Value::String(text.to_owned());
    let options = plan_options::read(&format!("featureGates: {quoted}")).map_err(|error| error.to_string())?;
    Ok(options.feature_gates)
}

/// Whether wishes count. An empty text means the default, because charts write one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Preferences {
    /// A preference counts as a demand until it cannot be met.
    #[value(alias = "")]
    Respect,
    /// Only demands count.
    Ignore,
}

/// What is made of too few values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum MinValues {
    /// No node is made.
    #[value(alias = "")]
    Strict,
    /// A node is made with as many as there are.
    BestEffort,
}

impl PlanningArgs {
    /// The settings, with the defaults of those that have no flag.
    pub(super) fn options(&self) -> PlanOptions {
        PlanOptions {
            preference_policy: match self.preference_policy {
                Preferences::Respect => PreferencePolicy::Respect,
                Preferences::Ignore => PreferencePolicy::Ignore,
            },
            min_values_policy: match self.min_values_policy {
                MinValues::Strict => MinValuesPolicy::Strict,
                MinValues::BestEffort => MinValuesPolicy::BestEffort,
            },
            ignore_dra_requests: self.ignore_dra_requests,
            feature_gates: self.feature_gates,
            ..PlanOptions::default()
        }
    }
}
