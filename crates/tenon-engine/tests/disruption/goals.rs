//! Nodes move to other hosts where their ProxmoxNodeClass has a goal: which, where to, and why others stay.

use tenon_engine::disruption::{Command, Replacement, Scanner, confirm, decide};
use tenon_model::Snapshot;

use super::world::{reasons, world};

/// Four hosts with room for four VMs of two cores each.
const HOSTS: &str = "host pve1 cpu=8 memory=32Gi\nhost pve2 cpu=8 memory=32Gi\nhost pve3 cpu=8 memory=32Gi\n\
                     host pve4 cpu=8 memory=32Gi\n";

/// Nodes of two cores on these hosts, each with a pod that fills it: n0, n1 … with p0, p1 …
fn nodes(pool: &str, hosts: &str) -> String {
    let node = |(number, host): (usize, &str)| {
        format!(
            "node n{number} is=c1.2VCPU-4GB zone={host} region=lab pool={pool}\nbound p{number} on=n{number} cpu=1500m\n"
        )
    };
    hosts.split_whitespace().enumerate().map(node).collect()
}

/// A pool whose nodes have two cores, with a goal for hosts.
fn pool(name: &str, more: &str) -> String {
    format!("pool {name} need:instance-type=In:c1.2VCPU-4GB {more}\n")
}

fn packed(hosts: &str, more: &str) -> String {
    format!("{HOSTS}{}{}", pool("web", &format!("goal=pack hosts=Pack {more}")), nodes("web", hosts))
}

fn spread(hosts: &str, more: &str) -> String {
    format!("{HOSTS}{}{}", pool("web", &format!("goal=spread hosts=Spread {more}")), nodes("web", hosts))
}

/// `n3>pve1`: what goes, and the hosts on which nodes come for it.
fn told(command: &Command) -> String {
    let hosts = command.replacements.iter().map(|replacement| match replacement {
        Replacement::Planned(new) => new.chosen.place.as_ref().unwrap().host.to_string(),
        Replacement::Template { .. } => "template".to_owned(),
    });
    format!("{}>{}", command.names().join(","), hosts.collect::<Vec<_>>().join(","))
}

#[track_caller]
fn moves(text: &str, expected: &[&str]) {
    let decided = decide(&world(text));
    let told: Vec<String> = decided.commands.iter().map(told).collect();
    assert_eq!(told, expected, "\n{text}\n{}", reasons(&decided).join("\n"));
}

/// Nothing moves, and this is why a node does not.
#[track_caller]
fn stays(node: &str, text: &str, why: &str) {
    let decided = decide(&world(text));
    assert!(decided.commands.is_empty(), "{:?}", decided.commands.iter().map(told).collect::<Vec<_>>());
    let line = format!("{node} host-goal: {why}");
    let found = reasons(&decided);
    assert!(found.contains(&line), "{}", found.join("\n"));
}

#[test]
fn the_host_with_the_fewest_vms_is_freed() {
    moves(&packed("pve1 pve1 pve2 pve3 pve3", ""), &["n2>pve1"]);
    moves(&packed("pve1 pve1 pve1 pve2 pve2", ""), &["n3,n4>pve1,pve1"]);
}

#[test]
fn without_a_goal_nothing_moves() {
    let text = format!("{HOSTS}{}{}", pool("web", ""), nodes("web", "pve1 pve1 pve2 pve3"));
    moves(&text, &[]);
    moves(&packed("pve1 pve1 pve2", "").replace("goal=pack", ""), &[]);
}

#[test]
fn a_replacement_is_made_on_its_host_and_nowhere_else() {
    let decided = decide(&world(&packed("pve1 pve1 pve2", "")));
    let [Replacement::Planned(new)] = decided.commands[0].replacements.as_slice() else { panic!("one node") };
    assert!(new.requirements.admit("topology.kubernetes.io/zone", "pve1"));
    assert!(!new.requirements.admit("topology.kubernetes.io/zone", "pve2"), "{}", new.requirements);
    assert!(!new.requirements.admit("topology.kubernetes.io/region", "mars"), "{}", new.requirements);
    assert!(decided.commands[0].savings.abs() < 1e-9, "it costs no more");
}

#[test]
fn a_host_with_more_nodes_than_the_budget_allows_is_freed_in_steps() {
    let budget = "budget=1";
    moves(&packed("pve1 pve1 pve1 pve2 pve2", budget), &["n3>pve1"]);
    // The first step is done: what is left of the host goes next, although another host has as few.
    moves(&packed("pve1 pve1 pve1 pve3 pve2 pve3", budget), &["n4>pve1"]);
    // Of two equal hosts the first by name is freed, and the step goes to a host that has as many.
    moves(&packed("pve1 pve1 pve2 pve2", budget), &["n0>pve2"]);
}

#[test]
fn no_step_is_taken_towards_a_host_that_cannot_be_freed_as_a_whole() {
    let text = packed("pve1 pve1 pve1 pve2 pve2", "budget=1").replace("bound p4 ", "bound p4 keep=true ");
    stays(
        "n3",
        &text,
        "host pve2 cannot be freed: node n4 stays: pod default/p4 has karpenter.sh/do-not-disrupt; remove the annotation to allow \
         disruption",
    );
}

#[test]
fn a_host_stays_where_the_others_in_use_have_no_room() {
    let text = packed("pve1 pve1 pve2", "").replace("host pve1 cpu=8", "host pve1 cpu=1");
    let text = text.replace("host pve2 cpu=8", "host pve2 cpu=1");
    let decided = decide(&world(&text));
    assert!(decided.commands.is_empty(), "{:?}", decided.commands.iter().map(told).collect::<Vec<_>>());
    let found = reasons(&decided).join("\n");
    assert!(
        found.contains("n2 host-goal: host pve2 cannot be freed: pod default/p2 would be unschedulable"),
        "{found}"
    );
    assert!(found.contains("the most is 1 on host pve1;"), "hosts that are not in use are no help: {found}");
}

#[test]
fn a_host_stays_for_a_node_that_is_not_meant() {
    let other = format!("{}{}", pool("db", ""), nodes("db", "pve2").replace("n0", "d0").replace("p0", "q0"));
    let text = format!("{}{other}", packed("pve1 pve1 pve2", "").replace("host pve2 cpu=8", "host pve2 cpu=1"));
    stays(
        "n2",
        &text,
        "host pve2 cannot be freed: node d0 belongs to NodePool db, whose nodes are not moved for goal PackHosts",
    );
    // Hosts that only others use are in use, too.
    let text = format!("{}{other}", packed("pve1", ""));
    moves(&text, &["n0>pve2"]);
}

#[test]
fn a_host_stays_if_it_is_the_only_one() {
    stays(
        "n0",
        &packed("pve1 pve1", ""),
        "host pve1 is the only usable host with VMs of Tenon, so no host can be freed",
    );
    let closed = packed("pve1 pve2 pve2", "").replace("host pve2 ", "host pve2 closed=offline ");
    stays("n0", &closed, "host pve1 is the only usable host with VMs of Tenon, so no host can be freed");
    stays("n1", &closed, "host pve2 cannot be used now; nodes are not moved from there");
}

#[test]
fn nodes_move_only_when_nothing_else_happens() {
    let leaving = packed("pve1 pve1 pve2", "").replace("node n0 ", "node n0 in-progress ");
    stays("n2", &leaving, "node n0 is being created, restarted or removed; nodes are moved between hosts after that");
    // What consolidation finds comes first.
    let text = packed("pve1 pve1 pve2", "").replace("bound p2 on=n2 cpu=1500m", "bound p2 on=n2 cpu=100m");
    let decided = decide(&world(&text));
    assert!(decided.commands.iter().all(|command| command.method.as_str() != "host-goal"), "{decided:?}");
    let text = packed("pve1 pve1 pve2", "").replace("node n0 ", "node n0 drifted=60 ");
    assert_eq!(decide(&world(&text)).commands[0].method.as_str(), "drift");
}

#[test]
fn what_a_pool_says_of_disruption_holds_for_moves_between_hosts() {
    stays("n2", &packed("pve1 pve1 pve2", "after=3600s"), &quiet("n2"));
    let never = "budget=0";
    let decided = decide(&world(&packed("pve1 pve1 pve2", never)));
    assert!(decided.commands.is_empty());
    let found = reasons(&decided).join("\n");
    assert!(
        found.contains("n2 host-goal: spec.disruption.budgets[0] of NodePool web (0) allows 0 of 3 nodes"),
        "{found}"
    );
    let text = packed("pve1 pve1 pve2", "policy=WhenEmpty");
    let why = "host pve2 cannot be freed: node n2 stays: NodePool web has consolidationPolicy WhenEmpty and the node runs pods; \
               set WhenEmptyOrUnderutilized to consolidate nodes in use";
    stays("n2", &text, why);
}

/// A node that had its pods too short a time ago.
fn quiet(node: &str) -> String {
    let decided = decide(&world(&packed("pve1 pve1 pve2", "after=3600s")));
    let kept = decided.kept.iter().find(|kept| kept.node == node).unwrap();
    let (_, why) = kept.reasons.iter().find(|(method, _)| method.as_str() == "single-node").unwrap();
    format!("host pve2 cannot be freed: node {node} stays: {why}")
}

#[test]
fn where_a_vm_was_migrated_to_counts_and_not_where_it_was_made() {
    let mut snapshot = world(&packed("pve1 pve1 pve2", ""));
    let node = snapshot.nodes.iter_mut().find(|node| node.name == "n2").unwrap();
    let node = std::sync::Arc::make_mut(node);
    node.labels = node.labels.iter().chain([("tenon.dev/host", "pve1")]).collect();
    assert!(decide(&snapshot).commands.is_empty(), "all of them are on one host");
}

#[test]
fn a_node_moves_from_a_host_that_has_two_more_to_the_emptiest() {
    moves(&spread("pve1 pve1 pve1 pve2 pve3", "vms:pve1=3 vms:pve2=1 vms:pve3=1"), &["n0>pve4"]);
    moves(&spread("pve1 pve1 pve1 pve2 pve3 pve4", "vms:pve1=3 vms:pve2=1 vms:pve3=1 vms:pve4=1"), &["n0>pve2"]);
    let even = spread("pve1 pve1 pve2 pve3 pve4", "");
    stays("n0", &even, "no usable host has at least 2 nodes of NodePool web fewer than host pve1");
}

#[test]
fn hosts_that_a_pool_cannot_use_are_left_out_of_spreading() {
    stays(
        "n0",
        &spread("pve1 pve1 pve2", "exclude=pve3,pve4"),
        "no usable host has at least 2 nodes of NodePool web fewer than host pve1",
    );
    let closed = spread("pve1 pve1 pve2 pve4", "").replace("host pve3 ", "host pve3 closed-for=web ");
    stays("n0", &closed, "no usable host has at least 2 nodes of NodePool web fewer than host pve1");
}

#[test]
fn each_pool_is_spread_by_itself() {
    let other = format!("{}{}", pool("db", ""), nodes("db", "pve1 pve1").replace("n0", "d0").replace("n1", "d1"));
    let text = format!("{}{}", spread("pve1 pve2 pve3 pve4", ""), other.replace(" p0", " q0").replace(" p1", " q1"));
    moves(&text, &[]);
}

#[test]
fn a_node_that_may_not_move_lets_another_of_its_host_go() {
    let text = spread("pve1 pve1 pve2 pve3", "").replace("bound p0 ", "bound p0 pdb=always ");
    moves(&text, &["n1>pve4"]);
}

/// What of a move is left fifteen seconds later, in another cluster.
fn later(text: &str, after: &str) -> Result<Command, tenon_engine::disruption::Rejection> {
    let command = decide(&world(text)).commands.remove(0);
    confirm(&command, &world(after))
}

#[test]
fn a_move_holds_only_if_it_would_be_the_same_again() {
    let text = packed("pve1 pve1 pve1 pve2 pve2", "");
    assert_eq!(later(&text, &text).unwrap(), decide(&world(&text)).commands[0]);
    let spreading = spread("pve1 pve1 pve2 pve3", "");
    assert_eq!(told(&later(&spreading, &spreading).unwrap()), "n0>pve4");

    let rejected = |text: &str, after: &str| later(text, after).unwrap_err().reason();
    assert_eq!(rejected(&text, &text.replace("node n3 ", "node n3 keep ")), "churn");
    assert_eq!(rejected(&text, &text.replace("node n0 ", "node n0 in-progress ")), "churn");
    assert_eq!(rejected(&text, &text.replace("goal=pack", "goal=pack budget=1")), "budget");
    assert_eq!(rejected(&text, &text.replace("host pve1 cpu=8", "host pve1 cpu=2")), "scheduling");
    assert_eq!(rejected(&text, &text.replace("goal=pack", "")), "churn", "the goal is no more");
    let new = text.replace("host pve3", "host pve0 cpu=8 memory=32Gi\nhost pve3");
    assert_eq!(told(&later(&text, &new).unwrap()), "n3,n4>pve1,pve1", "a host that is not in use changes nothing");
    assert_eq!(rejected(&spreading, &spreading.replace("host pve4 ", "host pve4 closed=offline ")), "scheduling");
}

#[test]
fn a_scanner_that_looked_before_decides_the_same() {
    let mut scanner = Scanner::default();
    let of = |text: &str| -> Snapshot { world(text) };
    scanner.decide(&of(&packed("pve1 pve1 pve2", "")));
    let text = spread("pve1 pve1 pve2 pve3", "");
    assert_eq!(scanner.decide(&of(&text)), decide(&of(&text)));
}
