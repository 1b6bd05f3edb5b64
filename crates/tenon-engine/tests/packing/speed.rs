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

/// Pods that differ in what they ask for and where, and forty sizes to choose from.
fn mixed(pods: usize) -> String {
    let mut text = String::new();
    for n in 1..=40 {
        writeln!(text, "type t{n} cpu={n} memory={}Gi pods={} price={n} zone=a,b,c", 2 * n, 10 * n).unwrap();
    }
    writeln!(text, "pool default").unwrap();
    for n in 0..pods {
        let wish = ["", "need:zone=In:a", "need:zone=In:b", "need:zone=NotIn:c", ""][n % 5];
        let (cpu, memory) = ([100, 250, 500, 1000, 1500][n * 7 % 5], [100, 256, 512, 1024, 2048, 4096][n * 11 % 6]);
        writeln!(text, "pod p{n} cpu={cpu}m memory={memory}Mi {wish}").unwrap();
    }
    text
}

/// The same sizes, and pods of seven apps, of which four in seven are spread or want to be with others.
fn spread_out(pods: usize) -> String {
    let mut text = String::new();
    for n in 1..=40 {
        writeln!(text, "type t{n} cpu={n} memory={}Gi pods={} price={n} zone=a,b,c", 2 * n, 10 * n).unwrap();
    }
    writeln!(text, "pool default").unwrap();
    for n in 0..pods {
        let app = n * 5 % 7;
        let wish = match n % 7 {
            0 => format!("spread=zone:1:app=l{app}"),
            1 => format!("spread=hostname:1:app=l{app}"),
            2 => format!("with=hostname:app=l{app}"),
            3 => format!("with=zone:app=l{app}"),
            _ => String::new(),
        };
        let (cpu, memory) = ([100, 250, 500, 1000, 1500][n * 7 % 5], [100, 256, 512, 1024, 2048, 4096][n * 11 % 6]);
        writeln!(text, "pod p{n} cpu={cpu}m memory={memory}Mi label:app=l{app} {wish}").unwrap();
    }
    text
}

/// How the work for pods grows from 1,000 to 20,000, and the work for 20,000.
fn growth(pods: fn(usize) -> String) -> (f64, tenon_engine::Effort) {
    let work = |count| tenon_engine::Engine::of(&cluster(&pods(count))).measure(false).1;
    let (few, many) = (work(1_000), work(20_000));
    let slope = (many.judgements as f64 / few.judgements as f64).log2() / 20_f64.log2();
    (slope, many)
}

/// Asking a node costs most; passing one by costs next to nothing, and its number for each pod is bounded.
#[test]
fn twenty_times_as_many_pods_take_little_more_than_twenty_times_the_work() {
    let (slope, many) = growth(mixed);
    assert!(slope <= 1.2, "the slope is {slope:.2}");
    assert!(many.passed_by <= 64 * 20_000, "{many:?}");
}

#[test]
fn pods_with_constraints_on_others_take_little_more_than_twenty_times_the_work_too() {
    let (slope, many) = growth(spread_out);
    assert!(slope <= 1.2, "the slope is {slope:.2}");
    assert!(many.passed_by <= 64 * 20_000, "{many:?}");
}
