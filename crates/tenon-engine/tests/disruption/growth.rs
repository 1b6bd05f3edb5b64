//! A scan does not become slow by the cluster becoming large: work is counted, not time.

use std::fmt::Write as _;

use tenon_engine::disruption::{Method, decide};
use tenon_engine::{Change, Effort, Engine};
use tenon_model::Snapshot;

use super::world::world;

/// Pods of seven apps, of which some are spread or keep apart, on nodes with room for a few more, or for none.
fn cluster(nodes: usize, pods_each: usize, cpu: &str) -> Snapshot {
    let mut text = String::new();
    for size in 1..=8 {
        let _ = writeln!(text, "type t{size} cpu={size} memory={}Gi pods=110 price={size} zone=a,b,c", 4 * size);
    }
    let _ = writeln!(text, "type own cpu={cpu} memory=64Gi pods=110 price=1 zone=a,b,c\npool web");
    for node in 0..nodes {
        let zone = ["a", "b", "c"][node % 3];
        let _ = writeln!(text, "node n{node} is=own zone={zone} pool=web");
        for pod in 0..pods_each {
            let app = (node + pod) % 7;
            let rule = match app {
                0 => "spread=zone:50:app=a0".to_owned(),
                1 => "spread=hostname:20:app=a1".to_owned(),
                2 => "prefer:5:zone=In:b".to_owned(),
                _ => String::new(),
            };
            let _ = writeln!(text, "bound p{node}-{pod} on=n{node} cpu={}m label:app=a{app} {rule}", 100 + app * 10);
        }
    }
    world(&text)
}

fn scanned(snapshot: &Snapshot) -> Effort {
    let decided = decide(snapshot);
    let judged =
        |node: &tenon_engine::disruption::KeptNode| node.reasons.iter().any(|(by, _)| *by == Method::SingleNode);
    assert!(decided.kept.iter().all(judged), "every node is judged by itself");
    decided.effort
}

fn slope((few, at_few): (u64, usize), (many, at_many): (u64, usize)) -> f64 {
    (many as f64 / few as f64).log2() / (at_many as f64 / at_few as f64).log2()
}

#[test]
fn a_scan_of_ten_times_as_many_nodes_takes_little_more_than_ten_times_the_work() {
    for cpu in ["4", "1400m"] {
        let [few, many] = [40, 400].map(|nodes| scanned(&cluster(nodes, 10, cpu)));
        let found = slope((few.judgements, 40), (many.judgements, 400));
        assert!(found <= 1.2, "{cpu}: the slope of judgements is {found:.2}: {few:?}, {many:?}");
        let found = slope((few.put_back, 40), (many.put_back, 400));
        assert!(found <= 1.2, "{cpu}: the slope of what is put back is {found:.2}: {few:?}, {many:?}");
    }
}

/// What it takes to ask what would be without the first node.
fn asked(nodes: usize, pods_each: usize) -> u64 {
    let snapshot = cluster(nodes, pods_each, "8");
    let engine = Engine::with_pods_on_nodes(&snapshot);
    let mut what_ifs = engine.what_ifs(false);
    let plan = what_ifs.plan(&Change { remove: &["n0"], ..Change::default() }).unwrap();
    assert_eq!(plan.placements.len(), pods_each);
    let Effort { judgements, put_back, .. } = what_ifs.effort();
    judgements + put_back
}

#[test]
fn to_remove_a_candidate_takes_work_in_proportion_to_its_pods_however_large_the_cluster_is() {
    let [small, large] = [30, 600].map(|nodes| asked(nodes, 8));
    assert!(large <= small + small / 4, "{small} in 30 nodes, {large} in 600");
    let [few, many] = [8, 32].map(|pods| asked(60, pods));
    assert!(many <= 5 * few, "{few} for 8 pods, {many} for 32");
}
