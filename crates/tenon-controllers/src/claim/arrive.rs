//! From a VM that runs to a node that takes pods: matched, made its claim's own, waited for.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde_json::{Value, json};
use tenon_api::{NodeClaim, ResourceMap, names};
use tenon_engine::claim::{Leaving, Obstacle};
use tenon_model::{LaunchRecord, Resources};

use super::gather::Observed;
use super::image::{cpu_type, image_id};
use super::outcome::Outcome;
use super::seed::provider_id;
use super::{ClaimError, health};
use crate::context::Context;
use crate::events::Saying;
use crate::metrics::OfNode;
use crate::status::Verdict;
use crate::writes::{self, Written};

/// A node's own changes wake us; this is for the deadline.
const LOOK_LATER: Duration = Duration::from_secs(30);

/// Annotations of a claim that are no business of its node.
const NOT_FOR_NODES: [&str; 5] = [
    names::ANNOTATION_LAUNCH,
    names::ANNOTATION_LET_GO,
    names::ANNOTATION_BOOTSTRAP_TOKEN,
    names::ANNOTATION_CLOUDINIT_STATUS,
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// Holds a claim before anything is made for it.
pub(crate) async fn hold(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    let mut finalizers = observed.claim.finalizers().to_vec();
    finalizers.push(names::FINALIZER.to_owned());
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    let written = writes::merge(&context.workload, &observed.claim, patch).await;
    written.map_err(|source| ClaimError::kube("hold the claim", source))?;
    Ok(Outcome::again())
}

/// Says why a claim is left alone.
pub(crate) fn leave(observed: &Observed, why: &Leaving) -> Outcome {
    let is_going = observed.seen.deleting_since.is_some();
    let way_out = format!("to let it go without touching any vm, annotate it with {}=true", names::ANNOTATION_LET_GO);
    match why {
        Leaving::Released => Outcome::default(),
        Leaving::Unplanned => {
            let told = "no size and host were chosen for it yet; its events say what is in the way";
            Outcome::default().says("Launched", Verdict::unknown("NotPlanned", told))
        }
        Leaving::Foreign if is_going => {
            let told = format!("its vm was not made by Tenon and is left alone; remove it by hand, then {way_out}");
            Outcome::default().tells(Saying::warning("FailedTermination", told))
        }
        Leaving::Foreign => Outcome::default(),
        Leaving::Unreadable(why) => {
            let told =
                format!("{why}; nothing is made or removed for this claim. Mend it, or remove its vm and {way_out}");
            Outcome::default()
                .says("Launched", Verdict::unknown("LaunchRecordUnreadable", told.clone()))
                .tells(Saying::warning("LaunchRecordUnreadable", told))
        }
    }
}

/// Says that the VM runs, and what it is.
pub(crate) async fn say_launched(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let Ok(pve) = context.region(&record.place.region) else { return Ok(Outcome::after(LOOK_LATER)) };
    let template = pve.vm_config(record.host(), record.template).await?;
    let cpu = cpu_type(&template);
    let image = image_id(record.template, &template);
    let labels = json!({ names::LABEL_INSTANCE_IMAGE_ID: &image, names::LABEL_INSTANCE_CPU_TYPE: cpu });
    let written = writes::merge(&context.workload, &observed.claim, json!({ "metadata": { "labels": labels } })).await;
    let written = written.map_err(|source| ClaimError::kube("label the claim", source))?;
    let Written::Done(claim) = written else { return Ok(Outcome::outdated()) };
    context.memory.trust(&record.place);
    let told = format!("vm {} runs on host {}", record.vmid, record.host());
    let mut outcome = Outcome { claim: Some(claim), ..Outcome::again() }
        .says("Launched", Verdict::holds("Launched"))
        .tells(Saying::normal("Launched", told));
    outcome.status.insert("providerID".to_owned(), json!(provider_id(record)));
    outcome.status.insert("imageID".to_owned(), json!(image));
    if let Some(size) = context.size_of(&observed.claim) {
        outcome.status.insert("capacity".to_owned(), json!(amounts(&size.capacity)));
        outcome.status.insert("allocatable".to_owned(), json!(amounts(&size.allocatable())));
    }
    Ok(outcome)
}

fn amounts(resources: &Resources) -> ResourceMap {
    let amount =
        |(name, amount): (&str, tenon_model::Quantity)| (name.to_owned(), IntOrString::String(amount.to_string()));
    resources.iter().map(amount).collect()
}

/// Waits for the node.
pub(crate) fn await_node(observed: &Observed, stranger: Option<&str>) -> Outcome {
    match stranger {
        None => {
            let told = format!("the vm runs; node {} has not joined yet", observed.claim.name_any());
            Outcome::after(LOOK_LATER).says("Registered", Verdict::unknown("NodeNotFound", told))
        }
        Some(why) => Outcome::after(LOOK_LATER)
            .says("Registered", Verdict::unknown("NodeMismatch", why))
            .tells(Saying::warning("NodeMismatch", why)),
    }
}

/// Makes the node the claim's own, in one write: it keeps what it has, and gets what the claim says.
pub(crate) async fn register(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let Some(node) = observed.our_node() else { return Ok(Outcome::again()) };
    let id = provider_id(record);
    let twin = context.watched.nodes.find(|other| {
        other.name_any() != node.name_any()
            && other.spec.as_ref().and_then(|spec| spec.provider_id.as_ref()) == Some(&id)
    });
    if let Some(twin) = twin {
        let told = format!("nodes {} and {} both say they are {id}; remove one", node.name_any(), twin.name_any());
        return Ok(Outcome::after(LOOK_LATER)
            .says("Registered", Verdict::fails("MultipleNodesFound", told.clone()))
            .tells(Saying::warning("MultipleNodesFound", told)));
    }
    let written = writes::merge(&context.workload, node.as_ref(), synced(&observed.claim, node, record)).await;
    let written = written.map_err(|source| ClaimError::kube("register the node", source))?;
    let Written::Done(_) = written else { return Ok(Outcome::outdated()) };
    health::well(context, &observed.claim).await?;
    let label = |name: &str| observed.claim.labels().get(name).cloned().unwrap_or_default();
    let of_node = OfNode { nodepool: label(names::LABEL_NODEPOOL), zone: label(names::LABEL_ZONE) };
    context.metrics.nodes_created.get_or_create(&of_node).inc();
    let told = format!("node {} is vm {} on host {}", node.name_any(), record.vmid, record.host());
    let mut outcome =
        Outcome::again().says("Registered", Verdict::holds("Registered")).tells(Saying::normal("Registered", told));
    outcome.status.insert("nodeName".to_owned(), json!(node.name_any()));
    if !is_registered(node) && !has_taint(node, names::TAINT_UNREGISTERED) {
        let told = "the node joined without the taint karpenter.sh/unregistered:NoExecute, so pods may have come too early; \
                    have its kubelet register with it";
        outcome.sayings.push(Saying::warning("UnregisteredTaintMissing", told));
    }
    Ok(outcome)
}

fn is_registered(node: &Node) -> bool {
    node.labels().get(names::LABEL_REGISTERED).is_some_and(|value| value == "true")
}

fn has_taint(node: &Node, key: &str) -> bool {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).any(|taint| taint.key == key)
}

/// The node as it is once it is registered.
fn synced(claim: &NodeClaim, node: &Node, record: &LaunchRecord) -> Value {
    let mut labels = claim.labels().clone();
    labels.insert(names::LABEL_REGISTERED.to_owned(), "true".to_owned());
    labels.insert(names::LABEL_HOST.to_owned(), record.host().to_string());
    let annotations = claim.annotations().iter().filter(|(name, _)| !NOT_FOR_NODES.contains(&name.as_str()));
    let mut finalizers = node.finalizers().to_vec();
    if !finalizers.iter().any(|name| name == names::FINALIZER) {
        finalizers.push(names::FINALIZER.to_owned());
    }
    let mut owners: Vec<Value> = node.owner_references().iter().map(|owner| json!(owner)).collect();
    if !node.owner_references().iter().any(|owner| Some(&owner.uid) == claim.uid().as_ref()) {
        owners.push(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": claim.name_any(), "uid": claim.uid(),
            "blockOwnerDeletion": true,
        }));
    }
    json!({
        "metadata": {
            "labels": labels, "annotations": annotations.collect::<std::collections::BTreeMap<_, _>>(),
            "finalizers": finalizers, "ownerReferences": owners,
        },
        "spec": { "taints": taints(claim, node), "providerID": provider_id(record) },
    })
}

/// The node's own taints without the one it came with, and the claim's that it lacks.
fn taints(claim: &NodeClaim, node: &Node) -> Vec<Taint> {
    let present = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let mut taints: Vec<Taint> = present.filter(|taint| taint.key != names::TAINT_UNREGISTERED).cloned().collect();
    if node.labels().get(names::LABEL_DO_NOT_SYNC_TAINTS).is_some_and(|value| value == "true") {
        return taints;
    }
    for wanted in claim.spec.taints.iter().flatten().chain(claim.spec.startup_taints.iter().flatten()) {
        let effect = format!("{:?}", wanted.effect);
        if !taints.iter().any(|taint| taint.key == wanted.key && taint.effect == effect) {
            taints.push(Taint { key: wanted.key.clone(), value: wanted.value.clone(), effect, time_added: None });
        }
    }
    taints
}

/// Says what keeps the node from taking pods.
pub(crate) fn await_readiness(obstacle: &Obstacle) -> Outcome {
    Outcome::after(LOOK_LATER).says("Initialized", Verdict::unknown(obstacle.reason, obstacle.message.clone()))
}

/// Says that the node takes pods.
pub(crate) async fn initialize(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    let Some(node) = observed.our_node() else { return Ok(Outcome::again()) };
    let patch = json!({ "metadata": { "labels": { names::LABEL_INITIALIZED: "true" } } });
    let written = writes::merge(&context.workload, node.as_ref(), patch).await;
    Ok(match written.map_err(|source| ClaimError::kube("label the node", source))? {
        Written::Done(_) => {
            let told = format!("node {} takes pods", node.name_any());
            Outcome::again()
                .says("Initialized", Verdict::holds("Initialized"))
                .tells(Saying::normal("Initialized", told))
        }
        Written::Outdated => Outcome::outdated(),
    })
}
