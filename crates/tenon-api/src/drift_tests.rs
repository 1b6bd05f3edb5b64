//! Which claims have drifted, for which reason first, and what becomes of hashes another controller wrote.

use serde_json::{Value, json};
use tenon_model::{Operator, Requirement, Requirements};

use crate::drift::*;
use crate::hash_stamp::{self, Annotations, CLASS, ClaimStamped, POOL};
use crate::names;
use crate::nodeclaim::NodeClaim;
use crate::nodeclass::ProxmoxNodeClass;
use crate::nodepool::NodePool;

/// A claim and everything it is compared with.
struct World {
    claim: NodeClaim,
    pool: NodePool,
    wanted: Requirements,
    class: Option<ProxmoxNodeClass>,
    sizes: Option<Vec<OfferedInstanceType>>,
    images: Option<Vec<String>>,
}

impl World {
    fn seen(&self) -> DriftInput<'_> {
        DriftInput {
            claim: &self.claim,
            pool: &self.pool,
            wanted: &self.wanted,
            class: self.class.as_ref(),
            sizes: self.sizes.as_deref().map_or(KnownInstanceTypes::Unknown, KnownInstanceTypes::Are),
            images: self.images.as_deref().map_or(KnownImages::Unknown, KnownImages::Are),
        }
    }

    fn reason(&self) -> Option<DriftReason> {
        drift(&self.seen()).map(|drift| drift.reason)
    }

    /// Makes everything wrong that can be, in the order it is asked for.
    fn wrong(&mut self, reason: DriftReason) {
        match reason {
            DriftReason::NodePoolDrifted => annotate(&mut self.claim, names::ANNOTATION_NODEPOOL_HASH, "1"),
            DriftReason::RequirementsDrifted => self.wanted = wants("team", Operator::In, &["blue"]),
            DriftReason::InstanceTypeNotFound => self.sizes = Some(Vec::new()),
            DriftReason::NodeClassDrift => annotate(&mut self.claim, names::ANNOTATION_NODECLASS_HASH, "1"),
            DriftReason::ImageDrift => self.images = Some(vec!["18".to_owned()]),
        }
    }
}

fn annotate(claim: &mut NodeClaim, name: &str, value: &str) {
    claim.metadata.annotations.get_or_insert_default().insert(name.to_owned(), value.to_owned());
}

fn wants(label: &str, operator: Operator, values: &[&str]) -> Requirements {
    let requirement = Requirement::new(operator, values.iter().map(ToString::to_string)).unwrap();
    [(label.to_owned(), requirement)].into_iter().collect()
}

fn offering(zone: &str, capacity_type: &str) -> Requirements {
    let labels = [(names::LABEL_ZONE, zone), (names::LABEL_CAPACITY_TYPE, capacity_type), (names::LABEL_REGION, "lab")];
    labels.into_iter().map(|(label, value)| (label.to_owned(), Requirement::is(value))).collect()
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn told(type_: &str, reason: &str) -> Value {
    json!({ "type": type_, "status": "True", "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z" })
}

/// A claim that is just what it should be.
fn world() -> World {
    let class_ref = json!({ "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" });
    let mut pool: NodePool = object(json!({
        "metadata": { "name": "default" },
        "spec": { "template": { "spec": { "requirements": [], "nodeClassRef": class_ref } } },
    }));
    let mut class: ProxmoxNodeClass = object(json!({
        "metadata": { "name": "default" },
        "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } },
    }));
    let mut annotations = hash_stamp::of_pool(&pool);
    annotations.extend(hash_stamp::of_class(&class));
    pool.metadata.annotations = Some(hash_stamp::of_pool(&pool));
    class.metadata.annotations = Some(CLASS.written(&crate::hash::of_class(&class)));
    let claim = object(json!({
        "metadata": {
            "name": "default-x", "annotations": annotations,
            "labels": {
                "team": "red", names::LABEL_NODEPOOL: "default", names::LABEL_ZONE: "pve1", names::LABEL_REGION: "lab",
                names::LABEL_INSTANCE_TYPE: "s1", names::LABEL_CAPACITY_TYPE: "on-demand",
            },
        },
        "spec": { "requirements": [], "nodeClassRef": class_ref },
        "status": {
            "providerID": "proxmox://lab/20001", "imageID": "17", "conditions": [told("Launched", "Launched")],
        },
    }));
    World {
        claim,
        pool,
        wanted: wants("team", Operator::In, &["red", "green"]),
        class: Some(class),
        sizes: Some(vec![OfferedInstanceType {
            name: "s1".to_owned(),
            offerings: vec![offering("pve1", "on-demand")],
        }]),
        images: Some(vec!["17".to_owned()]),
    }
}

const IN_ORDER: [DriftReason; 5] = [
    DriftReason::NodePoolDrifted,
    DriftReason::RequirementsDrifted,
    DriftReason::InstanceTypeNotFound,
    DriftReason::NodeClassDrift,
    DriftReason::ImageDrift,
];

#[test]
fn each_reason_is_told_alone_and_the_first_of_several() {
    assert_eq!(world().reason(), None);
    assert_eq!(standing(&world().seen()), DriftStatus::Current);
    for reason in IN_ORDER {
        let mut world = world();
        world.wrong(reason);
        assert_eq!(world.reason(), Some(reason));
    }
    let mut world = world();
    for reason in IN_ORDER.into_iter().rev() {
        world.wrong(reason);
        assert_eq!(world.reason(), Some(reason), "the earlier question is asked first");
    }
}

#[test]
fn the_reasons_have_the_names_the_reference_gave_them() {
    let names: Vec<String> = IN_ORDER.iter().map(ToString::to_string).collect();
    let known = ["NodePoolDrifted", "RequirementsDrifted", "InstanceTypeNotFound", "NodeClassDrift", "ImageDrift"];
    assert_eq!(names, known);
}

#[test]
fn i3_hash_numbers_of_two_versions_or_without_one_say_nothing() {
    for (hash, version) in [
        (names::ANNOTATION_NODEPOOL_HASH, names::ANNOTATION_NODEPOOL_HASH_VERSION),
        (names::ANNOTATION_NODECLASS_HASH, names::ANNOTATION_NODECLASS_HASH_VERSION),
    ] {
        let mut world = world();
        annotate(&mut world.claim, hash, "1");
        assert!(world.reason().is_some());
        annotate(&mut world.claim, version, "v3");
        assert_eq!(world.reason(), None, "another version");
        for missing in [hash, version] {
            let mut world = self::world();
            annotate(&mut world.claim, hash, "1");
            world.claim.metadata.annotations.as_mut().unwrap().remove(missing);
            assert_eq!(world.reason(), None, "no {missing} on the claim");
            let mut world = self::world();
            annotate(&mut world.claim, hash, "1");
            world.pool.metadata.annotations.as_mut().unwrap().remove(missing);
            world.class.as_mut().unwrap().metadata.annotations.as_mut().unwrap().remove(missing);
            assert_eq!(world.reason(), None, "no {missing} on the owner");
        }
    }
}

#[test]
fn hashes_of_the_go_controllers_are_compared_like_any_others_in_one_version() {
    let mut world = world();
    for (hash, version) in [("1", "v3"), ("2", "v3")] {
        let stamped = [
            (names::ANNOTATION_NODEPOOL_HASH.to_owned(), hash.to_owned()),
            (names::ANNOTATION_NODEPOOL_HASH_VERSION.to_owned(), version.to_owned()),
        ];
        let claim = world.claim.metadata.annotations.insert(stamped.clone().into());
        assert_eq!(claim.len(), 2);
        if hash == "1" {
            world.pool.metadata.annotations = Some(stamped.into());
        }
    }
    assert_eq!(world.reason(), Some(DriftReason::NodePoolDrifted));
}

#[test]
fn labels_are_facts_that_a_pool_s_demands_are_held_against() {
    let reason = |wanted| World { wanted, ..world() }.reason();
    let drifted = Some(DriftReason::RequirementsDrifted);
    assert_eq!(reason(wants("absent", Operator::In, &["x"])), drifted, "nothing undefined is allowed");
    assert_eq!(reason(wants(names::LABEL_ARCH, Operator::In, &["amd64"])), drifted, "not even what is well known");
    assert_eq!(reason(wants("absent", Operator::Exists, &[])), drifted);
    assert_eq!(reason(wants("absent", Operator::DoesNotExist, &[])), None);
    assert_eq!(reason(wants("absent", Operator::NotIn, &["x"])), None);
    assert_eq!(reason(wants("team", Operator::NotIn, &["red"])), drifted);
    assert_eq!(reason(wants("team", Operator::Exists, &[])), None);
    assert_eq!(reason(wants(names::LABEL_ZONE, Operator::In, &["pve1"])), None);
    let mut old = world();
    old.claim.metadata.labels.as_mut().unwrap().insert("beta.kubernetes.io/arch".to_owned(), "amd64".to_owned());
    old.wanted = wants(names::LABEL_ARCH, Operator::In, &["amd64"]);
    assert_eq!(old.reason(), None, "an old name of a label is that label");
}

#[test]
fn a_size_must_be_there_where_the_node_is() {
    let offered = |offerings: Vec<Requirements>| {
        let sizes = Some(vec![OfferedInstanceType { name: "s1".to_owned(), offerings }]);
        World { sizes, ..world() }
    };
    let not_found = Some(DriftReason::InstanceTypeNotFound);
    assert_eq!(offered(vec![]).reason(), not_found);
    assert_eq!(offered(vec![offering("pve2", "on-demand")]).reason(), not_found);
    assert_eq!(offered(vec![offering("pve1", "spot")]).reason(), not_found);
    assert_eq!(offered(vec![offering("pve2", "on-demand"), offering("pve1", "on-demand")]).reason(), None);
    assert_eq!(World { sizes: None, ..world() }.reason(), None, "nobody knows");
    for (kind, expected) in [("reserved", None), ("on-demand", None), ("spot", not_found)] {
        let mut world = offered(vec![offering("pve1", kind)]);
        let labels = world.claim.metadata.labels.as_mut().unwrap();
        labels.insert(names::LABEL_CAPACITY_TYPE.to_owned(), "reserved".to_owned());
        assert_eq!(world.reason(), expected, "a reserved node, {kind} offered");
    }
}

#[test]
fn an_image_is_compared_only_where_there_is_a_template_to_compare_with() {
    let with = |images: Option<&[&str]>| {
        let images = images.map(|images| images.iter().map(ToString::to_string).collect());
        World { images, ..world() }
    };
    assert_eq!(with(Some(&["18"])).reason(), Some(DriftReason::ImageDrift));
    assert_eq!(with(Some(&["18", "17"])).reason(), None);
    assert_eq!(with(Some(&[])).reason(), None, "no template");
    assert_eq!(with(None).reason(), None, "nobody knows");
    assert_eq!(World { class: None, ..with(Some(&["18"])) }.reason(), None, "no class");
    for patch in [json!({ "imageID": "" }), json!({ "imageID": null }), json!({ "providerID": "aws:///i-1" })] {
        let mut world = with(Some(&["18"]));
        let status = world.claim.status.as_mut().unwrap();
        match patch.get("providerID") {
            Some(id) => status.provider_id = id.as_str().map(str::to_owned),
            None => status.image_id = patch["imageID"].as_str().map(str::to_owned),
        }
        assert_eq!(world.reason(), None, "{patch}");
    }
}

#[test]
fn a_region_comes_from_the_provider_id_or_the_label() {
    let of = |id: &str| {
        let mut world = world();
        world.claim.status.as_mut().unwrap().provider_id = Some(id.to_owned());
        region_of(&world.claim)
    };
    assert_eq!(of("proxmox://other/20001").as_deref(), Some("other"));
    assert_eq!(of("proxmox:///20001").as_deref(), Some("lab"));
    for id in ["proxmox://20001", "proxmox://lab/x", "proxmox://lab/", "proxmox://lab/1/2", "other://lab/1"] {
        assert_eq!(of(id), None, "{id}");
    }
}

#[test]
fn a_claim_whose_vm_does_not_run_has_not_drifted() {
    let mut world = world();
    world.wrong(DriftReason::NodePoolDrifted);
    world.claim.status.as_mut().unwrap().conditions = Some(object(json!([told("Drifted", "NodePoolDrifted")])));
    assert_eq!(standing(&world.seen()), DriftStatus::Current);
}

#[test]
fn what_was_told_stays_while_it_cannot_be_checked_and_only_that() {
    let said = |reason: &str, blind: bool| {
        let mut world = world();
        if blind {
            (world.sizes, world.images) = (None, None);
        }
        let conditions = json!([told("Launched", "Launched"), told("Drifted", reason)]);
        world.claim.status.as_mut().unwrap().conditions = Some(object(conditions));
        standing(&world.seen())
    };
    for reason in ["ImageDrift", "InstanceTypeNotFound"] {
        assert_eq!(said(reason, true), DriftStatus::AsBefore);
        assert_eq!(said(reason, false), DriftStatus::Current);
    }
    assert_eq!(said("NodePoolDrifted", true), DriftStatus::Current);
    assert_eq!(said("NodeClassDrift", true), DriftStatus::Current);
}

fn stamped(hash: &str, version: &str) -> Annotations {
    [
        (names::ANNOTATION_NODEPOOL_HASH.to_owned(), hash.to_owned()),
        (names::ANNOTATION_NODEPOOL_HASH_VERSION.to_owned(), version.to_owned()),
    ]
    .into()
}

#[test]
fn i3_hash_claims_of_another_version_get_ours_with_their_owner_and_those_that_drifted_keep_their_number() {
    let claim = |annotations: &Annotations, drifted| {
        POOL.for_claim(&stamped("5", "v3"), ClaimStamped { annotations, drifted }, "42")
    };
    assert_eq!(claim(&stamped("5", "v3"), false), Some(stamped("42", "v3-rs1")));
    assert_eq!(claim(&stamped("6", "v2"), false), Some(stamped("42", "v3-rs1")));
    assert_eq!(claim(&Annotations::new(), false), Some(stamped("42", "v3-rs1")));
    assert_eq!(claim(&stamped("41", "v3-rs1"), false), None, "done before a crash");
    let mut kept = stamped("6", "v3");
    kept.extend(claim(&stamped("6", "v3"), true).unwrap());
    assert_eq!(kept, stamped("6", "v3-rs1"));
    assert!(POOL.differs(&stamped("42", "v3-rs1"), &kept), "it stays drifted");
}

#[test]
fn i3_hash_once_the_owner_carries_our_version_claims_are_left_as_they_are() {
    let old = stamped("6", "v3");
    let claim = ClaimStamped { annotations: &old, drifted: false };
    assert_eq!(POOL.for_claim(&stamped("41", "v3-rs1"), claim, "42"), None);
    assert_eq!(POOL.for_owner(&stamped("41", "v3-rs1"), "42"), Some(stamped("42", "v3-rs1")));
    assert_eq!(POOL.for_owner(&stamped("42", "v3"), "42"), Some(stamped("42", "v3-rs1")));
    assert_eq!(POOL.for_owner(&stamped("42", "v3-rs1"), "42"), None);
    assert_eq!(POOL.for_owner(&Annotations::new(), "42"), Some(stamped("42", "v3-rs1")));
}

#[test]
fn a_claim_that_drifted_stays_so_while_its_owner_does_not_carry_our_version_yet() {
    let mut world = world();
    let conditions = json!([told("Launched", "Launched"), told("Drifted", "NodePoolDrifted")]);
    world.claim.status.as_mut().unwrap().conditions = Some(object(conditions));
    assert_eq!(standing(&world.seen()), DriftStatus::Current);
    world.pool.metadata.annotations = Some(stamped("5", "v3"));
    assert_eq!(standing(&world.seen()), DriftStatus::AsBefore);
}

#[test]
fn drift_is_undone_once_the_pool_or_the_class_is_again_what_the_claim_was_made_from() {
    let mut world = world();
    let of_pool = crate::hash::of_pool(&world.pool);
    let said = |world: &mut World, reason: &str| {
        world.claim.status.as_mut().unwrap().conditions = Some(object(json!([told("Drifted", reason)])));
        is_undone(&world.claim, &world.pool, &world.wanted, world.class.as_ref())
    };
    assert!(!said(&mut world, "ImageDrift") && !said(&mut world, "InstanceTypeNotFound"), "nobody looked");
    // Whatever the pool carries: what counts is what it says now.
    world.pool.metadata.annotations = Some(stamped("1", crate::hash::POOL_VERSION));
    world.claim.metadata.annotations = Some(stamped(&of_pool, crate::hash::POOL_VERSION));
    assert!(said(&mut world, "NodePoolDrifted"));
    world.claim.metadata.annotations = Some(stamped("2", crate::hash::POOL_VERSION));
    assert!(!said(&mut world, "NodePoolDrifted"));
    world.claim.metadata.annotations = Some(stamped(&of_pool, "v3"));
    assert!(!said(&mut world, "NodePoolDrifted"), "numbers of another controller say nothing");
    let of_class = crate::hash::of_class(world.class.as_ref().unwrap());
    let written = |hash: &str| Some(CLASS.written(hash));
    world.class.as_mut().unwrap().metadata.annotations = written("1");
    world.claim.metadata.annotations = written(&of_class);
    assert!(said(&mut world, "NodeClassDrift"));
    world.claim.metadata.annotations = written("2");
    assert!(!said(&mut world, "NodeClassDrift"));
    assert!(said(&mut world, "RequirementsDrifted"), "it meets them");
    world.wrong(DriftReason::RequirementsDrifted);
    assert!(!said(&mut world, "RequirementsDrifted"));
}

#[test]
fn our_versions_are_not_the_reference_s() {
    assert_ne!(crate::hash::POOL_VERSION, "v3");
    assert_ne!(crate::hash::CLASS_VERSION, "v1");
}
