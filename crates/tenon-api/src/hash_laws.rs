//! Two pools, and two classes, have the same hash if and only if they mean the same, however they are written.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::hash::{of_class, of_pool};

/// A key, an optional value, and one of the effects.
type TaintParts = (u8, Option<u8>, u8);

/// What a pool means, in numbers that are often the same.
#[derive(Debug, Clone)]
struct PoolParts {
    labels: BTreeMap<u8, u8>,
    annotations: BTreeMap<u8, u8>,
    taints: Vec<TaintParts>,
    startup_taints: Vec<TaintParts>,
    class: u8,
    grace_min: Option<u16>,
    expire_min: Option<u16>,
}

/// How it is written.
#[derive(Debug, Clone, Copy)]
struct Spelling {
    backwards: bool,
    zeros: bool,
    seconds: bool,
}

/// The default of `expireAfter`, in minutes.
const DEFAULT_MIN: u16 = 720 * 60;

impl PoolParts {
    fn meaning(&self) -> impl PartialEq + use<> {
        let set = |taints: &[TaintParts]| taints.iter().copied().collect::<BTreeSet<_>>();
        (
            (self.labels.clone(), self.annotations.clone()),
            (set(&self.taints), set(&self.startup_taints)),
            (self.class, self.grace_min, self.expire_min.unwrap_or(DEFAULT_MIN)),
        )
    }

    fn hash(&self, spelling: Spelling) -> String {
        let mut metadata = Map::new();
        spelling.put(&mut metadata, "labels", texts(&self.labels));
        spelling.put(&mut metadata, "annotations", texts(&self.annotations));
        let mut spec = Map::new();
        spelling.put(&mut spec, "taints", spelling.taints(&self.taints));
        spelling.put(&mut spec, "startupTaints", spelling.taints(&self.startup_taints));
        spelling.put(&mut spec, "terminationGracePeriod", spelling.duration(self.grace_min));
        let expire = self.expire_min.filter(|minutes| spelling.zeros || *minutes != DEFAULT_MIN);
        if let Some(minutes) = expire {
            spec.insert("expireAfter".to_owned(), spelling.duration(Some(minutes)));
        }
        spec.insert("requirements".to_owned(), json!([]));
        let name = format!("class-{}", self.class);
        spec.insert("nodeClassRef".to_owned(), json!({ "group": "g", "kind": "k", "name": name }));
        let mut template = Map::new();
        spelling.put(&mut template, "metadata", Value::Object(metadata));
        template.insert("spec".to_owned(), Value::Object(spec));
        of_pool(&serde_json::from_value(json!({ "metadata": {}, "spec": { "template": template } })).unwrap())
    }
}

impl Spelling {
    /// A field that says nothing is left out, or written out.
    fn put(self, fields: &mut Map<String, Value>, name: &str, value: Value) {
        let is_silent = match &value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(object) => object.is_empty(),
            _ => false,
        };
        if self.zeros || !is_silent {
            fields.insert(name.to_owned(), value);
        }
    }

    /// In either order, and with the first one twice.
    fn taints(self, parts: &[TaintParts]) -> Value {
        let effect = |effect: u8| ["NoSchedule", "PreferNoSchedule", "NoExecute"][usize::from(effect % 3)];
        let taint = |(key, value, number): &TaintParts| {
            let mut taint = json!({ "key": format!("k{key}"), "effect": effect(*number) });
            match value {
                Some(value) => taint["value"] = json!(format!("v{value}")),
                None if self.zeros => taint["value"] = json!(""),
                None => {}
            }
            taint
        };
        let mut taints: Vec<Value> = parts.iter().map(taint).collect();
        if self.backwards {
            taints.reverse();
            taints.extend(taints.first().cloned());
        }
        Value::Array(taints)
    }

    fn duration(self, minutes: Option<u16>) -> Value {
        minutes.map_or(Value::Null, |minutes| match self.seconds {
            true => json!(format!("{}s", u32::from(minutes) * 60)),
            false => json!(format!("{}h{}m", minutes / 60, minutes % 60)),
        })
    }
}

/// Zero is an empty value, which is a value.
fn texts(map: &BTreeMap<u8, u8>) -> Value {
    let text = |value: &u8| if *value == 0 { String::new() } else { format!("v{value}") };
    map.iter().map(|(key, value)| (format!("k{key}"), json!(text(value)))).collect::<Map<_, _>>().into()
}

fn pools() -> impl Strategy<Value = PoolParts> {
    let map = || prop::collection::btree_map(0..2_u8, 0..2_u8, 0..2);
    let taints = || {
        prop::collection::vec((0..2_u8, prop::option::of(0..2_u8), 0..3_u8), 0..3)
            .prop_map(|taints| taints.into_iter().map(|(key, value, effect)| (key, value, effect % 3)).collect())
    };
    let minutes = || prop::option::of(prop_oneof![Just(0), Just(90), Just(DEFAULT_MIN)]);
    (map(), map(), taints(), taints(), 0..2_u8, minutes(), minutes()).prop_map(
        |(labels, annotations, taints, startup_taints, class, grace_min, expire_min)| PoolParts {
            labels,
            annotations,
            taints,
            startup_taints,
            class,
            grace_min,
            expire_min,
        },
    )
}

fn spellings() -> impl Strategy<Value = Spelling> {
    any::<(bool, bool, bool)>().prop_map(|(backwards, zeros, seconds)| Spelling { backwards, zeros, seconds })
}

/// What a class means: region, another balance than the default, gigabytes of disk, storage, name servers, swap.
type ClassParts = (Option<u8>, bool, Option<u8>, Option<u8>, BTreeSet<u8>, Option<bool>);

fn class_hash(parts: &ClassParts, spelling: Spelling) -> String {
    let (region, elsewhere, gigabytes, storage, servers, swap) = parts;
    let text = |number: &Option<u8>| number.map_or(Value::Null, |number| json!(format!("x{number}")));
    let mut spec = Map::new();
    spelling.put(&mut spec, "region", text(region));
    if *elsewhere || spelling.zeros {
        let balance = if *elsewhere { "AvailabilityFirst" } else { "Balanced" };
        spec.insert("placementStrategy".to_owned(), json!({ "zoneBalance": balance }));
    }
    let mut boot = Map::new();
    let size =
        |number: u8| if spelling.seconds { format!("{number}G") } else { format!("{}M", u32::from(number) * 1000) };
    spelling.put(&mut boot, "size", gigabytes.map_or(Value::Null, |number| json!(size(number))));
    spelling.put(&mut boot, "storage", text(storage));
    spec.insert("bootDevice".to_owned(), Value::Object(boot));
    let mut addresses: Vec<String> = servers.iter().map(|number| format!("10.0.0.{number}")).collect();
    if spelling.backwards {
        addresses.reverse();
    }
    let mut kubelet = Map::new();
    spelling.put(&mut kubelet, "clusterDNS", json!(addresses));
    spelling.put(&mut kubelet, "failSwapOn", json!(swap));
    spelling.put(&mut spec, "kubeletConfiguration", Value::Object(kubelet));
    spec.insert("instanceTemplateRef".to_owned(), json!({ "kind": "ProxmoxTemplate", "name": "t" }));
    spec.insert("tags".to_owned(), if spelling.zeros { json!(["a"]) } else { json!([]) });
    of_class(&serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap())
}

fn classes() -> impl Strategy<Value = ClassParts> {
    let some = || prop::option::of(1..3_u8);
    let servers = prop::collection::btree_set(0..3_u8, 0..3);
    (some(), any::<bool>(), some(), some(), servers, any::<Option<bool>>())
}

proptest! {
    #[test]
    fn pools_have_the_same_hash_if_and_only_if_they_mean_the_same(
        (a, b) in (pools(), pools()), (s, t) in (spellings(), spellings()),
    ) {
        prop_assert_eq!(a.hash(s), a.hash(t));
        prop_assert_eq!(a.meaning() == b.meaning(), a.hash(s) == b.hash(t));
    }

    #[test]
    fn classes_have_the_same_hash_if_and_only_if_they_mean_the_same(
        (a, b) in (classes(), classes()), (s, t) in (spellings(), spellings()),
    ) {
        prop_assert_eq!(class_hash(&a, s), class_hash(&a, t));
        prop_assert_eq!(a == b, class_hash(&a, s) == class_hash(&b, t));
    }
}
