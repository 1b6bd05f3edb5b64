//! A NodeClaim as the template of a pool of fixed size says it: no size, no host, no pods.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use tenon_api::{NodeClaim, NodeClaimSpec, NodePool, hash_stamp, names};
use tenon_model::{Requirement, Requirements};

use crate::provision::{entry, owner, requirements};

/// A claim of a pool, with how long pods have to leave where the pool says nothing of it. Whoever plans for claims that
/// nobody planned for chooses its size and its host.
pub fn bare_claim(pool: &NodePool, grace: Option<&str>) -> NodeClaim {
    let template = &pool.spec.template;
    let metadata = template.metadata.clone().unwrap_or_default();
    let mut annotations = metadata.annotations.unwrap_or_default();
    annotations.extend(hash_stamp::of_pool(pool));
    let mut labels = metadata.labels.unwrap_or_default();
    labels.insert(names::LABEL_NODEPOOL.to_owned(), pool.name_any());
    labels.insert(names::LABEL_NODECLASS.to_owned(), template.spec.node_class_ref.name.clone());
    let mut wanted: Requirements = requirements(&template.spec.requirements);
    for (label, value) in &labels {
        wanted.add(label, &Requirement::is(value));
    }
    let spec = NodeClaimSpec {
        taints: template.spec.taints.clone(),
        startup_taints: template.spec.startup_taints.clone(),
        requirements: wanted.written().into_iter().map(entry).collect(),
        resources: None,
        node_class_ref: template.spec.node_class_ref.clone(),
        termination_grace_period: template.spec.termination_grace_period.clone().or_else(|| grace.map(str::to_owned)),
        expire_after: template.spec.expire_after.clone(),
    };
    let metadata = ObjectMeta {
        generate_name: Some(format!("{}-", pool.name_any())),
        labels: Some(labels),
        annotations: Some(annotations),
        // From its first second: nothing is made for a claim that could vanish without us.
        finalizers: Some(vec![names::FINALIZER.to_owned()]),
        owner_references: Some(vec![owner(pool)]),
        ..ObjectMeta::default()
    };
    NodeClaim { metadata, spec, status: None }
}
