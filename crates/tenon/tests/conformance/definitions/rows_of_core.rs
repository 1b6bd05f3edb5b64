//! Table: what the core kinds accept and refuse (NodePool, NodeClaim, NodeOverlay, CapacityBuffer).

use serde_json::{Value, json};

use super::{Row, row};

pub(super) fn rows() -> Vec<Row> {
    [
        required(),
        pool(),
        disruption(),
        labels(),
        keys(),
        requirement_lists(),
        overlay_lists(),
        class_references(),
        taints(),
        claim(),
        overlay(),
        buffer(),
        numbers(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn needs(field: &'static str, places: &'static str) -> Row {
    row(field, places, json!(["kept"]), json!(["gone"]))
}

fn required() -> Vec<Row> {
    vec![
        needs("required spec", "NodePool, NodePool spec.template, NodeClaim, NodeOverlay, CapacityBuffer"),
        needs("required template", "NodePool spec"),
        // The default fills it in: what is refused elsewhere is accepted here.
        needs("required nodes", "NodePool spec.disruption.budgets[]"),
        needs("required nodeClassRef", "NodePool spec.template.spec, NodeClaim spec"),
        needs("required requirements", "NodePool spec.template.spec, NodeClaim spec, NodeOverlay spec"),
        needs("required group", "NodePool spec.template.spec.nodeClassRef, NodeClaim spec.nodeClassRef"),
        needs(
            "required kind",
            "NodePool spec.template.spec.nodeClassRef, NodeClaim spec.nodeClassRef, CapacityBuffer spec.scalableRef",
        ),
        needs(
            "required name",
            "NodePool spec.template.spec.nodeClassRef, NodeClaim spec.nodeClassRef, CapacityBuffer spec.scalableRef, \
             CapacityBuffer spec.podTemplateRef, CapacityBuffer status.podTemplateRef",
        ),
        needs(
            "required key",
            "NodePool spec.template.spec.requirements[], NodePool spec.template.spec.taints[], NodePool \
             spec.template.spec.startupTaints[], NodeClaim spec.requirements[], NodeClaim spec.taints[], NodeClaim \
             spec.startupTaints[], NodeOverlay spec.requirements[]",
        ),
        needs(
            "required operator",
            "NodePool spec.template.spec.requirements[], NodeClaim spec.requirements[], NodeOverlay spec.requirements[]",
        ),
        needs(
            "required effect",
            "NodePool spec.template.spec.taints[], NodePool spec.template.spec.startupTaints[], NodeClaim spec.taints[], \
             NodeClaim spec.startupTaints[]",
        ),
    ]
}

/// A pool's spec with something besides.
fn pool_with(more: Value) -> Value {
    let template =
        json!({ "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" } } });
    crate::things::with(json!({ "template": template }), more)
}

fn pool() -> Vec<Row> {
    let plain = || pool_with(json!({}));
    let fixed = |number: i64| pool_with(json!({ "replicas": number }));
    vec![
        row(
            "replicas cannot be added or removed later; create another NodePool",
            "NodePool spec",
            json!([
                { "old": plain(), "new": pool_with(json!({ "weight": 2 })) },
                { "old": fixed(1), "new": fixed(0) },
            ]),
            json!([{ "old": plain(), "new": fixed(0) }, { "old": fixed(1), "new": plain() }]),
        ),
        row(
            "with replicas, the only allowed limit is nodes",
            "NodePool spec",
            json!([
                fixed(1),
                pool_with(json!({ "replicas": 1, "limits": {} })),
                pool_with(json!({ "replicas": 1, "limits": { "nodes": 3 } })),
                pool_with(json!({ "limits": { "cpu": 3, "nodes": 1 } })),
            ]),
            json!([
                pool_with(json!({ "replicas": 1, "limits": { "cpu": 3 } })),
                pool_with(json!({ "replicas": 0, "limits": { "cpu": 3, "nodes": 1 } })),
            ]),
        ),
        row(
            "weight cannot be used together with replicas",
            "NodePool spec",
            json!([pool_with(json!({ "weight": 1 })), fixed(1)]),
            json!([pool_with(json!({ "replicas": 1, "weight": 1 }))]),
        ),
        row(
            "pattern",
            "NodePool spec.template.spec.terminationGracePeriod, NodeClaim spec.terminationGracePeriod",
            json!(["0s", "30m", "1h30m5s", "5s5s"]),
            json!(["", "Never", "1d", "1.5h", "-1h", "1h ", "h", "1ms"]),
        ),
        row(
            "pattern",
            "NodePool spec.disruption.consolidateAfter, NodePool spec.template.spec.expireAfter, NodeClaim \
             spec.expireAfter",
            json!(["0s", "720h", "1h30m", "Never", "0h0m0s"]),
            json!(["", "never", "1d", "1.5h", "-1h", " 1h", "Never1h", "1ms"]),
        ),
        row(
            "pattern",
            "NodePool spec.limits{}, NodePool status.resources{}, NodeClaim spec.resources.requests{}, NodeClaim \
             status.allocatable{}, NodeClaim status.capacity{}, NodeOverlay spec.capacity{}, CapacityBuffer \
             spec.limits{}, ProxmoxNodeClass status.resources{}, ProxmoxTemplate status.resources{}, \
             ProxmoxUnmanagedTemplate status.resources{}",
            json!(["1", "1500m", "-1", "+1", ".5", "5.", "2Gi", "1e3", "1E-3", "3k", 7, 0, -3, 8_589_934_592_i64]),
            json!(["", "lots", "1 Gi", "1gi", "1K", "1e", "0x1", "1.2.3", "Gi"]),
        ),
    ]
}

fn disruption() -> Vec<Row> {
    let budgets = |count: usize| json!(vec![json!({ "nodes": "1" }); count]);
    vec![
        row("maxItems", "NodePool spec.disruption.budgets", json!([budgets(0), budgets(50)]), json!([budgets(51)])),
        row(
            "schedule and duration must be set together",
            "NodePool spec.disruption.budgets",
            json!([[{ "nodes": "1" }], [{ "nodes": "1", "schedule": "@daily", "duration": "1h" }]]),
            json!([
                [{ "nodes": "1", "schedule": "@daily" }],
                [{ "nodes": "1" }, { "nodes": "1", "duration": "1h" }],
            ]),
        ),
        row(
            "pattern",
            "NodePool spec.disruption.budgets[].nodes",
            json!(["0", "7", "10000", "0%", "00%", "99%", "100%"]),
            json!(["", "%", "101%", "200%", "-1", "1.5%", "10 %", "ten"]),
        ),
        row(
            "pattern",
            "NodePool spec.disruption.budgets[].schedule",
            json!([
                "@hourly",
                "@annually",
                "0 9 * * mon-fri",
                "@hourlyish",
                "@daily at noon",
                "99 99 99 99 99",
                "1 2 3 4 5 6"
            ]),
            json!(["", "daily", "@every 1h", "* * * *", "1 2 3 4 5\n"]),
        ),
        row(
            "pattern",
            "NodePool spec.disruption.budgets[].duration",
            json!(["1h", "90m", "1h30m", "1h0s", "1h30m0s"]),
            json!(["", "30s", "1h30s", "1d", "30m1h", "0s"]),
        ),
        row(
            "maxItems",
            "NodePool spec.disruption.budgets[].reasons",
            json!([[], ["Empty", "Drifted"]]),
            json!([vec!["Empty"; 51]]),
        ),
        row(
            "x-kubernetes-list-type",
            "NodePool spec.disruption.budgets[].reasons",
            json!([["Empty", "Drifted", "Underutilized", "Unhealthy"]]),
            json!([["Empty", "Drifted", "Empty"]]),
        ),
        row(
            "enum",
            "NodePool spec.disruption.budgets[].reasons[]",
            json!(["Underutilized", "Empty", "Drifted", "Unhealthy"]),
            json!(["", "empty", "Expired"]),
        ),
        row(
            "enum",
            "NodePool spec.disruption.consolidationPolicy",
            json!(["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]),
            json!(["", "WhenUnderutilized", "Never"]),
        ),
    ]
}

fn labels() -> Vec<Row> {
    let many = |count: usize| Value::Object((0..count).map(|i| (format!("k{i}"), json!("v"))).collect());
    let at = "NodePool spec.template.metadata.labels";
    vec![
        row("maxProperties", at, json!([many(100), {}]), json!([many(101)])),
        row(
            "labels of the domain karpenter.sh are set by the autoscaler and cannot be used here",
            at,
            json!([
                { "karpenter.sh/capacity-type": "spot" },
                { "karpenter.sh.example.com/x": "y" },
                { "example.com/karpenter.sh": "y" },
                { "/karpenter.sh": "y" },
                { "": "y" },
            ]),
            json!([
                { "karpenter.sh/x": "y" },
                { "a.karpenter.sh/x": "y" },
                { "mykarpenter.sh/x": "y" },
                { "karpenter.sh": "y" },
                { "a": "b", "mykarpenter.sh": "y" },
            ]),
        ),
        row(
            "karpenter.sh/nodepool is set by the autoscaler and cannot be used here",
            at,
            json!([{ "example.com/nodepool": "y" }]),
            json!([{ "karpenter.sh/nodepool": "y" }]),
        ),
        row(
            "kubernetes.io/hostname differs for every node and cannot be used here",
            at,
            json!([{ "kubernetes.io/os": "linux" }, { "hostname": "y" }]),
            json!([{ "kubernetes.io/hostname": "y" }]),
        ),
        row(
            "pattern",
            "NodePool spec.template.metadata.labels{}",
            json!(["", "a", "a-b_c.d", "A1"]),
            json!(["-a", "a-", "a b", "a/b", "."]),
        ),
        row("maxLength", "NodePool spec.template.metadata.labels{}", json!(["a".repeat(63)]), json!(["a".repeat(64)])),
    ]
}

fn keys() -> Vec<Row> {
    const POOL_AND_CLAIM: &str = "NodePool spec.template.spec.requirements[].key, NodeClaim spec.requirements[].key";
    const ALL: &str = "NodePool spec.template.spec.requirements[].key, NodeClaim spec.requirements[].key, NodeOverlay \
                       spec.requirements[].key";
    let own = json!(["karpenter.sh/x", "a.karpenter.sh/x", "mykarpenter.sh/x", "karpenter.sh", "mykarpenter.sh"]);
    vec![
        row(
            "pattern",
            ALL,
            json!(["a", "A_b.c-1", "example.com/a", "1.2/3", "x".repeat(100)]),
            json!(["", "-a", "a-", "Example.com/a", "/a", "a/", "a/b/c", "a b"]),
        ),
        row("maxLength", ALL, json!(["a".repeat(316)]), json!(["a".repeat(317)])),
        row(
            "labels of the domain karpenter.sh are set by the autoscaler and cannot be used here",
            POOL_AND_CLAIM,
            json!(["karpenter.sh/capacity-type", "example.com/karpenter.sh", "karpenter.sh.io/x"]),
            own.clone(),
        ),
        row(
            "of the domain karpenter.sh, only capacity-type and nodepool can be used",
            "NodeOverlay spec.requirements[].key",
            json!(["karpenter.sh/capacity-type", "karpenter.sh/nodepool", "example.com/karpenter.sh"]),
            own,
        ),
        row(
            "karpenter.sh/nodepool is set by the autoscaler and cannot be used here",
            "NodePool spec.template.spec.requirements[].key",
            json!(["example.com/nodepool"]),
            json!(["karpenter.sh/nodepool"]),
        ),
        row(
            "kubernetes.io/hostname differs for every node and cannot be used here",
            ALL,
            json!(["kubernetes.io/os", "hostname"]),
            json!(["kubernetes.io/hostname"]),
        ),
        row(
            "enum",
            "NodePool spec.template.spec.requirements[].operator, NodeClaim spec.requirements[].operator, NodeOverlay \
             spec.requirements[].operator",
            json!(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]),
            json!(["", "in", "Equals", "Ge"]),
        ),
    ]
}

fn asks(operator: &str, values: &[&str]) -> Value {
    json!([{ "key": "a", "operator": operator, "values": values }])
}

/// Rules that pools, claims and overlays have in common.
fn requirement_lists() -> Vec<Row> {
    const ALL: &str = "NodePool spec.template.spec.requirements, NodeClaim spec.requirements, NodeOverlay \
                       spec.requirements";
    let many = |count: usize| json!(vec![json!({ "key": "a", "operator": "Exists" }); count]);
    let at_least =
        |count: i64, values: &[&str]| json!([{ "key": "a", "operator": "In", "values": values, "minValues": count }]);
    vec![
        row("maxItems", ALL, json!([many(0), many(100)]), json!([many(101)])),
        row(
            "operator In needs at least one value",
            ALL,
            json!([asks("In", &["a"]), asks("Exists", &[]), asks("In", &["a", "a"])]),
            json!([asks("In", &[])]),
        ),
        row(
            "operators Gt, Lt, Gte and Lte need exactly one value, a non-negative integer",
            ALL,
            json!([
                asks("Gt", &["0"]),
                asks("Lt", &["5"]),
                asks("Gte", &["+5"]),
                asks("Lte", &["007"]),
                asks("Gte", &["9223372036854775807"]),
                asks("Exists", &["x"]),
            ]),
            json!([asks("Gt", &[]), asks("Lt", &["1", "2"]), asks("Gte", &["-1"]), asks("Lte", &["-9"]),]),
        ),
        row(
            "minValues is greater than the number of values that operator In lists",
            "NodePool spec.template.spec.requirements, NodeClaim spec.requirements",
            json!([at_least(2, &["a", "b"]), at_least(2, &["a", "a"]), at_least(1, &["a", "b"])]),
            json!([at_least(2, &["a"]), at_least(50, &["a", "b"])]),
        ),
    ]
}

fn overlay_lists() -> Vec<Row> {
    vec![row(
        "operator NotIn needs at least one value",
        "NodeOverlay spec.requirements",
        json!([asks("NotIn", &["a"]), asks("DoesNotExist", &[])]),
        json!([asks("NotIn", &[])]),
    )]
}

fn class_references() -> Vec<Row> {
    let class = |group: &str, kind: &str, name: &str| json!({ "group": group, "kind": kind, "name": name });
    vec![
        row(
            "pattern",
            "NodePool spec.template.spec.nodeClassRef.group, NodeClaim spec.nodeClassRef.group",
            json!(["karpenter.proxmox.sinextra.dev", "x"]),
            json!(["karpenter.proxmox.sinextra.dev/v1alpha1", "/"]),
        ),
        row(
            "group must not be empty",
            "NodePool spec.template.spec.nodeClassRef.group, NodeClaim spec.nodeClassRef.group",
            json!(["g", " "]),
            json!([""]),
        ),
        row(
            "kind must not be empty",
            "NodePool spec.template.spec.nodeClassRef.kind, NodeClaim spec.nodeClassRef.kind",
            json!(["k"]),
            json!([""]),
        ),
        row(
            "name must not be empty",
            "NodePool spec.template.spec.nodeClassRef.name, NodeClaim spec.nodeClassRef.name",
            json!(["n"]),
            json!([""]),
        ),
        row(
            "the group of nodeClassRef cannot be changed",
            "NodePool spec.template.spec.nodeClassRef",
            json!([{ "old": class("g", "k", "n"), "new": class("g", "k", "other") }]),
            json!([{ "old": class("g", "k", "n"), "new": class("other", "k", "n") }]),
        ),
        row(
            "the kind of nodeClassRef cannot be changed",
            "NodePool spec.template.spec.nodeClassRef",
            json!([{ "old": class("g", "k", "n"), "new": class("g", "k", "n") }]),
            json!([{ "old": class("g", "k", "n"), "new": class("g", "other", "n") }]),
        ),
    ]
}

fn taints() -> Vec<Row> {
    const KEYS: &str = "NodePool spec.template.spec.taints[].key, NodePool spec.template.spec.startupTaints[].key, \
                        NodeClaim spec.taints[].key, NodeClaim spec.startupTaints[].key";
    vec![
        row("minLength", KEYS, json!(["a"]), json!([""])),
        row(
            "pattern",
            KEYS,
            json!(["a", "example.com/a", "karpenter.sh/x", "x".repeat(400)]),
            json!(["-a", "a b", "Example.com/a", "a/b/c"]),
        ),
        row(
            "pattern",
            "NodePool spec.template.spec.taints[].value, NodePool spec.template.spec.startupTaints[].value, NodeClaim \
             spec.taints[].value, NodeClaim spec.startupTaints[].value",
            json!(["a", "true", "example.com/a"]),
            json!(["", "-a", "a b"]),
        ),
        row(
            "enum",
            "NodePool spec.template.spec.taints[].effect, NodePool spec.template.spec.startupTaints[].effect, NodeClaim \
             spec.taints[].effect, NodeClaim spec.startupTaints[].effect",
            json!(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
            json!(["", "noSchedule", "Never"]),
        ),
        row(
            "format",
            "NodePool spec.template.spec.taints[].timeAdded, NodePool spec.template.spec.startupTaints[].timeAdded, \
             NodeClaim spec.taints[].timeAdded, NodeClaim spec.startupTaints[].timeAdded, NodeClaim \
             status.lastPodEventTime",
            json!(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123456+02:00"]),
            json!(["", "yesterday", "2026-01-01"]),
        ),
    ]
}

fn claim() -> Vec<Row> {
    let spec = |more: Value| {
        let least = json!({ "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" } });
        crate::things::with(least, more)
    };
    let plain = || spec(json!({}));
    let asks = |cpu: Value| spec(json!({ "resources": { "requests": { "cpu": cpu } } }));
    vec![row(
        "the spec of a NodeClaim cannot be changed; delete the NodeClaim and create another one",
        "NodeClaim spec",
        json!([
            { "old": plain(), "new": plain() },
            { "old": plain(), "new": spec(json!({ "expireAfter": "720h" })) },
        ]),
        json!([
            { "old": plain(), "new": spec(json!({ "expireAfter": "1h" })) },
            { "old": plain(), "new": spec(json!({ "taints": [] })) },
            { "old": plain(), "new": spec(json!({ "nodeClassRef": { "name": "other" } })) },
            { "old": asks(json!("1500m")), "new": asks(json!("1.5")) },
            { "old": asks(json!("11")), "new": asks(json!(11)) },
        ]),
    )]
}

fn overlay() -> Vec<Row> {
    let spec = |more: Value| crate::things::with(json!({ "requirements": [] }), more);
    vec![
        row(
            "set price or priceAdjustment, not both",
            "NodeOverlay spec",
            json!([spec(json!({})), spec(json!({ "price": "1" })), spec(json!({ "priceAdjustment": "+1" }))]),
            json!([spec(json!({ "price": "1", "priceAdjustment": "+1" }))]),
        ),
        row(
            "cpu, memory, ephemeral-storage and pods cannot be changed by an overlay",
            "NodeOverlay spec.capacity",
            json!([{}, { "example.com/gpu": 1 }, { "hugepages-2Mi": "1Gi", "nodes": 1 }]),
            json!([{ "cpu": 1 }, { "memory": "1Gi" }, { "ephemeral-storage": 1 }, { "a": 1, "pods": 1 }]),
        ),
        row(
            "pattern",
            "NodeOverlay spec.price",
            json!(["0", "1.25", "007"]),
            json!(["", "-1", "+1", "1.", ".5", "1e3", "1 "]),
        ),
        row(
            "pattern",
            "NodeOverlay spec.priceAdjustment",
            json!(["+1", "-1", "+.5", "-0.5", "+10%", "+150%", "-99.9%", "-100%", "+0.5%"]),
            json!(["", "1", "10%", "-101%", "-100.1%", "+", "+%", "+1.", "--1"]),
        ),
    ]
}

fn buffer() -> Vec<Row> {
    let named = || json!({ "name": "small" });
    let scaled = || json!({ "kind": "Deployment", "name": "web" });
    vec![
        row(
            "with podTemplateRef, set replicas, limits, or both",
            "CapacityBuffer spec",
            json!([
                {},
                { "podTemplateRef": named(), "replicas": 0 },
                { "podTemplateRef": named(), "limits": { "cpu": 1 } },
                { "podTemplateRef": named(), "limits": {} },
                { "scalableRef": scaled() },
            ]),
            json!([{ "podTemplateRef": named() }, { "podTemplateRef": named(), "percentage": 10 }]),
        ),
        row(
            "set podTemplateRef or scalableRef, not both",
            "CapacityBuffer spec",
            json!([{ "replicas": 1 }, { "scalableRef": scaled(), "percentage": 10 }]),
            json!([{ "podTemplateRef": named(), "scalableRef": scaled(), "replicas": 1 }]),
        ),
        row(
            "minLength",
            "CapacityBuffer spec.podTemplateRef.name, CapacityBuffer status.podTemplateRef.name, CapacityBuffer \
             spec.scalableRef.kind, CapacityBuffer spec.scalableRef.name",
            json!(["x"]),
            json!([""]),
        ),
        row(
            "format",
            "CapacityBuffer spec.percentage, CapacityBuffer spec.replicas, CapacityBuffer status.replicas",
            json!([0, i32::MAX]),
            json!([2_147_483_648_i64]),
        ),
        row("minimum", "CapacityBuffer spec.percentage, CapacityBuffer spec.replicas", json!([0, 200]), json!([-1])),
    ]
}

fn numbers() -> Vec<Row> {
    vec![
        row("minimum", "NodePool spec.replicas", json!([0, 1]), json!([-1])),
        row("minimum", "NodePool spec.weight, NodeOverlay spec.weight", json!([1]), json!([0, -1])),
        row("maximum", "NodePool spec.weight", json!([100]), json!([101])),
        row("maximum", "NodeOverlay spec.weight", json!([10_000]), json!([10_001])),
        row("format", "NodePool spec.weight, NodeOverlay spec.weight", json!([1]), json!([2_147_483_648_i64])),
        row(
            "minimum",
            "NodePool spec.template.spec.requirements[].minValues, NodeClaim spec.requirements[].minValues",
            json!([1]),
            json!([0, -1]),
        ),
        row(
            "maximum",
            "NodePool spec.template.spec.requirements[].minValues, NodeClaim spec.requirements[].minValues",
            json!([50]),
            json!([51]),
        ),
    ]
}
