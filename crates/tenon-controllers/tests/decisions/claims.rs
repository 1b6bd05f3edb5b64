//! What a snapshot counts, and what a claim says.

use std::sync::Arc;
use tenon_api::kube_objects::{Node, Pod};

use serde_json::json;
use tenon_api::plan_options::PlanOptions;
use tenon_api::{NodeClaim, hash_stamp, launch_record, names};
use tenon_controllers::provision::{ClaimError, Gathered, LaunchSpot, decide, to_claims, to_snapshot};
use tenon_controllers::status::RegionTrouble;
use tenon_engine::{LaunchRefusal, plan};
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{
    CapacityRules, InstanceType, LaunchRecord, MinValuesPolicy, Options, Place, PreferencePolicy, Quantity,
    RegionCapacity, Seconds, VmIdRange, VmIds,
};

use crate::decisions::objects::{estate, guest, spec, template};

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
        "spec": { "requirements": [], "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" } },
    }))
}

fn free_gib(gathered: &Gathered, host: &str) -> i64 {
    let snapshot = to_snapshot(gathered, &InstanceType::built_in());
    snapshot.hosts.iter().find(|found| found.place.host.as_str() == host).unwrap().free.get(MEMORY).value() >> 30
}

#[test]
fn a_host_has_left_what_its_guests_and_open_claims_do_not_hold() {
    let with = |guests, claims: Vec<NodeClaim>| {
        let claims = claims.into_iter().map(Arc::new).collect();
        Gathered { estate: estate(guests), claims, ..all_of_the_memory() }
    };
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

#[test]
fn a_host_keeps_memory_for_itself_and_shares_threads_as_far_as_it_may() {
    let mut gathered = Gathered { estate: estate(vec![]), ..Gathered::default() };
    assert_eq!(free_gib(&gathered, "pve1"), 63, "1 GiB is kept");
    let own = CapacityRules { cpu_overcommit_percent: 300, memory_reserve_bytes: 8 << 30, excluded: false };
    let away = CapacityRules { excluded: true, ..CapacityRules::default() };
    let hosts = [("pve1".parse().unwrap(), own), ("pve2".parse().unwrap(), away)].into();
    gathered.capacity_rules = [("lab".to_owned(), RegionCapacity { hosts, ..RegionCapacity::default() })].into();
    let snapshot = to_snapshot(&gathered, &InstanceType::built_in());
    let host = |name: &str| snapshot.hosts.iter().find(|host| host.place.host.as_str() == name).unwrap();
    assert_eq!((free_gib(&gathered, "pve1"), host("pve1").free.get(CPU).value()), (56, 48));
    assert_eq!(host("pve2").closed.as_deref(), Some("the host is excluded in the cloud config"));
}

#[test]
fn guests_that_are_stopped_and_do_not_start_with_their_host_take_nothing() {
    let mut gathered =
        Gathered { estate: estate(vec![guest(100, "pve1", 8), guest(101, "pve1", 4)]), ..all_of_the_memory() };
    assert_eq!(free_gib(&gathered, "pve1"), 52);
    gathered.facts.idle = [("lab".to_owned(), "100".parse().unwrap())].into();
    assert_eq!(free_gib(&gathered, "pve1"), 60);
}

#[test]
fn a_host_in_maintenance_mode_takes_no_vm() {
    let mut gathered = Gathered { estate: estate(vec![]), ..Gathered::default() };
    let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
    gathered.facts.ha_states = [(place, "maintenance".to_owned())].into();
    let snapshot = to_snapshot(&gathered, &InstanceType::built_in());
    let closed: Vec<Option<&str>> = snapshot.hosts.iter().map(|host| host.closed.as_deref()).collect();
    assert_eq!(closed, [Some("the host is in maintenance mode"), None]);
}

/// A world whose hosts keep nothing for themselves.
fn all_of_the_memory() -> Gathered {
    let standard = CapacityRules { memory_reserve_bytes: 0, ..CapacityRules::default() };
    let rules = RegionCapacity { standard, ..RegionCapacity::default() };
    Gathered { capacity_rules: [("lab".to_owned(), rules)].into(), ..Gathered::default() }
}

/// A pool that is ready, with its class and two hosts, and so many pods of 14 cores that wait.
pub(crate) fn ready_world(pods: usize) -> Gathered {
    let pod = |index: usize| {
        Arc::new(spec(json!({
            "metadata": { "namespace": "n", "name": format!("p{index}"), "uid": format!("u{index}") },
            "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "14", "memory": "4Gi" } } }] },
            "status": { "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] },
        })))
    };
    let ready = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    Gathered {
        pods: (0..pods).map(pod).collect(),
        pools: vec![Arc::new(spec(json!({
            "metadata": { "name": "default", "uid": "pool-uid" },
            "spec": { "template": {
                "metadata": { "labels": { "team": "red" } },
                "spec": { "requirements": [], "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" } },
            } },
            "status": { "conditions": ready },
        })))],
        classes: vec![Arc::new(spec(json!({
            "metadata": { "name": "default" },
            "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } },
            "status": { "selectedZones": ["lab/pve1/9001", "lab/pve2/9002"] },
        })))],
        estate: estate(vec![guest(20_000, "pve1", 1)]),
        ..Gathered::default()
    }
}

#[test]
fn each_claim_has_an_id_nobody_has_and_the_template_of_its_host() {
    let gathered = ready_world(1);
    let plan = plan(&to_snapshot(&gathered, &InstanceType::built_in()));
    let claims = to_claims(&plan, &to_snapshot(&gathered, &InstanceType::built_in()), &gathered);
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
fn a_new_claim_says_what_it_is_made_from_and_meets_its_pool_s_demands() {
    let mut gathered = Gathered { capacity_rules: all_of_the_memory().capacity_rules, ..ready_world(1) };
    let mut pool = gathered.pools[0].as_ref().clone();
    pool.spec.template.spec.requirements = spec(json!([
        { "key": "example.com/rack", "operator": "In", "values": ["b", "a"] },
        { "key": "example.com/any", "operator": "Exists" },
        { "key": "example.com/generation", "operator": "Gte", "values": ["3"] },
        { "key": "example.com/none", "operator": "NotIn", "values": ["x"] },
        { "key": names::LABEL_INSTANCE_FAMILY, "operator": "In", "values": ["m1", "s1"] },
    ]));
    gathered.pools = vec![Arc::new(pool)];
    let plan = plan(&to_snapshot(&gathered, &InstanceType::built_in()));
    let claims = to_claims(&plan, &to_snapshot(&gathered, &InstanceType::built_in()), &gathered);
    let metadata = &claims[0].as_ref().unwrap().metadata;
    let (labels, annotations) = (metadata.labels.as_ref().unwrap(), metadata.annotations.as_ref().unwrap());
    let of = |label: &str| labels.get(label).map(String::as_str);
    assert_eq!((of("example.com/rack"), of("example.com/any")), (Some("a"), Some("0")));
    assert_eq!((of("example.com/generation"), of("example.com/none")), (Some("3"), None));
    assert_eq!((of(names::LABEL_INSTANCE_CPU_TYPE), of(names::LABEL_INSTANCE_FAMILY)), (None, Some("s1")));
    let mut wanted = hash_stamp::of_pool(&gathered.pools[0]);
    wanted.extend(hash_stamp::of_class(&gathered.classes[0]));
    assert_eq!(wanted.len(), 5, "two hashes, their versions, and what can change in place");
    assert!(wanted.iter().all(|(name, value)| annotations.get(name) == Some(value)), "{annotations:?}");
}

#[test]
fn when_the_ids_are_used_up_the_next_claim_says_so() {
    let gathered = ready_world(2);
    let mut snapshot = to_snapshot(&gathered, &InstanceType::built_in());
    snapshot.hosts.iter_mut().for_each(|host| host.free = host.free.clone().with("cpu", Quantity::whole(16)));
    let plan = plan(&snapshot);
    assert_eq!(plan.new_nodes.len(), 2);
    let one = VmIdRange::new("20000".parse().unwrap(), "20001".parse().unwrap()).unwrap();
    snapshot.launch_site.ids = VmIds::new(one);
    snapshot.launch_site.ids.take("lab", ["20000".parse().unwrap()]);
    let claims = to_claims(&plan, &snapshot, &gathered);
    assert!(claims[0].is_ok());
    assert_eq!(
        claims[1].as_ref().unwrap_err(),
        &ClaimError::NoLaunch(LaunchRefusal::NoVmId { region: "lab".to_owned() })
    );
}

#[test]
fn pods_that_are_bound_promised_or_daemons_are_not_planned_for() {
    let mut gathered = ready_world(4);
    let mut pods: Vec<Pod> = gathered.pods.iter().map(|pod| pod.as_ref().clone()).collect();
    pods[0].node_name = Some("n1".into());
    Arc::make_mut(pods[1].status.as_mut().unwrap()).nominated_node_name = Some("n1".to_owned());
    pods[2].metadata.owner_references =
        Arc::new(spec(json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d" }])));
    gathered.pods = pods.into_iter().map(Arc::new).collect();
    let snapshot = to_snapshot(&gathered, &InstanceType::built_in());
    assert_eq!(snapshot.pods.iter().map(|pod| &*pod.key.name).collect::<Vec<_>>(), ["p3"]);
}

/// A node of the claim's name, with the taints it has while it comes up.
fn rising_node(name: &str, more: serde_json::Value) -> Arc<Node> {
    let mut node = json!({
        "metadata": { "name": name, "labels": {} },
        "spec": { "taints": [{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }] },
        "status": { "allocatable": { "cpu": "4", "memory": "16Gi", "pods": "110" } },
    });
    node["metadata"]["labels"] = more;
    Arc::new(spec(node))
}

#[test]
fn a_node_that_comes_up_counts_as_what_it_will_be_and_only_once() {
    let nodes = |more| {
        let gathered = Gathered {
            claims: vec![Arc::new(claim(20_000, "pve1"))],
            nodes: vec![rising_node("claim-20000", more)],
            ..Gathered::default()
        };
        to_snapshot(&gathered, &InstanceType::built_in()).nodes
    };
    let rising = nodes(json!({}));
    assert_eq!((rising.len(), rising[0].taints.len()), (1, 0), "{rising:?}");
    let up = nodes(json!({ "karpenter.sh/initialized": "true", "karpenter.sh/registered": "true" }));
    assert_eq!((up.len(), up[0].taints.len()), (1, 1), "what is up is what it says: {up:?}");
}

#[test]
fn a_claim_that_goes_takes_its_node_out_of_the_plan() {
    let mut going = claim(20_000, "pve1");
    going.metadata.deletion_timestamp = Some(spec(json!("2026-01-01T00:00:00Z")));
    let nodes = vec![rising_node("claim-20000", json!({ "karpenter.sh/initialized": "true" }))];
    let gathered = Gathered { claims: vec![Arc::new(going)], nodes, ..Gathered::default() };
    let snapshot = to_snapshot(&gathered, &InstanceType::built_in());
    assert!(snapshot.nodes.iter().all(|node| node.is_leaving), "{:?}", snapshot.nodes);
}

/// One bad class must not keep a host from every pool.
#[test]
fn a_host_where_a_class_failed_is_left_alone_by_that_class_and_storage_only() {
    let mut gathered = ready_world(1);
    let place = |host: &str| Place { region: "lab".to_owned(), host: host.parse().unwrap() };
    let is_planned = |gathered: &Gathered| {
        let snapshot = to_snapshot(gathered, &InstanceType::built_in());
        let plan = plan(&snapshot);
        assert!(tenon_engine::check(&snapshot, &plan).is_empty());
        !plan.new_nodes.is_empty()
    };
    let both = |spot: &LaunchSpot| -> Vec<(LaunchSpot, String)> {
        let at = |host: &str| LaunchSpot { place: place(host), ..spot.clone() };
        vec![(at("pve1"), "storage fast is full".to_owned()), (at("pve2"), "storage fast is full".to_owned())]
    };
    let spot = LaunchSpot::of(&gathered.classes[0], &place("pve1"));
    gathered.avoided = both(&spot);
    assert!(!is_planned(&gathered));
    gathered.avoided = both(&LaunchSpot { class: "another".to_owned(), ..spot.clone() });
    assert!(is_planned(&gathered), "another class failed there");
    gathered.avoided = both(&LaunchSpot { storage: Some("old".to_owned()), ..spot });
    assert!(is_planned(&gathered), "the class names another storage by now");
}

#[test]
fn a_host_that_cannot_be_used_says_why_to_the_pod_that_waits() {
    let mut gathered = ready_world(1);
    let place = |host: &str| Place { region: "lab".to_owned(), host: host.parse().unwrap() };
    let spot = |host: &str| LaunchSpot::of(&gathered.classes[0], &place(host));
    gathered.avoided = vec![(spot("pve1"), "storage fast is full".to_owned()), (spot("pve2"), "x".to_owned())];
    let said = |gathered: &Gathered| {
        let plan = plan(&to_snapshot(gathered, &InstanceType::built_in()));
        plan.unplaced[0].reason.to_string()
    };
    assert!(said(&gathered).contains("host pve1 was skipped: storage fast is full"), "{}", said(&gathered));
    gathered.avoided.clear();
    gathered
        .estate
        .regions
        .insert("lab".to_owned(), Err(RegionTrouble::Silent("cannot connect; check the address".to_owned())));
    let words =
        "hosts pve1, pve2 were skipped: Proxmox API of region lab unavailable: cannot connect; check the address";
    assert!(said(&gathered).contains(words), "{}", said(&gathered));
}

#[test]
fn a_host_that_lacks_template_or_storage_of_a_class_is_named_to_the_pod_that_waits() {
    // Of the hosts only pve1 was selected, and it has no room.
    let with = |change: serde_json::Value| {
        let mut gathered = ready_world(1);
        let mut class = json!({
            "metadata": { "name": "default" },
            "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } },
            "status": { "selectedZones": ["lab/pve1/9001"] },
        });
        class["spec"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        gathered.classes = vec![Arc::new(spec(class))];
        gathered
    };
    let said =
        |gathered: &Gathered| plan(&to_snapshot(gathered, &InstanceType::built_in())).unplaced[0].reason.to_string();
    let no_template = "host pve2 was skipped: the host has no VM template of ProxmoxUnmanagedTemplate debian, and cannot use \
                       that of another host; create one there";
    let told = said(&with(json!({})));
    assert!(told.contains("no host has 16 CPU free") && told.contains(no_template), "{told}");
    let managed = json!({ "instanceTemplateRef": { "kind": "ProxmoxTemplate", "name": "debian" } });
    let told = said(&with(managed));
    assert!(told.contains("host pve2 was skipped: the host has no VM template of ProxmoxTemplate debian"), "{told}");
    let told = said(&with(json!({ "bootDevice": { "storage": "fast" } })));
    let no_storage = "host pve2 was skipped: the host has no storage fast, or the API token cannot see it";
    assert!(told.contains(no_storage), "{told}");
    // A pod that may only go there hears it, too.
    let mut tied = with(json!({}));
    let mut pod_spec = tied.pods[0].spec.as_deref().unwrap().clone();
    pod_spec.node_selector = Some([(names::LABEL_ZONE.to_owned(), "pve2".to_owned())].into());
    tied.pods = vec![Arc::new(Pod { spec: Some(Arc::new(pod_spec)), ..tied.pods[0].as_ref().clone() })];
    assert!(said(&tied).contains(no_template), "{}", said(&tied));
    // Where a class wants no VMs, nothing is missing.
    for change in [json!({ "region": "attic" }), json!({ "placementStrategy": { "excludedHosts": ["pve2"] } })] {
        let told = said(&with(change));
        assert!(!told.contains("VM template"), "{told}");
    }
}

#[test]
fn what_an_operator_decides_about_plans_reaches_the_engine() {
    let of = |options| to_snapshot(&Gathered { options, ..Gathered::default() }, &InstanceType::built_in()).options;
    assert_eq!(of(PlanOptions::default()), Options::default());
    let options = PlanOptions {
        preference_policy: PreferencePolicy::Ignore,
        min_values_policy: MinValuesPolicy::BestEffort,
        ignore_dra_requests: false,
        ..PlanOptions::default()
    };
    let options = of(options);
    let policies = (options.preferences, options.min_values, options.ignore_resource_claims);
    assert_eq!(policies, (PreferencePolicy::Ignore, MinValuesPolicy::BestEffort, false));
}

#[test]
fn first_boot_data_goes_where_the_most_room_is_if_it_is_wanted() {
    let mut gathered = ready_world(1);
    let storage = |gathered: &Gathered| {
        let plan = plan(&to_snapshot(gathered, &InstanceType::built_in()));
        let claims = to_claims(&plan, &to_snapshot(gathered, &InstanceType::built_in()), gathered);
        let annotations = claims[0].as_ref().unwrap().metadata.annotations.clone().unwrap();
        launch_record::read(&annotations[names::ANNOTATION_LAUNCH]).unwrap().seed_storage
    };
    assert_eq!(storage(&gathered), None, "an image that brings its own way to join gets none");
    let mut class = gathered.classes[0].as_ref().clone();
    class.spec.metadata_options.type_ = tenon_api::MetadataType::Cdrom;
    gathered.classes = vec![Arc::new(class)];
    assert_eq!(storage(&gathered).as_deref(), Some("shared"));
}

#[test]
fn a_claim_made_by_hand_gets_a_size_and_a_host_or_hears_why_not() {
    let mut gathered = ready_world(0);
    let mut by_hand = claim(20_000, "pve1");
    by_hand.metadata.annotations = None;
    by_hand.spec.resources = spec(json!({ "requests": { "cpu": "3", "memory": "5Gi" } }));
    by_hand.spec.requirements = spec(json!([{ "key": names::LABEL_ZONE, "operator": "In", "values": ["pve2"] }]));
    let refused = decide(&by_hand, &gathered, &InstanceType::built_in()).unwrap_err().to_string();
    assert!(refused.contains("its conditions are not set yet"), "{refused}");
    let mut class = gathered.classes[0].as_ref().clone();
    let ready = json!([{ "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    class.status.as_mut().unwrap().conditions = Some(spec(ready));
    gathered.classes = vec![Arc::new(class)];
    let node = decide(&by_hand, &gathered, &InstanceType::built_in()).unwrap();
    let chosen = node.chosen;
    assert_eq!((chosen.instance_type.as_str(), chosen.place.unwrap().host.as_str()), ("c1.4VCPU-8GB", "pve2"));
    gathered.classes.clear();
    let refused = decide(&by_hand, &gathered, &InstanceType::built_in()).unwrap_err().to_string();
    assert!(refused.contains("ProxmoxNodeClass default does not exist; create it"), "{refused}");
}
