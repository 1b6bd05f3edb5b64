//! Conditions: what is true of an object, since when, and why.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::timestamp::TimeSchema;

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// The condition is true.
    True,
    /// The condition is false.
    False,
    /// The condition is not known yet.
    Unknown,
}

/// One aspect of the state of an object. Written by the autoscaler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["lastTransitionTime", "message", "reason", "status", "type"]))]
pub struct Condition {
    /// The type of the condition, in CamelCase. `Ready` summarizes the conditions that the object depends on.
    #[serde(rename = "type")]
    #[schemars(
        length(max = 316),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
        )
    )]
    pub type_: String,
    /// The status: True, False, or Unknown.
    pub status: ConditionStatus,
    /// When the status changed last. A new reason or message alone does not change the time.
    #[schemars(with = "TimeSchema")]
    pub last_transition_time: Time,
    /// The reason, as one CamelCase word for programs.
    // Read leniently: claims that another controller made may have none.
    #[serde(default)]
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
    #[schemars(transform = without_default)]
    pub reason: String,
    /// The reason, as a sentence for people, with the next step. May be empty.
    #[serde(default)]
    #[schemars(length(max = 32768), transform = without_default)]
    pub message: String,
    /// The generation of the object that the condition describes. If metadata.generation is higher, the condition is
    /// outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

fn without_default(schema: &mut Schema) {
    schema.remove("default");
}

/// The schema of a claim's conditions: a reason may be empty or missing, and so may a message.
pub(crate) fn relaxed(generator: &mut SchemaGenerator) -> Schema {
    let mut list = generator.subschema_for::<Vec<Condition>>();
    if let Some(item) = list.get_mut("items") {
        item["required"] = json!(["lastTransitionTime", "status", "type"]);
        if let Some(Value::Object(reason)) = item.pointer_mut("/properties/reason") {
            reason.remove("minLength");
            reason.insert("pattern".to_owned(), json!(r"^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$"));
        }
    }
    list
}
