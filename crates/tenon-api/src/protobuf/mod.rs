//! Pods in the compact format that API servers offer besides JSON.
//!
//! A server writes this format several times faster than JSON, and most of a pod is never looked at. `schema.rs` names the
//! fields that are read by their numbers. What they mean is decided where JSON is read: they are made into JSON first, and
//! what pods of one workload have in common is read only once.

mod fields;
mod known;
mod messages;
mod pods;
mod schema;
mod to_json;

pub use self::messages::{PodEvent, PodEvents, PodList, PodPage};
pub use self::pods::PodReader;

/// What the format is called in `Accept` and `Content-Type`.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every message of this format begins with.
const MAGIC: &[u8] = b"k8s\0";

/// Why a message cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufFault {
    /// It is something else.
    #[error("the message does not begin as one of Kubernetes does")]
    NotKubernetes,
    /// It ends in the middle of a field.
    #[error("the message ends too early")]
    TooShort,
    /// It is larger than any object can be.
    #[error("the message claims to have {0} bytes")]
    TooLong(usize),
    /// A field is of a type that is not used.
    #[error("field {0} has an unknown type")]
    UnknownType(u32),
    /// A text is none.
    #[error("field {0} is no text")]
    NoText(u32),
    /// A point in time is none.
    #[error("field {0} is no time")]
    NoTime(u32),
    /// A part of a pod has a value that it cannot have.
    #[error("the {0} of a pod cannot be read")]
    Part(&'static str),
    /// It holds another kind of object.
    #[error("the message holds no pods")]
    OtherKind,
}

#[cfg(test)]
mod tests;
