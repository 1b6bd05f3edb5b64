//! Each new node of a plan as a NodeClaim, with its launch written in before anything is made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use tenon_api::{
    MetadataType, NodeClaim, NodeClaimSpec, NodePool, Operator, ProxmoxNodeClass, Requirement, ResourceRequests,
    hash_stamp, launch_record, names,
};
use tenon_model::{LaunchRecord, NewNode, Plan, Requirements, Seconds, VmId, VmIdRange};

use super::gather::Gathered;
use super::hosts::taken_ids;

/// Why a new node cannot be written as a claim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Its pool or class went away while the plan was made.
    #[error("NodePool {0} or its class is gone")]
    Gone(String),
    /// Every id of the range is taken.
    #[error("no VM id is free in region {0}; widen the range of ids or remove VMs")]
    NoId(String),
}

/// Labels that are known only once the VM runs.
const OF_THE_VM: [&str; 2] = [names::LABEL_INSTANCE_CPU_TYPE, names::LABEL_INSTANCE_IMAGE_ID];

/// Ids that are taken in each region.
pub(crate) type Taken = BTreeMap<String, BTreeSet<VmId>>;

/// The claims of a plan, each with an id of its own.
pub fn to_claims(plan: &Plan, gathered: &Gathered, ids: VmIdRange, now: Seconds) -> Vec<Result<NodeClaim, ClaimError>> {
    let mut taken = taken_ids(&gathered.estate, &gathered.claims);
    let written = |node: &NewNode| {
        let gone = || ClaimError::Gone(node.pool.clone());
        let pool = gathered.pools.iter().find(|pool| pool.name_any() == node.pool).ok_or_else(gone)?;
        let class = class_of(&pool.spec.template.spec.node_class_ref.name, gathered).ok_or_else(gone)?;
        let record = record_for(node, (class, gathered), (ids, &mut taken), now)?;
        Ok(claim(node, (pool, class), &record))
    };
    plan.new_nodes.iter().map(written).collect()
}

/// The launch of a new node: the template of its host, the lowest id that nobody has, and where its seed goes.
pub(crate) fn record_for(
    node: &NewNode,
    (class, gathered): (&ProxmoxNodeClass, &Gathered),
    (ids, taken): (VmIdRange, &mut Taken),
    now: Seconds,
) -> Result<LaunchRecord, ClaimError> {
    let template = template_at(class, node).ok_or_else(|| ClaimError::Gone(node.pool.clone()))?;
    let region = taken.entry(node.place.region.clone()).or_default();
    let vmid = ids.lowest_free(region).ok_or_else(|| ClaimError::NoId(node.place.region.clone()))?;
    region.insert(vmid);
    let seed_storage = seed_storage(class, node, gathered);
    Ok(LaunchRecord { seed_storage, ..LaunchRecord::new(node.place.clone(), vmid, template, now) })
}

/// A class by its name.
pub(crate) fn class_of<'a>(name: &str, gathered: &'a Gathered) -> Option<&'a Arc<ProxmoxNodeClass>> {
    gathered.classes.iter().find(|class| class.name_any() == name)
}

/// Where the node's first-boot data goes, if it gets any.
fn seed_storage(class: &ProxmoxNodeClass, node: &NewNode, gathered: &Gathered) -> Option<String> {
    let has_seed = class.spec.metadata_options.type_ == MetadataType::Cdrom;
    let storage = || gathered.estate.seed_storage(&node.place.region, node.place.host.as_str());
    has_seed.then(storage).flatten().map(str::to_owned)
}

/// The template that was selected for the node's host.
fn template_at(class: &ProxmoxNodeClass, node: &NewNode) -> Option<VmId> {
    let prefix = format!("{}/{}/", node.place.region, node.place.host);
    let zones = class.status.as_ref()?.selected_zones.as_ref()?;
    zones.iter().find_map(|zone| zone.strip_prefix(&prefix)?.parse().ok())
}

fn claim(node: &NewNode, (pool, class): (&NodePool, &ProxmoxNodeClass), record: &LaunchRecord) -> NodeClaim {
    let template = &pool.spec.template;
    let metadata = template.metadata.clone().unwrap_or_default();
    let mut annotations = metadata.annotations.unwrap_or_default();
    annotations.insert(names::ANNOTATION_LAUNCH.to_owned(), launch_record::write(record));
    annotations.extend(hash_stamp::of_pool(pool));
    annotations.extend(hash_stamp::of_class(class));
    let mut labels = metadata.labels.unwrap_or_default();
    labels.extend(left_open(&node.requirements));
    labels.extend(decided(&node.requirements));
    labels.insert(names::LABEL_NODECLASS.to_owned(), template.spec.node_class_ref.name.clone());
    let spec = NodeClaimSpec {
        taints: template.spec.taints.clone(),
        startup_taints: template.spec.startup_taints.clone(),
        requirements: written(&node.requirements),
        resources: Some(ResourceRequests { requests: Some(requests(node)) }),
        node_class_ref: template.spec.node_class_ref.clone(),
        termination_grace_period: template.spec.termination_grace_period.clone(),
        expire_after: template.spec.expire_after.clone(),
    };
    let metadata = ObjectMeta {
        generate_name: Some(format!("{}-", node.pool)),
        labels: Some(labels),
        annotations: Some(annotations),
        // From its first second: nothing is made for a claim that could vanish without us.
        finalizers: Some(vec![names::FINALIZER.to_owned()]),
        owner_references: Some(vec![owner(pool)]),
        ..ObjectMeta::default()
    };
    NodeClaim { metadata, spec, status: None }
}

fn owner(pool: &NodePool) -> OwnerReference {
    OwnerReference {
        api_version: "karpenter.sh/v1".to_owned(),
        kind: "NodePool".to_owned(),
        name: pool.name_any(),
        uid: pool.uid().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    }
}

/// Labels with just one possible value.
pub(crate) fn decided(requirements: &Requirements) -> BTreeMap<String, String> {
    let single = requirements.iter().filter(|(_, requirement)| requirement.operator() == tenon_model::Operator::In);
    single
        .filter_map(|(label, requirement)| {
            let mut values = requirement.values().iter();
            let value = values.next().filter(|_| values.next().is_none())?;
            Some((label.to_owned(), value.clone()))
        })
        .collect()
}

/// Labels a pool demands without saying which value, and that neither size nor place decide: the node gets the first value
/// that will do, or it would not meet its own pool's demands.
fn left_open(requirements: &Requirements) -> BTreeMap<String, String> {
    let is_open = |label: &str| !OF_THE_VM.contains(&label);
    let value = |requirement: &tenon_model::Requirement| match requirement.operator() {
        tenon_model::Operator::In => requirement.values().first().cloned(),
        tenon_model::Operator::Exists => Some(requirement.bounds().0.unwrap_or_default().to_string()),
        _ => None,
    };
    let open = requirements.iter().filter(|(label, _)| is_open(label));
    open.filter_map(|(label, requirement)| Some((label.to_owned(), value(requirement)?))).collect()
}

/// Requirements as they are written in a claim: bounds, and the set beside them.
fn written(requirements: &Requirements) -> Vec<Requirement> {
    let mut written = Vec::new();
    for (label, requirement) in requirements.iter() {
        let entry = |operator, values: Option<Vec<String>>| Requirement {
            key: label.to_owned(),
            operator,
            values,
            min_values: None,
        };
        let (least, most) = requirement.bounds();
        written.extend(least.map(|number| entry(Operator::Gte, Some(vec![number.to_string()]))));
        written.extend(most.map(|number| entry(Operator::Lte, Some(vec![number.to_string()]))));
        let values: Vec<String> = requirement.values().iter().cloned().collect();
        match requirement.operator() {
            tenon_model::Operator::In => written.push(entry(Operator::In, Some(values))),
            tenon_model::Operator::NotIn => written.push(entry(Operator::NotIn, Some(values))),
            tenon_model::Operator::DoesNotExist => written.push(entry(Operator::DoesNotExist, None)),
            _ if least.is_none() && most.is_none() => written.push(entry(Operator::Exists, None)),
            _ => {}
        }
    }
    written
}

fn requests(node: &NewNode) -> BTreeMap<String, IntOrString> {
    node.requests
        .iter()
        .map(|(resource, amount)| (resource.to_owned(), IntOrString::String(amount.to_string())))
        .collect()
}
