//! From a VM that runs to an initialized node: reported, matched with its claim, synced, waited for.

use std::time::Duration;
use tenon_api::kube_objects::Node;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde_json::{Value, json};
use tenon_api::condition_reasons::{self, INITIALIZED, LAUNCHED, REGISTERED};
use tenon_api::{ConditionStatus, NodeClaim, ResourceMap, event_reasons, names};
use tenon_engine::claim::Unmanaged;
use tenon_model::{LaunchRecord, Place, Resources};

use super::deletion::DeletionReason;
use super::gather::{Observed, condition};
use super::image::{cpu_type, image_id};
use super::outcome::Outcome;
use super::{ClaimError, registration_health, token};
use crate::context::Context;
use crate::events::Event;
use crate::first_boot::provider_id;
use crate::metrics::{Attempt, OfNode};
use crate::provision::with_promised;
use crate::settings::CloudControllerManager;
use crate::status::Verdict;
use crate::writes::{self, Written};

/// A node's own changes wake us; this is for the deadline.
const LOOK_LATER: Duration = Duration::from_secs(30);

/// Annotations of a claim that are not copied to its node.
const NOT_FOR_NODES: [&str; 5] = [
    names::ANNOTATION_LAUNCH,
    names::ANNOTATION_SKIP_VM_DELETION,
    names::ANNOTATION_BOOTSTRAP_TOKEN,
    names::ANNOTATION_CLOUDINIT_STATUS,
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// Adds our finalizer to a claim before anything is created for it.
pub(crate) async fn add_finalizer(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    let mut finalizers = observed.claim.finalizers().to_vec();
    finalizers.push(names::FINALIZER.to_owned());
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    let written = writes::merge(&context.workload, &observed.claim, patch).await;
    written.map_err(|source| ClaimError::kube("add the finalizer to the NodeClaim", source))?;
    Ok(Outcome::again())
}

/// Says why nothing is done for a claim.
pub(crate) fn leave_alone(observed: &Observed, why: &Unmanaged) -> Outcome {
    let name = observed.claim.name_any();
    let skip = names::ANNOTATION_SKIP_VM_DELETION;
    match why {
        Unmanaged::Released => Outcome::default(),
        Unmanaged::Unplanned => {
            let message = format!("No instance type and host are chosen for NodeClaim {name} yet; its events say why");
            Outcome::default().with_condition(&LAUNCHED, Verdict::unknown(&condition_reasons::NOT_PLANNED, message))
        }
        Unmanaged::Unreadable(error) => {
            let message = format!(
                "Annotation {} of NodeClaim {name} is invalid: {error}; correct the annotation, or remove the VM yourself \
                 and set annotation {skip}=true to delete the NodeClaim without touching any VM",
                names::ANNOTATION_LAUNCH
            );
            let verdict = Verdict::unknown(&condition_reasons::LAUNCH_RECORD_UNREADABLE, message.clone());
            Outcome::default()
                .with_condition(&LAUNCHED, verdict)
                .with_event(Event::new(&event_reasons::LAUNCH_RECORD_UNREADABLE, message))
        }
    }
}

/// Reports that the VM runs, and what it is.
pub(crate) async fn report_launched(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let pve = match context.region(&record.place.region) {
        Ok(pve) => pve,
        Err(why) => return Ok(Outcome::after(LOOK_LATER).with_condition(&LAUNCHED, no_region(&why))),
    };
    // The template may be gone by now, or not ours to read; the clone has the same options.
    let place = template_place(context, record).await;
    let template = match context.regions.reads.image(&pve, &place, record.template).await {
        Err(error) if error.refusal().is_some() => pve.vm_config(record.host(), record.vmid).await?.into(),
        found => found?,
    };
    let cpu = cpu_type(&template);
    let image = image_id(record.template, &template);
    let labels = json!({ names::LABEL_INSTANCE_IMAGE_ID: &image, names::LABEL_INSTANCE_CPU_TYPE: cpu });
    let written = writes::merge(&context.workload, &observed.claim, json!({ "metadata": { "labels": labels } })).await;
    let written = written.map_err(|source| ClaimError::kube("label the NodeClaim", source))?;
    let Written::Done(claim) = written else { return Ok(Outcome::outdated()) };
    context.memory.trust(&record.place, &observed.claim.spec.node_class_ref.name);
    let took = context.clock.seconds().since(record.started_at);
    context.metrics.provided(Attempt::Create, took as f64);
    let note = format!("Started VM {} on host {}", record.vmid, record.host());
    let mut outcome = Outcome { claim: Some(claim), ..Outcome::again() }
        .with_condition(&LAUNCHED, Verdict::holds(&LAUNCHED))
        .with_event(Event::new(&event_reasons::LAUNCHED, note));
    outcome.status.insert("providerID".to_owned(), json!(provider_id(record)));
    outcome.status.insert("imageID".to_owned(), json!(image));
    if let Some(instance_type) = context.instance_type_of(&observed.claim) {
        let overlays = context.memory.overlays.published();
        let instance_type = with_promised(instance_type, &observed.claim, &overlays);
        outcome.status.insert("capacity".to_owned(), json!(resource_map(&instance_type.capacity)));
        outcome.status.insert("allocatable".to_owned(), json!(resource_map(&instance_type.allocatable())));
    }
    Ok(outcome)
}

/// Where the template of a launch lies: on the VM's host, or, on a shared storage, on another.
pub(super) async fn template_place(context: &Context, record: &LaunchRecord) -> Place {
    let listing = context.regions.polled(&record.place.region).await;
    let row = listing.as_ref().and_then(|listing| listing.guests.iter().find(|guest| guest.id == record.template));
    let host = row.map_or_else(|| record.place.host.clone(), |row| row.host.clone());
    Place { host, ..record.place.clone() }
}

fn no_region(why: &str) -> Verdict {
    Verdict::unknown(&condition_reasons::LAUNCH_FAILED, why)
}

fn resource_map(resources: &Resources) -> ResourceMap {
    let amount =
        |(name, amount): (&str, tenon_model::Quantity)| (name.to_owned(), IntOrString::String(amount.to_string()));
    resources.iter().map(amount).collect()
}

/// Syncs the claim's labels, annotations, taints and providerID to the node, in one write: it keeps what it has besides.
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
        let message = format!("Nodes {} and {} both have providerID {id}", node.name_any(), twin.name_any());
        return report_twins(context, observed, &message).await;
    }
    let is_new = !is_registered(node);
    let sync = Sync { claim: &observed.claim, node, ccm: context.settings.ccm };
    let written = writes::merge(&context.workload, node.as_ref(), sync.patch(record)).await;
    let written = written.map_err(|source| ClaimError::kube("sync the NodeClaim to its Node", source))?;
    let Written::Done(_) = written else { return Ok(Outcome::outdated()) };
    finish_join(context, &observed.claim).await;
    let label = |name: &str| observed.claim.labels().get(name).cloned().unwrap_or_default();
    let of_node = OfNode { nodepool: label(names::LABEL_NODEPOOL), zone: label(names::LABEL_ZONE) };
    // A pass may be repeated: a node whose label is there was counted.
    if is_new {
        context.metrics.nodes_created.get_or_create(&of_node).inc();
    }
    let note = format!("Node {} registered: VM {} on host {}", node.name_any(), record.vmid, record.host());
    let mut outcome = Outcome::again()
        .with_condition(&REGISTERED, Verdict::holds(&REGISTERED))
        .with_event(Event::new(&event_reasons::REGISTERED, note));
    outcome.status.insert("nodeName".to_owned(), json!(node.name_any()));
    if is_new && !has_unregistered_taint(node) {
        let note = format!(
            "Node {} joined without taint {}:NoExecute; add the taint to registerWithTaints of its kubelet",
            node.name_any(),
            names::TAINT_UNREGISTERED
        );
        outcome.events.push(Event::new(&event_reasons::UNREGISTERED_TAINT_MISSING, note));
    }
    Ok(outcome)
}

/// The node has a certificate of its own: nobody else joins with the token. What of this fails keeps no node from its pods;
/// the token is deleted by the next look at all tokens.
async fn finish_join(context: &Context, claim: &NodeClaim) {
    let done = [token::delete(context, claim).await, registration_health::succeeded(context, claim).await];
    for error in done.into_iter().filter_map(Result::err) {
        context.memory.warn_of_extra(&claim.name_any(), &error.full_message(), context.clock.now());
    }
}

/// Two nodes claim one VM. Somebody has as long to delete one of them as a node has to register.
async fn report_twins(context: &Context, observed: &Observed, message: &str) -> Result<Outcome, ClaimError> {
    let (claim, found) = (&observed.claim, condition(&observed.claim, &REGISTERED));
    let is_reported = found.is_some_and(|found| found.status == ConditionStatus::False);
    let waited_s = context.clock.seconds().since(observed.state.conditions.waiting_since);
    if is_reported && waited_s > observed.state.register_within_s {
        let note = format!("Deleting NodeClaim {}: {message}", claim.name_any());
        registration_health::failed(context, claim, &condition_reasons::REGISTRATION_FAILED, &note).await?;
        let event = Event::new(&event_reasons::MULTIPLE_NODES_FOUND, note);
        return Ok(Outcome::deleted(DeletionReason::RegistrationTimeout).with_event(event));
    }
    let message = format!("{message}; delete one of them");
    Ok(Outcome::after(LOOK_LATER)
        .with_condition(&REGISTERED, Verdict::fails(&condition_reasons::MULTIPLE_NODES_FOUND, message.clone()))
        .with_event(Event::new(&event_reasons::MULTIPLE_NODES_FOUND, message)))
}

fn is_registered(node: &Node) -> bool {
    node.labels().get(names::LABEL_REGISTERED).is_some_and(|value| value == "true")
}

/// As the kubelet sets it: with another effect, pods that tolerate nothing may have run already.
fn has_unregistered_taint(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.key == names::TAINT_UNREGISTERED && taint.effect == "NoExecute")
}

/// A claim that is synced to its node.
struct Sync<'a> {
    claim: &'a NodeClaim,
    node: &'a Node,
    ccm: CloudControllerManager,
}

impl Sync<'_> {
    /// The node as it is once it is registered.
    fn patch(&self, record: &LaunchRecord) -> Value {
        let Sync { claim, node, .. } = self;
        let mut labels = claim.labels().clone();
        labels.insert(names::LABEL_REGISTERED.to_owned(), "true".to_owned());
        labels.insert(names::LABEL_HOST.to_owned(), record.host().to_string());
        let annotations = claim.annotations().iter().filter(|(name, _)| !NOT_FOR_NODES.contains(&name.as_str()));
        let mut finalizers = node.finalizers().to_vec();
        if !finalizers.iter().any(|name| name == names::FINALIZER) {
            finalizers.push(names::FINALIZER.to_owned());
        }
        let mut owners: Vec<Value> = node.owner_references().iter().map(|owner| json!(owner)).collect();
        if !self.is_owned() {
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
            "spec": { "taints": self.taints(), "providerID": provider_id(record) },
        })
    }

    /// Whether the node has the owner reference, which it gets with everything else: it was synced before.
    fn is_owned(&self) -> bool {
        self.node.owner_references().iter().any(|owner| Some(&owner.uid) == self.claim.uid().as_ref())
    }

    /// The node's own taints without the one it came with, and the claim's that it lacks: once, since what removes a startup
    /// taint may have done so by the time a pass is repeated.
    fn taints(&self) -> Vec<Taint> {
        let Sync { claim, node, ccm } = self;
        let is_ours_to_remove = |taint: &Taint| {
            let is_of_no_ccm = *ccm == CloudControllerManager::None && taint.key == names::TAINT_UNINITIALIZED;
            taint.key == names::TAINT_UNREGISTERED || is_of_no_ccm
        };
        let present = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        let mut taints: Vec<Taint> = present.filter(|taint| !is_ours_to_remove(taint)).cloned().collect();
        let is_left_alone = node.labels().get(names::LABEL_DO_NOT_SYNC_TAINTS).is_some_and(|value| value == "true");
        if is_left_alone || (self.is_owned() && is_registered(node)) {
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
}

/// Labels the node as initialized, and says so.
pub(crate) async fn initialize(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    let Some(node) = observed.our_node() else { return Ok(Outcome::again()) };
    let patch = json!({ "metadata": { "labels": { names::LABEL_INITIALIZED: "true" } } });
    let written = writes::merge(&context.workload, node.as_ref(), patch).await;
    Ok(match written.map_err(|source| ClaimError::kube("label the Node as initialized", source))? {
        Written::Done(_) => {
            let note = format!("Node {} initialized", node.name_any());
            Outcome::again()
                .with_condition(&INITIALIZED, Verdict::holds(&INITIALIZED))
                .with_event(Event::new(&event_reasons::INITIALIZED, note))
        }
        Written::Outdated => Outcome::outdated(),
    })
}
