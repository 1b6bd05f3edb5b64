//! Daemons on new nodes (C7).

use tenon_model::Quantity;

use crate::cluster::{cluster, expect, sound_plan};

const SIZES: &str = "type small cpu=2 memory=4Gi price=1\ntype large cpu=8 memory=16Gi price=4";

#[test]
fn daemons_are_counted_on_every_new_node_they_would_run_on() {
    expect(&format!("{SIZES}\ndaemon d cpu=1\npod p cpu=1"), &["default/small: p"]);
    expect(&format!("{SIZES}\ndaemon d cpu=1\npod p cpu=1500m"), &["default/large: p"]);
    expect(&format!("{SIZES}\ndaemon d cpu=9\npod p cpu=1"), &["p waits"]);
    // Once for a node, not once for each pod.
    expect(&format!("{SIZES}\ndaemon d cpu=1\npod p cpu=500m\npod q cpu=500m"), &["default/small: p q"]);
}

#[test]
fn daemons_that_do_not_run_there_are_not_counted() {
    for daemon in [
        "daemon d cpu=2 need:team=In:red",
        "daemon d cpu=2 need:arch=In:arm64",
        "daemon d cpu=2 need:team=Exists",
        "daemon d cpu=2 need:instance-type=In:large",
    ] {
        expect(&format!("{SIZES}\n{daemon}\npod p cpu=1"), &["default/small: p"]);
    }
    let tainted = "pool default taint=x:NoSchedule";
    expect(&format!("{SIZES}\n{tainted}\ndaemon d cpu=2\npod p cpu=1 tolerate=x"), &["default/small: p"]);
}

#[test]
fn daemons_that_ask_for_what_the_node_will_be_are_counted() {
    for daemon in [
        "daemon d cpu=2 need:team=NotIn:blue",
        "daemon d cpu=2 need:karpenter.sh/initialized=In:true",
        "daemon d cpu=2 need:karpenter.sh/registered=Exists",
        "daemon d cpu=2 or:team=In:red or:arch=In:amd64",
        // Wishes do not keep it away.
        "daemon d cpu=2 prefer:9:team=In:red",
    ] {
        expect(&format!("{SIZES}\n{daemon}\npod p cpu=1"), &["default/large: p"]);
    }
    let pool = "pool default label:team=red";
    expect(&format!("{SIZES}\n{pool}\ndaemon d cpu=2 need:team=In:red\npod p cpu=1"), &["default/large: p"]);
}

#[test]
fn taints_that_pass_or_only_advise_do_not_keep_daemons_off() {
    for taint in ["startup=boot:NoSchedule", "taint=x:PreferNoSchedule"] {
        expect(&format!("{SIZES}\npool default {taint}\ndaemon d cpu=2\npod p cpu=1"), &["default/large: p"]);
    }
}

#[test]
fn a_daemons_terms_stay_whole_for_every_size_and_pool() {
    let daemon = "daemon d cpu=2 or:instance-type=In:small or:instance-type=In:large";
    expect(&format!("{SIZES}\n{daemon}\npod p cpu=1"), &["default/large: p"]);
    let plan = sound_plan(&cluster(&format!("{SIZES}\npool a\npool b\n{daemon}\npod p cpu=1")));
    assert_eq!(plan.new_nodes[0].requests.get("cpu"), Quantity::whole(3));
}

#[test]
fn a_new_node_asks_for_what_daemons_need_on_every_size_it_may_become() {
    let text = format!("{SIZES}\ndaemon all cpu=100m\ndaemon big cpu=500m need:instance-type=In:large\npod p cpu=1");
    let plan = sound_plan(&cluster(&text));
    assert_eq!(plan.new_nodes[0].requests.get("cpu"), Quantity::milli(1100));
    let text = format!("{SIZES}\ndaemon big cpu=500m need:instance-type=In:large\npod p cpu=1");
    let plan = sound_plan(&cluster(&text));
    assert_eq!(plan.new_nodes[0].requests.get("cpu"), Quantity::whole(1));
}

#[test]
fn a_daemons_port_is_taken_where_it_runs() {
    let two = "type small cpu=2 memory=4Gi price=1\ntype large cpu=8 memory=16Gi price=4";
    expect(&format!("{two}\ndaemon d cpu=1m port=80\npod p cpu=1 port=80"), &["p waits"]);
    expect(
        &format!("{two}\ndaemon d cpu=1m port=80 need:instance-type=In:small\npod p cpu=1 port=80"),
        &["default/large: p"],
    );
}
