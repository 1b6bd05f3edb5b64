//! Is an object pruned and are its defaults filled in as a server does?

use serde_json::{Value, json};
use tenon_sim::cluster_schema::{FieldError, admit, prepare};

use crate::schema::{object, schema, stored};

type Outcome = Result<(), Vec<FieldError>>;

#[test]
fn unknown_fields_go_and_metadata_stays() -> Outcome {
    let known = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let free =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "known": known } });
    let fields = json!({ "list": { "type": "array", "items": known }, "map": { "type": "object", "additionalProperties": known }, "free": free });
    let item = json!({ "a": "x", "b": 1 });
    let spec = json!({ "list": [item], "map": { "k": item }, "free": { "known": item, "other": item }, "z": 1 });
    let mut made = object(&spec);
    made["extra"] = json!(1);
    admit(&schema(&fields), &mut made, None)?;
    let clean = json!({ "a": "x" });
    let wanted = json!({ "list": [clean], "map": { "k": clean }, "free": { "known": clean, "other": item } });
    assert_eq!(made, object(&wanted));
    Ok(())
}

#[test]
fn defaults_fill_what_is_there_and_make_no_parents() -> Outcome {
    let inner = json!({ "type": "object", "properties": { "on": { "type": "boolean", "default": true } } });
    let made =
        json!({ "type": "object", "default": {}, "properties": { "on": { "type": "boolean", "default": true } } });
    let fields = json!({
        "plain": { "type": "string", "default": "usual" }, "inner": inner, "made": made,
        "list": { "type": "array", "items": inner }, "map": { "type": "object", "additionalProperties": inner },
    });
    let on = json!({ "on": true });
    assert_eq!(stored(&fields, &json!({}))?, json!({ "plain": "usual", "made": on }));
    let spec = json!({ "plain": "own", "inner": {}, "list": [{}, { "on": false }], "map": { "k": {} }, "made": on });
    let wanted = json!({ "plain": "own", "inner": on, "list": [on, { "on": false }], "map": { "k": on }, "made": on });
    assert_eq!(stored(&fields, &spec)?, wanted);
    Ok(())
}

#[test]
fn a_null_is_kept_replaced_or_dropped() -> Outcome {
    let fields = json!({
        "plain": { "type": "string" },
        "nullable": { "type": "string", "nullable": true },
        "defaulted": { "type": "string", "default": "usual" },
        "both": { "type": "string", "nullable": true, "default": "usual" },
        "items": { "type": "array", "items": { "type": "string", "default": "item" } },
    });
    let spec = json!({ "plain": null, "nullable": null, "defaulted": null, "both": null, "items": [null, "a"] });
    let wanted = json!({ "nullable": null, "defaulted": "usual", "both": null, "items": ["item", "a"] });
    assert_eq!(stored(&fields, &spec)?, wanted);
    let refused =
        stored(&json!({ "items": { "type": "array", "items": { "type": "string" } } }), &json!({ "items": [null] }));
    assert_eq!(refused.map_err(|errors| errors[0].field.clone()), Err("spec.items[0]".to_owned()));
    Ok(())
}

#[test]
fn whole_floats_are_stored_without_a_fraction() -> Outcome {
    let fields = json!({ "integer": { "type": "integer" }, "number": { "type": "number" } });
    let made = stored(&fields, &json!({ "integer": 1.0, "number": 2.0 }))?;
    assert_eq!(made.to_string(), r#"{"integer":1,"number":2}"#);
    Ok(())
}

#[test]
fn a_refused_object_is_left_prepared() {
    let fields =
        json!({ "plain": { "type": "string", "default": "usual" }, "word": { "type": "string", "enum": ["a"] } });
    let (mut refused, mut prepared) = (object(&json!({ "word": "b" })), object(&json!({ "word": "b" })));
    assert!(admit(&schema(&fields), &mut refused, None).is_err());
    prepare(&schema(&fields), &mut prepared);
    assert_eq!(refused, prepared);
    assert_eq!(refused["spec"]["plain"], Value::from("usual"));
}
