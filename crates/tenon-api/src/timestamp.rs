//! Times in Kubernetes objects as the engine counts them: to the nanosecond, nothing is rounded.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tenon_model::Timestamp;

/// The same moment.
pub fn timestamp(time: &Time) -> Timestamp {
    Timestamp::from_nanos(time.0.as_nanosecond())
}

/// The schema of a [`Time`]. The library has it too, but only together with those of all its types, which take longer to
/// compile than the types themselves.
pub(crate) struct TimeSchema;

impl JsonSchema for TimeSchema {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}
