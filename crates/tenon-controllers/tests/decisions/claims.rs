//! What a snapshot counts, and what a claim says.

use serde_json::json;
use tenon_api::{NodeClaim, launch_record, names};
use tenon_controllers::provision::{ClaimError, Gathered, to_claims, to_snapshot};
use tenon_engine::plan;
use tenon_model::resources::MEMORY;
use tenon_model::{InstanceType, LaunchRecord, Place, Quantity, Seconds, VmIdRange};

use crate::objects::{estate, guest, spec, template};

/// A claim for a 16 GiB VM on a host, with its launch written in.
fn claim(vmid: u32, host: &str) -> NodeClaim {
    let place = Place { region: "lab".to_owned(), host: host.parse().unwrap() };
    let record = LaunchRecord::new(place, vmid.try_into().unwrap(), "9001".parse().unwrap(), Seconds(0));
    spec(json!({
        "metadata": {
            "name": format!("claim-{vmid}"),
            "labels": { names::LABEL_INSTANCE_TYPE: "s1.4VCPU-16GB", names::LABEL_NODEPOOL: "default" },
            "annotations": { names::ANNOTATION_LAUNCH: launch_record::write(&record) },
        },
        "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "default" } },
    }))
}

fn free_gib(gathered: &Gathered, host: &str) -> i64 {
    let snapshot = to_snapshot(gathered, &InstanceType::built_in());
    snapshot.hosts.iter().find(|found| found.place.host.as_str() == host).unwrap().free.get(MEMORY).value() >> 30
}

#[test]
fn a_host_has_left_what_its_guests_and_open_claims_do_not_hold() {
    let with = |guests, claims| Gathered { estate: estate(guests), claims, ..Gathered::default() };
    assert_eq!(free_gib(&with(vec![guest(100, "pve1", 8), template(9001, "pve1", "t", "")], vec![]), "pve1"), 56);
    // Not made yet: the order counts.
    assert_eq!(free_gib(&with(vec![], vec![claim(20_000, "pve1")]), "pve1"), 48);
    assert_eq!(free_gib(&with(vec![], vec![claim(20_000, "pve1")]), "pve2"), 64);
    // Just made, still with its template's size, or none: the order counts, once.
    assert_eq!(free_gib(&with(vec![guest(20_000, "pve1", 1)], vec![claim(20_000, "pve1")]), "pve1"), 48);
    let fresh = tenon_pve::GuestRow { maxmem: None, maxcpu: None, ..guest(20_000, "pve1", 1) };
    assert_eq!(free_gib(&with(vec![fresh], vec![claim(20_000, "pve1")]), "pve1"), 48);
    // Moved: it counts where it is.
    let moved = with(vec![guest(20_000, "pve2", 16)], vec![claim(20_000, "pve1")]);
    assert_eq!((free_gib(&moved, "pve1"), free_gib(&moved, "pve2")), (64, 48));
}

fn ready_world(pods: usize) -> Gathered {
    let pod = |index: usize| {
        spec(json!({
            "metadata": { "namespace": "n", "name": format!("p{index}"), "uid": format!("u{index}") },
            "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "14", "memory": "4Gi" } } }] },
            "status": { "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] },
        }))
    };
    let ready = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    Gathered {
        pods: (0..pods).map(pod).collect(),
        pools: vec![spec(json!({
            "metadata": { "name": "default", "uid": "pool-uid" },
            "spec": { "template": {
                "metadata": { "labels": { "team": "red" } },
                "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "default" } },
            } },
            "status": { "conditions": ready },
        }))],
        classes: vec![spec(json!({
            "metadata": { "name": "default" },
            "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } },
            "status": { "selectedZones": ["lab/pve1/9001", "lab/pve2/9002"] },
        }))],
        estate: estate(vec![guest(20_000, "pve1", 1)]),
        ..Gathered::default()
    }
}

#[test]
fn each_claim_has_an_id_nobody_has_and_the_template_of_its_host() {
    let gathered = ready_world(1);
    let plan = plan(&to_snapshot(&gathered, &InstanceType::built_in()));
    let claims = to_claims(&plan, &gathered, VmIdRange::default(), Seconds(7));
    let claim = claims[0].as_ref().unwrap();
    let labels = claim.metadata.labels.as_ref().unwrap();
    let record = launch_record::read(&claim.metadata.annotations.as_ref().unwrap()[names::ANNOTATION_LAUNCH]).unwrap();
    assert_eq!((record.vmid.get(), record.template.get(), record.place.host.as_str()), (20_001, 9002, "pve2"));
    assert_eq!((labels["team"].as_str(), labels[names::LABEL_ZONE].as_str()), ("red", "pve2"));
    assert_eq!(claim.metadata.owner_references.as_ref().unwrap()[0].uid, "pool-uid");
    let requests = claim.spec.resources.as_ref().unwrap().requests.as_ref().unwrap();
    assert_eq!(requests["cpu"], k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::String("14".to_owned()));
}

#[test]
fn when_the_ids_are_used_up_the_next_claim_says_so() {
    let gathered = ready_world(2);
    let mut snapshot = to_snapshot(&gathered, &InstanceType::built_in());
    snapshot.hosts.iter_mut().for_each(|host| host.free = host.free.clone().with("cpu", Quantity::whole(16)));
    let plan = plan(&snapshot);
    assert_eq!(plan.new_nodes.len(), 2);
    let one = VmIdRange::new("20000".parse().unwrap(), "20001".parse().unwrap()).unwrap();
    let claims = to_claims(&plan, &gathered, one, Seconds(7));
    assert!(claims[0].is_ok());
    assert_eq!(claims[1].as_ref().unwrap_err(), &ClaimError::NoId("lab".to_owned()));
}

#[test]
fn pods_that_are_bound_promised_or_daemons_are_not_planned_for() {
    let mut gathered = ready_world(4);
    gathered.pods[0].spec.as_mut().unwrap().node_name = Some("n1".to_owned());
    gathered.pods[1].status.as_mut().unwrap().nominated_node_name = Some("n1".to_owned());
    gathered.pods[2].metadata.owner_references =
        Some(spec(json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d" }])));
    let snapshot = to_snapshot(&gathered, &InstanceType::built_in());
    assert_eq!(snapshot.pods.iter().map(|pod| pod.key.name.as_str()).collect::<Vec<_>>(), ["p3"]);
}
