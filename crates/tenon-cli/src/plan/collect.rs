//! Objects from everywhere, each once, with a note about what is left out.

use std::collections::BTreeMap;
use tenon_api::kube_objects::Pod;

use tenon_api::launch_record;
use tenon_api::names::ANNOTATION_LAUNCH;
use tenon_api::objects::{Kind, Object, ObjectKey, Objects};
use tenon_api::planning::{is_provisionable, is_terminal};

use super::location::{Fault, Location};
use super::replicas;
use super::table_text::count;
use super::workloads::Workload;

/// Collects objects.
#[derive(Debug, Default)]
pub struct Collector {
    objects: Objects,
    locations: BTreeMap<ObjectKey, Location>,
    others: BTreeMap<(String, String), usize>,
    without_vm: usize,
    /// Workloads of files. Those of a cluster have the pods that the cluster created.
    workloads: Vec<Workload>,
    daemon_sets: usize,
    notes: Vec<String>,
}

/// Everything that was read.
#[derive(Debug, Default)]
pub struct Collected {
    /// The objects in order, with the pods of workloads that were never applied.
    pub objects: Objects,
    /// How each workload of the files is planned, or why it is not.
    pub workloads: Vec<String>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl Collector {
    /// Adds an object that was settled. A second object of the same kind and name is a fault that names both locations.
    pub fn add(&mut self, object: Object, location: Location) -> Result<(), Fault> {
        let key = object.key();
        if let Some(first) = self.locations.get(&key) {
            let why = format!("duplicate {key}: the first one is at {first}; remove one");
            return Err(Fault { location, why });
        }
        let is_needed =
            is_needed(&object).map_err(|why| Fault { location: location.clone(), why: format!("{key}: {why}") })?;
        if location.is_in_file() {
            self.workloads.extend(Workload::of(&object, &location));
            self.daemon_sets += usize::from(object.kind() == Kind::DaemonSet);
        }
        self.locations.insert(key, location);
        if is_needed {
            self.objects.add(object);
        } else {
            self.without_vm += 1;
        }
        Ok(())
    }

    /// Counts an object of a kind that does not affect a plan.
    pub fn leave_out(&mut self, api_version: &str, kind: &str) {
        *self.others.entry((kind.to_owned(), api_version.to_owned())).or_default() += 1;
    }

    /// Adds a note for the reader of the plan.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Everything in order, and the notes about it.
    pub fn finish(mut self) -> Result<Collected, Fault> {
        self.objects.sort();
        self.note_left_out();
        let workloads = std::mem::take(&mut self.workloads);
        let mut workloads = replicas::add_pods(workloads, &mut self.objects)?;
        if self.daemon_sets > 0 {
            let sets = count(self.daemon_sets, "DaemonSet");
            workloads.push(format!("counted {sets} as overhead of the new nodes"));
        }
        self.note_unplanned_pods();
        Ok(Collected { objects: self.objects, workloads, notes: self.notes })
    }

    fn note_left_out(&mut self) {
        for ((kind, api_version), count) in &self.others {
            let version = Kind::named(kind).map(Kind::api_version);
            self.notes.push(match version {
                Some(known) => {
                    format!("ignored {count} {kind} of {api_version}: only {kind} of {known} is supported")
                }
                None => format!("ignored {count} {kind} of {api_version}: this kind does not affect a plan"),
            });
        }
        if self.without_vm > 0 {
            let claims = count(self.without_vm, "NodeClaim");
            self.notes.push(format!("ignored {claims} without status.providerID: no VM exists yet"));
        }
    }

    fn note_unplanned_pods(&mut self) {
        let unplanned: Vec<&Pod> =
            self.objects.pods.iter().map(AsRef::as_ref).filter(|pod| is_unplanned(pod)).collect();
        let gated = unplanned.iter().filter(|pod| is_gated(pod)).count();
        let untried = unplanned.iter().filter(|pod| !is_gated(pod) && !is_tried(pod)).count();
        if gated > 0 {
            let pods = count(gated, "pod");
            self.notes.push(format!("ignored {pods} with spec.schedulingGates: the scheduler skips gated pods"));
        }
        if untried > 0 {
            let pods = count(untried, "pod");
            self.notes.push(format!(
                "ignored {pods} without a node: the scheduler has not reported them as unschedulable (condition \
                 PodScheduled with reason Unschedulable); remove the status to plan them"
            ));
        }
    }
}

/// A pod that has to run somewhere, and is not planned.
fn is_unplanned(pod: &Pod) -> bool {
    pod.node_name.is_none() && !is_terminal(pod) && !is_provisionable(pod)
}

fn is_gated(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty())
}

/// Whether a scheduler has tried the pod. One that was not tried may well fit on an existing node.
fn is_tried(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "PodScheduled")
}

/// A claim without a VM is no capacity, unless its launch record says where its VM is being created.
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
