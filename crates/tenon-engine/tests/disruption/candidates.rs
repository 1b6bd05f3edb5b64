//! Which nodes may be disrupted at all, and in which order.

use super::world::{decided, expect, kept, told};

/// Two nodes of which one is enough; `node` and `pod` are more words for the first and its pod.
fn pair(node: &str, pod: &str) -> String {
    format!(
        "type small cpu=4 memory=16Gi price=1 zone=a\npool web need:zone=In:a\n\
         node n1 is=small zone=a pool=web {node}\nbound p1 on=n1 cpu=1 {pod}\n\
         node n2 is=small zone=a pool=web keep\nbound p2 on=n2 cpu=1"
    )
}

#[test]
fn h1_a_node_whose_pods_fit_elsewhere_is_deleted() {
    expect(&pair("", ""), &["single-node: n1 | p1>n2"]);
}

#[test]
fn h1_each_state_of_a_node_that_forbids_disruption_is_named() {
    for (node, why) in [
        ("in-progress", "already being disrupted"),
        ("rebooting", "rebooting"),
        ("deleting", "already being deleted"),
        ("foreign", "created by another controller"),
        ("uninitialized", "not initialized"),
        ("nominated", "pending pods are nominated"),
        ("keep", "Node n1 has karpenter.sh/do-not-disrupt"),
        ("keep-claim", "NodeClaim claim-n1 has karpenter.sh/do-not-disrupt"),
    ] {
        let found = kept("n1", &pair(node, ""));
        assert!(found.contains(why), "{node}: {found}");
    }
    let gone = pair("", "").replace("pool=web", "pool=old");
    assert!(kept("n1", &gone).contains("NodePool old does not exist"), "{}", kept("n1", &gone));
    let unmanaged = pair("", "").replace("n1 is=small zone=a pool=web", "n1 is=small zone=a");
    assert!(decided(&unmanaged).kept.iter().all(|kept| kept.node != "n1"), "a node without a NodeClaim is not ours");
}

#[test]
fn h1_each_pod_that_forbids_disruption_is_named() {
    for (pod, why) in [
        ("keep=true", "pod default/p1 has karpenter.sh/do-not-disrupt"),
        ("keep=5m started=60", "pod default/p1 has karpenter.sh/do-not-disrupt"),
        ("keep=5m", "pod default/p1 has karpenter.sh/do-not-disrupt"),
        ("owner=daemon keep=true", "pod default/p1 has karpenter.sh/do-not-disrupt"),
        ("owner=mirror keep=true", "pod default/p1 has karpenter.sh/do-not-disrupt"),
        ("pdb=now", "PodDisruptionBudget default/web does not allow to evict pod default/p1 now"),
        ("pdb=always", "PodDisruptionBudget default/web never allows to evict pod default/p1"),
        ("pdb=several", "no pod that several choose"),
    ] {
        let found = kept("n1", &pair("", pod));
        assert!(found.contains(why), "{pod}: {found}");
    }
    for pod in ["keep=5m started=301", "keep=false", "keep=1x"] {
        expect(&pair("", pod), &["single-node: n1 | p1>n2"]);
    }
    let ended = decided(&pair("", "keep=true terminating"));
    assert_eq!(told(&ended.commands[0]), "emptiness: n1", "a terminating pod protects nothing");
}

#[test]
fn h1_a_pool_that_must_not_or_cannot_be_consolidated_is_named() {
    for (pool, why) in [
        ("policy=WhenEmpty", "consolidationPolicy WhenEmpty"),
        ("after=Never", "consolidateAfter: Never"),
        ("after=20m", "consolidateAfter has not passed"),
        ("after=soon", "\"soon\" on NodePool web is not a duration"),
        ("budget=0", "spec.disruption.budgets[0] of NodePool web (0) allows 0 of 2 nodes"),
        ("budget=0@Underutilized", "for Underutilized"),
        ("budget=x", "spec.disruption.budgets[0]"),
        ("replicas=2", ""),
        ("empty", ""),
    ] {
        let text = pair("", "").replace("pool web", &format!("pool web {pool}"));
        let found = kept("n1", &text);
        assert!(found.contains(why), "{pool}: {found}");
    }
    expect(&pair("", "").replace("pool web", "pool web budget=0@Drifted"), &["single-node: n1 | p1>n2"]);
}

#[test]
fn h1_a_closed_budget_says_when_the_next_window_opens() {
    let text = pair("", "").replace("pool web", "pool web budget=0@@0_8_*_*_*;10h budget=50%");
    let found = kept("n1", &text);
    assert!(found.ends_with("the next window opens at 2026-03-11T18:00:00Z"), "{found}");
}

#[test]
fn h1_labels_that_say_what_a_node_costs_are_needed() {
    let text = pair("", "").replace("n1 is=small zone=a", "n1 is=small");
    assert!(kept("n1", &text).contains("topology.kubernetes.io/zone"));
    let text = pair("", "").replace("n1 is=small", "n1 cpu=4 memory=16Gi label:instance-type=old");
    assert!(kept("n1", &text).contains("does not offer its instance type any more"));
}

#[test]
fn h2_the_node_that_saves_most_for_what_moving_its_pods_costs_goes_first() {
    let text = |worth: &str| {
        format!(
            "type small cpu=4 memory=16Gi price=1 zone=a\npool web need:zone=In:a budget=1\n\
             node n1 is=small zone=a pool=web\nbound p1 on=n1 cpu=1 {worth}\n\
             node n2 is=small zone=a pool=web\nbound p2 on=n2 cpu=1"
        )
    };
    expect(&text(""), &["single-node: n1 | p1>n2"]);
    expect(&text("cost=67108864"), &["single-node: n2 | p2>n1"]);
    expect(&text("priority=1000"), &["single-node: n2 | p2>n1"]);
}

#[test]
fn h3_nodes_that_are_going_or_not_ready_use_budgets_up_and_those_that_never_came_up_do_not_count() {
    let text = |more: &str| format!("{}\npool spare\n{more}", pair("", "").replace("pool web", "pool web budget=1"));
    let third = "node n3 is=small zone=a pool=web keep";
    expect(&text(third), &["single-node: n1 | p1>n2"]);
    for state in ["deleting", "not-ready", "in-progress"] {
        let found = kept("n1", &text(&format!("{third} {state}")));
        assert!(found.contains("allows 1 of 3 nodes") && found.contains("and 1 is disrupted"), "{state}: {found}");
    }
    let found = decided(&text(&format!("{third} uninitialized not-ready")));
    assert_eq!(found.pools[1].pool, "web");
    assert_eq!((found.pools[1].total, found.pools[1].disrupting), (2, 0), "{:?}", found.pools);
    let other = "node n3 is=small zone=a pool=spare not-ready";
    assert!(!decided(&text(other)).commands.is_empty(), "another pool has a budget of its own");
}

#[test]
fn h1_a_node_of_an_instance_type_without_zones_has_a_price_and_stays_for_want_of_the_label() {
    let text = pair("", "").replace("price=1 zone=a", "price=1").replace("need:zone=In:a", "").replace(" zone=a", "");
    let mut snapshot = super::world::world(&text);
    for pool in &mut snapshot.pools {
        let pool = std::sync::Arc::make_mut(pool);
        let mut sizes = pool.catalog.types().to_vec();
        for way in sizes.iter_mut().flat_map(|size| &mut size.offerings) {
            way.requirements.remove("topology.kubernetes.io/zone");
        }
        pool.catalog = std::sync::Arc::new(tenon_model::Catalog::new(sizes));
    }
    let prices = tenon_engine::disruption::prices(&snapshot);
    assert_eq!(prices, [Some(tenon_model::Price::new(1.0)); 2]);
    let found = tenon_engine::disruption::decide(&snapshot);
    assert!(found.commands.is_empty());
    assert!(found.kept[0].reasons[0].1.to_string().contains("the node has no label topology.kubernetes.io/zone"));
}
