//! The operator's own spread constraints in a whole plan: they hold, they keep pods pending, and they are given up. Group E12 of the
//! behaviour checklist; which pods they count is tested where objects are read.

use std::time::Duration;

use tenon_api::instance_types_file;
use tenon_api::plan_options::PlanOptions;
use tenon_model::PriceFormula;

use super::Input;
use super::collect::{Collected, Collector};
use super::report::Report;
use super::solve::solve;
use super::supply::Supply;

const TYPES: &str = r#"[{"name": "m4", "capacity": {"cpu": "4", "memory": "16Gi", "pods": "30"}, "price": 1}]"#;

const POOL: &str = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec: {template: {spec: {requirements: [], \
                    nodeClassRef: {group: g, kind: k, name: n}}}}\n";

const SERVICE: &str =
    "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n";

fn pod(name: &str, more: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: web}}}}\nspec: {{containers: [{{name: c, resources: \
         {{requests: {{cpu: 1}}}}}}]{more}}}\nstatus: {{conditions: [{{type: PodScheduled, status: 'False', reason: Unschedulable}}]}}\n"
    )
}

/// The plan for two pods of a Service, with a constraint of the operator on a label.
fn planned(constraint: &str, more: &str) -> Report {
    let text = format!("{POOL}{SERVICE}{}{}", pod("a", more), pod("b", more));
    let mut collector = Collector::default();
    super::load::read_text(&"x.yaml".into(), &text, &mut collector).unwrap();
    let Collected { objects, workloads, .. } = collector.finish().unwrap();
    let types = instance_types_file::read_catalog(TYPES, &PriceFormula::default()).unwrap();
    let mut options = PlanOptions::default();
    let config = format!("{{podTopologySpread: {{defaultConstraints: [{{maxSkew: 1, {constraint}}}]}}}}");
    options.set("scheduler-config", &config).unwrap();
    let (supply, loading) = (Supply::Catalog(types), Duration::ZERO);
    solve(&Input { objects, workloads, supply, options, disruption: None, loading })
}

fn nodes_and_pending(report: &Report) -> (usize, usize) {
    (report.new_node_claims.len(), report.unschedulable.len())
}

const HOST: &str = "topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule";

#[test]
fn e12_a_default_constraint_spreads_the_pods_of_a_service_in_the_plan() {
    assert_eq!(nodes_and_pending(&planned(HOST, "")), (2, 0));
    let own = ", topologySpreadConstraints: [{maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, \
               labelSelector: {matchLabels: {app: web}}}]";
    assert_eq!(nodes_and_pending(&planned(HOST, own)), (1, 0), "a constraint of the pod's own replaces it");
}

#[test]
fn e12_a_default_constraint_that_no_node_can_meet_leaves_pods_pending_and_is_named() {
    let report = planned("topologyKey: example.com/rack, whenUnsatisfiable: DoNotSchedule", "");
    assert_eq!(nodes_and_pending(&report), (0, 2));
    let why = report.unschedulable[0].reasons.join("; ");
    assert!(why.contains("unsatisfiable topology constraint for topology spread, key=example.com/rack"), "{why}");
}

#[test]
fn e12_a_default_constraint_that_is_only_wished_for_is_given_up() {
    let report = planned("topologyKey: example.com/rack, whenUnsatisfiable: ScheduleAnyway", "");
    assert_eq!(nodes_and_pending(&report), (1, 0));
    let report = planned("topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway", "");
    assert_eq!(nodes_and_pending(&report), (2, 0), "as long as it can be had, it is");
}
