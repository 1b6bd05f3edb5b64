//! What templates, classes and pools are judged to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tenon_api::plan_options::FeatureGates;
use tenon_api::{ConditionStatus, condition_reasons};
use tenon_controllers::status::{
    ClassVerdict, Estate, ObservedClass, ObservedTemplate, RegionTrouble, Verdict, judge_class, judge_pool,
    judge_template,
};
use tenon_pve::{GuestKind, GuestRow};

use crate::decisions::objects::{class_spec, estate, guest, listing, spec, template};

/// A class judged by a template that was found in these zones.
fn judged(extra: serde_json::Value, found: &[String], estate: &Estate) -> ClassVerdict {
    let ready = Verdict::holds(&condition_reasons::READY);
    judge_class(&class_spec(extra), Some(ObservedTemplate { zones: found, reach: &[], ready: &ready }), estate, &Ok(()))
}

fn zones(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_template_is_found_by_name_and_by_all_of_its_tags() {
    let estate = estate(vec![
        template(9001, "pve1", "debian", "k8s;gold"),
        template(9002, "pve2", "debian", "k8s"),
        template(9003, "pve2", "other", "k8s;gold"),
        guest(100, "pve1", 4),
    ]);
    let found = |value| judge_template(&spec(value), &estate).zones.unwrap();
    assert_eq!(found(json!({ "templateName": "debian" })), zones(&["lab/pve1/9001", "lab/pve2/9002"]));
    assert_eq!(found(json!({ "tags": ["Gold"] })), zones(&["lab/pve1/9001", "lab/pve2/9003"]));
    assert_eq!(found(json!({ "templateName": "debian", "tags": ["k8s", "gold"] })), zones(&["lab/pve1/9001"]));
    assert_eq!(found(json!({ "templateName": "vm-100" })), zones(&[]), "a VM is no template");
}

#[test]
fn a_region_that_does_not_answer_hides_nothing_that_was_found() {
    let mut estate = estate(vec![]);
    let away = || Err(RegionTrouble::Silent("no answer".to_owned()));
    estate.regions.insert("away".to_owned(), away());
    let verdict = judge_template(&spec(json!({ "templateName": "debian" })), &estate);
    assert_eq!(
        (verdict.zones, verdict.ready.status(), verdict.ready.reason()),
        (None, ConditionStatus::Unknown, "RegionUnreachable")
    );
    // Another region has it: what was found in this one stays.
    let found = Ok(listing(vec![template(9001, "pve1", "debian", "")]).into());
    let both = Estate { regions: BTreeMap::from([("lab".to_owned(), found), ("away".to_owned(), away())]) };
    let verdict = judge_template(&spec(json!({ "templateName": "debian" })), &both);
    assert_eq!(verdict.ready.status(), ConditionStatus::True);
    let kept = "what was found before is kept for regions that do not answer: away";
    assert_eq!((verdict.zones, verdict.ready.message()), (Some(zones(&["lab/pve1/9001"])), kept));
    // The region that matters answers, and it is not there.
    let verdict = judge_template(&spec(json!({ "templateName": "debian", "region": "lab" })), &estate);
    assert_eq!((verdict.zones, verdict.ready.reason()), (Some(vec![]), "TemplatesNotFound"));
    let verdict = judge_template(&spec(json!({ "templateName": "debian", "region": "mars" })), &estate);
    assert!(
        verdict.ready.message().contains("region mars is not in the cloud config, which has away, lab"),
        "{:?}",
        verdict.ready
    );
}

/// What a condition says of the templates that a spec names.
fn said(value: serde_json::Value, estate: &Estate) -> String {
    judge_template(&spec(value), estate).ready.message().to_owned()
}

#[test]
fn a_template_that_is_not_found_is_told_with_what_comes_close_and_why_it_is_not_used() {
    let container = GuestRow { kind: GuestKind::Lxc, name: Some("debian".to_owned()), ..guest(104, "pve1", 1) };
    let vm = GuestRow { name: Some("debian".to_owned()), ..guest(103, "pve2", 1) };
    let estate = estate(vec![
        container,
        vm,
        template(9002, "pve2", "debian", "k8s"),
        template(9003, "pve1", "Debian", "k8s;gold;fast"),
        template(9004, "pve1", "other", "gold"),
    ]);
    let told = said(json!({ "templateName": "debian", "tags": ["gold", "fast"] }), &estate);
    assert_eq!(
        told,
        "no VM template named debian and tagged gold, fast; create one, or correct spec.templateName and spec.tags; \
         VM template 9002 (debian) on host pve2 lacks tags gold, fast; \
         VM template 9003 (Debian) on host pve1 has a name in other case; \
         VM 103 (debian) on host pve2 is not a template; run `qm template 103` to convert it; \
         container 104 (debian) on host pve1 is not a VM"
    );
    let told = said(json!({ "tags": ["gold", "slow"] }), &estate);
    assert!(told.contains("VM template 9004 (other) on host pve1 lacks tag slow"), "{told}");
    assert!(!told.contains("9002"), "a template without any of the tags does not come close: {told}");
    let nothing = said(json!({ "templateName": "alpine" }), &estate);
    assert_eq!(nothing, "no VM template named alpine; create one, or correct spec.templateName and spec.tags");
}

#[test]
fn a_template_in_another_region_is_told() {
    let mut estate = estate(vec![]);
    let away = listing(vec![template(9001, "pve1", "debian", "k8s")]);
    estate.regions.insert("away".to_owned(), Ok(away.into()));
    let told = said(json!({ "templateName": "debian", "region": "lab" }), &estate);
    let why = "VM template 9001 (debian) on host pve1 is in region away, but spec.region is lab";
    assert!(told.starts_with("no VM template named debian in region lab;") && told.ends_with(why), "{told}");
    assert_eq!(said(json!({ "templateName": "debian" }), &estate), "");
}

#[test]
fn the_message_of_a_template_has_a_bounded_length() {
    // The clones of a template have its tags.
    let clones = (20_000..20_500).map(|id| GuestRow { tags: Some("gold".to_owned()), ..guest(id, "pve1", 1) });
    let told = said(json!({ "tags": ["gold"] }), &estate(clones.collect()));
    assert!(told.contains("VM 20003 (vm-20003) on host pve1 is not a template") && !told.contains("20004"), "{told}");
    assert!(told.ends_with("; 496 more VMs and containers are not used"), "{told}");
    let hosts = ["pve1", "pve2"];
    let many = (0..200).map(|n| template(9000 + n, hosts[n as usize % 2], "debian", "gold"));
    let told = said(json!({ "templateName": "debian" }), &estate(many.collect()));
    assert!(told.len() < 500 && told.contains("host pve2 has 100 matching VM templates: 9001 is used"), "{told}");
}

#[test]
fn of_several_templates_on_a_host_the_one_with_the_lowest_id_is_used_and_told() {
    let estate = estate(vec![
        template(10_000, "pve1", "debian", "k8s"),
        template(9001, "pve1", "debian", "k8s"),
        template(9002, "pve2", "debian", "k8s"),
        template(9003, "pve2", "debian", ""),
        GuestRow { tags: Some("k8s".to_owned()), ..guest(20_000, "pve1", 1) },
    ]);
    let wanted = json!({ "templateName": "debian", "tags": ["k8s"] });
    let verdict = judge_template(&spec(wanted), &estate);
    assert_eq!(verdict.ready.status(), ConditionStatus::True);
    assert_eq!(
        verdict.ready.message(),
        "host pve1 has 2 matching VM templates: 9001 is used, because its VM ID is the lowest, not 10000; \
         VM template 9003 (debian) on host pve2 lacks tag k8s"
    );
    let selected = judged(json!({}), &verdict.zones.unwrap(), &estate).selected_zones;
    assert_eq!(selected, zones(&["lab/pve1/9001", "lab/pve2/9002"]));
    assert!(!said(json!({ "tags": ["k8s"] }), &estate).contains("20000"), "nobody asks why a clone is no template");
}

#[test]
fn a_template_on_an_offline_host_is_kept_and_told() {
    let mut resources = listing(vec![template(9001, "pve1", "debian", ""), template(9002, "pve2", "debian", "")]);
    Arc::make_mut(&mut resources.hosts[1]).status = Some("offline".to_owned());
    let estate = Estate { regions: BTreeMap::from([("lab".to_owned(), Ok(resources.into()))]) };
    let verdict = judge_template(&spec(json!({ "templateName": "debian" })), &estate);
    assert_eq!(verdict.zones, Some(zones(&["lab/pve1/9001", "lab/pve2/9002"])));
    let told = "host pve2 is offline: VM template 9002 cannot be cloned until the host is back";
    assert_eq!((verdict.ready.status(), verdict.ready.message()), (ConditionStatus::True, told));
}

#[test]
fn a_class_takes_one_template_a_host_where_its_storage_is() {
    let found = zones(&["lab/pve1/9001", "lab/pve1/9005", "lab/pve2/9002"]);
    let estate = estate(vec![]);
    let selected = |extra| judged(extra, &found, &estate).selected_zones;
    assert_eq!(selected(json!({})), zones(&["lab/pve1/9001", "lab/pve2/9002"]));
    assert_eq!(selected(json!({ "bootDevice": { "size": "30G", "storage": "fast" } })), zones(&["lab/pve1/9001"]));
    assert_eq!(selected(json!({ "region": "mars" })), zones(&[]));
    let verdict = judged(json!({ "bootDevice": { "storage": "slow" } }), &found, &estate);
    assert!(verdict.template.message().contains("has storage slow available"), "{:?}", verdict.template);
}

#[test]
fn excluded_hosts_are_not_selected_and_a_class_that_excludes_all_of_them_says_so() {
    let found = zones(&["lab/pve1/9001", "lab/pve2/9002"]);
    let estate = estate(vec![template(9001, "pve1", "debian", ""), template(9002, "pve2", "debian", "")]);
    let excluding =
        |hosts: &[&str]| judged(json!({ "placementStrategy": { "excludedHosts": hosts } }), &found, &estate);
    assert_eq!(excluding(&["pve1", "pve9"]).selected_zones, zones(&["lab/pve2/9002"]));
    assert_eq!(excluding(&["pve9"]).template.status(), ConditionStatus::True);
    let verdict = excluding(&["pve1", "pve2"]);
    assert_eq!((verdict.selected_zones, verdict.template.reason()), (zones(&[]), "TemplatesNotFound"));
    let told = verdict.template.message();
    assert!(told.contains("excludedHosts names every host") && told.contains("(pve1, pve2)"), "{told}");
    let elsewhere = json!({ "region": "mars", "placementStrategy": { "excludedHosts": ["pve1", "pve2"] } });
    let told = judged(elsewhere, &found, &estate).template;
    assert!(!told.message().contains("excludedHosts"), "{told:?}");
}

#[test]
fn every_placement_strategy_is_acted_on() {
    let found = zones(&["lab/pve1/9001"]);
    let estate = estate(vec![template(9001, "pve1", "debian", "")]);
    for strategy in [
        json!({ "zoneBalance": "AvailabilityFirst" }),
        json!({ "hosts": "Spread" }),
        json!({ "hosts": "RoundRobin", "minAvailable": { "cpu": 2, "memory": "4Gi" } }),
    ] {
        let verdict = judged(json!({ "placementStrategy": strategy }), &found, &estate);
        assert_eq!(verdict.template.status(), ConditionStatus::True, "{:?}", verdict.template);
    }
}

#[test]
fn every_field_of_a_class_is_acted_on() {
    let estate = Estate { regions: BTreeMap::new() };
    let found = zones(&["lab/pve1/9001"]);
    let judge = |extra| judged(extra, &found, &estate);
    // Both kinds of templates are acted on, and the text names the right one.
    let managed = json!({ "instanceTemplateRef": { "kind": "ProxmoxTemplate", "name": "x" } });
    assert_eq!(judge(managed.clone()).template.status(), ConditionStatus::True);
    let missing = judge_class(&spec(managed), None, &estate, &Ok(())).template;
    assert_eq!(missing.message(), "ProxmoxTemplate x does not exist; create it");
    for extra in [json!({ "cloneMode": "Full" }), json!({ "securityGroups": [{ "name": "web" }] })] {
        assert_eq!(judge(extra).template.reason(), judge(json!({})).template.reason());
    }
    let metadata = judge(json!({ "metadataOptions": { "type": "cdrom" } })).metadata;
    assert_eq!(metadata.status(), ConditionStatus::True, "a CD-ROM without templates gets the built-in data");
}

#[test]
fn an_object_without_a_spec_is_told_of_and_names_nothing() {
    let estate = estate(vec![template(9001, "pve1", "debian", "k8s")]);
    let verdict = judge_template(&spec(json!(null)), &estate);
    assert_eq!((verdict.zones, verdict.ready.reason()), (Some(vec![]), "TemplateValidation"));
    assert!(verdict.ready.message().contains("spec.templateName"), "{}", verdict.ready.message());
    let verdict = judge_class(&spec(json!(null)), None, &estate, &Ok(())).template;
    assert_eq!(verdict.reason(), "TemplatesNotFound");
    assert!(verdict.message().contains("set at least spec.instanceTemplateRef"), "{}", verdict.message());
}

#[test]
fn i4_readiness_a_pool_says_what_its_class_says_and_what_it_says_twice() {
    let pool = |taints: serde_json::Value| {
        spec(json!({ "template": { "spec": {
            "requirements": [],
            "taints": taints,
            "startupTaints": [{ "key": "wait", "effect": "NoSchedule" }],
            "nodeClassRef": { "group": "g", "kind": "k", "name": "default" },
        } } }))
    };
    let plain = pool(json!([]));
    for (class, status, reason) in [
        (ObservedClass::Missing, ConditionStatus::False, "NodeClassNotFound"),
        (ObservedClass::Terminating, ConditionStatus::False, "NodeClassTerminating"),
        (
            ObservedClass::Present(Verdict::fails(&condition_reasons::TEMPLATES_NOT_FOUND, "none")),
            ConditionStatus::False,
            "TemplatesNotFound",
        ),
        (
            ObservedClass::Present(Verdict::unknown(&condition_reasons::REGION_UNREACHABLE, "away")),
            ConditionStatus::Unknown,
            "NodeClassReadinessUnknown",
        ),
        (ObservedClass::Present(Verdict::holds(&condition_reasons::READY)), ConditionStatus::True, "NodeClassReady"),
    ] {
        let verdict = judge_pool(&plain, FeatureGates::default(), &class).class;
        assert_eq!((verdict.status(), verdict.reason()), (status, reason), "{class:?}");
    }
    let judged = |spec| judge_pool(&spec, FeatureGates::default(), &ObservedClass::Missing).validation;
    let twice = judged(pool(json!([{ "key": "wait", "effect": "NoSchedule" }])));
    assert!(twice.reason() == "NodePoolValidationFailed" && twice.message().contains("taint wait"), "{twice:?}");
    let other_effect = judged(pool(json!([{ "key": "wait", "effect": "NoExecute" }])));
    assert_eq!(other_effect.status(), ConditionStatus::True);
}

#[test]
fn i4_validation_a_pool_with_mixed_capacity_types_is_valid_and_one_without_a_known_one_is_not() {
    let judged = |values: serde_json::Value| {
        let requirement = json!({ "key": "karpenter.sh/capacity-type", "operator": "In", "values": values });
        let pool = spec(json!({ "template": { "spec": {
            "requirements": [requirement], "nodeClassRef": { "group": "g", "kind": "k", "name": "default" },
        } } }));
        judge_pool(&pool, FeatureGates::default(), &ObservedClass::Missing).validation
    };
    assert_eq!(judged(json!(["free", "on-demand"])).status(), ConditionStatus::True);
    let wrong = judged(json!(["free"]));
    assert_eq!((wrong.status(), wrong.reason()), (ConditionStatus::False, "NodePoolValidationFailed"));
}

#[test]
fn every_consolidation_policy_is_accepted() {
    for policy in ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] {
        let pool = spec(json!({
            "disruption": { "consolidationPolicy": policy, "consolidateAfter": "1m" },
            "template": { "spec": {
                "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "default" },
            } },
        }));
        let verdict = judge_pool(&pool, FeatureGates::default(), &ObservedClass::Missing).validation;
        assert_eq!(verdict.status(), ConditionStatus::True, "{policy}");
    }
}

#[test]
fn a_pool_of_fixed_size_needs_its_gate_and_says_so() {
    let fixed = spec(json!({ "replicas": 2, "template": { "spec": {
        "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "default" },
    } } }));
    let judged = |static_capacity| {
        let gates = FeatureGates { static_capacity, ..FeatureGates::default() };
        judge_pool(&fixed, gates, &ObservedClass::Missing).validation
    };
    assert_eq!(judged(true).status(), ConditionStatus::True);
    let off = judged(false);
    assert_eq!((off.status(), off.reason()), (ConditionStatus::False, "FeatureGateOff"));
    assert!(off.message().contains("--feature-gates StaticCapacity=true"), "{}", off.message());
}

#[test]
fn a_class_says_what_its_template_says_when_there_is_none() {
    let ready = Verdict::fails(&condition_reasons::TEMPLATES_NOT_FOUND, "no VM template named debian; create one");
    let found = Some(ObservedTemplate { zones: &[], reach: &[], ready: &ready });
    let verdict = judge_class(&class_spec(json!({})), found, &estate(vec![]), &Ok(())).template;
    assert_eq!(verdict.reason(), "TemplatesNotFound");
    assert!(verdict.message().contains("no VM template named debian; create one"), "{}", verdict.message());
}

#[test]
fn a_class_with_seeds_needs_a_storage_that_takes_them() {
    let mut estate = estate(vec![]);
    let found = zones(&["lab/pve1/9001"]);
    let cdrom = || json!({ "metadataOptions": { "type": "cdrom" } });
    assert_eq!(judged(cdrom(), &found, &estate).selected_zones, found);
    if let Some(Ok(resources)) = estate.regions.get_mut("lab") {
        let resources = Arc::make_mut(resources);
        resources.storages.iter_mut().for_each(|row| Arc::make_mut(row).content = "images".to_owned());
    }
    let verdict = judged(cdrom(), &found, &estate).template;
    assert!(
        verdict.message().contains("allow content type iso on a storage of one of these hosts: lab/pve1/9001"),
        "{verdict:?}"
    );
    assert_eq!(judged(json!({ "metadataOptions": { "type": "none" } }), &found, &estate).selected_zones, found);
}

#[test]
fn a_token_that_is_refused_everywhere_makes_a_class_unready_and_keeps_its_places() {
    let found = zones(&["lab/pve1/9001", "attic/pve9/9009"]);
    let refused = || Err(RegionTrouble::Refused("Authentication failed!; check the token".to_owned()));
    let mut estate = estate(vec![]);
    estate.regions.insert("lab".to_owned(), refused());
    let verdict = judged(json!({}), &found[..1], &estate);
    assert_eq!((verdict.template.status(), verdict.template.reason()), (ConditionStatus::False, "ProxmoxAccessDenied"));
    assert!(verdict.template.message().contains("region lab: Authentication failed!"), "{:?}", verdict.template);
    assert_eq!(verdict.selected_zones, found[..1]);
    // Another region of the class works, or does not answer: what is there may be used.
    estate.regions.insert("attic".to_owned(), Err(RegionTrouble::Silent("no answer".to_owned())));
    assert_eq!(judged(json!({}), &found, &estate).template.status(), ConditionStatus::True);
    estate.regions.insert("attic".to_owned(), refused());
    assert_eq!(judged(json!({}), &found, &estate).template.status(), ConditionStatus::False);
}

#[test]
fn a_token_that_sees_no_storage_is_told_so() {
    let found = zones(&["lab/pve1/9001"]);
    let mut estate = estate(vec![]);
    if let Some(Ok(resources)) = estate.regions.get_mut("lab") {
        Arc::make_mut(resources).storages.clear();
    }
    let verdict = judged(json!({ "metadataOptions": { "type": "cdrom" } }), &found, &estate).template;
    assert!(
        verdict.message().contains("the API token sees no storage") && verdict.message().contains("Datastore.Audit")
    );
}

#[test]
fn a_region_that_does_not_answer_takes_no_place_away() {
    let mut estate = estate(vec![]);
    estate.regions.insert("lab".to_owned(), Err(RegionTrouble::Silent("no answer".to_owned())));
    let found = zones(&["lab/pve1/9001"]);
    assert_eq!(
        judged(json!({ "bootDevice": { "size": "30G", "storage": "fast" } }), &found, &estate).selected_zones,
        found
    );
}
