//! Which objects put the admission of custom resources to the test?

use serde_json::{Map, Value, json};

/// A splitmix64 generator: the same seed gives the same objects.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, which must not be zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap_or(0)
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// A definition of the kind, in a group of the test's own.
pub(crate) fn definition(kind: &str, schema: &Value) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.schema.test") },
        "spec": {
            "group": "schema.test", "scope": "Cluster",
            "names": { "kind": kind, "plural": plural, "singular": singular, "listKind": format!("{kind}List") },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
}

/// A schema with a field for every keyword.
pub(crate) fn keyword_schema() -> Value {
    let mut fields = Map::new();
    for part in [plain_fields(), list_fields(), map_fields(), composed_fields(), ruled_fields()] {
        fields.extend(part.as_object().cloned().unwrap_or_default());
    }
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": { "type": "object", "properties": fields },
            "top": { "type": "object", "default": { "a": "b" }, "properties": { "a": { "type": "string" }, "c": { "type": "integer", "default": 3 } } },
        },
        "x-kubernetes-validations": [
            { "rule": "self.metadata.name != 'forbidden'", "message": "that name is taken" },
            { "rule": "!has(self.spec.integer) || self.spec.integer != 13", "fieldPath": ".spec.integer", "reason": "FieldValueForbidden", "message": "13 is unlucky" },
        ],
    })
}

fn plain_fields() -> Value {
    json!({
        "text": { "type": "string", "minLength": 2, "maxLength": 4 },
        "pattern": { "type": "string", "pattern": "^\\d+[a-z[]\\w*$" },
        "word": { "type": "string", "enum": ["one", "two"] },
        "nullableWord": { "type": "string", "nullable": true, "enum": ["one", "two"] },
        "nullable": { "type": "string", "nullable": true },
        "defaulted": { "type": "string", "default": "usual" },
        "nullableDefaulted": { "type": "string", "nullable": true, "default": "usual" },
        "integer": { "type": "integer", "minimum": -5, "maximum": 20, "multipleOf": 1 },
        "even": { "type": "integer", "multipleOf": 2, "minimum": 0, "exclusiveMinimum": true, "maximum": 10, "exclusiveMaximum": true },
        "int32": { "type": "integer", "format": "int32" },
        "int64": { "type": "integer", "format": "int64" },
        "options": { "type": "integer", "enum": [1, 2, 3] },
        "number": { "type": "number", "minimum": 0.5, "maximum": 2.5, "multipleOf": 0.5 },
        "double": { "type": "number", "format": "double" },
        "flag": { "type": "boolean" },
        "either": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }], "pattern": "^[0-9]+%$" },
        "bareEither": { "x-kubernetes-int-or-string": true },
        "time": { "type": "string", "format": "date-time" },
        "date": { "type": "string", "format": "date" },
        "span": { "type": "string", "format": "duration" },
        "ipv4": { "type": "string", "format": "ipv4" },
        "ipv6": { "type": "string", "format": "ipv6" },
        "cidr": { "type": "string", "format": "cidr" },
        "mac": { "type": "string", "format": "mac" },
        "uuid": { "type": "string", "format": "uuid" },
        "bytes": { "type": "string", "format": "byte" },
        "hostname": { "type": "string", "format": "hostname" },
        "unknownFormat": { "type": "string", "format": "made-up" },
    })
}

fn list_fields() -> Value {
    let row = json!({
        "type": "object", "required": ["name"],
        "properties": {
            "name": { "type": "string" }, "zone": { "type": "string", "default": "z" }, "size": { "type": "integer", "default": 1 },
            "inner": { "type": "object", "properties": { "on": { "type": "boolean", "default": true } } },
        },
    });
    json!({
        "list": { "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "string", "maxLength": 3 } },
        "defaultedItems": { "type": "array", "items": { "type": "string", "default": "item" } },
        "nullableItems": { "type": "array", "items": { "type": "string", "nullable": true } },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
        "rows": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": row },
        "pairs": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "zone"], "items": row },
        "loose": { "type": "array", "items": row },
    })
}

fn map_fields() -> Value {
    json!({
        "map": { "type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": { "type": "string", "pattern": "^[a-z]*$" } },
        "deepMap": { "type": "object", "additionalProperties": {
            "type": "object", "required": ["a"],
            "properties": { "a": { "type": "string" }, "b": { "type": "integer", "default": 2 } },
        } },
        "defaultedMap": { "type": "object", "additionalProperties": { "type": "string", "default": "entry" } },
        "preserved": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": { "type": "object", "properties": { "a": { "type": "string" } } },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        } },
        "anything": { "x-kubernetes-preserve-unknown-fields": true },
        "nested": { "type": "object", "properties": {
            "inner": { "type": "object", "default": {}, "properties": { "on": { "type": "boolean", "default": true } } },
        } },
    })
}

fn composed_fields() -> Value {
    json!({
        "any": { "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "integer" } }, "anyOf": [{ "required": ["a"] }, { "required": ["b"], "properties": { "b": { "minimum": 3 } } }] },
        "one": { "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "integer" } }, "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] },
        "all": { "type": "string", "allOf": [{ "pattern": "^a" }, { "pattern": "z$", "maxLength": 5 }] },
        "not": { "type": "string", "not": { "enum": ["never"] } },
    })
}

fn ruled_fields() -> Value {
    let rows = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "maxLength": 10 },
        "size": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self >= oldSelf", "message": "sizes only grow" }] },
    } });
    json!({
        "ruledText": { "type": "string", "maxLength": 20, "x-kubernetes-validations": [{ "rule": "self.size() <= 4 && self.startsWith('a')", "messageExpression": "'not ' + self" }] },
        "ruledTime": { "type": "string", "format": "date-time", "x-kubernetes-validations": [{ "rule": "self > timestamp('2026-01-01T00:00:00Z')", "message": "too early" }] },
        "ruledSpan": { "type": "string", "format": "duration", "x-kubernetes-validations": [{ "rule": "self <= duration('1h')", "message": "at most an hour" }] },
        "ruledNumber": { "type": "number", "x-kubernetes-validations": [{ "rule": "self > 1.5", "reason": "FieldValueRequired" }] },
        "ruledEither": { "x-kubernetes-int-or-string": true, "maxLength": 9, "x-kubernetes-validations": [{ "rule": "type(self) == int ? self < 5 : self.matches('^[0-9]+%$')" }] },
        "ruledList": { "type": "array", "maxItems": 5, "items": { "type": "string", "maxLength": 10 }, "x-kubernetes-validations": [
            { "rule": "self.all(x, int(x) > 0)", "message": "positive" }, { "rule": "self[0] != '7'" }] },
        "ruledMap": { "type": "object", "maxProperties": 5, "additionalProperties": { "type": "integer", "x-kubernetes-validations": [{ "rule": "self != 9", "message": "not nine" }] },
            "x-kubernetes-validations": [{ "rule": "!('bad' in self)" }, { "rule": "self.all(k, k.size() < 4)" }] },
        "ruledRows": { "type": "array", "maxItems": 5, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": rows },
        "atomicRows": { "type": "array", "maxItems": 5, "items": { "type": "object", "properties": { "name": { "type": "string", "maxLength": 10 } }, "x-kubernetes-validations": [
            { "rule": "self.name != ''", "message": "a name is needed", "fieldPath": ".name" }] } },
        "ruledSet": { "type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": { "type": "string", "maxLength": 10 }, "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "fixed" }] },
        "optional": { "type": "integer", "x-kubernetes-validations": [{ "rule": "oldSelf.hasValue() ? self == oldSelf.value() : self < 10", "optionalOldSelf": true, "message": "set once" }] },
        "reserved": { "type": "object", "properties": { "namespace": { "type": "string", "maxLength": 9 }, "a-b": { "type": "integer" }, "x__y": { "type": "integer" } }, "x-kubernetes-validations": [
            { "rule": "!has(self.__namespace__) || self.__namespace__ != 'kube'" }, { "rule": "!has(self.a__dash__b) || self.a__dash__b < 3" }, { "rule": "!has(self.x__underscores__y) || self.x__underscores__y < 3" }] },
    })
}

fn keyword(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "schema.test/v1", "kind": "Keyword", "metadata": { "name": name }, "spec": spec })
}

/// Every field of the keyword schema with values at and beyond its edges.
pub(crate) fn keyword_objects() -> Vec<Value> {
    let properties = keyword_schema()["properties"]["spec"]["properties"].as_object().cloned().unwrap_or_default();
    let mut objects = Vec::new();
    for (field, schema) in &properties {
        for value in edges_of(schema) {
            objects.push(keyword("edge", &json!({ field.as_str(): value })));
        }
    }
    objects.push(keyword("forbidden", &json!({})));
    objects.push(json!({ "apiVersion": "schema.test/v1", "kind": "Keyword", "metadata": { "name": "bare" } }));
    for top in [json!(null), json!({}), json!({ "c": null }), json!({ "c": "x", "d": 1 }), json!(7)] {
        let mut object = keyword("top", &json!({ "unknown": { "a": 1 } }));
        object["top"] = top;
        objects.push(object);
    }
    objects
}

/// What is worth trying on one field: few texts where text is wrong anyway, few others where it is right.
fn edges_of(schema: &Value) -> Vec<Value> {
    let textual = schema["type"] == "string" || schema["x-kubernetes-int-or-string"] == true;
    let picky = ["pattern", "format", "minLength", "enum", "allOf", "not", "x-kubernetes-validations"];
    let picky = picky.iter().any(|keyword| schema.get(keyword).is_some());
    let wanted = |value: &Value| match value {
        Value::String(_) => textual && picky,
        Value::Array(_) | Value::Object(_) => !textual,
        _ => true,
    };
    let mut edges = edge_values();
    edges.retain(wanted);
    edges.extend([json!("a"), json!(["a"]), json!({ "a": "x" })]);
    edges
}

fn edge_values() -> Vec<Value> {
    let mut values = plain_values();
    for text in TEXTS {
        values.push(json!(text));
    }
    values.extend([
        json!(["a"]),
        json!(["a", "a", "a"]),
        json!(["1", "x"]),
        json!(["7"]),
        json!(["long enough"]),
        json!([null, "a"]),
        json!([1]),
        json!([[]]),
        json!([{ "name": "n" }]),
        json!([{ "name": "n" }, { "name": "n", "zone": "y" }]),
        json!([{ "name": "n", "inner": {} }, { "name": "n" }]),
        json!([{ "name": null }]),
        json!([{ "zone": "z", "extra": 1 }]),
        json!([{ "name": "n", "size": "big" }]),
        json!([{}, {}]),
        json!([{ "name": "" }]),
        json!({ "a": "x" }),
        json!({ "a": "X" }),
        json!({ "a": null }),
        json!({ "a": "x", "b": "y", "c": "z" }),
        json!({ "a": { "a": "x" } }),
        json!({ "a": { "b": null, "z": 1 } }),
        json!({ "b": 1 }),
        json!({ "b": 5 }),
        json!({ "a": "x", "b": 5 }),
        json!({ "a": 1, "b": "y" }),
        json!({ "known": { "a": "x", "b": "y" }, "free": { "a": { "b": null } }, "other": { "c": [null] } }),
        json!({ "inner": null }),
        json!({ "inner": { "on": null } }),
        json!({ "inner": { "on": 1, "off": 2 } }),
        json!({ "bad": 1 }),
        json!({ "long": 9 }),
        json!({ "x": 9, "y": 1 }),
        json!({ "namespace": "kube" }),
        json!({ "a-b": 5 }),
        json!({ "x__y": 5, "a-b": 1 }),
    ]);
    values
}

fn plain_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(2),
        json!(4),
        json!(5),
        json!(6),
        json!(10),
        json!(13),
        json!(20),
        json!(21),
        json!(99),
        json!(1.0),
        json!(1.5),
        json!(2.5),
        json!(1.3),
        json!(2_147_483_648_i64),
        json!(9_223_372_036_854_775_807_i64),
        json!(1e30),
        json!([]),
        json!({}),
    ]
}

/// Texts of which every one is right somewhere.
const TEXTS: [&str; 62] = [
    "",
    "a",
    "é",
    "ééé",
    "éééé",
    "abcd",
    "abcde",
    "aééé",
    "aéééé",
    "one",
    "two",
    "never",
    "az",
    "abcdefz",
    "1a",
    "1[é",
    "٣a",
    "1a-",
    "10%",
    "200%",
    "0",
    "100",
    "-1",
    "007",
    "5m",
    "1h",
    "1h30m",
    "720h",
    "2h",
    "90s",
    "1 day",
    "1.5h",
    "Never",
    "soon",
    "1d",
    "30G",
    "30Gi",
    "2Gi",
    "100m",
    "lots",
    "2026-01-01",
    "2026-02-30",
    "2026-01-01T00:00:00Z",
    "2026-06-01t12:00:00.5+02:00",
    "2026-06-01T24:00:00Z",
    "2026-06-01 12:00:00Z",
    "2026-06-01T12:00:00",
    "10.0.0.1",
    "10.0.0.256",
    "10.0.0.0/8",
    "::1",
    "fe80::/10",
    "52:54:00:12:34:56",
    "123e4567-e89b-12d3-a456-426614174000",
    "aGVsbG8=",
    "aGVsbG8",
    "example.com",
    "-bad-",
    "karpenter.sh/x",
    "a.b/c",
    "In",
    "Exists",
];

/// A schema with bounds, and the same without.
pub(crate) fn strict_and_lax() -> (Value, Value) {
    let schema = |strict: bool| {
        let only = |keyword: Value| if strict { keyword } else { json!({}) };
        let with = |base: Value, more: Value| {
            let mut merged = base.as_object().cloned().unwrap_or_default();
            merged.extend(only(more).as_object().cloned().unwrap_or_default());
            Value::Object(merged)
        };
        let short = with(json!({ "type": "string" }), json!({ "maxLength": 4 }));
        let size = with(json!({ "type": "integer" }), json!({ "maximum": 10 }));
        let rule = json!({ "x-kubernetes-validations": [{ "rule": "self < 10", "message": "below ten" }] });
        json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
            "short": short, "count": size, "word": with(json!({ "type": "string" }), json!({ "enum": ["listed"] })),
            "list": { "type": "array", "items": short }, "map": { "type": "object", "additionalProperties": short },
            "rows": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
                "type": "object", "required": ["name"], "properties": { "name": { "type": "string" }, "size": size } } },
            "twice": with(json!({ "type": "array", "items": { "type": "string" } }), json!({ "x-kubernetes-list-type": "set" })),
            "ruled": with(json!({ "type": "integer" }), rule),
        } } } })
    };
    (schema(true), schema(false))
}

/// Valid objects of every kind, with most of the optional fields.
pub(crate) fn own_objects() -> Vec<Value> {
    let requirements = json!([
        { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] },
        { "key": "example.com/size", "operator": "Gt", "values": ["3"] },
        { "key": "topology.kubernetes.io/zone", "operator": "Exists", "minValues": 1 },
    ]);
    let reference = json!({ "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "default" });
    let taints = json!([{ "key": "example.com/a", "value": "b", "effect": "NoSchedule" }]);
    let conditions = json!([{ "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let claim = json!({
        "requirements": requirements, "nodeClassRef": reference, "taints": taints, "startupTaints": taints,
        "terminationGracePeriod": "1h", "expireAfter": "720h", "resources": { "requests": { "cpu": "2", "memory": "4Gi" } },
    });
    let mut template = claim.clone();
    template.as_object_mut().into_iter().for_each(|fields| drop(fields.remove("resources")));
    vec![
        json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "pool" },
            "spec": {
                "template": { "metadata": { "labels": { "example.com/team": "a" }, "annotations": { "x": "y" } }, "spec": template },
                "disruption": { "consolidateAfter": "30s", "consolidationPolicy": "WhenEmpty", "budgets": [
                    { "nodes": "10%" }, { "nodes": "0", "schedule": "0 9 * * 1", "duration": "8h", "reasons": ["Drifted"] }] },
                "limits": { "cpu": "100", "memory": "1Ti" }, "weight": 10,
            },
            "status": { "conditions": conditions, "resources": { "cpu": "4" } } }),
        json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "fixed" },
            "spec": { "replicas": 3, "limits": { "nodes": 5 }, "template": { "spec": { "requirements": [], "nodeClassRef": reference } } } }),
        json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "claim" }, "spec": claim,
            "status": { "providerID": "proxmox://lab/100", "nodeName": "n", "capacity": { "cpu": "4" }, "conditions": conditions } }),
        json!({ "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxNodeClass", "metadata": { "name": "class" },
            "spec": {
                "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" }, "bootDevice": { "size": "40Gi", "storage": "local" },
                "metadataOptions": { "type": "cdrom" }, "resourcePool": "a/b", "tags": ["a", "b"], "placementStrategy": { "zoneBalance": "Balanced" },
                "securityGroups": [{ "name": "g", "interface": "net0" }], "region": "lab",
            },
            "status": { "conditions": conditions } }),
        json!({ "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxUnmanagedTemplate", "metadata": { "name": "template" },
            "spec": { "templateName": "debian-13", "tags": ["a"], "region": "lab" } }),
        json!({ "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxTemplate", "metadata": { "name": "managed" },
            "spec": {
                "sourceImage": { "url": "https://images.example.com/a.qcow2", "checksum": "0123456789abcdef0123456789abcdef", "checksumType": "md5" },
                "storageIDs": ["local"], "network": [{ "bridge": "vmbr0", "vlan": 7, "dnsServers": ["10.0.0.1"] }, { "bridge": "vmbr1", "mtu": 9000 }],
                "agent": { "enabled": true }, "tpm": {}, "vga": { "memory": 16 }, "cpu": { "type": "host", "flags": ["+aes"] },
                "pciDevices": [{ "mapping": "gpu", "pcie": true }], "tags": ["a"], "resourcePool": "a", "onBoot": false,
            },
            "status": { "conditions": conditions, "zones": ["lab/pve1/9000"], "resources": { "zones": 1 } } }),
        json!({ "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": "overlay" },
            "spec": {
                "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"] }, { "key": "a", "operator": "Lt", "values": ["3"] }],
                "priceAdjustment": "+10%", "capacity": { "example.com/gpu": 1 }, "weight": 10,
            },
            "status": { "conditions": conditions } }),
        json!({ "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": { "name": "buffer", "namespace": "default" },
            "spec": { "podTemplateRef": { "name": "small" }, "replicas": 3, "percentage": 10, "limits": { "cpu": "4" } },
            "status": { "replicas": 3, "podTemplateRef": { "name": "small" }, "conditions": conditions } }),
        keyword(
            "keywords",
            &json!({
                "text": "abc", "word": "one", "integer": 3, "rows": [{ "name": "a" }, { "name": "b", "size": 4 }], "set": ["a", "b"], "map": { "a": "b" },
                "ruledRows": [{ "name": "a", "size": 3 }, { "name": "b", "size": 4 }], "ruledSet": ["a", "b"], "ruledMap": { "a": 1 }, "optional": 3,
                "preserved": { "known": { "a": "x" }, "more": { "b": 1 } }, "one": { "a": "x" }, "deepMap": { "k": { "a": "x" } }, "ruledTime": "2026-02-01T00:00:00Z",
            }),
        ),
    ]
}

/// Changes one thing in an object, somewhere.
pub(crate) fn change(object: &mut Value, schema: &Value, dice: &mut Dice) {
    let choice = dice.below(8);
    if choice < 3 {
        insert_known(object, schema, dice, true);
        return;
    }
    let mut paths = Vec::new();
    pointers(object, "", &mut paths);
    paths.retain(|path| ["/spec", "/status", "/top"].iter().any(|root| path.starts_with(root)));
    if paths.is_empty() {
        return;
    }
    let path = dice.pick(&paths).clone();
    let other = dice.pick(&paths).clone();
    let copied = object.pointer(&other).cloned().unwrap_or_default();
    let random = dice.pick(&edge_values()).clone();
    let Some(place) = object.pointer_mut(&path) else { return };
    match (choice, place) {
        (3, place) => *place = random,
        (4, Value::Object(fields)) => drop(fields.insert("unknown".to_owned(), random)),
        (4, Value::Array(items)) => items.push(random),
        (5, place) => *place = copied,
        (6, Value::Array(items)) if !items.is_empty() => {
            let again = dice.pick(items).clone();
            items.push(again);
        }
        (6, Value::Array(items)) => items.push(Value::Null),
        (_, Value::Array(items)) => items.reverse(),
        (_, Value::Object(fields)) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            if !names.is_empty() {
                fields.remove(dice.pick(&names));
            }
        }
        (_, place) => *place = random,
    }
}

/// Sets a field that the schema knows to a value that may fit.
fn insert_known(value: &mut Value, schema: &Value, dice: &mut Dice, is_root: bool) {
    match value {
        Value::Object(fields) => {
            let names: Vec<&String> = schema["properties"].as_object().into_iter().flat_map(Map::keys).collect();
            let ours: Vec<&String> = names
                .into_iter()
                .filter(|name| !is_root || ["spec", "status", "top"].contains(&name.as_str()))
                .collect();
            let (name, below) = if ours.is_empty() {
                (format!("key{}", dice.below(3)), &schema["additionalProperties"])
            } else {
                let name = *dice.pick(&ours);
                (name.clone(), &schema["properties"][name])
            };
            match fields.get_mut(&name) {
                Some(field) if is_root || dice.below(3) > 0 => insert_known(field, below, dice, false),
                _ => drop(fields.insert(name, sample(below, dice, 0))),
            }
        }
        Value::Array(items) if !items.is_empty() && dice.below(4) > 0 => {
            let index = dice.below(items.len());
            insert_known(&mut items[index], &schema["items"], dice, false);
        }
        Value::Array(items) => items.push(sample(&schema["items"], dice, 0)),
        place => *place = sample(schema, dice, 0),
    }
}

/// A value that more or less fits a schema.
fn sample(schema: &Value, dice: &mut Dice, depth: usize) -> Value {
    if depth > 4 || dice.below(12) == 0 {
        return dice.pick(&edge_values()).clone();
    }
    if let Some(options) = schema["enum"].as_array() {
        return dice.pick(options).clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let mut fields = Map::new();
            for (name, below) in schema["properties"].as_object().into_iter().flatten() {
                let required =
                    schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name.as_str()));
                if required || dice.below(3) == 0 {
                    fields.insert(name.clone(), sample(below, dice, depth + 1));
                }
            }
            if schema["additionalProperties"].is_object() {
                fields
                    .insert((*dice.pick(&TEXTS)).to_owned(), sample(&schema["additionalProperties"], dice, depth + 1));
            }
            Value::Object(fields)
        }
        Some("array") => (0..dice.below(3)).map(|_| sample(&schema["items"], dice, depth + 1)).collect(),
        Some("integer" | "number") => dice.pick(&plain_values()[2..19]).clone(),
        Some("boolean") => json!(dice.below(2) == 0),
        _ => json!(dice.pick(&TEXTS)),
    }
}

fn pointers(value: &Value, path: &str, paths: &mut Vec<String>) {
    paths.push(path.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                pointers(field, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), paths);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{path}/{index}"), paths);
            }
        }
        _ => {}
    }
}
