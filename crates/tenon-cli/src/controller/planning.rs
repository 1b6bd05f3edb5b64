//! Settings that change a plan, as flags and variables of the reference.

use anyhow::Context as _;
use clap::{ArgAction, Args, ValueEnum};
use tenon_api::plan_options::{MinValuesPolicy, PlanOptions, PreferencePolicy};
use tenon_model::RepairPolicies;

use crate::prices::PriceArgs;

/// How plans are made.
#[derive(Debug, Args)]
pub(super) struct PlanningArgs {
    /// Whether preferences of pods count as requirements as long as they can be met.
    #[arg(long, value_name = "POLICY", env = "PREFERENCE_POLICY", default_value = "Respect")]
    preference_policy: Preferences,
    /// What to do when minValues of a NodePool cannot be met.
    #[arg(long, value_name = "POLICY", env = "MIN_VALUES_POLICY", default_value = "Strict")]
    min_values_policy: MinValues,
    /// Create no nodes for pods with resource claims (dynamic resource allocation).
    #[arg(long, value_name = "BOOL", env = "IGNORE_DRA_REQUESTS", action = ArgAction::Set, num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "true", default_value = "true")]
    ignore_dra_requests: bool,
    /// Feature gates as Gate=true,Gate=false. A gate that is not listed keeps its default; an unknown gate has no effect.
    #[arg(long, value_name = "GATES", env = "FEATURE_GATES", default_value = GATES)]
    feature_gates: String,
    /// With the feature gate NodeRepair: delete unhealthy nodes at once, without a replacement first and whatever protects them, as
    /// Karpenter did before version 1.15.
    #[arg(long, value_name = "BOOL", env = "LEGACY_NODE_REPAIR", action = ArgAction::Set, num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "true", default_value = "false")]
    legacy_node_repair: bool,
    /// Policies of node repair in place of the default ones: the text of a YAML or JSON list. See docs/guide/node-repair.md.
    #[arg(long, value_name = "TEXT", env = "REPAIR_POLICIES")]
    repair_policies: Option<String>,
    /// With the feature gate NodeRepair: replace nodes on Proxmox hosts that are offline even if more than 20 % of a NodePool are
    /// unhealthy.
    #[arg(long, value_name = "BOOL", env = "REPAIR_OFFLINE_HOSTS", action = ArgAction::Set, num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "true", default_value = "false")]
    repair_offline_hosts: bool,
    /// Start the VM of a node that is not Ready if it is stopped, twice within 24 hours at most, before the node is repaired.
    #[arg(long, value_name = "BOOL", env = "START_STOPPED_VMS", action = ArgAction::Set, num_args = 0..=1)]
    #[arg(require_equals = true, default_missing_value = "true", default_value = "false")]
    start_stopped_vms: bool,
    /// Default topology spread constraints, for pods without their own: the text of a YAML or JSON document with
    /// podTopologySpread.defaultConstraints; unset: none.
    #[arg(long, value_name = "TEXT", env = "SCHEDULER_CONFIG")]
    scheduler_config: Option<String>,
    /// CPU request of the controller in millicores. Accepted for compatibility with Karpenter; it has no effect.
    #[arg(long, value_name = "MILLICORES", env = "CPU_REQUESTS", default_value = "1000", allow_hyphen_values = true)]
    cpu_requests: String,
    #[command(flatten)]
    prices: PriceArgs,
    /// Accepted for compatibility with the Go provider's chart; it has no effect.
    #[arg(long, value_name = "PERCENT", env = "VM_MEMORY_OVERHEAD_PERCENT", allow_hyphen_values = true)]
    vm_memory_overhead_percent: Option<String>,
}

/// All gates with their defaults, as the reference lists them.
const GATES: &str = "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false,NodeOverlay=false,\
    StaticCapacity=false,CapacityBuffer=false,TerminateFirstDrift=false,TerminateFirstRepair=false,\
    PodDeletionCostManagement=false";

/// Whether preferences count. An empty text means the default, because charts write one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Preferences {
    /// A preference counts as a requirement until it cannot be met.
    #[value(alias = "")]
    Respect,
    /// Only requirements count.
    Ignore,
}

/// What to do when minValues cannot be met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum MinValues {
    /// No node is created.
    #[value(alias = "")]
    Strict,
    /// A node is created with as many values as possible.
    BestEffort,
}

impl PlanningArgs {
    /// The settings.
    pub(super) fn options(&self) -> anyhow::Result<PlanOptions> {
        let mut options = PlanOptions {
            preference_policy: match self.preference_policy {
                Preferences::Respect => PreferencePolicy::Respect,
                Preferences::Ignore => PreferencePolicy::Ignore,
            },
            min_values_policy: match self.min_values_policy {
                MinValues::Strict => MinValuesPolicy::Strict,
                MinValues::BestEffort => MinValuesPolicy::BestEffort,
            },
            ignore_dra_requests: self.ignore_dra_requests,
            repair_offline_hosts: self.repair_offline_hosts,
            start_stopped_vms: self.start_stopped_vms,
            prices: self.prices.formula()?,
            ..PlanOptions::default()
        };
        let texts = [
            ("feature-gates", self.feature_gates.as_str()),
            ("repair-policies", self.repair_policies.as_deref().unwrap_or_default()),
            ("scheduler-config", self.scheduler_config.as_deref().unwrap_or_default()),
            ("cpu-requests", self.cpu_requests.as_str()),
        ];
        for (name, text) in texts {
            options.set(name, text).with_context(|| format!("cannot use --{name}"))?;
        }
        if let Some(percent) = self.vm_memory_overhead_percent.as_deref().filter(|text| !text.trim().is_empty()) {
            options.notes.push(format!(
                "--vm-memory-overhead-percent ({percent}) has no effect: a VM has all the memory of its instance type; use \
                 overhead in the instance types file to reserve memory"
            ));
        }
        Ok(options)
    }
}

/// Whether unhealthy nodes are deleted at once. They are then not replaced by the other method, too.
pub(super) fn take_legacy_node_repair(args: &PlanningArgs, options: &mut PlanOptions) -> bool {
    args.legacy_node_repair && std::mem::take(&mut options.feature_gates.node_repair)
}

/// Logs the settings that have no effect, and the default spread constraints.
pub(super) fn introduce(options: &PlanOptions) {
    for note in &options.notes {
        tracing::warn!("{note}");
    }
    for gate in options.feature_gates.without_effect() {
        tracing::warn!(gate, "feature gate is enabled but not implemented yet; it has no effect");
    }
    if options.repair_policies != RepairPolicies::default() {
        for policy in options.repair_policies.iter() {
            let (condition, status, regex) = (&policy.condition, &policy.status, &policy.reason_regex);
            let (toleration_s, action) = (policy.toleration.as_secs(), policy.action.as_str());
            tracing::info!(
                condition,
                status,
                regex,
                toleration_s,
                priority = policy.priority,
                action,
                "using repair policy"
            );
        }
    }
    for spread in &options.default_spread {
        let (key, skew) = (&spread.topology_key, spread.max_skew);
        tracing::info!(key, skew, when = spread.when_unsatisfiable, "using default topology spread constraint");
    }
}
