//! What do rules in CEL see, and what is said of those that are broken?

use serde_json::{Map, Value, json};

use crate::schema::said;

fn rule(kind: Value, rules: Value) -> Value {
    let mut field = kind;
    field["x-kubernetes-validations"] = rules;
    json!({ "x": field })
}

fn spec(value: Value) -> Value {
    Value::Object(Map::from_iter([("x".to_owned(), value)]))
}

fn with(fields: &Value, value: Value) -> Vec<String> {
    said(fields, &spec(value), None)
}

fn changed(fields: &Value, old: Value, new: Value) -> Vec<String> {
    said(fields, &spec(new), Some(&spec(old)))
}

#[test]
fn a_broken_rule_says_its_message() {
    let text = json!({ "type": "string" });
    let cases = [
        (json!([{ "rule": "self != 'a'", "message": "no a" }]), "spec.x: Invalid value: \"a\": no a"),
        (json!([{ "rule": "self != 'a'" }]), "spec.x: Invalid value: \"a\": failed rule: self != 'a'"),
        (json!([{ "rule": "false", "messageExpression": "'not ' + self" }]), "spec.x: Invalid value: \"a\": not a"),
        (json!([{ "rule": "false", "message": "m", "messageExpression": "''" }]), "spec.x: Invalid value: \"a\": m"),
        (json!([{ "rule": "false", "message": "m", "reason": "FieldValueForbidden" }]), "spec.x: Forbidden: m"),
        (json!([{ "rule": "false", "message": "m", "reason": "FieldValueRequired" }]), "spec.x: Required value: m"),
        (
            json!([{ "rule": "false", "message": "m", "reason": "FieldValueDuplicate" }]),
            "spec.x: Duplicate value: \"a\"",
        ),
    ];
    for (rules, words) in cases {
        assert_eq!(with(&rule(text.clone(), rules), json!("a")), [words]);
    }
    let object = json!({ "type": "object", "properties": { "y": { "type": "integer" } } });
    let fields = rule(object, json!([{ "rule": "self.y > 1", "message": "m", "fieldPath": ".y" }]));
    assert_eq!(with(&fields, json!({ "y": 1 })), ["spec.x.y: Invalid value: m"]);
    assert_eq!(with(&fields, json!({})), ["spec.x: Invalid value: \"object\": no such key: y evaluating rule: m"]);
}

#[test]
fn text_is_measured_in_characters_and_matched_as_in_go() {
    let fields = rule(json!({ "type": "string" }), json!([{ "rule": "self.size() == 1 && !self.matches('\\\\d')" }]));
    assert_eq!(with(&fields, json!("é")), Vec::<String>::new());
    assert_eq!(with(&fields, json!("٣")), Vec::<String>::new());
    assert_eq!(with(&fields, json!("3")).len(), 1);
}

#[test]
fn values_have_the_types_their_schemas_say() {
    let cases = [
        (json!({ "type": "number" }), "self > 1.5", json!(2)),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            "type(self) == int ? self < 5 : self.endsWith('%')",
            json!("9%"),
        ),
        (json!({ "x-kubernetes-int-or-string": true }), "type(self) == int ? self < 5 : self.endsWith('%')", json!(4)),
        (
            json!({ "type": "string", "format": "date-time" }),
            "self > timestamp('2026-01-01T00:00:00Z')",
            json!("2026-01-02T00:00:00Z"),
        ),
        (json!({ "type": "string", "format": "duration" }), "self < duration('49h')", json!("2 days")),
        (
            json!({ "type": "array", "items": { "type": "string", "nullable": true } }),
            "self.exists(x, x == null)",
            json!([null]),
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "integer" } }),
            "self['a-b'] == 1 && size(self) == 1",
            json!({ "a-b": 1 }),
        ),
        (
            json!({ "type": "object", "properties": { "a-b": { "type": "string", "nullable": true } } }),
            "!has(self.a__dash__b)",
            json!({ "a-b": null }),
        ),
    ];
    for (kind, source, value) in cases {
        assert_eq!(with(&rule(kind, json!([{ "rule": source }])), value), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn transition_rules_follow_fields_keys_and_no_positions() {
    let grows = json!([{ "rule": "self >= oldSelf", "message": "grows" }]);
    let size = json!({ "type": "integer", "x-kubernetes-validations": grows });
    let row = json!({ "type": "object", "properties": { "name": { "type": "string" }, "size": size } });
    let keyed = json!({ "x": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": row } });
    let (a, b) = (json!({ "name": "a", "size": 5 }), json!({ "name": "b", "size": 1 }));
    assert_eq!(with(&keyed, json!([a])), Vec::<String>::new());
    assert_eq!(changed(&keyed, json!([a, b]), json!([b, a])), Vec::<String>::new());
    let shrunk = json!({ "name": "a", "size": 4 });
    assert_eq!(changed(&keyed, json!([a, b]), json!([b, shrunk])), ["spec.x[1].size: Invalid value: 4: grows"]);
    let loose = json!({ "x": { "type": "array", "items": row } });
    assert_eq!(changed(&loose, json!([a]), json!([shrunk])), Vec::<String>::new());
    let map = json!({ "x": { "type": "object", "additionalProperties": size } });
    assert_eq!(changed(&map, json!({ "k": 2 }), json!({ "k": 1, "n": 0 })), ["spec.x[k]: Invalid value: 1: grows"]);
}

#[test]
fn sets_are_equal_in_any_order_and_old_values_may_be_optional() {
    let set = json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } });
    let fields = rule(set, json!([{ "rule": "self == oldSelf", "message": "fixed" }]));
    assert_eq!(changed(&fields, json!(["a", "b"]), json!(["b", "a"])), Vec::<String>::new());
    assert_eq!(changed(&fields, json!(["a", "b"]), json!(["b"])), ["spec.x: Invalid value: fixed"]);
    let once = json!([{ "rule": "oldSelf.hasValue() ? self == oldSelf.value() : self < 10", "optionalOldSelf": true }]);
    let fields = rule(json!({ "type": "integer" }), once);
    assert_eq!(with(&fields, json!(9)), Vec::<String>::new());
    assert_eq!(with(&fields, json!(10)).len(), 1);
    assert_eq!(changed(&fields, json!(11), json!(11)), Vec::<String>::new());
    assert_eq!(changed(&fields, json!(11), json!(3)).len(), 1);
}

#[test]
fn an_unchanged_value_may_break_a_rule_but_not_one_about_change() {
    let fields = rule(
        json!({ "type": "integer" }),
        json!([{ "rule": "self < 5" }, { "rule": "self > oldSelf", "message": "grows" }]),
    );
    assert_eq!(changed(&fields, json!(9), json!(9)), ["spec.x: Invalid value: 9: grows"]);
    assert_eq!(changed(&fields, json!(8), json!(9)), ["spec.x: Invalid value: 9: failed rule: self < 5"]);
}

#[test]
fn malformed_objects_are_not_asked() {
    let fields = json!({ "x": { "type": "integer", "x-kubernetes-validations": [{ "rule": "false" }] }, "y": { "type": "string" } });
    assert_eq!(said(&fields, &json!({ "x": 1, "y": 1 }), None).len(), 1);
}
