//! Requirements and taints of objects as the engine knows them.

use k8s_openapi::api::core::v1::Taint as KubeTaint;
use tenon_model::{Effect, Requirements, Taint};

use crate::{Requirement, TaintEffect, written_requirement};

/// Demands of a list. What says nothing is told of by the pool's condition, and such a pool makes no nodes.
pub(super) fn requirements(list: &[Requirement]) -> Requirements {
    let read = list
        .iter()
        .map(written_requirement)
        .filter_map(|demand| Some((demand.label.clone(), demand.requirement().ok()?)));
    read.collect()
}

/// A taint of one of our objects.
pub(super) fn taint(taint: &crate::Taint) -> Taint {
    let effect = match taint.effect {
        TaintEffect::NoSchedule => Effect::NoSchedule,
        TaintEffect::PreferNoSchedule => Effect::PreferNoSchedule,
        TaintEffect::NoExecute => Effect::NoExecute,
    };
    Taint { key: taint.key.clone(), value: taint.value.clone().unwrap_or_default(), effect }
}

/// A taint of a Node. An effect that nobody knows does nothing.
pub(super) fn node_taint(taint: &KubeTaint) -> Option<Taint> {
    let effect = match taint.effect.as_str() {
        "NoSchedule" => Effect::NoSchedule,
        "PreferNoSchedule" => Effect::PreferNoSchedule,
        "NoExecute" => Effect::NoExecute,
        _ => return None,
    };
    Some(Taint { key: taint.key.clone(), value: taint.value.clone().unwrap_or_default(), effect })
}
