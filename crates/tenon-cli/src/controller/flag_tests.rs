//! What becomes of flags, variables and their defaults?

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use tenon_api::plan_options::{FeatureGates, MinValuesPolicy, PlanOptions, PreferencePolicy};
use tenon_controllers::{CloudControllerManager, CsrApprover};

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    controller: Controller,
}

fn read(args: &[&str]) -> anyhow::Result<Settings> {
    let line = ["tenon", "--cloud-config", "x"].into_iter().chain(args.iter().copied());
    // The variables of whoever runs the test are not the test's.
    let command = Line::command().mut_args(|arg| arg.env(None));
    settings(&Line::from_arg_matches(&command.try_get_matches_from(line)?)?.controller)
}

#[test]
fn i9_defaults_an_operator_who_decides_nothing_gets_the_defaults() {
    let standard = Settings::default();
    let priced = |size: InstanceType| size.priced_by(&standard.planning.prices);
    let types = standard.types.iter().cloned().map(priced).collect();
    let standard = format!("{:?}", Settings { types, ..standard.clone() });
    assert_eq!(format!("{:?}", read(&[]).unwrap()), standard);
    let mut empty = vec!["--cluster-id=", "--cluster-endpoint=", "--system-namespace=", "--instance-types-file="];
    empty.extend(["--node-policy=", "--node-setting-file="]);
    empty.extend(["--preference-policy=", "--min-values-policy=", "--feature-gates=", "--scheduler-config="]);
    empty.extend(["--cpu-requests=", "--ccm=", "--price-per-cpu=", "--price-per-gb=", "--spot-price-factor="]);
    empty.push("--vm-memory-overhead-percent=");
    assert_eq!(format!("{:?}", read(&empty).unwrap()), standard);
}

#[test]
fn a_cluster_id_that_no_mark_could_be_read_with_is_refused() {
    for id in ["my cluster", "a\tb", "a\nb", "größe", &"x".repeat(129)] {
        let said = read(&["--cluster-id", id]).unwrap_err().to_string();
        assert!(said.contains("--cluster-id") && said.contains("without blanks"), "{said}");
    }
    assert_eq!(read(&["--cluster-id", "lab-1.example/k8s"]).unwrap().cluster_id.as_deref(), Some("lab-1.example/k8s"));
}

#[test]
fn how_long_a_launch_may_take_is_decided_by_an_operator() {
    assert_eq!(read(&[]).unwrap().launch_limits, LaunchLimits { stalled_s: 300, task_s: 1800 });
    let limits = read(&["--launch-timeout", "90s", "--proxmox-task-timeout", "2h"]).unwrap().launch_limits;
    assert_eq!(limits, LaunchLimits { stalled_s: 90, task_s: 7200 });
}

#[test]
fn a_bootstrap_token_that_expires_before_it_is_extended_is_refused() {
    assert_eq!(read(&["--bootstrap-token-ttl", "2h"]).unwrap().bootstrap_token_ttl, Duration::from_secs(7200));
    let said = read(&["--bootstrap-token-ttl", "5m"]).unwrap_err().to_string();
    assert!(said.contains("--bootstrap-token-ttl") && said.contains("at least 10m"), "{said}");
}

#[test]
fn certificates_are_approved_only_on_request() {
    let approver = |args: &[&str]| read(args).unwrap().csr_approver;
    assert_eq!(approver(&[]), CsrApprover::KubeControllerManager);
    assert_eq!(approver(&["--csr-approver=false"]), CsrApprover::KubeControllerManager);
    assert_eq!(approver(&["--csr-approver"]), CsrApprover::Tenon);
    assert_eq!(approver(&["--csr-approver=external"]), CsrApprover::External);
}

#[test]
fn i1_one_of_the_two_ways_to_repair_nodes_is_chosen_and_neither_without_the_gate() {
    let chosen = |args: &[&str]| {
        let settings = read(args).unwrap();
        (settings.legacy_node_repair, settings.planning.feature_gates.node_repair)
    };
    let gate = "--feature-gates=NodeRepair=true";
    assert_eq!(chosen(&[]), (false, false));
    assert_eq!(chosen(&["--legacy-node-repair"]), (false, false));
    assert_eq!(chosen(&[gate]), (false, true));
    assert_eq!(chosen(&[gate, "--legacy-node-repair=false"]), (false, true));
    assert_eq!(chosen(&[gate, "--legacy-node-repair"]), (true, false));
}

#[test]
fn what_an_operator_decides_arrives() {
    let args = ["--cluster-id", "c1", "--cluster-endpoint", "https://api:6443", "--batch-max-duration", "1m30s"];
    let settings = read(&args).unwrap();
    assert_eq!(settings.cluster_id.as_deref(), Some("c1"));
    assert_eq!(settings.cluster_endpoint.as_deref(), Some("https://api:6443"));
    assert_eq!(settings.batch_max, Duration::from_secs(90));
    assert_eq!(read(&["--ccm", "none"]).unwrap().ccm, CloudControllerManager::None);
    assert!(read(&["--ccm", "internal"]).is_err());
}

#[test]
fn how_plans_are_made_is_decided_as_in_the_reference() {
    let of = |args: &[&str]| read(args).unwrap().planning;
    let all = ["--preference-policy", "Ignore", "--min-values-policy=BestEffort", "--ignore-dra-requests=false"];
    let wanted = PlanOptions {
        preference_policy: PreferencePolicy::Ignore,
        min_values_policy: MinValuesPolicy::BestEffort,
        ignore_dra_requests: false,
        ..PlanOptions::default()
    };
    assert_eq!(of(&all), wanted);
    assert!(of(&["--ignore-dra-requests"]).ignore_dra_requests);
    let gates = of(&["--feature-gates", "StaticCapacity=true,ReservedCapacity=false"]).feature_gates;
    let wanted = FeatureGates { static_capacity: true, reserved_capacity: false, ..FeatureGates::default() };
    assert_eq!(gates, wanted);
    let spread = "podTopologySpread:\n  defaultConstraints:\n  - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}\n";
    let spread = of(&["--scheduler-config", spread]).default_spread;
    assert_eq!((spread.len(), spread[0].max_skew, spread[0].topology_key.as_str()), (1, 2, "zone"));
    assert_eq!(of(&["--cpu-requests", "4000"]).cpu_requests, 4000);
    assert_eq!(of(&["--cpu-requests", "-5"]).cpu_requests, 1000);
    let said = read(&["--preference-policy", "ignore"]).unwrap_err().to_string();
    assert!(said.contains("Respect, Ignore"), "{said}");
}

#[test]
fn what_instance_types_cost_is_decided_by_an_operator() {
    let price = |args: &[&str]| read(args).unwrap().types[0].price().value();
    assert!((price(&[]) - 0.027_147_483_648).abs() < 1e-12);
    assert!((price(&["--price-per-cpu", "0.5", "--price-per-gb=0"]) - 0.5).abs() < 1e-12);
    for (flag, text) in [("--price-per-cpu", "-1"), ("--price-per-gb", "inf"), ("--spot-price-factor", "half")] {
        let said = format!("{:#}", read(&[flag, text]).unwrap_err());
        let wanted = format!("cannot use {flag}: `{text}` must be a non-negative number, such as 0.025");
        assert_eq!(said, wanted);
    }
}

#[test]
fn a_memory_overhead_of_vms_is_accepted_and_noted_to_have_no_effect() {
    let planning = read(&["--vm-memory-overhead-percent", "0.075"]).unwrap().planning;
    assert_eq!(planning.notes.len(), 1);
    assert!(planning.notes[0].starts_with("--vm-memory-overhead-percent (0.075) has no effect"), "{planning:?}");
    let types = |args: &[&str]| read(args).unwrap().types;
    assert_eq!(types(&["--vm-memory-overhead-percent=7"]), types(&[]));
}

#[test]
fn i9_flags_every_flag_of_karpenter_is_accepted_and_one_without_effect_is_named() {
    let notes = |args: &[&str]| {
        let line = ["tenon", "--cloud-config", "x"].into_iter().chain(args.iter().copied());
        let command = Line::command().mut_args(|arg| arg.env(None));
        let matches = command.try_get_matches_from(line).unwrap();
        Line::from_arg_matches(&matches).unwrap().controller.compatibility.notes()
    };
    let usual = ["--kube-client-qps=200", "--memory-limit", "-1", "--enable-profiling=false", "--karpenter-service="];
    assert_eq!(notes(&usual), [""; 0]);
    let said = notes(&["--kube-client-burst", "500", "--enable-profiling", "--log-output-paths=stdout,/tmp/x"]);
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(said[1], "--enable-profiling (true) has no effect: there is no Go runtime");
    // Karpenter's table of flags.
    for (flag, variable) in KARPENTER_FLAGS {
        let command = Line::command();
        let arg = command.get_arguments().find(|arg| arg.get_long() == Some(flag));
        assert_eq!(arg.and_then(|arg| arg.get_env()), Some(variable.as_ref()), "{flag}");
    }
}

/// Every flag of Karpenter and of its Proxmox provider, with its environment variable.
const KARPENTER_FLAGS: [(&str, &str); 29] = [
    ("karpenter-service", "KARPENTER_SERVICE"),
    ("metrics-port", "METRICS_PORT"),
    ("health-probe-port", "HEALTH_PROBE_PORT"),
    ("kube-client-qps", "KUBE_CLIENT_QPS"),
    ("kube-client-burst", "KUBE_CLIENT_BURST"),
    ("enable-profiling", "ENABLE_PROFILING"),
    ("disable-controller-warmup", "DISABLE_CONTROLLER_WARMUP"),
    ("disable-leader-election", "DISABLE_LEADER_ELECTION"),
    ("disable-cluster-state-observability", "DISABLE_CLUSTER_STATE_OBSERVABILITY"),
    ("leader-election-name", "LEADER_ELECTION_NAME"),
    ("leader-election-namespace", "LEADER_ELECTION_NAMESPACE"),
    ("memory-limit", "MEMORY_LIMIT"),
    ("cpu-requests", "CPU_REQUESTS"),
    ("log-level", "LOG_LEVEL"),
    ("log-output-paths", "LOG_OUTPUT_PATHS"),
    ("log-error-output-paths", "LOG_ERROR_OUTPUT_PATHS"),
    ("batch-max-duration", "BATCH_MAX_DURATION"),
    ("batch-idle-duration", "BATCH_IDLE_DURATION"),
    ("preference-policy", "PREFERENCE_POLICY"),
    ("min-values-policy", "MIN_VALUES_POLICY"),
    ("ignore-dra-requests", "IGNORE_DRA_REQUESTS"),
    ("legacy-node-repair", "LEGACY_NODE_REPAIR"),
    ("feature-gates", "FEATURE_GATES"),
    ("scheduler-config", "SCHEDULER_CONFIG"),
    ("cloud-config", "CLOUD_CONFIG"),
    ("instance-types-file", "INSTANCE_TYPES_FILE"),
    ("node-setting-file", "NODE_SETTING_FILE"),
    ("node-policy", "NODE_POLICY"),
    ("proxmox-vmid", "PROXMOX_VMID"),
];

#[test]
fn i9_precedence_a_flag_counts_more_than_its_variable_and_that_more_than_the_default() {
    let namespace = |args: &[&str], variable: &'static str| {
        // A variable that every process has stands for the flag's own.
        let command = Line::command().mut_args(|arg| arg.env(None));
        let command = command.mut_arg("system_namespace", |arg| arg.env(variable));
        let line = ["tenon", "--cloud-config", "x"].into_iter().chain(args.iter().copied());
        let matches = command.try_get_matches_from(line).unwrap();
        Line::from_arg_matches(&matches).unwrap().controller.system_namespace
    };
    let path = std::env::var("PATH").unwrap();
    assert_eq!(namespace(&[], "TENON_NOBODY_SETS_THIS"), "kube-system");
    assert_eq!(namespace(&[], "PATH"), path);
    assert_eq!(namespace(&["--system-namespace", "mine"], "PATH"), "mine");
}

#[test]
fn i9_observability_is_left_out_only_on_request() {
    let is_left_out = |args: &[&str]| {
        let command = Line::command().mut_args(|arg| arg.env(None));
        let line = ["tenon", "--cloud-config", "x"].into_iter().chain(args.iter().copied());
        let matches = command.try_get_matches_from(line).unwrap();
        Line::from_arg_matches(&matches).unwrap().controller.disable_cluster_state_observability
    };
    let flag = "--disable-cluster-state-observability";
    assert!(!is_left_out(&[]) && is_left_out(&[flag]) && !is_left_out(&[&format!("{flag}=false")]));
}

#[test]
fn i9_gates_one_that_nobody_knows_is_noted_and_what_cannot_be_read_ends_the_start() {
    let unknown = read(&["--feature-gates=Fly=true,NodeRepair=true"]).unwrap().planning;
    assert_eq!(unknown.notes, ["unknown feature gate Fly has no effect"]);
    assert!(unknown.feature_gates.node_repair && unknown.feature_gates.reserved_capacity);
    for (args, words) in [
        (
            ["--feature-gates", "NodeRepair=yes"],
            "cannot use --feature-gates: NodeRepair: `yes` is neither true nor false",
        ),
        (
            ["--feature-gates", "NodeRepair"],
            "cannot use --feature-gates: `NodeRepair` is not of the form NAME=true or NAME=false",
        ),
        (["--scheduler-config", "profiles: []"], "cannot use --scheduler-config: "),
        (["--cpu-requests", "lots"], "cannot use --cpu-requests: \"lots\" is not a whole number of millicores"),
    ] {
        let said = format!("{:#}", read(&args).unwrap_err());
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn i9_environment_every_setting_of_plans_has_its_variable() {
    let command = Line::command();
    let variable = |flag: &str| command.get_arguments().find(|arg| arg.get_long() == Some(flag))?.get_env();
    assert_eq!(variable("preference-policy"), Some("PREFERENCE_POLICY".as_ref()));
    assert_eq!(variable("min-values-policy"), Some("MIN_VALUES_POLICY".as_ref()));
    assert_eq!(variable("ignore-dra-requests"), Some("IGNORE_DRA_REQUESTS".as_ref()));
    assert_eq!(variable("feature-gates"), Some("FEATURE_GATES".as_ref()));
    assert_eq!(variable("scheduler-config"), Some("SCHEDULER_CONFIG".as_ref()));
    assert_eq!(variable("cpu-requests"), Some("CPU_REQUESTS".as_ref()));
    assert_eq!(variable("price-per-cpu"), Some("PRICE_PER_CPU".as_ref()));
    assert_eq!(variable("price-per-gb"), Some("PRICE_PER_GB".as_ref()));
    assert_eq!(variable("spot-price-factor"), Some("SPOT_PRICE_FACTOR".as_ref()));
    assert_eq!(variable("vm-memory-overhead-percent"), Some("VM_MEMORY_OVERHEAD_PERCENT".as_ref()));
}

#[test]
fn ids_that_cannot_be_given_are_refused_with_their_flag() {
    let said = format!("{:#}", read(&["--proxmox-vmid", "300", "--proxmox-vmid-max", "200"]).unwrap_err());
    assert!(said.contains("--proxmox-vmid-max: the VM ID range 300 to 200 is empty"), "{said}");
    let said = read(&["--proxmox-vmid", "99"]).unwrap_err().to_string();
    assert!(said.contains("--proxmox-vmid <ID>") && said.contains("range from 100 to 999999999"), "{said}");
}

#[test]
fn a_log_level_may_be_empty_but_not_invented() {
    read(&["--log-level="]).unwrap();
    let said = read(&["--log-level", "loud"]).unwrap_err().to_string();
    assert!(said.contains("error, warn, info, debug, trace"), "{said}");
}
