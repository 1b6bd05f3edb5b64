//! How amounts of resources look in a schema: a whole number, or a text such as `500m` or `2Gi`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{Schema, SchemaGenerator, json_schema};

/// The pattern of a quantity in every Kubernetes schema.
const PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Resource names with their amounts, as people wrote them.
pub type ResourceMap = BTreeMap<String, IntOrString>;

/// The schema of one amount.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": PATTERN,
        "x-kubernetes-int-or-string": true,
    })
}

/// The schema of a [`ResourceMap`].
pub(crate) fn resources(generator: &mut SchemaGenerator) -> Schema {
    let amount = quantity(generator);
    json_schema!({ "type": "object", "additionalProperties": amount })
}

/// The schema of the size of a boot disk: whole giga- or terabytes.
pub(crate) fn disk_size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": PATTERN,
        "allOf": [{ "pattern": r"^\d+(T|G|Ti|Gi)$" }],
        "x-kubernetes-int-or-string": true,
    })
}
