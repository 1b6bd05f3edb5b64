//! What a pool of fixed size has, what a claim of it says, and what becomes of that claim.

use std::sync::Arc;
use tenon_api::kube_objects::{Node, Pod};

use serde_json::{Value, json};
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, hash_stamp, names};
use tenon_controllers::provision::{Gathered, decide};
use tenon_controllers::static_pools::{StaticLook, bare_claim, is_static};
use tenon_engine::static_pool::{Standing, StaticStep};
use tenon_engine::{Sparing, StaticNode, StaticStage};
use tenon_model::{InstanceType, Reason};

use crate::decisions::candidates::{merged, now};
use crate::decisions::objects::{estate, guest, spec};

fn class_ref() -> Value {
    json!({ "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" })
}

/// A pool of three nodes that is ready.
fn pool(over: &Value) -> NodePool {
    let ready = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let base = json!({
        "metadata": { "name": "fixed", "uid": "pool-uid" },
        "spec": { "replicas": 3, "template": { "spec": { "requirements": [], "nodeClassRef": class_ref() } } },
        "status": { "conditions": ready },
    });
    spec(merged(base, over))
}

/// A claim of that pool with a VM of ours, made an hour ago.
fn claim(name: &str, over: &Value) -> NodeClaim {
    let base = json!({
        "metadata": {
            "name": name, "creationTimestamp": "2026-03-11T09:10:00Z",
            "labels": { names::LABEL_NODEPOOL: "fixed" },
            "annotations": { names::ANNOTATION_LAUNCH: "{}" },
        },
        "spec": { "requirements": [], "nodeClassRef": class_ref(), "expireAfter": "4h" },
        "status": { "providerID": "proxmox://lab/20000" },
    });
    spec(merged(base, over))
}

fn look(claims: Vec<NodeClaim>) -> StaticLook {
    StaticLook { claims: claims.into_iter().map(Arc::new).collect(), now: now(), ..StaticLook::default() }
}

fn seen(claim: NodeClaim) -> StaticNode {
    let mut seen = look(vec![claim]).of(&pool(&json!({}))).nodes;
    assert_eq!(seen.len(), 1);
    seen.remove(0)
}

#[test]
fn a_pool_is_of_fixed_size_if_it_is_ours_has_a_number_and_stays() {
    assert!(is_static(&pool(&json!({}))));
    assert!(is_static(&pool(&json!({ "spec": { "replicas": 0 } }))));
    let foreign = json!({ "template": { "spec": { "nodeClassRef": { "group": "g", "kind": "k" } } } });
    for other in [
        json!({ "spec": { "replicas": null } }),
        json!({ "spec": foreign }),
        json!({ "metadata": { "deletionTimestamp": "2026-03-11T10:00:00Z" } }),
    ] {
        assert!(!is_static(&pool(&other)), "{other}");
    }
}

#[test]
fn only_claims_of_the_pool_and_of_our_kind_of_class_count() {
    let claims = vec![
        claim("a", &json!({})),
        claim("b", &json!({ "metadata": { "labels": { names::LABEL_NODEPOOL: "other" } } })),
        claim("c", &json!({ "metadata": { "labels": null } })),
        claim("d", &json!({ "spec": { "nodeClassRef": { "group": "g", "kind": "k" } } })),
    ];
    let has = look(claims).of(&pool(&json!({})));
    assert_eq!(has.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!(has.next_step(), StaticStep::Make(2));
}

#[test]
fn number_limit_and_readiness_are_the_pool_s() {
    let of = |over: &Value| look(vec![]).of(&pool(over));
    let plain = of(&json!({}));
    assert_eq!((plain.replicas, plain.limit, plain.is_ready), (3, None, true));
    assert_eq!(of(&json!({ "spec": { "limits": { "nodes": 2 } } })).limit, Some(2));
    assert_eq!(of(&json!({ "spec": { "limits": { "nodes": "1500m" } } })).limit, Some(2), "half a node is one begun");
    assert_eq!(of(&json!({ "spec": { "limits": { "nodes": "-1" } } })).limit, Some(0));
    assert_eq!(of(&json!({ "spec": { "limits": { "nodes": "9P" } } })).limit, Some(u32::MAX));
    assert!(!of(&json!({ "status": null })).is_ready);
}

#[test]
fn a_claim_is_known_by_how_far_it_is_and_whose_it_is() {
    let bare = json!({ "metadata": { "annotations": null }, "status": null });
    assert_eq!(seen(claim("a", &bare)).stage, StaticStage::Unplanned);
    assert_eq!(seen(claim("a", &json!({ "status": null }))).stage, StaticStage::Launching);
    let ours = seen(claim("a", &json!({})));
    assert_eq!((ours.stage, ours.sparing, ours.standing), (StaticStage::Launched, Sparing::Free, Standing::Active));
    let foreign = seen(claim("a", &json!({ "metadata": { "annotations": null } })));
    assert_eq!((foreign.stage, foreign.sparing), (StaticStage::Launched, Sparing::NotOurs));
    assert_eq!(format!("{}", ours.lifetime_remaining), "0.75");
    let never = seen(claim("a", &json!({ "spec": { "expireAfter": "Never" } })));
    assert_eq!(format!("{}", never.lifetime_remaining), "1");
}

#[test]
fn a_claim_goes_when_it_is_deleted_and_is_to_be_replaced_when_it_or_its_node_says_so() {
    let going = claim("a", &json!({ "metadata": { "deletionTimestamp": "2026-03-11T10:00:00Z" } }));
    assert_eq!(seen(going).standing, Standing::Deleting);
    let told = |status| {
        let time = "2026-03-11T10:00:00Z";
        json!({ "status": { "conditions": [{ "type": "DisruptionReason", "status": status, "lastTransitionTime": time }] } })
    };
    assert_eq!(seen(claim("a", &told("True"))).standing, Standing::PendingDisruption);
    assert_eq!(seen(claim("a", &told("False"))).standing, Standing::Active);
    let taint = |key: &str| -> Arc<Node> {
        let taints = json!([{ "key": key, "effect": "NoSchedule" }]);
        Arc::new(spec(json!({ "metadata": { "name": "a" }, "spec": { "taints": taints } })))
    };
    let of_node = |node| StaticLook { nodes: vec![node], ..look(vec![claim("a", &json!({}))]) }.of(&pool(&json!({})));
    assert_eq!(of_node(taint(names::TAINT_DISRUPTED)).nodes[0].standing, Standing::PendingDisruption);
    assert_eq!(of_node(taint("example.com/own")).nodes[0].standing, Standing::Active);
}

#[test]
fn the_node_with_the_pods_that_are_hardest_to_move_stays() {
    let pod = |name: &str, node: &str, over: &Value| -> Arc<Pod> {
        let base = json!({
            "metadata": { "namespace": "shop", "name": name }, "spec": { "nodeName": node, "containers": [] },
        });
        Arc::new(spec(merged(base, over)))
    };
    let daemon = json!({ "metadata": { "ownerReferences":
        [{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "o", "uid": "o" }] } });
    let asking = json!({ "metadata": { "annotations": { names::ANNOTATION_DO_NOT_DISRUPT: "true" } } });
    let costly = json!({ "metadata": { "annotations": { names::ANNOTATION_DISRUPTION_COST: "67108864" } } });
    let over = json!({ "status": { "phase": "Succeeded" } });
    let pods = vec![
        pod("a", "asked-for", &asking),
        pod("b", "costly", &costly),
        pod("c", "plain", &json!({})),
        pod("d", "only-daemons", &daemon),
        pod("e", "only-over", &merged(costly.clone(), &over)),
    ];
    let claims = ["asked-for", "costly", "plain", "only-over", "only-daemons"].map(|name| claim(name, &json!({})));
    let look = StaticLook { pods, ..look(claims.into()) };
    let gone = |replicas: u32| look.of(&pool(&json!({ "spec": { "replicas": replicas } }))).next_step();
    let names = |names: &[&str]| StaticStep::Remove(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(gone(0), names(&["only-daemons", "only-over", "plain", "costly", "asked-for"]));
    assert_eq!(gone(3), names(&["only-daemons", "only-over"]));
    assert_eq!(gone(5), StaticStep::Settled);
}

#[test]
fn a_claim_of_a_pool_of_fixed_size_is_the_pool_s_template_without_a_size() {
    let pool = pool(&json!({ "spec": { "template": {
        "metadata": { "labels": { "team": "red" }, "annotations": { "note": "x" } },
        "spec": {
            "requirements": [{ "key": "example.com/rack", "operator": "In", "values": ["b", "a"] }],
            "taints": [{ "key": "own", "effect": "NoSchedule" }],
            "startupTaints": [{ "key": "wait", "effect": "NoExecute" }],
            "expireAfter": "48h", "terminationGracePeriod": "5m",
        },
    } } }));
    let claim = bare_claim(&pool, None);
    let metadata = &claim.metadata;
    assert_eq!((metadata.generate_name.as_deref(), metadata.name.as_deref()), (Some("fixed-"), None));
    let owner = &metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str(), owner.controller), ("NodePool", "pool-uid", None));
    assert_eq!(metadata.finalizers.as_deref(), Some([names::FINALIZER.to_owned()].as_slice()));
    let (labels, annotations) = (metadata.labels.as_ref().unwrap(), metadata.annotations.as_ref().unwrap());
    assert_eq!((labels["team"].as_str(), labels[names::LABEL_NODEPOOL].as_str()), ("red", "fixed"));
    assert_eq!((labels[names::LABEL_NODECLASS].as_str(), annotations["note"].as_str()), ("default", "x"));
    for (name, value) in hash_stamp::of_pool(&pool) {
        assert_eq!(annotations.get(&name), Some(&value), "{name}");
    }
    assert!(!annotations.contains_key(names::ANNOTATION_LAUNCH) && claim.spec.resources.is_none());
    let wanted = |key: &str| {
        let found = claim.spec.requirements.iter().find(|wanted| wanted.key == key);
        found.map(|wanted| wanted.values.clone().unwrap_or_default()).unwrap_or_default().join(",")
    };
    assert_eq!(
        (wanted("example.com/rack"), wanted("team"), wanted(names::LABEL_NODEPOOL)),
        ("a,b".to_owned(), "red".to_owned(), "fixed".to_owned())
    );
    assert_eq!(
        (wanted(names::LABEL_INSTANCE_TYPE), wanted(names::LABEL_CAPACITY_TYPE)),
        (String::new(), String::new())
    );
    let template = &pool.spec.template.spec;
    assert_eq!((&claim.spec.taints, &claim.spec.startup_taints), (&template.taints, &template.startup_taints));
    assert_eq!((claim.spec.expire_after.as_str(), claim.spec.termination_grace_period.as_deref()), ("48h", Some("5m")));
}

#[test]
fn such_a_claim_gets_the_cheapest_size_its_pool_allows_where_there_is_room_whatever_its_taints() {
    let sizes = json!(["c1.16VCPU-32GB", "c1.4VCPU-8GB"]);
    let pool = pool(&json!({ "spec": { "template": { "spec": {
        "requirements": [{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": sizes }],
        "taints": [{ "key": "own", "effect": "NoSchedule" }],
    } } } }));
    let ready = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let class: Arc<ProxmoxNodeClass> = Arc::new(spec(json!({
        "metadata": { "name": "default" },
        "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } },
        "status": { "conditions": ready, "selectedZones": ["lab/pve1/9001", "lab/pve2/9002"] },
    })));
    let with_full = |hosts: &[&str]| {
        let guests = |host: &&str| (0..8).map(|number| guest(100 + number, host, 8)).collect::<Vec<_>>();
        let estate = estate(hosts.iter().flat_map(guests).collect());
        let gathered = Gathered { classes: vec![class.clone()], estate, ..Gathered::default() };
        decide(&bare_claim(&pool, None), &gathered, &InstanceType::built_in())
    };
    let node = with_full(&["pve1"]).unwrap();
    assert_eq!((node.pool.as_str(), node.chosen.instance_type.as_str()), ("fixed", "c1.4VCPU-8GB"));
    assert_eq!(node.chosen.place.unwrap().host.as_str(), "pve2", "the other is full");
    let refused = with_full(&["pve1", "pve2"]).unwrap_err();
    assert!(matches!(refused, Reason::Refused(_)), "{refused:?}");
}
