//! Is a node still what its pool, its class and its template say? If not, why not: the first reason counts.
//!
//! The questions, their order and the names of the reasons are the reference's. It is asked only of claims whose VM runs,
//! and never looks outside: what the sizes and images are is handed in. It lives beside the objects it compares because
//! whoever reads those (the controllers, a verb, a page) gives the same answer.

use std::fmt;

use kube::ResourceExt;
use tenon_model::{ProviderId, Requirement, Requirements};

use crate::condition::ConditionStatus;
use crate::condition_reasons::{self, ConditionReason};
use crate::hash;
use crate::hash_stamp;
use crate::names;
use crate::nodeclaim::NodeClaim;
use crate::nodeclass::ProxmoxNodeClass;
use crate::nodepool::NodePool;

/// The condition of a claim that has drifted. It is there and true, or not there.
pub const DRIFTED: &str = condition_reasons::DRIFTED.name();

/// Why a node is not what it should be, in the reference's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriftReason {
    /// The template of its pool was changed.
    NodePoolDrifted,
    /// Its labels do not meet the demands of its pool.
    RequirementsDrifted,
    /// There is no such size any more, or not where it is.
    InstanceTypeNotFound,
    /// A field of its class was changed that a VM gets only once.
    NodeClassDrift,
    /// The template on its host holds another image.
    ImageDrift,
}

impl DriftReason {
    /// Its row in the table of reasons.
    pub fn row(self) -> &'static ConditionReason {
        match self {
            DriftReason::NodePoolDrifted => &condition_reasons::NODE_POOL_DRIFTED,
            DriftReason::RequirementsDrifted => &condition_reasons::REQUIREMENTS_DRIFTED,
            DriftReason::InstanceTypeNotFound => &condition_reasons::INSTANCE_TYPE_NOT_FOUND,
            DriftReason::NodeClassDrift => &condition_reasons::NODE_CLASS_DRIFT,
            DriftReason::ImageDrift => &condition_reasons::IMAGE_DRIFT,
        }
    }

    /// As it stands in the condition.
    pub fn as_str(self) -> &'static str {
        self.row().name()
    }
}

impl fmt::Display for DriftReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A node that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Why, for programs.
    pub reason: DriftReason,
    /// Why, for people.
    pub message: String,
}

/// A size, and where it can be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedInstanceType {
    /// Its name.
    pub name: String,
    /// The labels of a node of this size in each place there is, with room or without.
    pub offerings: Vec<Requirements>,
}

/// What is known of sizes.
#[derive(Debug, Clone, Copy)]
pub enum KnownInstanceTypes<'a> {
    /// Nothing: it is not time to ask, or not everybody answers.
    Unknown,
    /// All there are.
    Are(&'a [OfferedInstanceType]),
}

/// What is known of the images that a node made now could have: those of the templates that its class selected and that
/// lie where the node is.
#[derive(Debug, Clone, Copy)]
pub enum KnownImages<'a> {
    /// Nothing: nobody answers.
    Unknown,
    /// All there are; none if there is no such template.
    Are(&'a [String]),
}

/// Everything the answer rests on.
#[derive(Debug, Clone, Copy)]
pub struct DriftInput<'a> {
    /// The claim.
    pub claim: &'a NodeClaim,
    /// Its pool.
    pub pool: &'a NodePool,
    /// The demands in that pool's template, without its labels.
    pub wanted: &'a Requirements,
    /// Its class, if that is there.
    pub class: Option<&'a ProxmoxNodeClass>,
    /// The sizes.
    pub sizes: KnownInstanceTypes<'a>,
    /// The images.
    pub images: KnownImages<'a>,
}

/// What is to be said of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriftStatus {
    /// It has drifted.
    Drifted(Drift),
    /// It has not: a condition that says otherwise goes.
    Current,
    /// What was said of it cannot be checked now, and stays.
    AsBefore,
}

/// What is to be said of a claim: drift is told only of one whose VM runs, and what was told stays while it cannot be
/// checked, because a Proxmox that does not answer for a minute is no reason to change one's mind twice.
pub fn standing(seen: &DriftInput<'_>) -> DriftStatus {
    if !is_launched(seen.claim) {
        return DriftStatus::Current;
    }
    let is_unchecked = |said: &str| match (seen.sizes, seen.images) {
        (KnownInstanceTypes::Unknown, _) if said == DriftReason::InstanceTypeNotFound.as_str() => true,
        (_, KnownImages::Unknown) if said == DriftReason::ImageDrift.as_str() => true,
        _ => false,
    };
    match drift(seen) {
        Some(drift) => DriftStatus::Drifted(drift),
        None if drifted_before(seen.claim).is_some_and(is_unchecked) => DriftStatus::AsBefore,
        None if drifted_before(seen.claim).is_some() && is_half_taken_over(seen) => DriftStatus::AsBefore,
        None => DriftStatus::Current,
    }
}

/// Whether the claim carries our version of a hash, and its owner does not yet: in between nothing can be compared.
fn is_half_taken_over(seen: &DriftInput<'_>) -> bool {
    let claim = seen.claim.annotations();
    let is_half = |stamp: &hash_stamp::Stamp, owner| stamp.is_ours(claim) && !stamp.is_ours(owner);
    is_half(&hash_stamp::POOL, seen.pool.annotations())
        || seen.class.is_some_and(|class| is_half(&hash_stamp::CLASS, class.annotations()))
}

/// Why a node is not what it should be, if it is not. The first reason counts.
pub fn drift(seen: &DriftInput<'_>) -> Option<Drift> {
    let of_pool = pool_drift(seen).or_else(|| requirements_drift(seen)).or_else(|| size_drift(seen));
    of_pool.or_else(|| class_drift(seen)).or_else(|| image_drift(seen))
}

/// The reason that a claim says it has drifted for.
pub fn drifted_before(claim: &NodeClaim) -> Option<&str> {
    let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().find(|told| told.type_ == DRIFTED).map(|told| told.reason.as_str())
}

/// Whether what a claim says it has drifted for was undone since: its pool or class went back to what the claim was made from.
/// Conditions are written a moment later than pools and classes change.
pub fn is_undone(claim: &NodeClaim, pool: &NodePool, wanted: &Requirements, class: Option<&ProxmoxNodeClass>) -> bool {
    let is_same = |stamp: &hash_stamp::Stamp, owner: &hash_stamp::Annotations, hash: &str| {
        let is_known = stamp.is_ours(owner) && stamp.is_ours(claim.annotations());
        is_known && !stamp.differs(&stamp.written(hash), claim.annotations())
    };
    let Some(said) = drifted_before(claim) else { return false };
    if said == DriftReason::NodePoolDrifted.as_str() {
        is_same(&hash_stamp::POOL, pool.annotations(), &hash::of_pool(pool))
    } else if said == DriftReason::NodeClassDrift.as_str() {
        class.is_some_and(|class| is_same(&hash_stamp::CLASS, class.annotations(), &hash::of_class(class)))
    } else {
        said == DriftReason::RequirementsDrifted.as_str() && facts(claim).meet(wanted, |_| false).is_ok()
    }
}

fn is_launched(claim: &NodeClaim) -> bool {
    let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|told| told.type_ == "Launched" && told.status == ConditionStatus::True)
}

fn pool_drift(seen: &DriftInput<'_>) -> Option<Drift> {
    let differs = hash_stamp::POOL.differs(seen.pool.annotations(), seen.claim.annotations());
    let pool = seen.pool.name_any();
    let message = format!("spec.template of NodePool {pool} changed after this NodeClaim was created");
    differs.then_some(Drift { reason: DriftReason::NodePoolDrifted, message })
}

/// Labels are facts: what is asked for and not there is not met.
fn requirements_drift(seen: &DriftInput<'_>) -> Option<Drift> {
    let why = facts(seen.claim).meet(seen.wanted, |_| false).err()?;
    let message = format!("the node does not meet the requirements of NodePool {}: {why}", seen.pool.name_any());
    Some(Drift { reason: DriftReason::RequirementsDrifted, message })
}

fn size_drift(seen: &DriftInput<'_>) -> Option<Drift> {
    let KnownInstanceTypes::Are(sizes) = seen.sizes else { return None };
    let name = seen.claim.labels().get(names::LABEL_INSTANCE_TYPE).map_or("", String::as_str);
    let size = sizes.iter().find(|size| size.name == name);
    let labels = facts(seen.claim);
    let message = match size {
        None => format!("instance type {name} no longer exists"),
        Some(size) if !size.offerings.iter().any(|offering| is_offered(&labels, offering)) => {
            let zone = seen.claim.labels().get(names::LABEL_ZONE).map_or("", String::as_str);
            format!("instance type {name} is no longer offered in zone {zone}")
        }
        Some(_) => return None,
    };
    Some(Drift { reason: DriftReason::InstanceTypeNotFound, message })
}

/// A reserved node stays what it is when its reservation has become an ordinary offer.
fn is_offered(labels: &Requirements, offering: &Requirements) -> bool {
    let is_reserved = labels.get(names::LABEL_CAPACITY_TYPE) == Some(&Requirement::is("reserved"));
    let agrees = |label: &str, wanted: &Requirement| match labels.get(label) {
        None => true,
        Some(_) if is_reserved && label == names::LABEL_CAPACITY_TYPE => {
            wanted.has("reserved") || wanted.has("on-demand")
        }
        Some(fact) => fact.intersects(wanted),
    };
    offering.iter().all(|(label, wanted)| agrees(label, wanted))
}

fn class_drift(seen: &DriftInput<'_>) -> Option<Drift> {
    let class = seen.class?;
    let differs = hash_stamp::CLASS.differs(class.annotations(), seen.claim.annotations());
    let message = format!("ProxmoxNodeClass {} changed after this NodeClaim was created", class.name_any());
    differs.then_some(Drift { reason: DriftReason::NodeClassDrift, message })
}

fn image_drift(seen: &DriftInput<'_>) -> Option<Drift> {
    let KnownImages::Are(images) = seen.images else { return None };
    let image = seen.claim.status.as_ref()?.image_id.as_deref().filter(|image| !image.is_empty())?;
    if seen.class.is_none() || region_of(seen.claim).is_none() || images.iter().any(|held| held == image) {
        return None;
    }
    let held = images.first()?;
    let message = format!("the VM was created from image {image}, but the template on its host now has image {held}");
    Some(Drift { reason: DriftReason::ImageDrift, message })
}

/// The region of a claim's VM: `proxmox://<region>/<vmid>`, or the label where that has none.
pub fn region_of(claim: &NodeClaim) -> Option<String> {
    let id: ProviderId = claim.status.as_ref()?.provider_id.as_deref()?.parse().ok()?;
    let label = || claim.labels().get(names::LABEL_REGION).map(String::as_str);
    id.region().or_else(label).map(str::to_owned)
}

/// A claim's labels, under the names they have today.
fn facts(claim: &NodeClaim) -> Requirements {
    let mut facts = Requirements::default();
    for (label, value) in claim.labels() {
        facts.add(names::canonical_label(label), &Requirement::is(value));
    }
    facts
}
