//! Workloads as they stand in files: how many pods each asks for, and what these pods are like.
//!
//! Which of them are planned is decided in `replicas.rs`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use tenon_api::kube_objects::{
    JobSpec, PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, PodTemplateSpec, StatusFields, Volume, WirePod,
};
use tenon_api::objects::{Kind, Object, ObjectFault, ObjectKey};

use super::location::Location;

/// Pods that are created for the workloads of one plan. A cluster of the largest supported size has three times as many,
/// and each costs a few kilobytes.
pub(super) const PODS_MAX: i32 = 50_000;

/// Where the pod template of most kinds stands.
const TEMPLATE: &str = "spec.template";
const JOB_TEMPLATE: &str = "spec.jobTemplate.spec.template";

/// A workload, ready to be planned.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) key: ObjectKey,
    pub(super) location: Location,
    /// How many pods it asks for, and the field that says so.
    pub(super) count: i32,
    pub(super) count_field: &'static str,
    /// The field that suspends it, if it is suspended.
    pub(super) suspended_by: Option<&'static str>,
    /// Whether a cluster has acted on it.
    pub(super) is_applied: bool,
    pub(super) is_deleted: bool,
    template: Option<PodTemplateSpec>,
    /// What each pod of a StatefulSet gets a claim from.
    pub(super) volume_claims: Vec<PersistentVolumeClaim>,
    /// Which pods are its own, if it is a Deployment.
    pub(super) selector: Option<LabelSelector>,
    uid: String,
    first: i32,
}

/// What all kinds of workloads have in common.
#[derive(Default)]
struct Shape<'a> {
    template: Option<&'a PodTemplateSpec>,
    template_field: &'static str,
    count: i32,
    count_field: &'static str,
    suspended_by: Option<&'static str>,
    is_applied: bool,
    volume_claims: &'a [PersistentVolumeClaim],
    selector: Option<&'a LabelSelector>,
    /// The number of the first pod.
    first: i32,
}

impl Workload {
    /// The workload an object is, if it is one.
    pub(super) fn of(object: &Object, location: &Location) -> Option<Workload> {
        let (meta, shape) = shape(object)?;
        Some(Workload {
            key: object.key(),
            location: location.clone(),
            count: shape.count,
            count_field: shape.count_field,
            suspended_by: shape.suspended_by,
            is_applied: shape.is_applied,
            is_deleted: meta.deletion_timestamp.is_some(),
            template: (!shape.is_applied).then(|| shape.template.cloned()).flatten(),
            volume_claims: shape.volume_claims.to_vec(),
            selector: shape.selector.cloned(),
            uid: meta.uid.clone().unwrap_or_default(),
            first: shape.first,
        })
    }

    pub(super) fn has_template(&self) -> bool {
        self.template.as_ref().is_some_and(|template| template.spec.is_some())
    }

    /// The field of its pod template that keeps its pods from being scheduled.
    pub(super) fn unschedulable_by(&self) -> Option<&'static str> {
        let template = self.template.as_ref()?;
        let is_gated = template.spec.as_ref()?.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
        let is_bound = template.node_name().is_some();
        match (is_gated, is_bound) {
            (true, _) => Some("spec.schedulingGates"),
            (false, true) => Some("spec.nodeName"),
            (false, false) => None,
        }
    }

    /// The names of its pods, each beginning with `base`.
    pub(super) fn pod_names<'b>(&self, base: &'b str) -> impl Iterator<Item = String> + use<'b> {
        (self.first..self.first.saturating_add(self.count)).map(move |number| format!("{base}-{number}"))
    }

    /// One of its pods, as a cluster would create it.
    pub(super) fn pod(&self, name: &str) -> WirePod {
        let template = self.template.clone().unwrap_or_default();
        let metadata = template.metadata.unwrap_or_default();
        let mut labels = metadata.labels.unwrap_or_default();
        labels.extend(self.label().map(|label| {
            let of_pod = self.key.kind == Kind::StatefulSet;
            (label.to_owned(), if of_pod { name } else { &self.key.name }.to_owned())
        }));
        let mut spec = template.spec;
        if let Some(spec) = &mut spec {
            let claims = self.volume_claims.iter().filter_map(|claim| claim.metadata.name.as_deref());
            let volumes: Vec<Volume> = claims.map(|claim| volume(claim, name)).collect();
            let own = spec.volumes.iter().flatten().filter(|own| !volumes.iter().any(|volume| volume.name == own.name));
            let all: Vec<Volume> = own.cloned().chain(volumes.iter().cloned()).collect();
            spec.volumes = (!all.is_empty()).then_some(all);
        }
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(self.key.namespace.clone()),
            labels: Some(labels),
            annotations: metadata.annotations,
            owner_references: Some(vec![self.owner()]),
            ..ObjectMeta::default()
        };
        WirePod { metadata, spec, status: None }
    }

    /// The label by which a cluster marks its pods.
    fn label(&self) -> Option<&'static str> {
        match self.key.kind {
            Kind::StatefulSet => Some("statefulset.kubernetes.io/pod-name"),
            Kind::Job | Kind::CronJob => Some("batch.kubernetes.io/job-name"),
            _ => None,
        }
    }

    /// Who would own its pods. A Deployment owns them through a ReplicaSet, a CronJob through a Job.
    fn owner(&self) -> OwnerReference {
        let kind = match self.key.kind {
            Kind::Deployment => Kind::ReplicaSet,
            Kind::CronJob => Kind::Job,
            kind => kind,
        };
        OwnerReference {
            api_version: kind.api_version(),
            kind: kind.name().to_owned(),
            name: self.key.name.clone(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }
}

fn volume(claim: &str, pod: &str) -> Volume {
    let source = PersistentVolumeClaimVolumeSource { claim_name: format!("{claim}-{pod}") };
    Volume { name: claim.to_owned(), persistent_volume_claim: Some(source), ..Volume::default() }
}

/// Checks a workload of a file: the number of its pods, and the template they are created from. One that a cluster runs was
/// checked there.
pub(super) fn check(object: &Object) -> Result<(), ObjectFault> {
    let Some((_, shape)) = shape(object).filter(|(_, shape)| !shape.is_applied) else { return Ok(()) };
    let Shape { count, count_field, template_field, .. } = shape;
    if count < 0 {
        let why = format!("`{count}` is negative; give 0 or more");
        return Err(ObjectFault::Field { field: count_field.to_owned(), why });
    }
    if count > PODS_MAX {
        return Err(ObjectFault::Field { field: count_field.to_owned(), why: too_many(count) });
    }
    let Some(template) = shape.template else { return Ok(()) };
    let meta = ObjectMeta { name: Some("pod".to_owned()), ..ObjectMeta::default() };
    let pod = WirePod { metadata: meta, spec: template.spec.clone(), status: None };
    Object::from(pod).settled().map(drop).map_err(|fault| match fault {
        ObjectFault::Amount { field, why } => ObjectFault::Amount { field: format!("{template_field}.{field}"), why },
        ObjectFault::Field { field, why } => ObjectFault::Field { field: format!("{template_field}.{field}"), why },
        ObjectFault::NoName => ObjectFault::NoName,
    })
}

pub(super) fn too_many(count: i32) -> String {
    format!(
        "{count} pods are too many: tenon plan creates at most {PODS_MAX} pods for all workloads; lower this number"
    )
}

fn shape(object: &Object) -> Option<(&ObjectMeta, Shape<'_>)> {
    let of_replicas = Shape { template_field: TEMPLATE, count_field: "spec.replicas", first: 1, ..Shape::default() };
    Some(match object {
        Object::Deployment(found) => {
            let (spec, is_applied) = (&found.spec, is_set(found.status.as_ref()));
            let (template, count) = (Some(&spec.template), spec.replicas.unwrap_or(1));
            let selector = spec.selector.as_ref();
            (&found.metadata, Shape { template, count, is_applied, selector, ..of_replicas })
        }
        Object::ReplicaSet(found) => {
            let (spec, is_applied) = (&found.spec, is_set(found.status.as_ref()));
            let (template, count) = (spec.template.as_ref(), spec.replicas.unwrap_or(1));
            (&found.metadata, Shape { template, count, is_applied, ..of_replicas })
        }
        Object::ReplicationController(found) => {
            let (spec, is_applied) = (&found.spec, is_set(found.status.as_ref()));
            let (template, count) = (spec.template.as_ref(), spec.replicas.unwrap_or(1));
            (&found.metadata, Shape { template, count, is_applied, ..of_replicas })
        }
        Object::StatefulSet(found) => {
            let (spec, is_applied) = (&found.spec, is_set(found.status.as_ref()));
            let (template, count) = (Some(&spec.template), spec.replicas.unwrap_or(1));
            let first = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default();
            let volume_claims = spec.volume_claim_templates.as_deref().unwrap_or_default();
            (&found.metadata, Shape { template, count, is_applied, first, volume_claims, ..of_replicas })
        }
        Object::Job(found) => {
            let is_applied = is_set(found.status.as_ref());
            (&found.metadata, Shape { is_applied, ..of_job(&found.spec, TEMPLATE) })
        }
        Object::CronJob(found) => {
            let job = found.spec.job_template.spec.as_ref();
            let job = job.map(|job| of_job(job, JOB_TEMPLATE)).unwrap_or_default();
            let suspended_by = if found.spec.suspend == Some(true) { Some("spec.suspend") } else { job.suspended_by };
            // The status of one that has never run is empty, although it may be in a cluster for long.
            let is_applied = is_set(found.status.as_ref()) || found.metadata.resource_version.is_some();
            (&found.metadata, Shape { is_applied, suspended_by, ..job })
        }
        _ => return None,
    })
}

/// A Job runs as many pods at once as it may, and never more than it needs to complete.
fn of_job<'a>(spec: &'a JobSpec, template_field: &'static str) -> Shape<'a> {
    let is_inner = template_field == JOB_TEMPLATE;
    let field = |plain, inner| if is_inner { inner } else { plain };
    let parallelism = spec.parallelism.unwrap_or(1);
    let bounded = spec.completions.filter(|completions| *completions < parallelism);
    let count_field = match bounded {
        Some(_) => field("spec.completions", "spec.jobTemplate.spec.completions"),
        None => field("spec.parallelism", "spec.jobTemplate.spec.parallelism"),
    };
    let suspend = field("spec.suspend", "spec.jobTemplate.spec.suspend");
    Shape {
        template: Some(&spec.template),
        template_field,
        count: bounded.unwrap_or(parallelism),
        count_field,
        suspended_by: (spec.suspend == Some(true)).then_some(suspend),
        first: 1,
        ..Shape::default()
    }
}

/// Whether a cluster has said anything of it.
fn is_set(status: Option<&StatusFields>) -> bool {
    status.is_some_and(|status| !status.is_empty())
}
