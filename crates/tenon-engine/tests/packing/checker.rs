//! The checker finds what is wrong with a plan that was spoilt.

use std::sync::Arc;

use tenon_engine::check;
use tenon_model::{Placement, Plan, Pool, Price, Snapshot};

use crate::packing::cluster::{amounts, cluster, place, requirement, sound_plan, taint};

#[track_caller]
fn expect_violation(snapshot: &Snapshot, plan: &Plan, words: &str) {
    let violations = check(snapshot, plan);
    assert!(violations.iter().any(|violation| violation.to_string().contains(words)), "{words}: {violations:?}");
}

fn planned(text: &str) -> (Snapshot, Plan) {
    let snapshot = cluster(text);
    let plan = sound_plan(&snapshot);
    (snapshot, plan)
}

fn pool(snapshot: &mut Snapshot) -> &mut Pool {
    Arc::make_mut(&mut snapshot.pools[0])
}

/// All pods on one node.
fn placed(node: &str, snapshot: &Snapshot) -> Plan {
    let placement = |pod: &Arc<tenon_model::Pod>| Placement { pod: pod.key.clone(), node: node.to_owned() };
    Plan { placements: snapshot.pods.iter().map(placement).collect(), ..Plan::default() }
}

const HOSTS: &str = "host pve1 cpu=16 memory=64Gi\npod a cpu=500m memory=1Gi\npod b cpu=500m memory=1Gi";

#[test]
fn a_forgotten_or_doubled_pod_is_found() {
    let (snapshot, plan) = planned(HOSTS);
    let mut forgotten = plan.clone();
    let lost = forgotten.new_nodes[0].pods.pop().unwrap();
    expect_violation(&snapshot, &forgotten, "is in the plan 0 times instead of once");
    let mut doubled = plan;
    doubled.new_nodes[0].pods.push(lost);
    expect_violation(&snapshot, &doubled, "is in the plan 2 times instead of once");
}

#[test]
fn a_node_too_small_or_a_host_too_full_is_found() {
    let (mut snapshot, plan) = planned(HOSTS);
    let mut small = plan.clone();
    small.new_nodes[0].instance_types = ["c1.1VCPU-2GB".to_owned()].into();
    expect_violation(&snapshot, &small, "is too small as c1.1VCPU-2GB");
    snapshot.hosts[0].free = amounts("1", "1Gi");
    expect_violation(&snapshot, &plan, "host pve1 is too small for its new VMs: cpu 2 needed, 1 available");
    snapshot.hosts[0].closed = Some("it is offline".to_owned());
    expect_violation(&snapshot, &plan, "host pve1 cannot be used: it is offline");
}

#[test]
fn a_place_a_price_or_a_limit_that_is_not_so_is_found() {
    let (mut snapshot, plan) = planned(HOSTS);
    let mut elsewhere = plan.clone();
    elsewhere.new_nodes[0].chosen.place = Some(place("pve9"));
    expect_violation(&snapshot, &elsewhere, "is created from an offering that does not exist");
    let mut cheap = plan.clone();
    cheap.new_nodes[0].chosen.price = Price::FREE;
    expect_violation(&snapshot, &cheap, "is created from an offering that does not exist");
    pool(&mut snapshot).limits = amounts("1", "1Gi");
    expect_violation(&snapshot, &plan, "NodePool default exceeds its limit of cpu");
    pool(&mut snapshot).replicas = Some(1);
    expect_violation(&snapshot, &plan, "is of a NodePool that is static or not ready");
}

#[test]
fn taints_and_labels_that_do_not_suit_are_found() {
    let (mut snapshot, plan) = planned(HOSTS);
    pool(&mut snapshot).taints = vec![taint("gpu:NoSchedule")];
    expect_violation(&snapshot, &plan, "does not tolerate the taints of NodePool default");
    pool(&mut snapshot).taints.clear();
    Arc::make_mut(&mut snapshot.pods[0]).alternatives[0].add("team", &requirement("In:red"));
    expect_violation(&snapshot, &plan, "requires other labels than new node 1 has");
}

#[test]
fn ports_and_requests_that_do_not_add_up_are_found() {
    let (snapshot, _) = planned("type one cpu=4 memory=8Gi price=1\npod a cpu=1 port=80\npod b cpu=1 port=80");
    let mut together = tenon_engine::plan(&snapshot);
    let other = together.new_nodes.pop().unwrap();
    together.new_nodes[0].pods.extend(other.pods);
    expect_violation(&snapshot, &together, "needs a host port that is taken on new node 1");
    expect_violation(&snapshot, &together, "requests less than its pods: ");
}

#[test]
fn an_overfull_leaving_or_unknown_node_is_found() {
    let mut snapshot = cluster(
        "type one cpu=4 memory=8Gi\nnode n1 cpu=1 memory=8Gi taint=x:NoSchedule port:y=80\npod a cpu=2 port=80",
    );
    let plan = placed("n1", &snapshot);
    for words in
        ["node n1 takes more pods", "does not tolerate the taints of node n1", "host port that is taken on node n1"]
    {
        expect_violation(&snapshot, &plan, words);
    }
    expect_violation(&snapshot, &placed("n9", &snapshot), "node n9 takes pods, but does not exist");
    Arc::make_mut(&mut snapshot.nodes[0]).is_leaving = true;
    expect_violation(&snapshot, &plan, "node n1 takes pods, but is being deleted");
    Arc::make_mut(&mut snapshot.pods[0]).unsupported = Some("x".to_owned());
    expect_violation(&snapshot, &plan, "asks for something that is not supported yet");
}

#[test]
fn volumes_that_a_node_cannot_use_or_attach_are_found() {
    let types = |limit: u32| format!("type one cpu=9 memory=9Gi zone=a,b attach-limit:d={limit}");
    let pods = "\npod a cpu=1 volume=zone:a attach=d/1\npod b cpu=1 volume=zone:a|zone:b attach=d/2";
    let (snapshot, plan) = planned(&format!("{}{pods}", types(2)));
    let moved = cluster(&format!("{}{}", types(2), pods.replace("volume=zone:a ", "volume=zone:b ")));
    expect_violation(&moved, &plan, "pod default/a has a volume that cannot be used from new node 1");
    let limited = cluster(&format!("{}{pods}", types(1)));
    let words = "attaches 2 volumes of CSI driver d, and the limit of instance type one is 1";
    expect_violation(&limited, &plan, words);
    let shared = cluster(&format!("{}{}", types(1), pods.replace("attach=d/2", "attach=d/1")));
    assert!(check(&shared, &plan).is_empty());
    let node = |limit: u32| {
        format!("\nnode n1 cpu=9 memory=9Gi label:zone=a attach-limit:d={limit}\nbound x on=n1 attach=d/9")
    };
    let plan = placed("n1", &snapshot);
    assert!(check(&cluster(&format!("{}{}{pods}", types(1), node(3))), &plan).is_empty());
    let limited = cluster(&format!("{}{}{pods}", types(1), node(2)));
    expect_violation(&limited, &plan, "node n1 attaches 3 volumes of CSI driver d, and its limit is 2");
    let elsewhere = cluster(&format!("{}{}{pods}", types(1), node(3).replace("label:zone=a", "label:zone=b")));
    expect_violation(&elsewhere, &plan, "pod default/a has a volume that cannot be used from node n1");
}

#[test]
fn values_and_reservations_that_are_not_there_are_found() {
    let text = "type one cpu=4 memory=8Gi price=2\npod a cpu=1\npool default need:instance-type=Exists:";
    let (mut snapshot, plan) = planned(text);
    pool(&mut snapshot).requirements.add("node.kubernetes.io/instance-type", &requirement("Exists:+min=2"));
    expect_violation(
        &snapshot,
        &plan,
        "misses minValues: label node.kubernetes.io/instance-type has only 1 possible value",
    );
    let text = "type one cpu=4 memory=8Gi price=2
        offering one price=0 zone=a capacity-type=reserved id=r1 left=2\npod a cpu=3\npod b cpu=3";
    let (mut snapshot, plan) = planned(text);
    assert_eq!(plan.new_nodes.len(), 2);
    let mut types = snapshot.pools[0].catalog.types().to_vec();
    types[0].offerings.iter_mut().for_each(|way| way.reservation.iter_mut().for_each(|held| held.capacity = 1));
    pool(&mut snapshot).catalog = Arc::new(tenon_model::Catalog::new(types));
    expect_violation(&snapshot, &plan, "reservation r1 is used by more new nodes");
}

#[test]
fn a_machine_that_is_only_supposed_to_be_free_is_not_there_without_that() {
    let text = "option credit:r1=1\ntype one cpu=4 memory=8Gi price=2 capacity-type=reserved unavailable=a
        offering one price=0 zone=a capacity-type=reserved id=r1 left=0\npod a cpu=3\npod b cpu=3";
    let (mut snapshot, plan) = planned(text);
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (1, 1));
    let mut twice = plan.clone();
    let waiting = twice.unplaced.pop().unwrap();
    twice.new_nodes.push(tenon_model::NewNode { pods: vec![waiting.pod], ..plan.new_nodes[0].clone() });
    expect_violation(&snapshot, &twice, "reservation r1 is used by more new nodes");
    snapshot.options.credits.clear();
    expect_violation(&snapshot, &plan, "is created from an offering that is unavailable");
    expect_violation(&snapshot, &plan, "reservation r1 is used by more new nodes");
}
