//! Objects from everywhere, each once, with a word about what is left out.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use tenon_api::launch_record;
use tenon_api::names::ANNOTATION_LAUNCH;
use tenon_api::objects::{Kind, Object, ObjectKey, Objects};
use tenon_api::planning::{is_provisionable, is_terminal};

use super::place::{Fault, Place};
use super::table_text::count;

/// Collects objects.
#[derive(Debug, Default)]
pub struct Collector {
    objects: Objects,
    seen: BTreeMap<ObjectKey, Place>,
    others: BTreeMap<(String, String), usize>,
    without_vm: usize,
    notes: Vec<String>,
}

impl Collector {
    /// Adds an object that was settled. One that is there already is a fault that names both places.
    pub fn add(&mut self, object: Object, place: Place) -> Result<(), Fault> {
        let key = object.key();
        if let Some(first) = self.seen.get(&key) {
            let why = format!("{key} is there twice: it also stands at {first}; remove one");
            return Err(Fault { place, why });
        }
        let is_needed =
            is_needed(&object).map_err(|why| Fault { place: place.clone(), why: format!("{key}: {why}") })?;
        self.seen.insert(key, place);
        if is_needed {
            self.objects.add(object);
        } else {
            self.without_vm += 1;
        }
        Ok(())
    }

    /// Counts an object of a kind that no plan looks at.
    pub fn leave_out(&mut self, api_version: &str, kind: &str) {
        *self.others.entry((kind.to_owned(), api_version.to_owned())).or_default() += 1;
    }

    /// Remembers something to be told.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Everything in order, and what is to be told about it.
    pub fn finish(mut self) -> (Objects, Vec<String>) {
        self.objects.sort();
        for ((kind, api_version), count) in &self.others {
            let version = Kind::named(kind).map(Kind::api_version);
            self.notes.push(match version {
                Some(known) => format!("left out {count} {kind} of {api_version}: only {known} is read"),
                None => format!("left out {count} {kind} ({api_version}): no plan looks at this kind"),
            });
        }
        if self.without_vm > 0 {
            let claims = count(self.without_vm, "NodeClaim");
            self.notes.push(format!("left out {claims} without a providerID: no VM was made yet"));
        }
        let owners = self.objects.deployments.len() + self.objects.stateful_sets.len() + self.objects.jobs.len();
        if self.objects.pods.is_empty() && owners > 0 {
            let owners = count(owners, "workload");
            self.notes.push(format!("of {owners} there are no pods: a plan is for the pods a cluster made of them"));
        }
        let waiting: Vec<&Pod> =
            self.objects.pods.iter().map(AsRef::as_ref).filter(|pod| is_passed_over(pod)).collect();
        let gated = waiting.iter().filter(|pod| is_gated(pod)).count();
        if gated > 0 {
            let pods = count(gated, "pod");
            self.notes
                .push(format!("left out {pods} with a scheduling gate: no scheduler looks at a pod until it is open"));
        }
        let untried = waiting.iter().filter(|pod| !is_gated(pod) && !is_tried(pod)).count();
        if untried > 0 {
            let pods = count(untried, "pod");
            self.notes.push(format!(
                "left out {pods} without a node: no scheduler has said that they fit nowhere (condition PodScheduled \
                 with reason Unschedulable)"
            ));
        }
        (self.objects, self.notes)
    }
}

/// A pod that has to run somewhere, and that no plan is made for.
fn is_passed_over(pod: &Pod) -> bool {
    let is_bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).is_some_and(|node| !node.is_empty());
    !is_bound && !is_terminal(pod) && !is_provisionable(pod)
}

fn is_gated(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty())
}

/// Whether a scheduler has looked at the pod. One as people write it may well fit on a node that is there.
fn is_tried(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|said| said.type_ == "PodScheduled")
}

/// A claim without a VM is no capacity, unless we wrote down where its VM is being made.
fn is_needed(object: &Object) -> Result<bool, String> {
    let Object::NodeClaim(claim) = object else { return Ok(true) };
    let provider_id = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
    let record = claim.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION_LAUNCH));
    match record {
        _ if provider_id.is_some_and(|id| !id.is_empty()) => Ok(true),
        Some(text) => launch_record::read(text).map(|_| true).map_err(|error| error.to_string()),
        None => Ok(false),
    }
}
