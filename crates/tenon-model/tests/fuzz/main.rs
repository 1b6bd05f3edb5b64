//! Every parser of the model, over a small corpus and ten thousand mutations of it.

mod bodies;

use testbed::mutation::Corpus;

fn smoke(corpus: &str, seed: u64, body: fn(&str)) {
    Corpus::of_lines(corpus).show(seed, |text| {
        body(text);
        true
    });
}

#[test]
fn quantities_survive_anything() {
    smoke(include_str!("corpus/quantity.txt"), 1, bodies::quantity);
}

#[test]
fn durations_survive_anything() {
    smoke(include_str!("corpus/duration.txt"), 2, bodies::duration);
}

#[test]
fn schedules_survive_anything() {
    smoke(include_str!("corpus/schedule.txt"), 3, bodies::schedule);
}

#[test]
fn shares_of_nodes_survive_anything() {
    smoke(include_str!("corpus/node_share.txt"), 4, bodies::node_share);
}

#[test]
fn labels_survive_anything() {
    smoke(include_str!("corpus/label.txt"), 5, bodies::label);
}

#[test]
fn provider_ids_survive_anything() {
    smoke(include_str!("corpus/provider_id.txt"), 6, bodies::provider_id);
}

#[test]
fn sizes_of_proxmox_survive_anything() {
    smoke(include_str!("corpus/pve_size.txt"), 7, bodies::pve_size);
}

#[test]
fn names_of_proxmox_survive_anything() {
    smoke(include_str!("corpus/pve_name.txt"), 8, bodies::pve_name);
}

#[test]
fn demands_survive_anything() {
    smoke(include_str!("corpus/demand.txt"), 9, bodies::demand);
}
