//! Objects and files as they may come: over a small corpus and ten thousand mutations of it, nothing panics, and what is
//! read makes sense.

use tenon_api::kube_objects::Pod as KubePod;
use tenon_api::protobuf::{PodList, PodReader};
use tenon_api::{instance_types_file, launch_record, pod};
use tenon_model::Quantity;
use tenon_model::resources::PODS;
use testbed::mutation::Corpus;

/// How many texts the body could read; a corpus that no mutation leaves readable shows nothing.
fn smoke(corpus: &str, seed: u64, body: fn(&str) -> bool) {
    let shown = Corpus::of_lines(corpus).show(seed, body);
    assert!(shown.readable > shown.texts / 100, "{shown:?}");
}

fn is_pod(text: &str) -> bool {
    let Ok(pod) = serde_json::from_str::<KubePod>(text) else { return false };
    let model = pod::to_model(&pod);
    assert!(!model.alternatives.is_empty(), "{text}");
    assert_eq!(model.requests.get(PODS), Quantity::whole(1), "{text}");
    let _ = (pod::faults(&pod), model.all_requirements(), model.strict_requirements());
    true
}

fn is_record(text: &str) -> bool {
    let Ok(record) = launch_record::read(text) else { return false };
    assert_eq!(launch_record::read(&launch_record::write(&record)), Ok(record), "{text}");
    true
}

fn is_instance_types(text: &str) -> bool {
    let Ok(types) = instance_types_file::read(text) else { return false };
    let _: Vec<_> = types.iter().map(|size| (size.allocatable(), size.price())).collect();
    true
}

/// The bytes of a message, two digits each. Whatever is no digit is passed over, so that most mutations are bytes again.
fn is_pod_list(text: &str) -> bool {
    let digits: Vec<u8> = text.chars().filter_map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    match PodReader::default().list(&bytes) {
        Ok(PodList::Page(page)) => page.pods.iter().for_each(|read| drop(pod::to_model(read))),
        Ok(PodList::Refusal(json)) => drop(serde_json::from_slice::<serde_json::Value>(&json).unwrap()),
        Err(_) => return false,
    }
    true
}

#[test]
fn lists_in_the_compact_format_survive_anything() {
    smoke(include_str!("corpus/pod_list.txt"), 14, is_pod_list);
}

#[test]
fn pods_survive_anything() {
    smoke(include_str!("corpus/pod.txt"), 11, is_pod);
}

#[test]
fn launch_records_survive_anything() {
    smoke(include_str!("corpus/record.txt"), 12, is_record);
}

#[test]
fn files_of_instance_types_survive_anything() {
    smoke(include_str!("corpus/instance_types.txt"), 13, is_instance_types);
}
