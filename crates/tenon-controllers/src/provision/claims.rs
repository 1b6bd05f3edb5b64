//! Each new node of a plan as a NodeClaim, with its launch written in before anything is made.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use tenon_api::{
    NodeClaim, NodeClaimSpec, NodePool, Operator, ProxmoxNodeClass, Requirement, ResourceRequests, hash_stamp,
    launch_record, names,
};
use tenon_engine::{LaunchRefusal, launches};
use tenon_model::{
    LaunchRecord, NewNode, Operator as ModelOperator, Plan, Quantity, Snapshot, WrittenRequirement, labels,
};

use super::gather::Gathered;
use super::overlays::overlay_annotations;

/// On NodeClaims: whether they make do with fewer values of a label than their pool asks for.
const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";

/// Why a new node cannot be written as a claim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// Its pool or class was deleted while the plan was made.
    #[error("NodePool {0} or its ProxmoxNodeClass was deleted")]
    NotFound(String),
    /// Its pool cannot be used any more.
    #[error("NodePool {pool} is no longer Ready: {why}")]
    NotReady {
        /// The pool.
        pool: String,
        /// What is in the way.
        why: String,
    },
    /// Its pool has more than it may have by now.
    #[error(
        "NodePool {pool} uses {used} {resource}, more than its limit of {limit}; raise spec.limits or remove nodes"
    )]
    OverLimit {
        /// The pool.
        pool: String,
        /// Of what.
        resource: String,
        /// How much it has.
        used: Quantity,
        /// How much it may have.
        limit: Quantity,
    },
    /// There is nothing to launch it from.
    #[error(transparent)]
    NoLaunch(#[from] LaunchRefusal),
}

/// The claims of a plan, each with its launch written in.
pub fn to_claims(plan: &Plan, snapshot: &Snapshot, gathered: &Gathered) -> Vec<Result<NodeClaim, ClaimError>> {
    let written = |(node, launch): (&NewNode, Result<LaunchRecord, LaunchRefusal>)| {
        let not_found = || ClaimError::NotFound(node.pool.clone());
        let pool = gathered.pools.iter().find(|pool| pool.name_any() == node.pool).ok_or_else(not_found)?;
        let class = class_of(&pool.spec.template.spec.node_class_ref.name, gathered).ok_or_else(not_found)?;
        let origin = ClaimOrigin { pool, class, grace: gathered.termination_grace_period.as_deref() };
        let mut claim = origin.claim(node, &launch?);
        claim.annotations_mut().extend(overlay_annotations(node, snapshot));
        Ok(claim)
    };
    plan.new_nodes.iter().zip(launches(snapshot, plan)).map(written).collect()
}

/// A class by its name.
pub(crate) fn class_of<'a>(name: &str, gathered: &'a Gathered) -> Option<&'a Arc<ProxmoxNodeClass>> {
    gathered.classes.iter().find(|class| class.name_any() == name)
}

/// What a claim is written from. Everything it says of its pool is of the pool the plan was made with, whatever became of
/// that since.
struct ClaimOrigin<'a> {
    pool: &'a NodePool,
    class: &'a ProxmoxNodeClass,
    /// How long pods have to leave, where the pool does not say so.
    grace: Option<&'a str>,
}

impl ClaimOrigin<'_> {
    fn claim(&self, node: &NewNode, record: &LaunchRecord) -> NodeClaim {
        let ClaimOrigin { pool, class, grace } = self;
        let template = &pool.spec.template;
        let metadata = template.metadata.clone().unwrap_or_default();
        let mut annotations = metadata.annotations.unwrap_or_default();
        annotations.insert(names::ANNOTATION_LAUNCH.to_owned(), launch_record::write(record));
        annotations.extend(hash_stamp::of_pool(pool));
        annotations.extend(hash_stamp::of_class(class));
        annotations.insert(MIN_VALUES_RELAXED.to_owned(), node.min_values_relaxed.to_string());
        let mut own = metadata.labels.unwrap_or_default();
        own.extend(decided(node));
        own.insert(names::LABEL_NODECLASS.to_owned(), template.spec.node_class_ref.name.clone());
        let spec = NodeClaimSpec {
            taints: template.spec.taints.clone(),
            startup_taints: template.spec.startup_taints.clone(),
            requirements: written(node),
            resources: Some(ResourceRequests { requests: Some(requests(node)) }),
            node_class_ref: template.spec.node_class_ref.clone(),
            termination_grace_period: template
                .spec
                .termination_grace_period
                .clone()
                .or_else(|| grace.map(str::to_owned)),
            expire_after: template.spec.expire_after.clone(),
        };
        let metadata = ObjectMeta {
            generate_name: Some(format!("{}-", node.pool)),
            labels: Some(own),
            annotations: Some(annotations),
            // From its first second: nothing is made for a claim that could vanish without us.
            finalizers: Some(vec![names::FINALIZER.to_owned()]),
            owner_references: Some(vec![owner(pool)]),
            ..ObjectMeta::default()
        };
        NodeClaim { metadata, spec, status: None }
    }
}

pub(crate) fn owner(pool: &NodePool) -> OwnerReference {
    OwnerReference {
        api_version: "karpenter.sh/v1".to_owned(),
        kind: "NodePool".to_owned(),
        name: pool.name_any(),
        uid: pool.uid().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    }
}

/// Labels its node is born with: what it is made from says so, or its own demands do, where nobody else decides.
pub fn decided(node: &NewNode) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = node
        .requirements
        .iter()
        .filter(|(label, _)| *label == names::LABEL_NODEPOOL || !is_decided_elsewhere(label))
        // What may be absent is left so.
        .filter(|(_, demand)| !demand.permits_absence())
        .filter_map(|(label, demand)| Some((label.to_owned(), demand.any()?)))
        .collect();
    labels.extend(node.chosen.labels.clone());
    labels
}

fn is_decided_elsewhere(label: &str) -> bool {
    labels::is_well_known(label) || labels::is_restricted(label)
}

/// Requirements as they are written in a claim: its own, the sizes that would do, and how those can be had.
fn written(node: &NewNode) -> Vec<Requirement> {
    let mut all = node.requirements.clone();
    let least = all.get(labels::INSTANCE_TYPE).and_then(tenon_model::Requirement::min_values);
    if let Some(sizes) = tenon_model::Requirement::new(ModelOperator::In, node.instance_types.iter().cloned()) {
        all.replace(labels::INSTANCE_TYPE, sizes.with_min_values(least));
    }
    if let Some(kind) = node.chosen.labels.get(labels::CAPACITY_TYPE) {
        all.add(labels::CAPACITY_TYPE, &tenon_model::Requirement::is(kind));
    }
    all.written().into_iter().map(entry).collect()
}

pub(crate) fn entry(demand: WrittenRequirement) -> Requirement {
    let operator = match demand.operator {
        ModelOperator::In => Operator::In,
        ModelOperator::NotIn => Operator::NotIn,
        ModelOperator::Exists => Operator::Exists,
        ModelOperator::DoesNotExist => Operator::DoesNotExist,
        ModelOperator::Gt => Operator::Gt,
        ModelOperator::Lt => Operator::Lt,
        ModelOperator::Gte => Operator::Gte,
        ModelOperator::Lte => Operator::Lte,
    };
    let values = (!demand.values.is_empty()).then_some(demand.values);
    Requirement { key: demand.label, operator, values, min_values: demand.min_values.map(i64::from) }
}

fn requests(node: &NewNode) -> BTreeMap<String, IntOrString> {
    node.requests
        .iter()
        .map(|(resource, amount)| (resource.to_owned(), IntOrString::String(amount.to_string())))
        .collect()
}
