//! Daemons on new nodes (C7). Those on nodes that are there are in `existing.rs`.

use tenon_model::Quantity;

use crate::packing::cluster::{cluster, expect, sound_plan};

const SIZES: &str = "type small cpu=2 memory=4Gi price=1\ntype large cpu=8 memory=16Gi price=4";

/// A daemon of two cores takes all of the small size, so a pod beside it needs the large one.
#[track_caller]
fn expect_counted(pool: &str, daemon: &str) {
    expect(
        &format!("{SIZES}\npool default {pool}\ndaemon d cpu=2 {daemon}\npod p cpu=1 tolerate=own"),
        &["default/large: p"],
    );
}

#[track_caller]
fn expect_not_counted(pool: &str, daemon: &str) {
    expect(
        &format!("{SIZES}\npool default {pool}\ndaemon d cpu=2 {daemon}\npod p cpu=1 tolerate=own"),
        &["default/small: p"],
    );
}

#[test]
fn a_daemon_is_counted_once_on_every_new_node() {
    expect(&format!("{SIZES}\ndaemon d cpu=1\npod p cpu=1"), &["default/small: p"]);
    expect(&format!("{SIZES}\ndaemon d cpu=1\npod p cpu=1500m"), &["default/large: p"]);
    expect(&format!("{SIZES}\ndaemon d cpu=1\npod p cpu=500m\npod q cpu=500m"), &["default/small: p q"]);
    let pods = "pod p cpu=6\npod q cpu=6";
    expect(&format!("{SIZES}\ndaemon d cpu=2\n{pods}"), &["default/large: p", "default/large: q"]);
}

#[test]
fn several_daemons_add_up() {
    expect(&format!("{SIZES}\ndaemon d cpu=500m\ndaemon e cpu=500m\npod p cpu=1"), &["default/small: p"]);
    expect(&format!("{SIZES}\ndaemon d cpu=500m\ndaemon e cpu=501m\npod p cpu=1"), &["default/large: p"]);
}

#[test]
fn a_daemons_host_port_is_taken_from_pods() {
    expect(&format!("{SIZES}\ndaemon d cpu=1m port=80\npod p cpu=1 port=80"), &["p waits"]);
    expect(&format!("{SIZES}\ndaemon d cpu=1m port=80\npod p cpu=1 port=81"), &["default/small: p"]);
}

#[test]
fn a_daemons_host_port_is_free_on_sizes_it_does_not_run_on() {
    let daemon = "daemon d cpu=1m port=80 need:instance-type=In:small";
    expect(&format!("{SIZES}\n{daemon}\npod p cpu=1 port=80"), &["default/large: p"]);
}

#[test]
fn a_daemons_host_port_is_free_in_pools_it_does_not_run_in() {
    let daemon = "daemon d cpu=1m port=80";
    let pools = "pool a weight=9\npool b taint=own:NoSchedule";
    expect(&format!("{SIZES}\n{pools}\n{daemon}\npod p cpu=1 port=80 tolerate=own"), &["b/small: p"]);
}

#[test]
fn a_startup_taint_does_not_keep_a_daemon_off() {
    expect_counted("startup=boot:NoSchedule", "");
    expect_counted("startup=boot:NoExecute", "");
}

#[test]
fn where_daemons_leave_no_room_nothing_is_made() {
    expect(&format!("{SIZES}\ndaemon d cpu=9\npod p cpu=1"), &["p waits"]);
    expect(&format!("{SIZES}\ndaemon d cpu=8\npod p cpu=1m"), &["p waits"]);
}

#[test]
fn a_daemon_that_does_not_tolerate_the_pools_taint_is_not_counted() {
    expect_not_counted("taint=own:NoSchedule", "");
    expect_not_counted("taint=own:NoExecute", "");
    expect_counted("taint=own:NoSchedule", "tolerate=own");
}

#[test]
fn a_daemon_with_a_selector_that_no_node_can_meet_is_not_counted() {
    expect_not_counted("", "need:team=In:red");
    expect_not_counted("", "need:team=Exists");
    expect_not_counted("", "need:arch=In:arm64");
    expect_not_counted("", "need:nodepool=In:other");
}

#[test]
fn a_daemon_that_selects_a_label_of_the_pool_is_counted() {
    expect_counted("label:team=red", "need:team=In:red");
    expect_counted("need:team=In:red,blue", "need:team=In:blue");
    expect_not_counted("label:team=red", "need:team=In:blue");
}

#[test]
fn a_daemon_is_counted_on_the_sizes_it_runs_on_and_no_others() {
    expect_not_counted("", "need:instance-type=In:large");
    expect_counted("", "need:instance-type=In:small");
    // On the large size there is no room beside it, and on the small one it does not run.
    let daemon = "daemon d cpu=8 need:instance-type=In:large";
    expect(&format!("{SIZES}\n{daemon}\npod p cpu=1"), &["default/small: p"]);
    expect(&format!("{SIZES}\n{daemon}\npod p cpu=3"), &["p waits"]);
}

#[test]
fn a_daemon_that_wants_an_undefined_label_not_to_be_something_is_counted() {
    expect_counted("", "need:team=NotIn:blue");
    expect_counted("", "need:team=DoesNotExist");
}

#[test]
fn a_daemon_that_asks_for_what_a_node_is_once_it_is_up_is_counted() {
    expect_counted("", "need:karpenter.sh/initialized=In:true");
    expect_counted("", "need:karpenter.sh/registered=Exists");
}

#[test]
fn a_daemon_is_counted_if_any_of_its_terms_suits() {
    expect_counted("", "or:team=In:red or:arch=In:amd64");
    expect_not_counted("", "or:team=In:red or:arch=In:arm64");
}

#[test]
fn a_daemons_terms_stay_whole_for_every_size_and_pool() {
    let daemon = "daemon d cpu=2 or:instance-type=In:small or:instance-type=In:large";
    expect(&format!("{SIZES}\n{daemon}\npod p cpu=1"), &["default/large: p"]);
    let plan = sound_plan(&cluster(&format!("{SIZES}\npool a\npool b\n{daemon}\npod p cpu=1")));
    assert_eq!(plan.new_nodes[0].requests.get("cpu"), Quantity::whole(3));
}

#[test]
fn a_daemons_wishes_do_not_keep_it_off() {
    expect_counted("", "prefer:9:team=In:red");
    expect_counted("", "prefer:9:arch=In:arm64");
}

#[test]
fn a_taint_that_only_advises_does_not_keep_a_daemon_off() {
    expect_counted("taint=own:PreferNoSchedule", "");
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
