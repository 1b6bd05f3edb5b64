//! Pods from messages.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use tenon_model::PodKey;

use super::ProtobufFault;
use super::fields::{Fields, Value};
use super::known::Known;
use super::schema::{COMMON_META, POD_SPEC, POD_STATUS};
use crate::kube_objects::{Pod, PodMeta, PodSharing, PodSpec, PodStatus, WirePod};

/// Reads pods, and holds once what they have in common.
#[derive(Debug, Default)]
pub struct PodReader {
    sharing: PodSharing,
    metas: Known<PodMeta>,
    specs: Known<PodSpec>,
    statuses: Known<PodStatus>,
}

impl PodReader {
    /// A pod that was sent as JSON.
    pub fn from_json(&mut self, sent: WirePod) -> Pod {
        self.sharing.shared(sent.into())
    }

    /// A pod as it stands in a message.
    pub(super) fn pod(&mut self, message: &[u8]) -> Result<Pod, ProtobufFault> {
        let [meta, spec, status] = Fields(message).pick([1, 2, 3])?.map(|part| part.map(Value::bytes));
        let (metas, specs, statuses) = (&mut self.metas, &mut self.specs, &mut self.statuses);
        let common = metas.read(meta.unwrap_or_default(), COMMON_META, "metadata", |_| ())?;
        let mut metadata = own_metadata(meta.unwrap_or_default(), PodMeta::clone(&common))?;
        let node_name = text(10, Fields(spec.unwrap_or_default()).one(10)?)?.map(|name| self.sharing.name(name.into()));
        let seen = self.sharing.metadata(&mut metadata);
        let start_time = moment(7, Fields(status.unwrap_or_default()).one(7)?)?;
        let spec = spec.map(|spec| specs.read(spec, POD_SPEC, "spec", |spec| seen.spec(spec))).transpose()?;
        let status = status.map(|it| statuses.read(it, POD_STATUS, "status", |it| seen.status(it))).transpose()?;
        Ok(Pod { metadata, node_name, spec, start_time, status })
    }
}

/// What pods of a workload have in common, and what this one has of its own.
fn own_metadata(meta: &[u8], common: PodMeta) -> Result<PodMeta, ProtobufFault> {
    let [name, namespace, uid, created, deleted] = Fields(meta).pick([1, 3, 5, 8, 9])?;
    let key = PodKey {
        namespace: text(3, namespace)?.unwrap_or_default().into(),
        name: text(1, name)?.unwrap_or_default().into(),
        uid: text(5, uid)?.unwrap_or_default().into(),
    };
    Ok(PodMeta {
        key: Arc::new(key),
        creation_timestamp: moment(8, created)?,
        deletion_timestamp: moment(9, deleted)?,
        ..common
    })
}

/// A text that is not empty.
pub(super) fn text(number: u32, value: Option<Value<'_>>) -> Result<Option<&str>, ProtobufFault> {
    let bytes = value.map_or(&[][..], Value::bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| ProtobufFault::NoText(number))?;
    Ok((!text.is_empty()).then_some(text))
}

/// Seconds and nanoseconds since 1970, of which JSON has only the seconds. Zero is no time at all.
fn moment(number: u32, message: Option<Value<'_>>) -> Result<Option<Time>, ProtobufFault> {
    let parts = Fields(message.map_or(&[][..], Value::bytes)).pick([1, 2])?;
    let [seconds, nanos] = parts.map(|part| part.map_or(0, Value::number));
    if seconds == 0 && nanos == 0 {
        return Ok(None);
    }
    Timestamp::from_second(seconds).map(|at| Some(Time(at))).map_err(|_| ProtobufFault::NoTime(number))
}
