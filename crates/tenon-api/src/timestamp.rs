//! Times in Kubernetes objects as the engine counts them: to the nanosecond, nothing is rounded.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tenon_model::Timestamp;

/// The same moment.
pub fn timestamp(time: &Time) -> Timestamp {
    Timestamp::from_nanos(time.0.as_nanosecond())
}
