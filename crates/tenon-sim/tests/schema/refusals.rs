//! What is refused by its shape, and in which words?

use serde_json::{Value, json};

use crate::schema::said;

/// A schema of one field, a value, and what is said of it.
type Case = (Value, Value, &'static [&'static str]);

fn types_and_texts() -> Vec<Case> {
    vec![
        (
            json!({ "type": "string" }),
            json!(1),
            &["spec.x: Invalid value: \"integer\": spec.x in body must be of type string: \"integer\""],
        ),
        (
            json!({ "type": "integer" }),
            json!(1.5),
            &[
                "spec.x: Invalid value: \"number\": spec.x in body must be of type integer: \"number\"",
                "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.x",
            ],
        ),
        (json!({ "type": "number" }), json!(1), &[]),
        (json!({ "x-kubernetes-int-or-string": true }), json!("10%"), &[]),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            json!(true),
            &["spec.x: Invalid value: \"boolean\": spec.x in body must be of type integer,string: \"boolean\""],
        ),
        (json!({ "type": "string", "maxLength": 2 }), json!("éé"), &[]),
        (
            json!({ "type": "string", "maxLength": 2 }),
            json!("ééé"),
            &["spec.x: Too long: may not be more than 2 bytes"],
        ),
        (
            json!({ "type": "string", "minLength": 2 }),
            json!("é"),
            &["spec.x: Invalid value: \"é\": spec.x in body should be at least 2 chars long"],
        ),
        (
            json!({ "type": "string", "pattern": "^\\d$" }),
            json!("٣"),
            &["spec.x: Invalid value: \"٣\": spec.x in body should match '^\\d$'"],
        ),
        (json!({ "type": "string", "pattern": "^[[<\\w]+\\>$" }), json!("[<a_>"), &[]),
    ]
}

fn choices_and_numbers() -> Vec<Case> {
    vec![
        (
            json!({ "type": "string", "enum": ["a", "b"] }),
            json!("c"),
            &["spec.x: Unsupported value: \"c\": supported values: \"a\", \"b\""],
        ),
        (
            json!({ "type": "string", "nullable": true, "enum": ["a"] }),
            json!(null),
            &["spec.x: Unsupported value: null: supported values: \"a\""],
        ),
        (
            json!({ "type": "integer", "minimum": 1 }),
            json!(0),
            &["spec.x: Invalid value: 0: spec.x in body should be greater than or equal to 1"],
        ),
        (
            json!({ "type": "integer", "maximum": 5.0, "exclusiveMaximum": true }),
            json!(5),
            &["spec.x: Invalid value: 5: spec.x in body should be less than 5"],
        ),
        (json!({ "type": "number", "multipleOf": 0.1 }), json!(0.3), &[]),
        (
            json!({ "type": "integer", "multipleOf": 2 }),
            json!(3),
            &["spec.x: Invalid value: 3: spec.x in body should be a multiple of 2"],
        ),
        (
            json!({ "type": "string", "format": "date-time" }),
            json!("2026-02-30T00:00:00Z"),
            &[
                "spec.x: Invalid value: \"2026-02-30T00:00:00Z\": spec.x in body must be of type date-time: \"2026-02-30T00:00:00Z\"",
            ],
        ),
        (json!({ "type": "string", "format": "duration" }), json!("1h30m"), &[]),
        (json!({ "type": "string", "format": "unheard-of" }), json!("x"), &[]),
    ]
}

fn compounds() -> Vec<Case> {
    let row = json!({ "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } });
    let choice = json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } }, "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    vec![
        (row.clone(), json!({}), &["spec.x.name: Required value"]),
        (
            json!({ "type": "array", "maxItems": 2, "items": { "type": "string" } }),
            json!(["a", "b", "c"]),
            &["spec.x: Too many: 3: must have at most 2 items"],
        ),
        (
            json!({ "type": "array", "minItems": 1, "items": { "type": "string" } }),
            json!([]),
            &["spec.x: Invalid value: 0: spec.x in body should have at least 1 items"],
        ),
        (
            json!({ "type": "array", "items": { "type": "string", "maxLength": 1 } }),
            json!(["a", "bb"]),
            &["spec.x[1]: Too long: may not be more than 1 byte"],
        ),
        (
            json!({ "type": "object", "maxProperties": 1, "additionalProperties": { "type": "integer" } }),
            json!({ "a": "1", "b": 2 }),
            &[
                "spec.x: Too many: 2: must have at most 1 item",
                "spec.x.a: Invalid value: \"string\": spec.x.a in body must be of type integer: \"string\"",
            ],
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } }),
            json!(["a", "a", "a"]),
            &["spec.x[1]: Duplicate value: \"a\""],
        ),
        (
            json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": row }),
            json!([{ "name": "a" }, { "name": "a" }]),
            &["spec.x[1]: Duplicate value: {\"name\":\"a\"}"],
        ),
        (choice.clone(), json!({ "a": "x" }), &[]),
        (
            choice.clone(),
            json!({}),
            &[
                "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found none valid",
                "spec.x.a: Required value",
            ],
        ),
        (
            choice,
            json!({ "a": "x", "b": "y" }),
            &[
                "<nil>: Invalid value: \"\": \"spec.x\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
            ],
        ),
        (
            json!({ "type": "string", "not": { "enum": ["a"] } }),
            json!("a"),
            &["<nil>: Invalid value: \"\": \"spec.x\" must not validate the schema (not)"],
        ),
    ]
}

#[test]
fn a_server_would_say_the_same() {
    for (field, value, words) in types_and_texts().into_iter().chain(choices_and_numbers()).chain(compounds()) {
        assert_eq!(said(&json!({ "x": field }), &json!({ "x": value }), None), words, "{field} {value}");
    }
}

#[test]
fn what_was_wrong_before_is_forgiven_until_it_changes() {
    let row = json!({ "type": "object", "properties": { "name": { "type": "string" }, "size": { "type": "integer", "maximum": 1 } } });
    let fields = json!({
        "short": { "type": "string", "maxLength": 1 }, "loose": { "type": "array", "items": { "type": "string", "maxLength": 1 } },
        "rows": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": row },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
    });
    let old = json!({ "short": "long", "loose": ["long"], "rows": [{ "name": "a", "size": 9 }], "set": ["a", "a"] });
    assert_eq!(said(&fields, &old, None).len(), 4);
    assert_eq!(said(&fields, &old, Some(&old)), Vec::<String>::new());
    let new = json!({ "short": "other", "loose": ["long", "b"], "rows": [{ "name": "b", "size": 9 }, { "name": "a", "size": 9 }], "set": ["b", "b"] });
    let refused: Vec<String> = said(&fields, &new, Some(&old));
    let fields: Vec<&str> = refused.iter().filter_map(|error| error.split(": ").next()).collect();
    assert_eq!(fields, ["spec.loose[0]", "spec.rows[0].size", "spec.short"]);
}
