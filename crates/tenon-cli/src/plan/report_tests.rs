//! How a plan looks on paper, to the letter.

use std::collections::BTreeMap;

use super::report::{Demand, ExistingNode, NewClaim, Offering, Output, Report, Stats, Unschedulable};

fn claim(zone: &str, pods: impl IntoIterator<Item = String>) -> NewClaim {
    let amounts = [("cpu", "3500m"), ("memory", "6442450944"), ("pods", "12")];
    NewClaim {
        node_pool: "default".to_owned(),
        instance_types: ["m4".to_owned(), "m8".to_owned()].into(),
        offering: Offering {
            instance_type: "m4".to_owned(),
            zone: zone.to_owned(),
            capacity_type: "spot".to_owned(),
            price: 0.05,
        },
        requirements: vec![Demand {
            key: "kubernetes.io/arch".to_owned(),
            operator: "In".to_owned(),
            values: vec!["amd64".to_owned()],
            min_values: None,
        }],
        requests: BTreeMap::from(amounts.map(|(name, amount)| (name.to_owned(), amount.to_owned()))),
        pods: pods.into_iter().collect(),
    }
}

fn report() -> Report {
    let web = |range: std::ops::Range<u32>| range.map(|index| format!("shop/web-{index}")).collect::<Vec<_>>();
    let reason = "NodePool default: no instance type has enough resources, memory: 64 GiB requested, but the largest instance \
                  type has 48 GiB for pods, requirements=karpenter.sh/nodepool In [default], resources={memory: 64Gi}";
    let pending = |pod: &str, reasons: &[&str], deferred: bool| Unschedulable {
        pod: pod.to_owned(),
        reasons: reasons.iter().map(ToString::to_string).collect(),
        rejected: reasons.is_empty(),
        deferred,
    };
    let report = Report {
        new_node_claims: vec![claim("a", web(1..12)), claim("a", web(12..24)), claim("", ["shop/db-0".to_owned()])],
        existing_nodes: vec![
            ExistingNode { name: "node-2".to_owned(), pods: web(30..33) },
            ExistingNode { name: "node-1".to_owned(), pods: vec!["kube-system/dns-b".to_owned(), "a/x".to_owned()] },
            ExistingNode { name: "idle".to_owned(), pods: Vec::new() },
        ],
        unschedulable: vec![
            pending("shop/big-1", &[reason], false),
            pending("shop/big-0", &[reason], false),
            pending("shop/odd", &[], false),
            pending("shop/late", &["reserved capacity is used up"], true),
        ],
        stats: Stats { solve_micros: 1_234, build_micros: 56, load_micros: 2_345_678, ..Stats::default() },
        ..Report::default()
    };
    report.settled(33)
}

fn printed(report: &Report, output: Output) -> String {
    let mut bytes = Vec::new();
    report.print(output, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_table_names_new_nodes_existing_nodes_and_unschedulable_pods() {
    let expected = "\
New nodes: 3

       NODEPOOL  TYPE  ZONE  CAPACITY  PRICE  CPU REQ  MEMORY REQ
  2 ×  default   m4    a     spot      0.05   3.5      6 GiB
      shop/web-1 … web-23 (23 pods)
  1 ×  default   m4    -     spot      0.05   3.5      6 GiB
      shop/db-0

On existing nodes: 5 pods

  node-1
      a/x, kube-system/dns-b
  node-2
      shop/web-30 … web-32 (3 pods)

Unschedulable: 4 pods

  shop/big-0, big-1
      NodePool default: no instance type has enough resources, memory: 64 GiB
        requested, but the largest instance type has 48 GiB for pods
  shop/odd (rejected)
  shop/late (waiting for reserved capacity)
      reserved capacity is used up

33 pods: 24 on 3 new nodes, 5 on existing nodes, 4 unschedulable
price of the new nodes: 0.15
time: 2.3 s to read, 56 µs to prepare, 1.2 ms to solve
";
    let page = printed(&report(), Output::Table);
    assert_eq!(page, expected, "\n{page}");
}

#[test]
fn the_table_begins_with_what_became_of_the_workloads() {
    let workloads = vec!["planned 3 pods of Deployment a/web".to_owned(), "planned 0 pods of Job a/b: x".to_owned()];
    let page = printed(&Report { workloads, ..Report::default() }.settled(0), Output::Table);
    assert!(
        page.starts_with("planned 3 pods of Deployment a/web\nplanned 0 pods of Job a/b: x\n\nNo pending"),
        "{page}"
    );
}

#[test]
fn a_plan_that_does_nothing_says_so() {
    let page = printed(&Report::default().settled(0), Output::Table);
    assert!(page.starts_with("No pending pods.\n\n0 pods: 0 on 0 new nodes"), "{page}");
    assert!(page.contains("price of the new nodes: 0\n"), "{page}");
}

#[test]
fn a_name_that_a_terminal_would_obey_is_not_passed_on() {
    let waiting = Unschedulable { pod: "a/\u{1b}[31mr\ned".to_owned(), ..Unschedulable::default() };
    let page = printed(&Report { unschedulable: vec![waiting], ..Report::default() }.settled(1), Output::Table);
    assert!(page.contains("  a/\u{fffd}[31mr\u{fffd}ed\n"), "{page}");
}

#[test]
fn a_large_plan_is_summed_up() {
    let claims = (0..50_u32).map(|index| {
        let requests = BTreeMap::from([("cpu".to_owned(), format!("{}m", 1_000 + index))]);
        NewClaim { requests, ..claim("a", [format!("shop/web-{index}")]) }
    });
    let nodes = (0..30).map(|index| ExistingNode { name: format!("n{index:02}"), pods: vec![format!("a/p-{index}")] });
    let waiting = (0..40).map(|index| Unschedulable {
        pod: format!("b/q-{index}"),
        reasons: vec![format!("NodePool p: reason {}, requirements=x In [y], resources={{cpu: {index}}}", index / 30)],
        ..Unschedulable::default()
    });
    let report = Report {
        new_node_claims: claims.collect(),
        existing_nodes: nodes.collect(),
        unschedulable: waiting.collect(),
        ..Report::default()
    };
    let page = printed(&report.settled(120), Output::Table);
    for words in [
        "  50 ×  default   m4    a     spot      0.05   1 – 1.049  -\n      shop/web-0 … web-49 (50 pods)\n",
        "  n19\n      a/p-19\n  … and 10 pods on 10 more nodes; use -o json to list all\n",
        "  b/q-0 … q-29 (30 pods)\n      NodePool p: reason 0, requirements=x In [y]\n  b/q-30 … q-39 (10 pods)\n",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
}

#[test]
fn the_json_has_the_keys_other_programs_look_for() {
    let report = Report { new_node_claims: vec![claim("a", ["b/x".to_owned(), "a/x".to_owned()])], ..report() };
    let text = printed(&report.settled(7), Output::Json);
    let compact = serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let expected = serde_json::json!({
        "version": 1,
        "newNodeClaims": [{
            "nodePool": "default",
            "instanceTypes": ["m4", "m8"],
            "offering": {"instanceType": "m4", "zone": "a", "capacityType": "spot", "price": 0.05},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
            "requests": {"cpu": "3500m", "memory": "6442450944", "pods": "12"},
            "pods": ["a/x", "b/x"],
        }],
        "existingNodes": [
            {"name": "node-1", "pods": ["a/x", "kube-system/dns-b"]},
            {"name": "node-2", "pods": ["shop/web-30", "shop/web-31", "shop/web-32"]},
        ],
        "unschedulable": [
            {"pod": "shop/big-0", "reasons": [report_reason()]},
            {"pod": "shop/big-1", "reasons": [report_reason()]},
            {"pod": "shop/late", "reasons": ["reserved capacity is used up"], "deferred": true},
            {"pod": "shop/odd", "reasons": [], "rejected": true},
        ],
        "stats": {"pods": 7, "nodes": 1, "cost": 0.05, "solveMicros": 1234, "buildMicros": 56, "loadMicros": 2_345_678},
    });
    assert_eq!(compact, expected, "{text}");
    assert!(text.starts_with("{\n  \"version\": 1,\n  \"newNodeClaims\": [") && text.ends_with("}\n"), "{text}");
}

fn report_reason() -> String {
    report().unschedulable[0].reasons[0].clone()
}

#[test]
fn json_and_yaml_say_the_same() {
    let report = report();
    let json: Report = serde_json::from_str(&printed(&report, Output::Json)).unwrap();
    let yaml: Report = serde_saphyr::from_str(&printed(&report, Output::Yaml)).unwrap();
    assert_eq!(json, report);
    assert_eq!(yaml, report);
}
