//! Table: what conditions of every kind accept and refuse.

use serde_json::{Value, json};

use super::samples::condition;
use super::{Row, row};

const TYPES: &str = "NodePool status.conditions[].type, NodeClaim status.conditions[].type, NodeOverlay \
                     status.conditions[].type, CapacityBuffer status.conditions[].type, ProxmoxNodeClass \
                     status.conditions[].type, ProxmoxTemplate status.conditions[].type, ProxmoxUnmanagedTemplate \
                     status.conditions[].type";
const ITEMS: &str = "NodePool status.conditions[], NodeClaim status.conditions[], NodeOverlay status.conditions[], \
                     CapacityBuffer status.conditions[], ProxmoxNodeClass status.conditions[], ProxmoxTemplate \
                     status.conditions[], ProxmoxUnmanagedTemplate status.conditions[]";
const STRICT_ITEMS: &str = "NodePool status.conditions[], NodeOverlay status.conditions[], CapacityBuffer \
                            status.conditions[], ProxmoxNodeClass status.conditions[], ProxmoxTemplate \
                            status.conditions[], ProxmoxUnmanagedTemplate status.conditions[]";
const STRICT_REASONS: &str = "NodePool status.conditions[].reason, NodeOverlay status.conditions[].reason, \
                              CapacityBuffer status.conditions[].reason, ProxmoxNodeClass status.conditions[].reason, \
                              ProxmoxTemplate status.conditions[].reason, ProxmoxUnmanagedTemplate \
                              status.conditions[].reason";

pub(super) fn rows() -> Vec<Row> {
    [presence(), words(), values()].into_iter().flatten().collect()
}

fn presence() -> Vec<Row> {
    let needs = |field, places| row(field, places, json!(["kept"]), json!(["gone"]));
    let other = || crate::things::with(condition(), json!({ "type": "Other" }));
    let twice: Value = json!([[condition(), condition()]]);
    vec![
        needs("required lastTransitionTime", ITEMS),
        needs("required status", ITEMS),
        needs("required type", ITEMS),
        needs("required message", STRICT_ITEMS),
        needs("required reason", STRICT_ITEMS),
        row(
            "x-kubernetes-list-type",
            "NodePool status.conditions, NodeClaim status.conditions, NodeOverlay status.conditions, CapacityBuffer \
             status.conditions",
            json!([[condition(), other()]]),
            twice,
        ),
    ]
}

fn words() -> Vec<Row> {
    vec![
        row(
            "pattern",
            TYPES,
            json!(["Ready", "example.com/Ready", "a.b_c-1"]),
            json!(["", "-Ready", "Ready ", "a/b/c", "Example.com/Ready"]),
        ),
        row("maxLength", TYPES, json!(["a".repeat(316)]), json!(["a".repeat(317)])),
        row("minLength", STRICT_REASONS, json!(["R"]), json!([""])),
        row(
            "pattern",
            STRICT_REASONS,
            json!(["Ready", "a:b,c_1", "R"]),
            json!(["1st", "not ready", "Ready:", "ready-or-not"]),
        ),
        row(
            "pattern",
            "NodeClaim status.conditions[].reason",
            json!(["Ready", "", "a:b"]),
            json!(["1st", "not ready", "Ready:"]),
        ),
        row(
            "maxLength",
            "NodePool status.conditions[].reason, NodeClaim status.conditions[].reason, NodeOverlay \
             status.conditions[].reason, CapacityBuffer status.conditions[].reason, ProxmoxNodeClass \
             status.conditions[].reason, ProxmoxTemplate status.conditions[].reason, ProxmoxUnmanagedTemplate \
             status.conditions[].reason",
            json!(["a".repeat(1024)]),
            json!(["a".repeat(1025)]),
        ),
        row(
            "maxLength",
            "NodePool status.conditions[].message, NodeClaim status.conditions[].message, NodeOverlay \
             status.conditions[].message, CapacityBuffer status.conditions[].message, ProxmoxNodeClass \
             status.conditions[].message, ProxmoxTemplate status.conditions[].message, ProxmoxUnmanagedTemplate \
             status.conditions[].message",
            json!(["", "a".repeat(32_768)]),
            json!(["a".repeat(32_769)]),
        ),
    ]
}

fn values() -> Vec<Row> {
    vec![
        row(
            "enum",
            "NodePool status.conditions[].status, NodeClaim status.conditions[].status, NodeOverlay \
             status.conditions[].status, CapacityBuffer status.conditions[].status, ProxmoxNodeClass \
             status.conditions[].status, ProxmoxTemplate status.conditions[].status, ProxmoxUnmanagedTemplate \
             status.conditions[].status",
            json!(["True", "False", "Unknown"]),
            json!(["", "true", "Maybe"]),
        ),
        row(
            "format",
            "NodePool status.conditions[].lastTransitionTime, NodeClaim status.conditions[].lastTransitionTime, \
             NodeOverlay status.conditions[].lastTransitionTime, CapacityBuffer \
             status.conditions[].lastTransitionTime, ProxmoxNodeClass status.conditions[].lastTransitionTime, \
             ProxmoxTemplate status.conditions[].lastTransitionTime, ProxmoxUnmanagedTemplate \
             status.conditions[].lastTransitionTime",
            json!(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+02:00"]),
            json!(["", "2026-01-01", "now"]),
        ),
        row(
            "minimum",
            "NodePool status.conditions[].observedGeneration, NodeClaim status.conditions[].observedGeneration, \
             NodeOverlay status.conditions[].observedGeneration, CapacityBuffer \
             status.conditions[].observedGeneration, ProxmoxNodeClass status.conditions[].observedGeneration, \
             ProxmoxTemplate status.conditions[].observedGeneration, ProxmoxUnmanagedTemplate \
             status.conditions[].observedGeneration",
            json!([0, 7]),
            json!([-1]),
        ),
    ]
}
