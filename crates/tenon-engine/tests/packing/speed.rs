//! A plan does not become slow by becoming large: pods that ask for the same are thought about once.

use std::fmt::Write;

use crate::packing::cluster::{cluster, sound_plan};

#[test]
fn a_large_cluster_is_planned_whole() {
    let mut text = String::new();
    for n in 0..40 {
        writeln!(
            text,
            "type t{n} cpu={} memory={}Gi price={} zone=a,b,c capacity-type=spot,on-demand",
            1 + n,
            4 + n,
            1 + n
        )
        .unwrap();
    }
    for n in 0..100 {
        writeln!(text, "node n{n} cpu=2 memory=4Gi label:zone=a").unwrap();
    }
    for n in 0..600 {
        let zone = ["a", "b", "c"][n % 3];
        writeln!(text, "pod p{n} cpu={}m memory={}Mi need:zone=In:{zone}", 100 + n % 7 * 100, 64 + n % 11 * 64)
            .unwrap();
    }
    let plan = sound_plan(&cluster(&text));
    assert!(plan.unplaced.is_empty());
    let placed = plan.placements.len() + plan.new_nodes.iter().map(|node| node.pods.len()).sum::<usize>();
    assert_eq!(placed, 600);
}
