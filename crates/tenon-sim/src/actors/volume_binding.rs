//! On which nodes can the volumes of a pod be used? Claims that wait for a pod are told its node, or get a volume that is there;
//! the pod is bound once all its claims are.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tenon_api::kube_objects::{Node, WirePod as Pod};
use tenon_api::pod;

use super::board::{Board, has_ended, is_met};
use super::persistent_volumes::{claim_reference, could_hold, is_claimed_by, is_pending, waits_for_a_pod};

/// Where a claim is told on which node its pod will be.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A class of volumes that nobody makes.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// All claims and volumes, and what is attached to which node.
pub(super) struct Storage<'b> {
    board: &'b Board,
    claims: BTreeMap<String, &'b PersistentVolumeClaim>,
    /// By node: how many volumes of each driver it attaches, and which are attached.
    limits: BTreeMap<String, BTreeMap<&'b str, usize>>,
    attached: BTreeMap<String, BTreeSet<(String, String)>>,
}

/// The volumes of one pod.
#[derive(Default)]
pub(super) struct Volumes<'b> {
    bound: Vec<&'b PersistentVolume>,
    /// Claims that wait for a pod, with their class.
    waiting: Vec<(&'b PersistentVolumeClaim, &'b StorageClass)>,
    /// By driver.
    attachments: BTreeSet<(String, String)>,
}

impl<'b> Storage<'b> {
    pub(super) fn new(board: &'b Board) -> Storage<'b> {
        let claims =
            board.claims.iter().map(|claim| (key(&claim.namespace().unwrap_or_default(), &claim.name_any()), claim));
        let limits = board.csi_nodes.iter().map(|node| {
            let count = |allocatable: &k8s_openapi::api::storage::v1::VolumeNodeResources| allocatable.count;
            let drivers = node.spec.drivers.iter().filter_map(|driver| {
                let limit = driver.allocatable.as_ref().and_then(count)?;
                Some((driver.name.as_str(), usize::try_from(limit).unwrap_or_default()))
            });
            (node.name_any(), drivers.collect())
        });
        let mut storage =
            Storage { board, claims: claims.collect(), limits: limits.collect(), attached: BTreeMap::new() };
        for pod in board.pods.iter().filter(|pod| !has_ended(pod)) {
            if let Some(node) = pod.node_name() {
                storage.attach(node, pod);
            }
        }
        storage
    }

    /// The volumes of a pod are on a node.
    pub(super) fn attach(&mut self, node: &str, pod: &Pod) {
        let volumes = self.of(pod).map(|volumes| volumes.attachments).unwrap_or_default();
        self.attached.entry(node.to_owned()).or_default().extend(volumes);
    }

    /// The volumes of a pod, or why it goes nowhere because of them.
    pub(super) fn of(&self, pod: &Pod) -> Result<Volumes<'b>, String> {
        let mut volumes = Volumes::default();
        for volume in pod::claims(&pod.clone().into()) {
            let name = key(&pod.namespace().unwrap_or_default(), &volume.claim);
            let Some(claim) = self.claims.get(&name).copied() else {
                return Err(format!("persistentvolumeclaim \"{}\" not found", volume.claim));
            };
            let class = self.class(claim);
            let driver = match self.volume(claim).filter(|_| !is_pending(claim)) {
                Some(found) => {
                    volumes.bound.push(found);
                    found.spec.as_ref().and_then(|spec| Some(spec.csi.as_ref()?.driver.clone()))
                }
                None => {
                    let waits = class.filter(|class| waits_for_a_pod(class));
                    let class = waits.ok_or("pod has unbound immediate PersistentVolumeClaims")?;
                    volumes.waiting.push((claim, class));
                    Some(class.provisioner.clone())
                }
            };
            volumes.attachments.extend(driver.map(|driver| (driver, name)));
        }
        Ok(volumes)
    }

    fn class(&self, claim: &PersistentVolumeClaim) -> Option<&'b StorageClass> {
        let name = claim.spec.as_ref()?.storage_class_name.as_ref()?;
        self.board.classes.iter().find(|class| class.name_any() == *name)
    }

    fn volume(&self, claim: &PersistentVolumeClaim) -> Option<&'b PersistentVolume> {
        let name = claim.spec.as_ref()?.volume_name.as_ref()?;
        self.board.volumes.iter().find(|volume| volume.name_any() == *name)
    }

    /// A volume that is there and suits a claim on a node.
    fn found(&self, claim: &PersistentVolumeClaim, node: &Node) -> Option<&'b PersistentVolume> {
        let suits = |volume: &&PersistentVolume| {
            let is_free = volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_none());
            (is_free || is_claimed_by(volume, claim)) && could_hold(volume, claim) && reaches(volume, node)
        };
        self.board.volumes.iter().find(suits)
    }

    /// Why a node does not do, in kube-scheduler's words.
    pub(super) fn refusal(&self, volumes: &Volumes<'_>, node: &Node) -> Option<&'static str> {
        if !volumes.bound.iter().all(|volume| reaches(volume, node)) {
            return Some("node(s) didn't match PersistentVolume's node affinity");
        }
        let is_served = |(claim, class): &(&PersistentVolumeClaim, &StorageClass)| {
            let selected = selected(claim).filter(|name| self.board.nodes.iter().any(|node| node.name_any() == *name));
            let is_here = selected.is_none_or(|name| node.name_any() == name);
            let can_be_made = class.provisioner != NO_PROVISIONER && allows(class, node);
            is_here && (can_be_made || self.found(claim, node).is_some())
        };
        if !volumes.waiting.iter().all(is_served) {
            return Some("node(s) didn't find available persistent volumes to bind");
        }
        self.is_full(volumes, &node.name_any()).then_some("node(s) exceed max volume count")
    }

    fn is_full(&self, volumes: &Volumes<'_>, node: &str) -> bool {
        let (nothing, no_limits) = (BTreeSet::new(), BTreeMap::new());
        let attached = self.attached.get(node).unwrap_or(&nothing);
        let limits = self.limits.get(node).unwrap_or(&no_limits);
        let all: BTreeSet<&(String, String)> = attached.union(&volumes.attachments).collect();
        let needs = |driver: &str| volumes.attachments.iter().any(|(one, _)| one == driver);
        let count = |driver: &str| all.iter().filter(|(one, _)| one == driver).count();
        limits.iter().any(|(driver, limit)| needs(driver) && count(driver) > *limit)
    }

    /// Tells claims that wait on which node their pod will be. Returns whether all claims of the pod have their volume.
    pub(super) async fn bind(&self, volumes: &Volumes<'_>, node: &Node) -> Result<bool, kube::Error> {
        for (claim, _) in &volumes.waiting {
            if let Some(volume) = self.found(claim, node) {
                let patch = json!({ "spec": { "claimRef": claim_reference(claim) } });
                let api: Api<PersistentVolume> = Api::all(self.board.client.clone());
                api.patch(&volume.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
            } else if selected(claim) != Some(&node.name_any()) {
                let patch = json!({ "metadata": { "annotations": { SELECTED_NODE: node.name_any() } } });
                let namespace = claim.namespace().unwrap_or_default();
                let api: Api<PersistentVolumeClaim> = Api::namespaced(self.board.client.clone(), &namespace);
                api.patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
            }
        }
        Ok(volumes.waiting.is_empty())
    }
}

fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

fn selected(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.annotations().get(SELECTED_NODE).map(String::as_str)
}

/// Whether volumes of a class can be made for a node.
fn allows(class: &StorageClass, node: &Node) -> bool {
    let mut places = class.allowed_topologies.iter().flatten().peekable();
    let has = |label: &str, values: &[String]| node.labels().get(label).is_some_and(|value| values.contains(value));
    places.peek().is_none()
        || places.any(|place| place.match_label_expressions.iter().flatten().all(|one| has(&one.key, &one.values)))
}

/// Whether a volume can be used on a node.
fn reaches(volume: &PersistentVolume, node: &Node) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) else { return true };
    let holds = |wanted: &NodeSelectorRequirement| {
        is_met(&wanted.operator, wanted.values.as_deref().unwrap_or_default(), node.labels().get(&wanted.key))
    };
    required.node_selector_terms.iter().any(|term| term.match_expressions.iter().flatten().all(holds))
}
