//! Tables: which overlays apply, which conflict, and what becomes of a catalogue.

use super::*;
use crate::catalog::{CatalogType, Offering, Overrides};
use crate::labels::{CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE};
use crate::price::Price;
use crate::requirement::{Operator, Requirement};
use crate::written_requirement::WrittenRequirement;

const FPGA: &str = "example.com/fpga";
const GPU: &str = "example.com/gpu";

fn one_of(values: &[&str]) -> Requirement {
    Requirement::new(Operator::In, values.iter().map(|value| (*value).to_owned())).unwrap()
}

/// Sizes `small` at 10 and `large` at 20, each on demand in zones a and b.
fn catalog() -> Catalog {
    let size = |name: &str, price: f64| {
        let offering = |zone: &str| Offering {
            requirements: [(ZONE.to_owned(), one_of(&[zone])), (CAPACITY_TYPE.to_owned(), one_of(&["on-demand"]))]
                .into_iter()
                .collect(),
            price: Price::new(price),
            available: zone == "a",
            overrides: Overrides { capacity: amounts(&[("cpu", "3")]), ..Overrides::default() },
            ..Offering::default()
        };
        let facts = [(INSTANCE_TYPE, one_of(&[name])), (ZONE, one_of(&["a", "b"])), ("cores", one_of(&["4"]))];
        CatalogType {
            name: name.to_owned(),
            requirements: facts.into_iter().map(|(label, fact)| (label.to_owned(), fact)).collect(),
            capacity: amounts(&[("cpu", "4")]),
            offerings: ["a", "b"].map(offering).into(),
            ..CatalogType::default()
        }
    };
    Catalog::new(vec![size("small", 10.0), size("large", 20.0)])
}

fn amounts(texts: &[(&str, &str)]) -> Resources {
    texts.iter().map(|(resource, amount)| (*resource, amount.parse().unwrap())).collect()
}

/// An overlay from words: `name weight key=value,value … price change resource=amount`, in any order after the weight.
fn overlay(text: &str) -> Overlay {
    let mut words = text.split(' ');
    let (name, weight) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
    let mut overlay = Overlay { name: name.to_owned(), weight, ..Overlay::default() };
    for word in words {
        match word.split_once('=') {
            Some((resource, amount)) if resource.starts_with("example.com/") => {
                overlay.capacity = overlay.capacity.with(resource, amount.parse().unwrap());
            }
            Some((key, values)) => {
                let (operator, key) = key.strip_prefix('!').map_or((Operator::In, key), |key| (Operator::NotIn, key));
                let key = match key {
                    "zone" => ZONE,
                    "type" => INSTANCE_TYPE,
                    "pool" => NODEPOOL,
                    other => other,
                };
                let values = values.split(',').map(str::to_owned).collect();
                let written = WrittenRequirement { label: key.to_owned(), operator, values, min_values: None };
                overlay.requirements.add(key, &written.requirement().unwrap());
            }
            None if word.starts_with(['+', '-']) => overlay.price = Some(PriceChange::by(word).unwrap()),
            None => overlay.price = Some(PriceChange::to(word).unwrap()),
        }
    }
    overlay
}

fn overlays(texts: &[&str]) -> Vec<Overlay> {
    texts.iter().map(|text| overlay(text)).collect()
}

/// Pools `p`, with the label `team=x`, and `q`.
fn pools(catalog: &Catalog) -> [OverlaidPool<'_>; 2] {
    let pool = |name, labels: &[(&str, &str)]| OverlaidPool {
        name,
        labels: Requirements::from_labels(labels.iter().copied()),
        catalog,
    };
    [pool("p", &[("team", "x")]), pool("q", &[])]
}

/// The prices of a pool: `small` in a and b, `large` in a and b.
fn prices(catalog: &Catalog) -> [f64; 4] {
    let of = |size: &str, zone: &str| {
        let size = catalog.find(size).unwrap();
        size.offerings.iter().find(|way| way.label(ZONE) == Some(zone)).unwrap().price.value()
    };
    [of("small", "a"), of("small", "b"), of("large", "a"), of("large", "b")]
}

/// Which of these conflict, and what they make of the prices of pools `p` and `q`.
fn outcome(texts: &[&str]) -> (Vec<String>, [[f64; 4]; 2]) {
    let catalog = catalog();
    let (set, conflicts) = OverlaySet::of(overlays(texts), &pools(&catalog));
    let priced = |pool: &OverlaidPool<'_>| prices(&set.changes(pool).applied_to(&catalog));
    (conflicts.into_keys().collect(), pools(&catalog).each_ref().map(priced))
}

#[test]
fn i6_overlays_conflict_by_price_adjustment_and_capacity_only_with_equal_weight_on_the_same_thing() {
    for (texts, expected) in [
        // Price with price, price with adjustment, adjustment with adjustment; equal ones, too.
        (&["a 1 5", "b 1 7"][..], &["a"][..]),
        (&["a 1 5", "b 1 +7"], &["a"]),
        (&["a 1 -5%", "b 1 +7"], &["a"]),
        (&["a 1 5", "b 1 5"], &["a"]),
        (&["a 0 5", "b 0 5", "c 0 5"], &["a", "b"]),
        // Another weight, another size, another zone, another pool.
        (&["a 1 5", "b 2 7"], &[]),
        (&["a 1 type=small 5", "b 1 type=large 7"], &[]),
        (&["a 1 zone=a 5", "b 1 zone=b 7"], &[]),
        (&["a 1 pool=p 5", "b 1 pool=q 7"], &[]),
        (&["a 1 zone=a 5", "b 1 !zone=a 7"], &[]),
        // Sizes that overlap in part.
        (&["a 1 type=small,large 5", "b 1 type=large 7"], &["a"]),
        (&["a 1 zone=a,b 5", "b 1 zone=b 7"], &["a"]),
        // Capacity.
        (&["a 1 example.com/gpu=1", "b 1 example.com/gpu=2"], &["a"]),
        (&["a 1 example.com/gpu=1", "b 1 example.com/gpu=1"], &["a"]),
        (&["a 1 example.com/gpu=1", "b 1 example.com/fpga=1"], &[]),
        (&["a 1 example.com/gpu=1", "b 2 example.com/gpu=2"], &[]),
        (&["a 1 type=small example.com/gpu=1", "b 1 type=large example.com/gpu=2"], &[]),
        // Capacity belongs to a size, in whichever zone it was meant.
        (&["a 1 zone=a example.com/gpu=1", "b 1 zone=b example.com/gpu=2"], &["a"]),
        // A price and an amount are two things, but one conflict is enough for both.
        (&["a 1 5", "b 1 example.com/gpu=1"], &[]),
        (&["a 1 5 example.com/gpu=1", "b 1 example.com/gpu=1"], &["a"]),
        // Whoever is overruled anyway still conflicts with its equal; whoever conflicts keeps nobody else from applying.
        (&["a 1 5", "b 1 6", "c 9 7"], &["a"]),
        (&["a 1 type=small 5", "b 1 5", "c 1 type=large 7"], &["b"]),
        (&["a 5 example.com/gpu=1", "b 5 example.com/fpga=1", "c 9 example.com/gpu=1"], &[]),
        // Nothing is spoken of.
        (&["a 1 type=none 5", "b 1 type=none 7"], &[]),
        (&["a 1", "b 1"], &[]),
    ] {
        let (conflicts, _) = outcome(texts);
        assert_eq!(conflicts, expected, "{texts:?}");
        let reversed: Vec<&str> = texts.iter().rev().copied().collect();
        assert_eq!(outcome(texts), outcome(&reversed), "{texts:?}: the order in which they are listed means nothing");
    }
}

#[test]
fn i6_the_first_by_weight_and_then_by_name_decides_each_offering() {
    for (texts, p) in [
        (&["a 1 type=small +10%"][..], [11.0, 11.0, 20.0, 20.0]),
        (&["a 1 zone=a 3"], [3.0, 10.0, 3.0, 20.0]),
        // Each offering for itself: the higher one has zone a, the lower one what is left.
        (&["low 1 1", "high 2 zone=a 2"], [2.0, 1.0, 2.0, 1.0]),
        // One adjustment is not made on top of another.
        (&["low 1 +5", "high 2 +10%"], [11.0, 11.0, 22.0, 22.0]),
        (&["y 1 1", "z 1 2"], [2.0, 2.0, 2.0, 2.0]),
    ] {
        assert_eq!(outcome(texts).1[0], p, "{texts:?}");
    }
}

#[test]
fn i6_an_overlay_that_conflicts_in_one_pool_or_size_applies_in_none() {
    let untouched = [10.0, 10.0, 20.0, 20.0];
    let (conflicts, [p, q]) = outcome(&["b 1 pool=p type=large 7", "a 1 5"]);
    assert_eq!(conflicts, ["a"]);
    assert_eq!((p, q), ([10.0, 10.0, 7.0, 7.0], untouched), "neither the other size nor the other pool");
}

#[test]
fn i6_overlays_are_scoped_by_pool_and_by_labels_of_the_template() {
    let untouched = [10.0, 10.0, 20.0, 20.0];
    for (text, p, q) in [
        ("a 1 pool=p 5", [5.0; 4], untouched),
        ("a 1 !pool=p 5", untouched, [5.0; 4]),
        ("a 1 team=x 5", [5.0; 4], untouched),
        ("a 1 team=y 5", untouched, untouched),
        // What a pool does not say is not true of it; nor is it anything else.
        ("a 1 !team=x 5", untouched, [5.0; 4]),
        ("a 1 cores=4 5", [5.0; 4], [5.0; 4]),
        ("a 1 cores=4,8 type=small 5", [5.0, 5.0, 20.0, 20.0], [5.0, 5.0, 20.0, 20.0]),
        ("a 1 unknown=x 5", untouched, untouched),
    ] {
        assert_eq!(outcome(&[text]).1, [p, q], "{text}");
    }
}

#[test]
fn i6_capacity_is_merged_resource_by_resource_and_the_rest_of_a_size_stays() {
    let catalog = catalog();
    let texts = ["low 1 example.com/gpu=1 example.com/fpga=1", "high 2 type=small example.com/gpu=4 +1"];
    let (set, conflicts) = OverlaySet::of(overlays(&texts), &pools(&catalog));
    assert!(conflicts.is_empty());
    let changes = set.changes(&pools(&catalog)[0]);
    let overlaid = changes.applied_to(&catalog);
    let of = |size: &str, resource: &str| overlaid.find(size).unwrap().capacity.get(resource).value();
    assert_eq!([of("small", GPU), of("small", FPGA), of("small", "cpu")], [4, 1, 4]);
    assert_eq!([of("large", GPU), of("large", FPGA), of("large", "cpu")], [1, 1, 4]);
    assert_eq!(changes.capacity_of("small").unwrap().get(GPU).value(), 4);
    let small = overlaid.find("small").unwrap();
    assert_eq!((small.overlaid.price, small.overlaid.capacity), (true, true));
    let large = overlaid.find("large").unwrap();
    assert_eq!((large.overlaid.price, large.overlaid.capacity), (false, true));
    let way = &small.offerings[0];
    assert_eq!(way.overrides.capacity, amounts(&[("cpu", "3")]), "an offering keeps its own amounts with a new price");
    assert_eq!(small.allocatable(&way.overrides).get(GPU).value(), 4, "and its pods can have what was added");
}

#[test]
fn i6_a_pool_that_nothing_is_said_of_needs_no_copy_and_the_catalogue_itself_never_changes() {
    let catalog = catalog();
    let (set, _) = OverlaySet::of(overlays(&["a 1 pool=p 5 example.com/gpu=1"]), &pools(&catalog));
    let [p, q] = pools(&catalog).map(|pool| set.changes(&pool));
    assert!(!p.is_empty() && q.is_empty());
    assert_eq!(prices(&p.applied_to(&catalog)), [5.0; 4]);
    assert_eq!(prices(&catalog), [10.0, 10.0, 20.0, 20.0]);
    assert!(!catalog.find("small").unwrap().capacity.names(GPU));
    assert_eq!(set.changes(&pools(&catalog)[0]), p, "equal changes make equal catalogues");
}

#[test]
fn i6_offerings_that_cannot_be_had_now_are_priced_like_the_others() {
    let (_, [p, _]) = outcome(&["a 1 zone=b 5"]);
    assert_eq!(p, [10.0, 5.0, 20.0, 5.0], "zone b is not available");
}

#[test]
fn i6_a_conflict_names_the_other_overlay_what_both_change_and_the_next_step() {
    let catalog = catalog();
    let said = |texts: &[&str]| {
        let (_, conflicts) = OverlaySet::of(overlays(texts), &pools(&catalog));
        conflicts["a"].to_string()
    };
    assert_eq!(
        said(&["a 3 5", "b 3 zone=b 7"]),
        "conflict with NodeOverlay b of the same weight 3: both change the price of instance type large (b, on-demand) in \
         NodePool p; set another spec.weight, or change spec.requirements of one of them"
    );
    assert_eq!(
        said(&["a 0 pool=q example.com/gpu=1", "b 0 example.com/gpu=1"]),
        "conflict with NodeOverlay b of the same weight 0: both change capacity example.com/gpu of instance type large in \
         NodePool q; set another spec.weight, or change spec.requirements of one of them"
    );
}
