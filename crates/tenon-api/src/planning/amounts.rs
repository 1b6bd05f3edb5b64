//! Amounts, labels and taints of objects as the engine knows them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint as KubeTaint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tenon_model::{Effect, Quantity, Requirements, Resources, Taint};

use crate::quantity::ResourceMap;
use crate::{Requirement, TaintEffect, demand};

/// Amounts as Kubernetes writes them.
pub(super) type Amounts = BTreeMap<String, KubeQuantity>;

/// Amounts of a Kubernetes object. One that cannot be read counts as nothing: the API server took it, so there is none.
pub(super) fn of_object(amounts: Option<&Amounts>) -> Resources {
    let amounts = amounts.into_iter().flatten();
    amounts.filter_map(|(name, amount)| Some((name.clone(), amount.0.parse::<Quantity>().ok()?))).collect()
}

/// Amounts of one of our objects.
pub(super) fn of_resource_map(amounts: Option<&ResourceMap>) -> Resources {
    let read = |amount: &IntOrString| match amount {
        IntOrString::Int(number) => Some(Quantity::whole(i64::from(*number))),
        IntOrString::String(text) => text.parse().ok(),
    };
    amounts.into_iter().flatten().filter_map(|(name, amount)| Some((name.clone(), read(amount)?))).collect()
}

/// Demands of a list. What says nothing is told of by the pool's condition, and such a pool makes no nodes.
pub(super) fn requirements(list: &[Requirement]) -> Requirements {
    let read = list.iter().map(demand).filter_map(|demand| Some((demand.label.clone(), demand.requirement().ok()?)));
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
