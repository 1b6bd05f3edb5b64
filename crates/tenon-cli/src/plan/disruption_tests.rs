//! `tenon plan --disruption` from files: moves, where pods go, why nodes stay, and rounds until nothing is left to do.

use std::time::Duration;

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use tenon_api::instance_types_file;
use tenon_api::plan_options::PlanOptions;
use tenon_model::PriceFormula;
use tenon_sim::{Cluster, ClusterConfig};

use super::Input;
use super::collect::{Collected, Collector};
use super::disruption::Rounds;
use super::report::{Output, Report};
use super::solve::solve;
use super::supply::Supply;

const TYPES: &str = r#"[
    {"name": "m2", "capacity": {"cpu": "2", "memory": "8Gi", "pods": "30"}, "price": 1},
    {"name": "m4", "capacity": {"cpu": "4", "memory": "16Gi", "pods": "30"}, "price": 2},
    {"name": "m8", "capacity": {"cpu": "8", "memory": "32Gi", "pods": "30"}, "price": 4}
]"#;

const POOL: &str = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: web}\nspec:\n  disruption: \
                    {consolidateAfter: 30s, budgets: [{nodes: '100%'}]}\n  template: {spec: {requirements: [], nodeClassRef: {group: g, \
                    kind: k, name: n}, expireAfter: Never}}\n";

/// A node with its claim, initialized long before the time of the plan.
fn node(name: &str, size: &str, cpu: u32) -> String {
    let labels = format!(
        "{{karpenter.sh/nodepool: web, node.kubernetes.io/instance-type: {size}, karpenter.sh/capacity-type: on-demand, \
         topology.kubernetes.io/zone: a, karpenter.sh/registered: 'true', karpenter.sh/initialized: 'true'}}"
    );
    let resources = format!("{{cpu: {cpu}, memory: {}Gi, pods: 30}}", cpu * 4);
    let condition = |name: &str| {
        format!(
            "{{type: {name}, status: 'True', reason: {name}, message: '', lastTransitionTime: '2026-03-01T08:00:00Z'}}"
        )
    };
    let conditions = ["Launched", "Registered", "Initialized"].map(condition).join(", ");
    format!(
        "---\napiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {{name: {name}, labels: {labels}}}\nspec: {{requirements: [], \
         nodeClassRef: {{group: g, kind: k, name: n}}}}\nstatus: {{providerID: 'p://{name}', nodeName: {name}, capacity: {resources}, \
         allocatable: {resources}, conditions: [{conditions}]}}\n---\napiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: \
         {labels}}}\nspec: {{providerID: 'p://{name}'}}\nstatus: {{capacity: {resources}, allocatable: {resources}, conditions: \
         [{{type: Ready, status: 'True'}}]}}\n"
    )
}

fn pod(name: &str, node: &str, cpu: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: web}}, ownerReferences: [{{apiVersion: apps/v1, kind: \
         ReplicaSet, name: r, uid: r}}]}}\nspec: {{nodeName: {node}, containers: [{{name: c, resources: {{requests: {{cpu: \
         {cpu}}}}}}}]}}\nstatus: {{phase: Running}}\n"
    )
}

fn planned(objects: &str, now: &str, most: Option<u32>) -> Report {
    let mut collector = Collector::default();
    super::load::read_text(&"x.yaml".into(), objects, &mut collector).unwrap();
    planned_from(collector, PlanOptions::default(), Rounds { now: Some(now.parse().unwrap()), most })
}

/// The plan for objects, wherever they are from.
fn planned_from(collector: Collector, options: PlanOptions, rounds: Rounds) -> Report {
    let Collected { objects, workloads, .. } = collector.finish().unwrap();
    let types = instance_types_file::read_catalog(TYPES, &PriceFormula::default()).unwrap();
    solve(&Input {
        objects,
        workloads,
        supply: Supply::Catalog(types),
        options,
        disruption: Some(rounds),
        loading: Duration::ZERO,
    })
}

fn json(report: &Report) -> Value {
    let mut text = Vec::new();
    report.print(Output::Json, &mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn two_nodes() -> String {
    format!("{POOL}{}{}{}{}", node("n1", "m4", 4), pod("a", "n1", "1"), node("n2", "m8", 8), pod("b", "n2", "6"))
}

#[test]
fn a_move_says_what_goes_where_and_what_that_saves() {
    let told = json(&planned(&two_nodes(), "2026-03-01T12:00:00Z", None));
    let command = &told["disruption"]["rounds"][0]["commands"][0];
    assert_eq!(command["method"], "single-node");
    assert_eq!(command["nodes"][0]["name"], "n1");
    assert_eq!(command["nodes"][0]["price"], 2.0);
    assert_eq!(command["moves"][0]["pod"], "default/a");
    assert_eq!(command["moves"][0]["node"], "n2");
    assert_eq!((&command["replacements"][0], command["savings"].as_f64()), (&Value::Null, Some(2.0)));
    assert_eq!(told["disruption"]["now"], "2026-03-01T12:00:00Z");
    let stats = &told["disruption"]["stats"];
    assert_eq!((stats["nodes"].as_u64(), stats["nodesAfter"].as_u64()), (Some(2), Some(1)));
    assert_eq!((stats["cost"].as_f64(), stats["costAfter"].as_f64()), (Some(6.0), Some(4.0)));
    let kept = &told["disruption"]["kept"][0];
    assert_eq!(kept["name"], "n2");
    assert!(kept["reasons"][0]["reason"].as_str().unwrap().contains("is not less than the current 4"), "{kept}");
}

#[test]
fn the_time_decides_about_consolidate_after() {
    let early = json(&planned(&two_nodes(), "2026-03-01T08:00:10Z", None));
    assert_eq!(early["disruption"]["rounds"], serde_json::json!([]));
    let why = early["disruption"]["kept"][0]["reasons"][0]["reason"].as_str().unwrap();
    assert!(why.contains("can be removed at 2026-03-01T08:00:30Z"), "{why}");
}

#[test]
fn rounds_go_on_until_nothing_is_left_to_do() {
    let objects = format!(
        "{POOL}{}{}{}{}{}",
        node("n1", "m8", 8),
        pod("a", "n1", "1"),
        node("n2", "m8", 8),
        pod("b", "n2", "1"),
        node("n3", "m8", 8)
    );
    let told = json(&planned(&objects, "2026-03-01T12:00:00Z", Some(20)));
    let disruption = &told["disruption"];
    let methods: Vec<&str> = disruption["rounds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|round| round["commands"][0]["method"].as_str().unwrap())
        .collect();
    assert_eq!(methods, ["emptiness", "multi-node"]);
    assert_eq!(disruption["rounds"][1]["commands"][0]["moves"][1]["replacement"], 0);
    assert_eq!(disruption["rounds"][1]["commands"][0]["replacements"][0]["offering"]["instanceType"], "m2");
    assert_eq!(disruption["stats"]["settled"], true);
    assert_eq!(disruption["stats"]["costAfter"].as_f64(), Some(1.0));
    let once = json(&planned(&objects, "2026-03-01T12:00:00Z", None));
    assert_eq!(
        (once["disruption"]["rounds"].as_array().unwrap().len(), &once["disruption"]["stats"]["settled"]),
        (1, &Value::Bool(false))
    );
}

#[test]
fn a_disruption_budget_of_pods_is_named() {
    let budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: all}\nspec: {maxUnavailable: 0, selector: \
                  {matchLabels: {app: web}}}\n";
    let told = json(&planned(&format!("{}{budget}", two_nodes()), "2026-03-01T12:00:00Z", None));
    let why = told["disruption"]["kept"][0]["reasons"][0]["reason"].as_str().unwrap();
    assert_eq!(why, "PodDisruptionBudget default/all never allows to evict pod default/a; change the budget");
}

#[test]
fn people_read_moves_reasons_and_sums() {
    let mut page = Vec::new();
    let report = planned(&two_nodes(), "2026-03-01T12:00:00Z", None);
    report.print(Output::Table, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.starts_with("  Delete n1 (m4): single-node, saves 2\n      default/a to n2\n"), "{page}");
    assert!(page.contains("\nNodes that stay: 1\n\n  n2\n      the cheapest replacement, m8, costs 4"), "{page}");
    assert!(page.contains("\n1 move: 1 pod moved\nnodes: 2 before, 1 after\nprice: 6 before, 4 after\n"), "{page}");
}

/// Creates the objects of a text in a cluster, with their status.
async fn create_all(client: &kube::Client, text: &str) {
    let class = "{group: karpenter.proxmox.sinextra.dev, kind: ProxmoxNodeClass, name: web}";
    for part in text.replace("{group: g, kind: k, name: n}", class).split("---\n").filter(|part| !part.is_empty()) {
        let object: DynamicObject = serde_json::from_value(serde_saphyr::from_str(part).unwrap()).unwrap();
        let types = object.types.clone().unwrap();
        let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        let api: Api<DynamicObject> = match types.kind.as_str() {
            "Pod" | "PodDisruptionBudget" => Api::namespaced_with(client.clone(), "default", &resource),
            _ => Api::all_with(client.clone(), &resource),
        };
        let name = object.metadata.name.clone().unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
        if let Some(status) = object.data.get("status") {
            let patch = serde_json::json!({ "status": status });
            api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        }
        if types.kind == "Node" {
            // A new Node is tainted as not ready until a controller sees that it is.
            let patch = serde_json::json!({ "spec": { "taints": null } });
            api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_live_cluster_gives_the_moves_that_its_objects_give_as_files() {
    let cluster = Cluster::new(ClusterConfig::default()).unwrap();
    let client = cluster.client();
    for definition in tenon_api::definitions() {
        Api::all(client.clone()).create(&PostParams::default(), &definition).await.unwrap();
    }
    let held = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: c, annotations: {karpenter.sh/do-not-disrupt: 'true'}}\nspec: {nodeName: \
                n3, containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\nstatus: {phase: Running}\n";
    let objects = format!("{}{}{held}", two_nodes(), node("n3", "m4", 4))
        .replace("[{name: c, resources", "[{name: c, image: i, resources");
    // An owner that is not there has its pods collected as garbage.
    let owner = ", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r}]";
    assert!(objects.contains(owner));
    let objects = objects.replace(owner, "");
    create_all(&client, &objects).await;
    let mut collector = Collector::default();
    super::live::list_all(&client, &mut collector).await.unwrap();
    let rounds = Rounds { now: Some("2026-03-01T12:00:00Z".parse().unwrap()), most: None };
    let live = json(&planned_from(collector, PlanOptions::default(), rounds));
    let command = &live["disruption"]["rounds"][0]["commands"][0];
    assert_eq!((&command["method"], &command["nodes"][0]["name"]), (&"single-node".into(), &"n1".into()), "{live}");
    let why = live["disruption"]["kept"][1]["reasons"][0]["reason"].as_str().unwrap();
    assert!(why.contains("pod default/c has karpenter.sh/do-not-disrupt"), "{why}");
    let files = json(&planned(&objects, "2026-03-01T12:00:00Z", None));
    for part in ["rounds", "kept", "budgets"] {
        assert_eq!(live["disruption"][part], files["disruption"][part], "{part}");
    }
}

#[test]
fn a_broken_node_is_replaced_with_its_gate_and_the_condition_is_shown() {
    let sick = "{type: Ready, status: Unknown, reason: NodeStatusUnknown, lastTransitionTime: '2026-03-01T11:40:00Z'}";
    let objects = two_nodes().replacen("{type: Ready, status: 'True'}", sick, 1);
    let told = |gates: &str| {
        let mut collector = Collector::default();
        super::load::read_text(&"x.yaml".into(), &objects, &mut collector).unwrap();
        let mut options = PlanOptions::default();
        options.set("feature-gates", gates).unwrap();
        planned_from(collector, options, Rounds { now: Some("2026-03-01T12:00:00Z".parse().unwrap()), most: None })
    };
    let report = told("NodeRepair=true");
    let command = &json(&report)["disruption"]["rounds"][0]["commands"][0];
    assert_eq!((&command["method"], &command["reason"]), (&"repair".into(), &"Unhealthy".into()), "{command}");
    assert_eq!(command["condition"], "condition Ready=Unknown since 2026-03-01T11:40:00Z");
    let mut page = Vec::new();
    report.print(Output::Table, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("repair, saves 2, condition Ready=Unknown since"), "{page}");
    assert_ne!(json(&told(""))["disruption"]["rounds"][0]["commands"][0]["method"], "repair");
}
