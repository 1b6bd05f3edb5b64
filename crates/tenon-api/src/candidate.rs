//! NodeClaims, Nodes, Pods and NodePools as the engine's disruption rules see them.

use crate::kube_objects::{Node, Pod};
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeCondition;
use kube::ResourceExt;
use tenon_model::{
    BudgetFault, BudgetText, CandidateClaim, CandidateKubeNode, CandidateNode, CandidatePod, DisruptionBudget,
    DisruptionFacts, DisruptionPool, DrainPod, PodKey, RepairPolicies, SaidCondition, TimespanOrNever, Timestamp,
    Unhealthy,
};

use crate::condition::{Condition, ConditionStatus};
use crate::disruption::{Budget, ConsolidationPolicy, DisruptionReason};
use crate::names;
use crate::nodeclaim::NodeClaim;
use crate::nodepool::NodePool;
use crate::plan_options::FeatureGates;
use crate::pod_predicates::{
    eviction_cost, has_do_not_disrupt, is_owned_by_daemon_set, is_owned_by_node, is_reschedulable, is_terminal,
    pod_key, tolerates_disrupted_taint,
};
use crate::timestamp::timestamp;

/// How long a pod may take to end where it says nothing, as Kubernetes has it.
const DEFAULT_GRACE_PERIOD_S: i64 = 30;

/// Priority classes of pods that others depend on.
const CRITICAL: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// A claim with what belongs to it.
#[derive(Debug, Clone)]
pub struct CandidateObjects<'a> {
    /// The claim.
    pub claim: &'a NodeClaim,
    /// Its Node, once there is one.
    pub node: Option<&'a Node>,
    /// All pods bound to that Node.
    pub pods: Vec<&'a Pod>,
    /// Whether pods were nominated to the node a moment ago.
    pub is_nominated: bool,
    /// What an operator switched on.
    pub gates: FeatureGates,
}

impl CandidateObjects<'_> {
    /// For the engine, at this time.
    pub fn to_model(&self, now: Timestamp) -> CandidateNode {
        CandidateNode {
            claim: candidate_claim(self.claim),
            // Whether it is broken is nothing that the rules for empty nodes ask.
            node: self.node.map(|node| candidate_kube_node(node, &RepairPolicies::none())),
            pool: pool_of(self.claim, self.node).map(str::to_owned),
            pods: self.pods.iter().map(|pod| candidate_pod(pod, self.gates, now)).collect(),
            is_nominated: self.is_nominated,
        }
    }
}

/// What decides whether the node of a claim may be disrupted, besides its pods.
pub(crate) fn disruption_facts(claim: &NodeClaim, node: Option<&Node>, repair: &RepairPolicies) -> DisruptionFacts {
    DisruptionFacts { claim: candidate_claim(claim), node: node.map(|node| candidate_kube_node(node, repair)) }
}

fn candidate_claim(claim: &NodeClaim) -> CandidateClaim {
    let status = claim.status.as_ref();
    let has_vm = status.is_some_and(|status| status.provider_id.is_some());
    CandidateClaim {
        name: claim.metadata.name.clone().unwrap_or_default(),
        created: claim.metadata.creation_timestamp.as_ref().map(timestamp),
        is_deleting: claim.metadata.deletion_timestamp.is_some(),
        is_instance_terminating: true_condition(claim, "InstanceTerminating").is_some(),
        has_foreign_vm: has_vm && !claim.annotations().contains_key(names::ANNOTATION_LAUNCH),
        has_do_not_disrupt: forbids_disruption(claim.annotations()),
        initialized_at: true_condition(claim, "Initialized").map(|told| timestamp(&told.last_transition_time)),
        last_pod_event: status.and_then(|status| status.last_pod_event_time.as_ref()).map(timestamp),
        consolidatable_since: true_condition(claim, "Consolidatable").map(|told| timestamp(&told.last_transition_time)),
        drifted_since: true_condition(claim, "Drifted").map(|told| timestamp(&told.last_transition_time)),
        is_surplus: claim.annotations().contains_key(names::ANNOTATION_SURPLUS),
        has_do_not_repair: forbids_repair(claim.annotations()),
        rebooted_at: rebooted_at(claim),
        expire_after_s: expire_after_s(claim),
        has_bounded_drain: claim.spec.termination_grace_period.is_some(),
    }
}

/// The conditions of a Node that mean that it is broken.
pub fn unhealthy_conditions(node: &Node, repair: &RepairPolicies) -> Vec<Unhealthy> {
    said_conditions(node).flat_map(|said| repair.matches(&said)).collect()
}

/// The same by the rules of Karpenter before version 1.15.
pub fn legacy_unhealthy_conditions(node: &Node, repair: &RepairPolicies) -> Vec<Unhealthy> {
    said_conditions(node).flat_map(|said| repair.legacy_matches(&said)).collect()
}

/// What a Node says of itself. A condition that does not say since when it is so began with the node, as far as anybody knows.
fn said_conditions(node: &Node) -> impl Iterator<Item = SaidCondition<'_>> {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let created = node.metadata.creation_timestamp.as_ref().map(timestamp);
    conditions.map(move |told: &NodeCondition| SaidCondition {
        condition: &told.type_,
        status: &told.status,
        reason: told.reason.as_deref().unwrap_or_default(),
        since: told.last_transition_time.as_ref().map(timestamp).or(created).unwrap_or_default(),
    })
}

fn candidate_kube_node(node: &Node, repair: &RepairPolicies) -> CandidateKubeNode {
    let conditions = || node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let created = node.metadata.creation_timestamp.as_ref().map(timestamp);
    CandidateKubeNode {
        name: node.name_any(),
        is_deleting: node.metadata.deletion_timestamp.is_some(),
        is_initialized: has_true_label(node, names::LABEL_INITIALIZED),
        is_registered: has_true_label(node, names::LABEL_REGISTERED),
        is_ready: conditions().any(|told| told.type_ == "Ready" && told.status == "True"),
        unhealthy: unhealthy_conditions(node, repair),
        created,
        has_do_not_repair: forbids_repair(node.annotations()),
        has_do_not_disrupt: forbids_disruption(node.annotations()),
    }
}

fn candidate_pod(pod: &Pod, gates: FeatureGates, now: Timestamp) -> CandidatePod {
    CandidatePod {
        key: pod_key(pod).clone(),
        has_do_not_disrupt: has_do_not_disrupt(pod, now),
        is_reschedulable: is_reschedulable(pod),
        eviction_cost: eviction_cost(pod, gates),
    }
}

/// A NodePool for the engine's disruption rules.
pub fn disruption_pool(pool: &NodePool) -> DisruptionPool {
    let disruption = &pool.spec.disruption;
    DisruptionPool {
        name: pool.metadata.name.clone().unwrap_or_default(),
        is_deleting: pool.metadata.deletion_timestamp.is_some(),
        is_static: pool.spec.replicas.is_some(),
        policy: match disruption.consolidation_policy {
            ConsolidationPolicy::WhenEmpty => tenon_model::ConsolidationPolicy::WhenEmpty,
            ConsolidationPolicy::WhenEmptyOrUnderutilized => tenon_model::ConsolidationPolicy::WhenEmptyOrUnderutilized,
            ConsolidationPolicy::Balanced => tenon_model::ConsolidationPolicy::Balanced,
        },
        consolidate_after: disruption.consolidate_after.parse(),
        budgets: disruption.budgets.iter().map(disruption_budget).collect(),
    }
}

/// A budget for the engine, or why it cannot be read.
pub fn disruption_budget(budget: &Budget) -> Result<DisruptionBudget, BudgetFault> {
    let text =
        BudgetText { nodes: &budget.nodes, schedule: budget.schedule.as_deref(), duration: budget.duration.as_deref() };
    let reasons = budget.reasons.as_ref().map(|reasons| reasons.iter().copied().map(disruption_reason).collect());
    DisruptionBudget::read(text, reasons)
}

fn disruption_reason(reason: DisruptionReason) -> tenon_model::DisruptionReason {
    match reason {
        DisruptionReason::Underutilized => tenon_model::DisruptionReason::Underutilized,
        DisruptionReason::Empty => tenon_model::DisruptionReason::Empty,
        DisruptionReason::Drifted => tenon_model::DisruptionReason::Drifted,
        DisruptionReason::Unhealthy => tenon_model::DisruptionReason::Unhealthy,
    }
}

/// A pod of a node that is drained, for the engine, at this time.
pub fn drain_pod(pod: &Pod, now: Timestamp) -> DrainPod {
    let spec = pod.spec.as_deref();
    let priority_class = spec.and_then(|spec| spec.priority_class_name.as_deref()).unwrap_or_default();
    let grace_period_s = spec.and_then(|spec| spec.termination_grace_period_seconds);
    DrainPod {
        key: PodKey::clone(pod_key(pod)),
        is_terminal: is_terminal(pod),
        deleting_until: pod.metadata.deletion_timestamp.as_ref().map(timestamp),
        grace_period_s: grace_period_s.unwrap_or(DEFAULT_GRACE_PERIOD_S),
        is_owned_by_node: is_owned_by_node(pod),
        is_owned_by_daemon_set: is_owned_by_daemon_set(pod),
        is_critical: CRITICAL.contains(&priority_class),
        tolerates_disrupted_taint: tolerates_disrupted_taint(pod),
        has_do_not_disrupt: has_do_not_disrupt(pod, now),
    }
}

/// The NodePool of a node: from the registration on, the Node says it.
fn pool_of<'a>(claim: &'a NodeClaim, node: Option<&'a Node>) -> Option<&'a str> {
    let registered = node.filter(|node| has_true_label(node, names::LABEL_REGISTERED));
    let labels = registered.map_or_else(|| claim.labels(), |node| node.labels());
    labels.get(names::LABEL_NODEPOOL).map(String::as_str).filter(|pool| !pool.is_empty())
}

fn has_true_label(node: &Node, label: &str) -> bool {
    node.labels().get(label).is_some_and(|value| value == "true")
}

/// On Nodes and NodeClaims only the word itself counts; durations are for pods.
fn forbids_disruption(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(names::ANNOTATION_DO_NOT_DISRUPT).is_some_and(|value| value == "true")
}

fn forbids_repair(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(names::ANNOTATION_DO_NOT_REPAIR).is_some_and(|value| value == "true")
}

/// When a reboot of its VM ended.
fn rebooted_at(claim: &NodeClaim) -> Option<Timestamp> {
    let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ended = conditions.find(|told| told.type_ == "Rebooting" && told.status == ConditionStatus::False)?;
    Some(timestamp(&ended.last_transition_time))
}

/// How many seconds after its creation a claim expires. What cannot be read never comes.
fn expire_after_s(claim: &NodeClaim) -> Option<i64> {
    match claim.spec.expire_after.parse().ok()? {
        TimespanOrNever::After(span) => i64::try_from(span.as_seconds()).ok(),
        TimespanOrNever::Never => None,
    }
}

fn true_condition<'a>(claim: &'a NodeClaim, type_: &str) -> Option<&'a Condition> {
    let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().find(|told| told.type_ == type_ && told.status == ConditionStatus::True)
}
