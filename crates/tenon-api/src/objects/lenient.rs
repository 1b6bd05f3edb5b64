//! What other writers of NodePools and NodeClaims leave out, and an API server or Go would have made good.
//!
//! A program in Go writes an empty list as `null`; a person leaves out when a condition changed, or writes a limit as a
//! large number. None of that changes what is meant.

use serde_json::{Map, Value, json};

use super::Kind;

/// The same object with what was left out, ready to be read by its kind.
pub fn made_good(kind: Kind, mut object: Value) -> Value {
    drop_nulls(&mut object);
    let (wanted, amounts): (&str, &[&str]) = match kind {
        Kind::NodePool => ("/spec/template/spec", &["/spec/limits", "/status/resources"]),
        Kind::NodeClaim => ("/spec", &["/spec/resources/requests", "/status/capacity", "/status/allocatable"]),
        Kind::NodeOverlay => ("/spec", &["/spec/capacity"]),
        _ => return object,
    };
    if let Some(spec) = map_at(&mut object, wanted) {
        spec.entry("requirements").or_insert_with(|| json!([]));
    }
    for pointer in amounts {
        for amount in map_at(&mut object, pointer).into_iter().flat_map(Map::values_mut) {
            if let Value::Number(number) = amount {
                *amount = Value::String(number.to_string());
            }
        }
    }
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.entry("lastTransitionTime").or_insert_with(|| json!("1970-01-01T00:00:00Z"));
    }
    object
}

fn map_at<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Map<String, Value>> {
    object.pointer_mut(pointer).and_then(Value::as_object_mut)
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Object;

    #[test]
    fn a_pool_as_go_writes_it_is_read() {
        let pool = json!({"metadata": {"name": "p", "creationTimestamp": null}, "spec": {"limits": {"memory": 10_737_418_240_u64},
            "template": {"metadata": {}, "spec": {"requirements": null, "nodeClassRef": {"group": "g", "kind": "k", "name": "n"}}}},
            "status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        assert!(Kind::NodePool.read(pool.clone()).is_err(), "it would not need to be made good");
        let Object::NodePool(pool) = Kind::NodePool.read(made_good(Kind::NodePool, pool)).unwrap() else { panic!() };
        assert!(pool.spec.template.spec.requirements.is_empty());
        assert_eq!(format!("{:?}", pool.spec.limits.unwrap()["memory"]), r#"String("10737418240")"#);
        assert_eq!(pool.status.unwrap().conditions.unwrap().len(), 1);
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        let claim = json!({"metadata": {"name": "c"}, "spec": {"requirements": 5}});
        assert!(Kind::NodeClaim.read(made_good(Kind::NodeClaim, claim)).is_err());
    }
}
