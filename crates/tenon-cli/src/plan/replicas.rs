//! Which workloads of the files are planned, the pods they are planned with, and what is said about each.

use std::collections::{BTreeMap, BTreeSet};
use tenon_api::kube_objects::Pod;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tenon_api::objects::{Kind, Object, Objects};

use super::companions::Companions;
use super::location::Fault;
use super::table_text::count;
use super::workloads::{PODS_MAX, Workload, too_many};

/// Workloads that are named before the rest is only counted.
const LISTED_MAX: usize = 20;
/// The same for workloads that are not planned for one reason.
const NAMED_MAX: usize = 3;
/// The label a Deployment's ReplicaSet gives its pods; it ends the name of the ReplicaSet.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Adds the pods of workloads that no cluster has acted on, and whose pods nobody gave. Says what became of each workload.
pub(super) fn add_pods(mut workloads: Vec<Workload>, objects: &mut Objects) -> Result<Vec<String>, Fault> {
    if workloads.is_empty() {
        return Ok(Vec::new());
    }
    workloads.sort_by(|a, b| a.key.cmp(&b.key));
    let owners = Owners::of(objects);
    let (mut planned, mut skipped) = (Vec::new(), BTreeMap::<Skip, Vec<String>>::new());
    let mut names: BTreeSet<(String, String)> = objects.pods.iter().map(|pod| pod_key(pod)).collect();
    let (mut companions, mut left) = (Companions::of(objects), PODS_MAX);
    for workload in &workloads {
        if let Some(skip) = Skip::of(workload, &owners) {
            skipped.entry(skip).or_default().push(workload.key.to_string());
            continue;
        }
        let location = || workload.location.clone();
        let fault = |why: String| Fault { location: location(), why: format!("{}: {why}", workload.key) };
        left = left.checked_sub(workload.count).filter(|left| *left >= 0).ok_or_else(|| {
            fault(format!("{}: {}", workload.count_field, too_many(PODS_MAX - left + workload.count)))
        })?;
        let base = base_name(workload, &names);
        for name in workload.pod_names(&base) {
            let pod = workload.pod(&name);
            let claims = companions.add_claims(&pod, &workload.volume_claims, objects);
            let pod = claims.and_then(|()| Object::from(pod).settled());
            objects.add(pod.map_err(|error| fault(error.to_string()))?);
            names.insert((workload.key.namespace.clone(), name));
        }
        if let Some(selector) = workload.selector.clone() {
            let added = companions.add_replica_set(&workload.key, selector, objects);
            added.map_err(|error| fault(error.to_string()))?;
        }
        planned.push((workload.count, workload.key.to_string()));
    }
    objects.sort();
    Ok(lines(&planned, skipped))
}

fn lines(planned: &[(i32, String)], skipped: BTreeMap<Skip, Vec<String>>) -> Vec<String> {
    let pods = |number: i32| count(usize::try_from(number).unwrap_or_default(), "pod");
    let (listed, rest) = planned.split_at(planned.len().min(LISTED_MAX));
    let mut lines: Vec<String> =
        listed.iter().map(|(number, name)| format!("planned {} of {name}", pods(*number))).collect();
    if !rest.is_empty() {
        let more = rest.iter().map(|(number, _)| number).sum();
        lines.push(format!("planned {} of {}", pods(more), count(rest.len(), "more workload")));
    }
    for (skip, names) in skipped.into_iter().filter(|(skip, _)| *skip != Skip::NeedsNone) {
        let words = match names.as_slice() {
            [one] => one.clone(),
            [named @ .., last] if names.len() <= NAMED_MAX => format!("{} and {last}", named.join(", ")),
            _ => {
                let named = names.get(..NAMED_MAX).unwrap_or_default().join(", ");
                format!("{} ({named} and {} more)", count(names.len(), "workload"), names.len() - NAMED_MAX)
            }
        };
        lines.push(format!("planned 0 pods of {words}: {}", skip.why()));
    }
    lines
}

/// Why a workload is not planned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Skip {
    /// The field that says that it wants no pods.
    Zero(&'static str),
    /// The field that suspends it.
    Suspended(&'static str),
    Deleted,
    NoTemplate,
    /// The field of its pod template that keeps its pods from being scheduled.
    NotSchedulable(&'static str),
    InInput,
    Applied,
    /// A cluster has acted on it, and it wants no pods. Old ReplicaSets are many, and nobody asks for them.
    NeedsNone,
}

impl Skip {
    fn of(workload: &Workload, owners: &Owners) -> Option<Skip> {
        match workload {
            _ if owners.have(workload) => Some(Skip::InInput),
            Workload { is_applied: true, count: ..=0, .. } => Some(Skip::NeedsNone),
            Workload { is_applied: true, .. } => Some(Skip::Applied),
            Workload { is_deleted: true, .. } => Some(Skip::Deleted),
            Workload { suspended_by: Some(field), .. } => Some(Skip::Suspended(field)),
            _ if !workload.has_template() => Some(Skip::NoTemplate),
            Workload { count: ..=0, count_field, .. } => Some(Skip::Zero(count_field)),
            _ => workload.unschedulable_by().map(Skip::NotSchedulable),
        }
    }

    fn why(&self) -> String {
        match self {
            Skip::Zero(field) => format!("{field} is 0"),
            Skip::Suspended(field) => format!("{field} is true"),
            Skip::Deleted => "metadata.deletionTimestamp is set".to_owned(),
            Skip::NoTemplate => "the pod template is missing".to_owned(),
            Skip::NotSchedulable(field) => {
                format!("{field} of the pod template is set, so the scheduler ignores the pods")
            }
            Skip::InInput => "the pods, or the ReplicaSets or Jobs that own them, are in the input".to_owned(),
            Skip::Applied | Skip::NeedsNone => {
                "status is set, so a cluster has the pods; add these pods to the input, or remove the status".to_owned()
            }
        }
    }
}

/// Who owns something that is in the input: namespace, kind and name.
struct Owners(BTreeSet<(String, String, String)>);

impl Owners {
    fn of(objects: &Objects) -> Owners {
        let mut owners = Owners(BTreeSet::new());
        objects.pods.iter().for_each(|pod| owners.note_pod(pod));
        let with_pods = owners.0.clone();
        let has_pods = |meta: &ObjectMeta, kind: Kind| {
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            with_pods.contains(&(text(&meta.namespace), kind.name().to_owned(), text(&meta.name)))
        };
        // An old ReplicaSet or a finished Job stands for no pods.
        for set in &objects.replica_sets {
            let replicas = set.spec.replicas.unwrap_or(1);
            if replicas > 0 || has_pods(&set.metadata, Kind::ReplicaSet) {
                owners.note(&set.metadata);
            }
        }
        for job in &objects.jobs {
            let is_finished = job.status.as_ref().is_some_and(|status| status.contains("completionTime"));
            if !is_finished || has_pods(&job.metadata, Kind::Job) {
                owners.note(&job.metadata);
            }
        }
        owners
    }

    fn note(&mut self, meta: &ObjectMeta) {
        for owner in meta.owner_references.iter().flatten() {
            self.add(meta.namespace.as_deref().unwrap_or_default(), &owner.kind, &owner.name);
        }
    }

    fn add(&mut self, namespace: &str, kind: &str, name: &str) {
        self.0.insert((namespace.to_owned(), kind.to_owned(), name.to_owned()));
    }

    /// A ReplicaSet or Job in between may not be in the input; then its name tells whose it is.
    fn note_pod(&mut self, pod: &Pod) {
        let hash = pod.labels().get(TEMPLATE_HASH);
        for owner in pod.owner_references() {
            self.add(pod.namespace(), &owner.kind, &owner.name);
            let Some((name, end)) = owner.name.rsplit_once('-') else { continue };
            if owner.kind == "ReplicaSet" && hash.is_some_and(|hash| hash == end) {
                self.add(pod.namespace(), Kind::Deployment.name(), name);
            }
            if owner.kind == "Job" && end.bytes().all(|byte| byte.is_ascii_digit()) {
                self.add(pod.namespace(), Kind::CronJob.name(), name);
            }
        }
    }

    fn have(&self, workload: &Workload) -> bool {
        let key = &workload.key;
        self.0.contains(&(key.namespace.clone(), key.kind.name().to_owned(), key.name.clone()))
    }
}

fn pod_key(pod: &Pod) -> (String, String) {
    (pod.namespace().to_owned(), pod.name().to_owned())
}

/// What the names of its pods begin with: its own name, unless a pod of the input or of another workload is called so.
fn base_name(workload: &Workload, names: &BTreeSet<(String, String)>) -> String {
    let key = &workload.key;
    let kind = key.kind.name().to_lowercase();
    let others = (2..).map(|number| format!("{}-{kind}{number}", key.name));
    let mut bases = [key.name.clone(), format!("{}-{kind}", key.name)].into_iter().chain(others);
    let is_free = |base: &String| !workload.pod_names(base).any(|name| names.contains(&(key.namespace.clone(), name)));
    // There are fewer names than bases, so one is free.
    bases.find(is_free).unwrap_or_else(|| key.name.clone())
}
