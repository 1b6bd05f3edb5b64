//! Pools and NodeOverlays as they stand in a cluster, from look to look.

use serde_json::{Value, json};
use tenon_model::{InstanceType, Place, Price};

use super::*;

fn base() -> Arc<Catalog> {
    let place = |host: &str| Place { region: "lab".to_owned(), host: host.parse().unwrap() };
    let places = [place("pve1"), place("pve2")];
    Arc::new(Catalog::new(InstanceType::built_in().iter().map(|size| size.offered_at(&places)).collect()))
}

fn pool(name: &str, labels: &Value) -> Arc<NodePool> {
    let class = json!({ "group": "g", "kind": "k", "name": "n" });
    let template = json!({ "metadata": { "labels": labels }, "spec": { "nodeClassRef": class, "requirements": [] } });
    Arc::new(serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "template": template } })).unwrap())
}

fn overlay(name: &str, key: &str, value: &str, more: &Value) -> NodeOverlay {
    let mut spec = json!({ "requirements": [{ "key": key, "operator": "In", "values": [value] }] });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

fn price(catalog: &Catalog, host: &str) -> Price {
    let size = catalog.find("s1.4VCPU-16GB").unwrap();
    size.offerings.iter().find(|way| way.label("topology.kubernetes.io/zone") == Some(host)).unwrap().price
}

#[test]
fn i6_pools_that_are_changed_alike_share_a_catalogue_and_one_that_is_not_keeps_that_of_its_class() {
    let (base, pools) =
        (base(), [pool("p", &json!({ "team": "x" })), pool("q", &json!({ "team": "x" })), pool("r", &json!({}))]);
    let overlays = [overlay("a", "team", "x", &json!({ "price": "5" }))];
    let known: Vec<_> = pools.iter().map(|pool| (pool.clone(), base.clone())).collect();
    let evaluated = Arc::new(EvaluatedOverlays::of(&overlays, &known));
    let mut catalogs = OverlaidCatalogs::default();
    catalogs.look(&evaluated, &pools, |_| base.clone());
    let of = |catalogs: &OverlaidCatalogs, pool| catalogs.get(pool).unwrap().clone();
    let first = of(&catalogs, "p");
    assert!(Arc::ptr_eq(&first, &of(&catalogs, "q")) && Arc::ptr_eq(&base, &of(&catalogs, "r")));
    assert_eq!((price(&first, "pve1"), price(&first, "pve2")), (Price::new(5.0), Price::new(5.0)));
    // Looked at again, also after everything was evaluated again: nothing is made anew.
    let again = Arc::new(EvaluatedOverlays::of(&overlays, &known));
    assert_eq!(evaluated, again);
    catalogs.look(&again, &pools, |_| base.clone());
    assert!(Arc::ptr_eq(&first, &of(&catalogs, "p")));
    let none = Arc::new(EvaluatedOverlays::of(&[], &known));
    catalogs.look(&none, &pools, |_| base.clone());
    assert!(Arc::ptr_eq(&base, &of(&catalogs, "p")), "without the overlay all is as before");
}

#[test]
fn i6_a_host_that_comes_later_is_priced_like_those_that_were_looked_at() {
    let (before, pool) = (Arc::new(Catalog::default()), pool("p", &json!({})));
    let overlays = [overlay("a", "topology.kubernetes.io/zone", "pve2", &json!({ "priceAdjustment": "-100%" }))];
    let evaluated = EvaluatedOverlays::of(&overlays, &[(pool.clone(), before)]);
    let now = base();
    let overlaid = evaluated.changes(&pool, &now).applied_to(&now);
    assert_eq!((price(&overlaid, "pve2"), price(&overlaid, "pve1")), (Price::FREE, price(&now, "pve1")));
}

#[test]
fn i6_a_pool_is_known_once_it_was_looked_at_and_what_is_being_deleted_counts_no_more() {
    let (base, mut going) = (base(), NodePool::clone(&pool("going", &json!({}))));
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let mut left = overlay("b", "karpenter.sh/nodepool", "p", &json!({ "price": "5" }));
    left.metadata.deletion_timestamp = going.metadata.deletion_timestamp.clone();
    let overlays = [overlay("a", "karpenter.sh/nodepool", "p", &json!({ "capacity": { "example.com/a": 1 } })), left];
    let known = [(pool("p", &json!({})), base.clone()), (Arc::new(going), base.clone())];
    let evaluated = EvaluatedOverlays::of(&overlays, &known);
    assert!(evaluated.knows("p") && !evaluated.knows("going") && !evaluated.knows("later"));
    assert!(evaluated.faults.is_empty(), "{:?}", evaluated.faults);
    let more = evaluated.capacity("p", "s1.4VCPU-16GB").unwrap();
    assert_eq!(more.get("example.com/a").value(), 1);
    assert_eq!(evaluated.capacity("going", "s1.4VCPU-16GB"), None);
}

#[test]
fn i6_an_overlay_that_makes_no_sense_is_left_out_and_keeps_no_other_from_applying() {
    let (base, pool) = (base(), pool("p", &json!({})));
    let broken = overlay("b", "a b", "x", &json!({ "price": "5" }));
    let overlays = [overlay("a", "karpenter.sh/nodepool", "p", &json!({ "price": "5" })), broken];
    let evaluated = EvaluatedOverlays::of(&overlays, &[(pool.clone(), base.clone())]);
    let OverlayFault::Invalid(faults) = &evaluated.faults["b"] else { panic!("{:?}", evaluated.faults) };
    assert!(faults[0].contains("\"a b\" is not a valid label key"), "{faults:?}");
    assert_eq!(price(&evaluated.changes(&pool, &base).applied_to(&base), "pve1"), Price::new(5.0));
}
