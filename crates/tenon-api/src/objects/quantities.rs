//! Whether the amounts in an object are amounts, and none must not be negative.

use crate::kube_objects::{PodSpec, WirePod};
use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tenon_model::Quantity;

use super::{Object, ObjectFault};
use crate::quantity::{KubeResources, ResourceMap};

/// Checks every amount that a plan would count with.
pub(super) fn check(object: &Object) -> Result<(), ObjectFault> {
    match object {
        Object::Pod(pod) => check_pod(pod),
        Object::DaemonSet(set) => {
            set.spec.template.spec.as_ref().map_or(Ok(()), |spec| check_spec(spec, "spec.template.spec"))
        }
        Object::Node(node) => {
            let Some(status) = &node.status else { return Ok(()) };
            check_map(status.capacity.as_ref(), "status.capacity")?;
            check_map(status.allocatable.as_ref(), "status.allocatable")
        }
        Object::NodePool(pool) => check_wire(pool.spec.limits.as_ref(), "spec.limits"),
        Object::NodeOverlay(overlay) => check_wire(overlay.spec.capacity.as_ref(), "spec.capacity"),
        Object::NodeClaim(claim) => {
            let wanted = claim.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
            check_wire(wanted, "spec.resources.requests")?;
            let Some(status) = &claim.status else { return Ok(()) };
            check_wire(status.capacity.as_ref(), "status.capacity")?;
            check_wire(status.allocatable.as_ref(), "status.allocatable")
        }
        _ => Ok(()),
    }
}

fn check_pod(pod: &WirePod) -> Result<(), ObjectFault> {
    pod.spec.as_ref().map_or(Ok(()), |spec| check_spec(spec, "spec"))?;
    let Some(status) = &pod.status else { return Ok(()) };
    let lists =
        [("containerStatuses", &status.container_statuses), ("initContainerStatuses", &status.init_container_statuses)];
    for (list, statuses) in lists {
        for (index, container) in statuses.iter().flatten().enumerate() {
            let field = format!("status.{list}[{index}]");
            check_map(container.allocated_resources.as_ref(), &format!("{field}.allocatedResources"))?;
            check_resources(container.resources.as_ref(), &field)?;
        }
    }
    Ok(())
}

fn check_spec(spec: &PodSpec, field: &str) -> Result<(), ObjectFault> {
    for (list, containers) in [("containers", &spec.containers), ("initContainers", &spec.init_containers)] {
        for (index, container) in containers.iter().enumerate().filter(|(_, one)| one.resources.is_some()) {
            check_resources(container.resources.as_ref(), &format!("{field}.{list}[{index}]"))?;
        }
    }
    check_resources(spec.resources.as_ref(), field)?;
    check_map(spec.overhead.as_ref(), &format!("{field}.overhead"))
}

fn check_resources(resources: Option<&ResourceRequirements>, field: &str) -> Result<(), ObjectFault> {
    let Some(resources) = resources else { return Ok(()) };
    check_map(resources.requests.as_ref(), &format!("{field}.resources.requests"))?;
    check_map(resources.limits.as_ref(), &format!("{field}.resources.limits"))
}

fn check_map(amounts: Option<&KubeResources>, field: &str) -> Result<(), ObjectFault> {
    amounts.into_iter().flatten().try_for_each(|(resource, amount)| check_one(&amount.0, field, resource))
}

fn check_wire(amounts: Option<&ResourceMap>, field: &str) -> Result<(), ObjectFault> {
    amounts.into_iter().flatten().try_for_each(|(resource, amount)| match amount {
        IntOrString::Int(number) => check_one(&number.to_string(), field, resource),
        IntOrString::String(text) => check_one(text, field, resource),
    })
}

fn check_one(text: &str, field: &str, resource: &str) -> Result<(), ObjectFault> {
    let why = match text.parse::<Quantity>() {
        Ok(amount) if amount < Quantity::ZERO => format!("`{text}` must not be negative"),
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    Err(ObjectFault::Amount { field: format!("{field}.{resource}"), why })
}
