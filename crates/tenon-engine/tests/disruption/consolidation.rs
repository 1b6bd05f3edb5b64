//! Nodes are deleted if their pods fit elsewhere, and replaced if that costs less.

use super::world::{decided, expect, kept, told};

const TYPES: &str = "type big cpu=8 memory=32Gi price=4 zone=a\ntype mid cpu=4 memory=16Gi price=2 zone=a\n\
                     type tiny cpu=2 memory=8Gi price=1 zone=a\n";

fn with(lines: &str) -> String {
    format!("{TYPES}{lines}")
}

#[test]
fn h5_all_empty_nodes_go_in_one_command_within_the_budgets_of_their_pools() {
    let nodes = "node n1 is=big zone=a pool=web\nnode n2 is=big zone=a pool=web\nnode n3 is=big zone=a pool=db\n\
                 bound d1 on=n3 cpu=1 owner=daemon\nbound m1 on=n3 cpu=1 owner=mirror\nbound x on=n3 cpu=1 terminating";
    expect(&with(&format!("pool web\npool db\n{nodes}")), &["emptiness: n1 n2 n3"]);
    expect(&with(&format!("pool web budget=1\npool db policy=WhenEmpty\n{nodes}")), &["emptiness: n1 n3"]);
    let text = with(&format!("pool web budget=0\npool db after=Never\n{nodes}"));
    assert!(kept("n1", &text).contains("allows 0 of 2 nodes to be disrupted at once for Empty"));
    assert!(kept("n3", &text).contains("consolidateAfter: Never"));
    let set =
        with("pool web policy=WhenEmpty\nnode n1 is=big zone=a pool=web\nbound s on=n1 cpu=1 owner=set terminating");
    assert!(kept("n1", &set).contains("WhenEmpty"), "the successor of a StatefulSet's pod needs its place");
    let worthless =
        with("pool web policy=WhenEmpty\nnode n1 is=big zone=a pool=web\nbound s on=n1 cpu=1 cost=-2147483647");
    expect(&worthless, &["emptiness: n1"]);
}

#[test]
fn h7_a_node_is_replaced_by_a_cheaper_one_and_only_by_that() {
    let text = with("pool web\nnode n1 is=big zone=a pool=web\nbound p1 on=n1 cpu=3");
    expect(&text, &["single-node: n1 => web/mid/on-demand | p1>#0"]);
    assert_eq!(decided(&text).commands[0].savings, 2.0);
    let text = with("pool web\nnode n1 is=mid zone=a pool=web\nbound p1 on=n1 cpu=3");
    assert_eq!(kept("n1", &text), "the cheapest replacement, mid, costs 2, which is not less than the current 2");
    let text = with("pool web\nnode n1 is=big zone=a pool=web\nbound p1 on=n1 cpu=3 need:zone=In:b");
    assert!(kept("n1", &text).contains("pod default/p1 would be unschedulable"));
}

#[test]
fn h7_only_instance_types_that_are_cheaper_whatever_is_launched_are_listed() {
    let text = with("pool web\nnode n1 is=big zone=a pool=web\nbound p1 on=n1 cpu=1");
    let found = decided(&text);
    let tenon_engine::disruption::Replacement::Planned(new) = &found.commands[0].replacements[0] else { panic!() };
    assert_eq!(new.instance_types[..], ["tiny", "mid"]);
}

#[test]
fn h7_min_values_hold_for_what_is_left_after_the_price() {
    let pool = |least: u32| {
        with(&format!(
            "pool web need:instance-type=Exists:+min={least}\nnode n1 is=big zone=a pool=web\nbound p1 on=n1 cpu=1"
        ))
    };
    expect(&pool(2), &["single-node: n1 => web/tiny/on-demand | p1>#0"]);
    assert!(kept("n1", &pool(3)).contains("minValues"));
}

#[test]
fn h7_a_spot_node_is_replaced_by_spot_only_with_the_gate_and_fifteen_cheaper_types() {
    let world = |types: usize, gate: &str| {
        let types: Vec<String> = (0..types)
            .map(|number| format!("type t{number:02} cpu=2 memory=8Gi price={} zone=a capacity-type=spot", 10 + number))
            .collect();
        format!(
            "{}\ntype old cpu=8 memory=32Gi price=99 zone=a capacity-type=spot\npool web\n\
             node n1 is=old zone=a kind=spot pool=web\nbound p1 on=n1 cpu=1\n{gate}",
            types.join("\n")
        )
    };
    assert!(kept("n1", &world(20, "")).contains("SpotToSpotConsolidation"));
    assert!(kept("n1", &world(14, "gate spot-to-spot")).contains("only 14 cheaper spot instance types"));
    let found = decided(&world(20, "gate spot-to-spot"));
    let tenon_engine::disruption::Replacement::Planned(new) = &found.commands[0].replacements[0] else { panic!() };
    assert_eq!((new.instance_types.len(), new.chosen.instance_type.as_str()), (15, "t00"));
}

#[test]
fn h7_on_demand_becomes_spot_and_is_pinned_to_it() {
    let text = "type mid cpu=4 memory=16Gi price=2 zone=a capacity-type=spot,on-demand\npool web\n\
                node n1 is=mid zone=a kind=on-demand pool=web\nbound p1 on=n1 cpu=3";
    expect(text, &["single-node: n1 => web/mid/spot | p1>#0"]);
    let found = decided(text);
    let tenon_engine::disruption::Replacement::Planned(new) = &found.commands[0].replacements[0] else { panic!() };
    assert_eq!(new.requirements.get("karpenter.sh/capacity-type").unwrap().to_string(), "In [spot]");
}

#[test]
fn h8_pods_pending_for_good_do_not_stop_consolidation_and_pods_on_nodes_coming_up_do() {
    let nodes = "pool web\nnode n1 is=mid zone=a pool=web\nbound p1 on=n1 cpu=1\n\
                 node n2 is=mid zone=a pool=web keep\nbound p2 on=n2 cpu=1\n";
    expect(&with(&format!("{nodes}pod lost cpu=1 need:zone=In:nowhere")), &["single-node: n1 | p1>n2"]);
    expect(&with(&format!("{nodes}pod next cpu=2")), &["single-node: n1 | p1>n2"]);
    let rising = nodes.replace("n2 is=mid", "n2 rising is=mid");
    assert!(kept("n1", &with(&rising)).contains("on node n2, which is not initialized yet"));
    let foreign = nodes.replace("node n2 is=mid zone=a pool=web keep", "node n2 is=mid zone=a");
    expect(&with(&foreign), &["single-node: n1 | p1>n2"]);
}

#[test]
fn h8_nodes_with_pod_events_a_moment_ago_take_no_pods_unless_they_never_wait() {
    let world = |pool: &str| {
        with(&format!(
            "pool web need:zone=In:a\npool other {pool} limit:cpu=0\nnode n1 is=mid zone=a pool=web\nbound p1 on=n1 cpu=3\n\
             node n2 is=mid zone=a pool=other keep quiet=5"
        ))
    };
    assert!(kept("n1", &world("after=30s")).contains("is not less than"));
    for pool in ["after=5s", "after=Never", "after=0s"] {
        expect(&world(pool), &["single-node: n1 | p1>n2"]);
    }
    let pending = format!("{}\npod next cpu=4", world("after=30s"));
    assert!(kept("n1", &pending).contains("is not less than"), "a pending pod may use the node");
}

#[test]
fn h8_pods_of_which_some_need_two_new_nodes_stay() {
    let text = with(
        "pool web\nnode n1 is=big zone=a pool=web\nbound p1 on=n1 cpu=3 label:app=x apart=hostname:app=x\n\
                     bound p2 on=n1 cpu=3 label:app=x",
    );
    assert!(kept("n1", &text).contains("more than one new node"), "{}", kept("n1", &text));
}

#[test]
fn h10_three_nodes_become_one_and_two_of_a_type_never_become_one_of_it() {
    let three = "pool web\nnode n1 is=mid zone=a pool=web\nbound p1 on=n1 cpu=2500m\n\
                 node n2 is=mid zone=a pool=web\nbound p2 on=n2 cpu=2500m\n\
                 node n3 is=mid zone=a pool=web\nbound p3 on=n3 cpu=2500m";
    expect(&with(three), &["multi-node: n1 n2 n3 => web/big/on-demand | p1>#0 p2>#0 p3>#0"]);
    let mixed = three.replace("n3 is=mid", "n3 is=mid kind=spot");
    let mixed = with(&mixed).replace("zone=a\ntype", "zone=a capacity-type=spot,on-demand\ntype");
    expect(&mixed, &["multi-node: n1 n2 n3 => web/big/spot | p1>#0 p2>#0 p3>#0"]);
    let two = "type mid cpu=4 memory=16Gi price=2 zone=a\npool web\n\
               node n1 is=mid zone=a pool=web\nbound p1 on=n1 cpu=2500m\nnode n2 is=mid zone=a pool=web\nbound p2 on=n2 cpu=1";
    expect(two, &["single-node: n1 | p1>n2"]);
}

#[test]
fn a_row_ends_before_the_node_that_would_make_the_replacement_dearer_than_it_saves() {
    let text = with(
        "type huge cpu=16 memory=64Gi price=9 zone=a\npool web\n\
         node n1 is=huge zone=a pool=web\nbound p1 on=n1 cpu=1\nnode n2 is=huge zone=a pool=web\nbound p2 on=n2 cpu=1\n\
         node n3 is=mid zone=a pool=web\nbound p3 on=n3 cpu=3500m",
    );
    // All three need one of price 4; without n3 it costs 1, and n3 costs 2.
    expect(&text, &["multi-node: n1 n2 => web/tiny/on-demand | p1>#0 p2>#0"]);
}

#[test]
fn h10_what_cannot_go_together_goes_alone() {
    let text = with(
        "pool web budget=1\nnode n1 is=mid zone=a pool=web\nbound p1 on=n1 cpu=1\n\
                     node n2 is=mid zone=a pool=web\nbound p2 on=n2 cpu=1\nnode n3 is=mid zone=a pool=web\nbound p3 on=n3 cpu=1",
    );
    expect(&text, &["single-node: n1 | p1>n2"]);
    let found = decided(&text);
    let second = found.kept.iter().find(|kept| kept.node == "n2").unwrap();
    assert_eq!(second.reasons[0].1.to_string(), "the node can be disrupted after node n1 (single-node)");
}

#[test]
fn h11_spread_and_anti_affinity_hold_after_the_move() {
    let world = |rule: &str| {
        format!(
            "type mid cpu=4 memory=16Gi price=2 zone=a,b\npool web need:zone=In:a,b\n\
             node n1 is=mid zone=a pool=web\nbound p1 on=n1 cpu=1 label:app=x {rule}\n\
             node n2 is=mid zone=b pool=web keep\nbound p2 on=n2 cpu=1 label:app=x {rule}"
        )
    };
    for rule in ["spread=zone:1:app=x;min=2", "apart=hostname:app=x", "apart=zone:app=x"] {
        assert!(kept("n1", &world(rule)).contains("is not less than"), "{rule}: {}", kept("n1", &world(rule)));
    }
    expect(&world(""), &["single-node: n1 | p1>n2"]);
}

#[test]
fn h11_reserved_capacity_that_is_used_up_is_not_waited_for() {
    let world = |left: u32| {
        format!(
            "type mid cpu=4 memory=16Gi price=2 zone=a\ntype old cpu=4 memory=16Gi price=3 zone=a\n\
             offering mid price=0.1 zone=a capacity-type=reserved id=r left={left}\npool web\n\
             node n1 is=old zone=a pool=web\nbound p1 on=n1 cpu=3"
        )
    };
    expect(&world(1), &["single-node: n1 => web/mid/reserved | p1>#0"]);
    expect(&world(0), &["single-node: n1 => web/mid/on-demand | p1>#0"]);
}

#[test]
fn h11_static_nodes_are_not_consolidated() {
    let text = with(
        "pool web replicas=2\nnode n1 is=mid zone=a pool=web\nnode n2 is=mid zone=a pool=web\nbound p on=n2 cpu=1",
    );
    assert!(decided(&text).commands.is_empty());
}

#[test]
fn h14_balanced_rejects_small_savings_for_many_pods_and_approves_large_ones() {
    let world = |pods: usize, policy: &str| {
        let bound: Vec<String> = (0..pods).map(|pod| format!("bound p{pod} on=n1 cpu=10m")).collect();
        format!(
            "type mid cpu=4 memory=16Gi price=2 zone=a\ntype huge cpu=64 memory=256Gi price=40 zone=a\npool web policy={policy}\n\
             node n1 is=mid zone=a pool=web\n{}\nnode n2 is=huge zone=a pool=web keep\nbound q on=n2 cpu=40",
            bound.join("\n")
        )
    };
    let found = kept("n1", &world(30, "Balanced"));
    assert!(
        found.contains("score 0.05") && found.contains("needs 0.50") && found.starts_with("would save 4.8 % of"),
        "{found}"
    );
    assert_eq!(decided(&world(30, "WhenEmptyOrUnderutilized")).commands.len(), 1);
    let even = world(1, "Balanced").replace("huge cpu=64 memory=256Gi price=40", "huge cpu=64 memory=256Gi price=2");
    let found = decided(&even);
    assert_eq!(told(&found.commands[0]), "single-node: n1 | p0>n2");
    assert!((found.commands[0].score().unwrap() - 1.0).abs() < 1e-9, "{:?}", found.commands[0].score());
}

#[test]
fn h14_nodes_that_go_already_count_for_what_the_pool_costs() {
    let text = "type mid cpu=4 memory=16Gi price=2 zone=a\npool web policy=Balanced\n\
                node n1 is=mid zone=a pool=web\nbound p1 on=n1 cpu=1\nnode n2 is=mid zone=a pool=web keep\nbound p2 on=n2 cpu=1\n\
                node n3 is=mid zone=a pool=web deleting";
    let score = decided(text).commands[0].score().unwrap();
    // A third of the cost is saved for two fifths of the disruption.
    assert!((score - 5.0 / 6.0).abs() < 1e-9, "{score}");
}

#[test]
fn h14_a_pool_with_another_policy_does_not_weigh_its_own_nodes() {
    let text = "type mid cpu=4 memory=16Gi price=2 zone=a\npool web policy=Balanced\npool db\n\
                node n1 is=mid zone=a pool=db\nbound p1 on=n1 cpu=1\nnode n2 is=mid zone=a pool=web keep\nbound p2 on=n2 cpu=1";
    assert_eq!(decided(text).commands[0].score(), None);
}

#[test]
fn h15_pools_take_turns_and_every_node_is_judged() {
    let text = "type mid cpu=4 memory=16Gi price=2 zone=a\ntype dear cpu=4 memory=16Gi price=3 zone=a\n\
                pool a budget=0\npool b budget=1 need:instance-type=In:mid\n\
                node a1 is=dear zone=a pool=a\nbound p1 on=a1 cpu=1\nnode a2 is=dear zone=a pool=a\nbound p2 on=a2 cpu=1\n\
                node b1 is=mid zone=a pool=b\nbound p3 on=b1 cpu=1";
    let found = decided(text);
    assert_eq!(told(&found.commands[0]), "single-node: b1 | p3>a1");
    assert!(found.kept.iter().all(|kept| !kept.reasons.is_empty()), "{:?}", found.kept);
}

#[test]
fn a_move_whose_replacement_failed_is_tried_again_only_once_it_is_another() {
    let text = with("pool web\nnode n1 is=big zone=a pool=web\nbound p1 on=n1 cpu=3");
    let mut snapshot = super::world::world(&text);
    let command = tenon_engine::disruption::decide(&snapshot).commands.remove(0);
    snapshot.disruption.failed.insert("n1".to_owned(), command.fingerprint);
    let again = tenon_engine::disruption::decide(&snapshot);
    assert!(again.commands.is_empty());
    assert!(again.kept[0].reasons[0].1.to_string().contains("the replacement failed before"));
    let other = with(
        "type low cpu=4 memory=8Gi price=1.5 zone=a\npool web\nnode n1 is=big zone=a pool=web\nbound p1 on=n1 cpu=3",
    );
    let mut other = super::world::world(&other);
    other.disruption.failed.insert("n1".to_owned(), command.fingerprint);
    assert_eq!(tenon_engine::disruption::decide(&other).commands.len(), 1, "another instance type is another move");
}

#[test]
fn h8_pods_that_come_and_go_keep_a_node_until_it_has_been_quiet_and_a_broken_pool_disturbs_no_other() {
    let world = |quiet: u32, other: &str| {
        with(&format!(
            "pool web after=30s need:zone=In:a\npool other {other}\nnode n1 is=mid zone=a pool=web quiet={quiet}\nbound p1 on=n1 cpu=1\n\
             node n2 is=mid zone=a pool=web keep\nbound p2 on=n2 cpu=1\nnode n3 is=mid zone=a pool=other\nbound p3 on=n3 cpu=1"
        ))
    };
    let found = decided(&world(29, "empty"));
    assert!(found.commands.is_empty(), "{:?}", found.commands.iter().map(told).collect::<Vec<_>>());
    for other in ["empty", "not-ready=NoClass budget=0"] {
        let found = decided(&world(31, other));
        assert_eq!(told(&found.commands[0]), "single-node: n1 | p1>n2", "{other}");
        let third = found.kept.iter().find(|kept| kept.node == "n3").unwrap();
        let why = third.reasons[0].1.to_string();
        assert!(why.contains("NodePool other"), "{other}: {why}");
    }
}

#[test]
fn h11_what_a_pod_prefers_keeps_it_only_where_preferences_count() {
    let world = |option: &str| {
        format!(
            "{option}\ntype mid cpu=4 memory=16Gi price=2 zone=a,b\npool web\n\
             node n1 is=mid zone=b pool=web\nbound p1 on=n1 cpu=1 prefer:5:zone=In:b\n\
             node n2 is=mid zone=a pool=web keep\nbound p2 on=n2 cpu=1"
        )
    };
    assert!(kept("n1", &world("")).contains("is not less than"));
    expect(&world("option preferences=Ignore"), &["single-node: n1 | p1>n2"]);
}

#[test]
fn h11_min_values_that_are_only_met_as_far_as_possible_make_no_replacement() {
    let world = |policy: &str, least: u32| {
        with(&format!(
            "option min-values={policy}\npool web need:instance-type=Exists:+min={least}\nnode n1 is=big zone=a pool=web\n\
             bound p1 on=n1 cpu=3"
        ))
    };
    assert!(kept("n1", &world("BestEffort", 9)).contains("minValues"), "{}", kept("n1", &world("BestEffort", 9)));
    expect(&world("BestEffort", 1), &["single-node: n1 => web/mid/on-demand | p1>#0"]);
}

#[test]
fn h14_savings_of_nodes_of_several_pools_are_shared_by_what_the_nodes_cost() {
    let world = |policy: &str| {
        with(&format!(
            "pool a policy=Balanced\npool b {policy}\nnode n1 is=mid zone=a pool=a\nbound p1 on=n1 cpu=1\n\
             node n2 is=big zone=a pool=b\nbound p2 on=n2 cpu=1\n\
             node n3 is=mid zone=a pool=a keep\nbound p3 on=n3 cpu=1"
        ))
    };
    // Of the 6 that are saved, 2 are for the node of pool a: half of what the pool costs, for half of its disruption.
    let found = decided(&world(""));
    assert_eq!(told(&found.commands[0]), "multi-node: n2 n1 | p1>n3 p2>n3");
    assert_eq!((found.commands[0].savings, found.commands[0].score()), (6.0, Some(1.0)));
    let both = decided(&world("policy=Balanced"));
    assert_eq!(both.commands[0].score(), Some(1.0), "the lowest of both");
}

#[test]
fn h14_a_node_without_a_price_counts_nothing_and_is_worth_no_move_of_balanced() {
    let world = |policy: &str| {
        format!(
            "type odd cpu=4 memory=16Gi price=NaN zone=a\ntype mid cpu=4 memory=16Gi price=2 zone=a\n\
             pool web policy={policy} need:instance-type=In:mid\nnode n1 is=odd zone=a pool=web\nbound p1 on=n1 cpu=1\n\
             node n2 is=mid zone=a pool=web keep\nbound p2 on=n2 cpu=1"
        )
    };
    let found = kept("n1", &world("Balanced"));
    assert!(
        found.starts_with("would save 0 % of the cost of NodePool web for 50 %") && found.contains("score 0.00"),
        "{found}"
    );
    expect(&world("WhenEmptyOrUnderutilized"), &["single-node: n1 | p1>n2"]);
}

#[test]
fn a_pod_of_a_job_near_its_end_stays_where_another_pod_can_move() {
    let world = |job: &str| {
        format!(
            "type small cpu=4 memory=16Gi price=1 zone=a\npool web need:zone=In:a budget=1\n\
             node n1 is=small zone=a pool=web\nbound p1 on=n1 cpu=1 {job}\n\
             node n2 is=small zone=a pool=web\nbound p2 on=n2 cpu=1"
        )
    };
    expect(&world(""), &["single-node: n1 | p1>n2"]);
    expect(&world("job=600 started=0"), &["single-node: n1 | p1>n2"]);
    expect(&world("job=600 started=500"), &["single-node: n2 | p2>n1"]);
}
