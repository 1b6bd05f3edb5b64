//! A move is decided a second time on a fresh snapshot.

use tenon_engine::disruption::{Rejection, confirm, decide};

use super::world::world;

const MID: &str = "type mid cpu=4 memory=16Gi price=2 zone=a\n";
const PAIR: &str = "type mid cpu=4 memory=16Gi price=2 zone=a\npool web\nnode n1 is=mid zone=a pool=web\nbound p1 on=n1 cpu=1\n\
                    node n2 is=mid zone=a pool=web keep\nbound p2 on=n2 cpu=1";

/// What becomes of the first move of one cluster in another.
fn later(before: &str, after: &str) -> Result<Vec<String>, Rejection> {
    let command = decide(&world(before)).commands.remove(0);
    let names = confirm(&command, &world(after))?;
    Ok(names.names().into_iter().map(str::to_owned).collect())
}

#[test]
fn h9_a_move_that_is_still_right_is_kept_as_it_was() {
    assert_eq!(later(PAIR, PAIR).unwrap(), ["n1"]);
}

#[test]
fn h9_what_happened_meanwhile_is_named() {
    for (from, to, reason) in [
        ("bound p1 on=n1 cpu=1", "bound p1 on=n1 cpu=1 keep=true", "churn"),
        ("bound p1 on=n1 cpu=1", "bound p1 on=n1 cpu=1 pdb=now", "churn"),
        ("n1 is=mid zone=a pool=web", "n1 is=mid zone=a pool=web nominated", "churn"),
        ("bound p1 on=n1 cpu=1", "", "churn"),
        ("pool web", "pool web budget=0", "budget"),
        ("bound p2 on=n2 cpu=1", "bound p2 on=n2 cpu=4", "scheduling"),
        ("bound p1 on=n1 cpu=1", "bound p1 on=n1 cpu=1\npod next cpu=4", "scheduling"),
    ] {
        // The pool is named in nodes, too: only its own line changes.
        let after = PAIR.replacen(from, to, 1);
        let rejection = later(PAIR, &after).unwrap_err();
        assert_eq!(rejection.reason(), reason, "{to}: {rejection:?}");
    }
}

#[test]
fn h9_a_replacement_may_be_only_what_would_be_planned_again() {
    let world = |more: &str| {
        format!(
            "type low cpu=2 memory=8Gi price=1 zone=a\n{MID}pool web\nnode n1 is=mid zone=a pool=web\nbound p1 on=n1 cpu=1{more}"
        )
    };
    assert_eq!(later(&world(""), &world("")).unwrap(), ["n1"]);
    let grown = world("").replace("cpu=2 memory=8Gi", "cpu=500m memory=8Gi");
    assert_eq!(later(&world(""), &grown), Err(Rejection::Scheduling { why: None }));
}

#[test]
fn h9_of_empty_nodes_those_that_are_still_empty_go() {
    let world = |pod: &str, budget: &str| {
        format!("{MID}pool web {budget}\nnode n1 is=mid zone=a pool=web\nnode n2 is=mid zone=a pool=web\n{pod}")
    };
    assert_eq!(later(&world("", ""), &world("", "")).unwrap(), ["n1", "n2"]);
    assert_eq!(later(&world("", ""), &world("bound p on=n1 cpu=1", "")).unwrap(), ["n2"]);
    assert_eq!(later(&world("", ""), &world("", "budget=1")).unwrap(), ["n1"]);
    assert_eq!(later(&world("", ""), &world("", "budget=0")).unwrap_err().reason(), "budget");
    let both = "bound p on=n1 cpu=1\nbound q on=n2 cpu=1";
    assert_eq!(later(&world("", ""), &world(both, "")).unwrap_err().reason(), "churn");
}
