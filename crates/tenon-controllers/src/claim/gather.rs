//! What is true of a claim and of the node that bears its name.

use std::sync::Arc;
use tenon_api::kube_objects::Node;

use kube::api::Api;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use tenon_api::condition_reasons::{self, ConditionType};
use tenon_api::{Condition, ConditionStatus, NodeClaim, launch_record, names};
use tenon_engine::claim::{ClaimConditions, ObservedClaim, ObservedLaunch, ObservedNode, Obstacle, REGISTER_WITHIN_S};
use tenon_model::{LaunchRecord, Quantity, Seconds};

use super::drain::is_ready;
use super::reboot::is_rebooting;
use crate::context::{Context, is_ours};
use crate::disruption::parse_duration_or_never;
use crate::first_boot::provider_id;

/// Taints that are there while a node comes up, and must be gone before it takes pods. Key and effect.
const EPHEMERAL: [(&str, &str); 5] = [
    ("node.kubernetes.io/not-ready", "NoSchedule"),
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoSchedule"),
    (names::TAINT_UNINITIALIZED, "NoSchedule"),
    (names::TAINT_UNREGISTERED, "NoExecute"),
];

/// A claim, its node, and what the engine needs to know of them.
pub(crate) struct Observed {
    pub(crate) claim: NodeClaim,
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) state: ObservedClaim,
}

impl Observed {
    /// The node, if it is the claim's VM.
    pub(crate) fn our_node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref().filter(|_| matches!(self.state.node, ObservedNode::Ours { .. }))
    }
}

/// Gathers. `None` if the claim was deleted or is not ours. The claim is read again: a step that was taken must never be
/// taken again because a store was a moment behind.
pub(crate) async fn gather(context: &Context, name: &str) -> Result<Option<Observed>, kube::Error> {
    let claims: Api<NodeClaim> = Api::all(context.workload.clone());
    let Some(claim) = claims.get_opt(name).await?.filter(is_ours) else { return Ok(None) };
    let mut node = context.watched.nodes.get(&ObjectRef::new(name));
    // Before anything is destroyed for want of a node, the API server itself is asked.
    let matters = claim.meta().deletion_timestamp.is_some() || is_true(&claim, &condition_reasons::REGISTERED);
    if node.is_none() && matters {
        node = Api::<Node>::all(context.workload.clone()).get_opt(name).await?.map(Arc::new);
    }
    let within = context.timeouts_of(&claim).and_then(|timeouts| timeouts.registration_s());
    let register_within_s = within.unwrap_or(REGISTER_WITHIN_S);
    let state = ObservedClaim { register_within_s, ..observe(&claim, node.as_deref()) };
    Ok(Some(Observed { claim, node, state }))
}

pub(super) fn observe(claim: &NodeClaim, node: Option<&Node>) -> ObservedClaim {
    let annotation = |name: &str| claim.annotations().get(name).map(String::as_str);
    let launch = match annotation(names::ANNOTATION_LAUNCH).map(launch_record::read) {
        Some(Ok(record)) => ObservedLaunch::Record(record),
        Some(Err(error)) => ObservedLaunch::Unreadable(error.why().to_owned()),
        None if claim.status.as_ref().is_some_and(|status| status.provider_id.is_some()) => ObservedLaunch::Foreign,
        None => ObservedLaunch::Unplanned,
    };
    let node = match (&launch, node) {
        (_, None) => ObservedNode::Absent,
        (ObservedLaunch::Record(_), Some(node)) if is_left_to_us(claim, node) => {
            ObservedNode::Ours { deleting: node.meta().deletion_timestamp.is_some(), obstacle: None }
        }
        (ObservedLaunch::Record(record), Some(node)) => node_of_vm(claim, record, node),
        (_, Some(_)) => ObservedNode::Stranger(format!("NodeClaim {} has no VM", claim.name_any())),
    };
    ObservedClaim {
        has_finalizer: claim.finalizers().iter().any(|name| name == names::FINALIZER),
        deleting_since: claim.meta().deletion_timestamp.as_ref().map(|time| Seconds(time.0.as_second())),
        expires_at: expires_at(claim),
        launch,
        conditions: conditions(claim),
        node,
        seed_deleted: annotation(names::ANNOTATION_CLOUDINIT_STATUS).is_some(),
        skip_vm_deletion: annotation(names::ANNOTATION_SKIP_VM_DELETION) == Some("true"),
        register_within_s: REGISTER_WITHIN_S,
    }
}

/// A text that is no duration never comes past the schema.
pub(crate) fn expires_at(claim: &NodeClaim) -> Option<Seconds> {
    let age = parse_duration_or_never(&claim.spec.expire_after).ok().flatten()?;
    let created = claim.creation_timestamp()?.0.as_second();
    Some(Seconds(created.saturating_add(age.as_secs())))
}

fn conditions(claim: &NodeClaim) -> ClaimConditions {
    let created = claim.creation_timestamp().map(|time| time.0.as_second()).unwrap_or_default();
    let waiting = condition(claim, &condition_reasons::REGISTERED)
        .map_or(created, |found| found.last_transition_time.0.as_second());
    ClaimConditions {
        launched: is_true(claim, &condition_reasons::LAUNCHED),
        registered: is_true(claim, &condition_reasons::REGISTERED),
        initialized: is_true(claim, &condition_reasons::INITIALIZED),
        drained: is_true(claim, &condition_reasons::DRAINED),
        rebooting: is_rebooting(claim),
        waiting_since: Seconds(waiting),
    }
}

/// A Node that we registered carries our finalizer and the pods we put on it. If it reports another machine later, it is
/// still drained and deleted with its claim; nobody else would.
fn is_left_to_us(claim: &NodeClaim, node: &Node) -> bool {
    let is_registered = node.owner_references().iter().any(|owner| Some(&owner.uid) == claim.uid().as_ref());
    is_registered && claim.meta().deletion_timestamp.is_some()
}

/// A name is not enough: the node must run on the VM we created.
pub(crate) fn node_of_vm(claim: &NodeClaim, record: &LaunchRecord, node: &Node) -> ObservedNode {
    let found = node.status.iter().find_map(|status| Some(status.node_info.as_ref()?.system_uuid.as_str()));
    let found = found.unwrap_or_default();
    let (expected, name) = (provider_id(record), node.name_any());
    let told = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default();
    match &record.uuid {
        // It has only just joined; its system UUID follows in a moment.
        _ if found.is_empty() && !is_true(claim, &condition_reasons::REGISTERED) => ObservedNode::Absent,
        None => ObservedNode::Stranger(format!("the SMBIOS UUID of VM {} is not known yet", record.vmid)),
        Some(uuid) if !uuid.eq_ignore_ascii_case(found) => ObservedNode::Stranger(format!(
            "Node {name} has system UUID {found}, but VM {} has {uuid}: another machine joined under this name; rename or \
             remove Node {name}, or delete NodeClaim {name}",
            record.vmid
        )),
        Some(_) if !told.is_empty() && told != expected => ObservedNode::Stranger(format!(
            "Node {name} has providerID {told}, but VM {} is {expected}; correct provider-id of its kubelet, or the region in the \
             configuration of the cloud controller manager",
            record.vmid
        )),
        Some(_) => {
            ObservedNode::Ours { deleting: node.meta().deletion_timestamp.is_some(), obstacle: obstacle(claim, node) }
        }
    }
}

/// What keeps a node from being initialized, in the order it is worth knowing.
fn obstacle(claim: &NodeClaim, node: &Node) -> Option<Obstacle> {
    if !is_ready(node) {
        return Some(Obstacle::NotReady);
    }
    let taints: Vec<_> = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).collect();
    let startup = claim.spec.startup_taints.iter().flatten();
    let left = startup.map(|taint| (taint.key.as_str(), format!("{:?}", taint.effect)));
    let mut left = left.filter(|(key, effect)| taints.iter().any(|taint| taint.key == *key && taint.effect == *effect));
    if let Some((key, effect)) = left.next() {
        return Some(Obstacle::StartupTaint(format!("{key}:{effect}")));
    }
    let is_ephemeral =
        |key: &str, effect: &str| EPHEMERAL.contains(&(key, effect)) || key.starts_with("readiness.k8s.io/");
    if let Some(taint) = taints.iter().find(|taint| is_ephemeral(&taint.key, &taint.effect)) {
        return Some(Obstacle::EphemeralTaint(format!("{}:{}", taint.key, taint.effect)));
    }
    unregistered_resource(claim, node).map(Obstacle::MissingResource)
}

/// A resource the claim was made for and its node does not offer.
fn unregistered_resource(claim: &NodeClaim, node: &Node) -> Option<String> {
    let wanted = claim.spec.resources.iter().flat_map(|resources| resources.requests.iter().flatten());
    let is_zero = |text: &str| text.parse().is_ok_and(Quantity::is_zero);
    let offered = |name: &str| {
        let allocatable = node.status.as_ref()?.allocatable.as_ref()?;
        allocatable.get(name).filter(|amount| !is_zero(&amount.0))
    };
    let is_nothing = |wanted| tenon_api::quantity_of(wanted).is_some_and(Quantity::is_zero);
    let mut missing = wanted.filter(|(name, wanted)| !is_nothing(wanted) && offered(name).is_none());
    missing.next().map(|(name, _)| name.clone())
}

/// A condition of a claim.
pub(crate) fn condition<'a>(claim: &'a NodeClaim, type_: &ConditionType) -> Option<&'a Condition> {
    let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|condition| condition.type_ == type_.name())
}

/// Whether a condition of a claim is true.
pub(crate) fn is_true(claim: &NodeClaim, type_: &ConditionType) -> bool {
    condition(claim, type_).is_some_and(|found| found.status == ConditionStatus::True)
}
