//! One look at everything a plan is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use tenon_api::kube_objects::{DaemonSet, Node, Pod, PodDisruptionBudget};

use kube::api::{Api, ListParams};
use tenon_api::objects::{Kind, Objects};
use tenon_api::plan_options::PlanOptions;
use tenon_api::planning::EvaluatedOverlays;
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, names};
use tenon_model::{RegionCapacity, Seconds, VmIds};

use super::host_facts::{self, HostFacts};
use super::launch_site::LaunchSpot;
use crate::addresses::{AddressBook, Surveyed};
use crate::context::Context;
use crate::cpus::{self, CpuBook};
use crate::kube_error;
use crate::status::Estate;

/// Everything a plan is made from.
#[derive(Debug, Default)]
pub struct Gathered {
    /// All pods.
    pub pods: Vec<Arc<Pod>>,
    /// All nodes.
    pub nodes: Vec<Arc<Node>>,
    /// All DaemonSets.
    pub daemons: Vec<Arc<DaemonSet>>,
    /// All pools.
    pub pools: Vec<Arc<NodePool>>,
    /// All classes.
    pub classes: Vec<Arc<ProxmoxNodeClass>>,
    /// All claims, those included that were just made.
    pub claims: Vec<Arc<NodeClaim>>,
    /// What decides about pods besides nodes: volumes, namespaces, and who selects them.
    pub related: Objects,
    /// Kinds of these that nobody may read, and what to do about it.
    pub unreadable: BTreeMap<Kind, String>,
    /// Budgets, where pods are about to leave a node: who may never go needs no other one.
    pub budgets: Vec<Arc<PodDisruptionBudget>>,
    /// Every Proxmox cluster.
    pub estate: Estate,
    /// What a listing does not show of hosts and guests.
    pub facts: HostFacts,
    /// How much of each host VMs may have, by region.
    pub capacity_rules: BTreeMap<String, RegionCapacity>,
    /// When it was looked at.
    pub now: Seconds,
    /// Hosts that are left alone for a while by a class, because a launch failed there, and why.
    pub avoided: Vec<(LaunchSpot, String)>,
    /// What an operator decides about plans.
    pub options: PlanOptions,
    /// Addresses that VMs of each class are given, and those in use.
    pub addresses: AddressBook,
    /// Whether VMs are bound to CPUs, and what of hosts is known for that.
    pub cpus: CpuBook,
    /// VM ids: the range they are chosen from, and those in quarantine.
    pub ids: VmIds,
    /// What was found of NodeOverlays; nothing where they are not looked at.
    pub overlays: Option<Arc<EvaluatedOverlays>>,
    /// How long pods have to leave a node whose pool does not say so; unset: for ever.
    pub termination_grace_period: Option<String>,
}

/// Whether PodDisruptionBudgets are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Budgets {
    /// Only if pods are about to leave a node.
    WhereNeeded,
    Always,
}

/// Looks. Nodes are read before pods: a pod that was bound in between is then counted on a node that is known.
pub(crate) async fn gather(context: &Context) -> Gathered {
    look(context, Budgets::WhereNeeded).await
}

/// The same with all PodDisruptionBudgets: which nodes can be drained depends on them.
pub(crate) async fn gather_for_disruption(context: &Context) -> Gathered {
    look(context, Budgets::Always).await
}

async fn look(context: &Context, wanted: Budgets) -> Gathered {
    let estate = Estate::look(&context.regions).await;
    let (watched, now) = (&context.watched, context.clock.now());
    let claims = context.memory.with_fresh(watched.claims.state());
    let nodes = watched.nodes.state();
    // A claim that was deleted goes a moment before its node is kept free of pods.
    let is_going = |claim: &Arc<NodeClaim>| claim.metadata.deletion_timestamp.is_some();
    let somebody_leaves = nodes.iter().any(|node| is_being_emptied(node)) || claims.iter().any(is_going);
    let budgets = if somebody_leaves || wanted == Budgets::Always { budgets(context).await } else { Vec::new() };
    let mut ids = VmIds::new(context.settings.ids);
    context.ids.apply(&mut ids, context.clock.seconds()).await;
    let classes = watched.classes.state();
    let surveyed = Surveyed { regions: &context.regions, estate: &estate, classes: &classes, claims: &claims, now };
    let mut facts = context.survey.look(&surveyed).await;
    facts.others = api_server(context.settings.cluster_endpoint.as_deref());
    let addresses = AddressBook::new(&facts, &classes, &claims, &nodes);
    let host_facts = host_facts::look(&context.regions, &estate, &classes, &claims).await;
    let surveyed = cpus::Surveyed {
        regions: &context.regions,
        estate: &estate,
        claims: &claims,
        policy: context.settings.node_policy,
        settings: &context.settings.node_settings,
        now,
    };
    let cpus = context.cpus.look(&surveyed).await;
    let pods = watched.pods.state();
    Gathered {
        facts: host_facts,
        capacity_rules: context.regions.capacity_rules(),
        budgets,
        claims,
        nodes,
        pods,
        daemons: watched.daemons.state(),
        pools: watched.pools.state(),
        classes,
        addresses,
        cpus,
        avoided: context.memory.avoided(now),
        now: context.clock.seconds(),
        options: context.settings.planning.clone(),
        overlays: context.settings.planning.feature_gates.node_overlay.then(|| context.memory.overlays.published()),
        ids,
        termination_grace_period: context.settings.termination_grace_period.clone(),
        related: watched.related.objects(),
        unreadable: watched.related.unreadable(),
        estate,
    }
}

/// The address that nodes find the API server at, where it is one: often one that no Node has.
fn api_server(endpoint: Option<&str>) -> BTreeSet<IpAddr> {
    let host = endpoint.and_then(|url| url.parse::<http::Uri>().ok()?.host().map(str::to_owned));
    host.and_then(|host| host.trim_matches(['[', ']']).parse().ok()).into_iter().collect()
}

/// Whether its pods need another node.
pub(crate) fn is_being_emptied(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.key == names::TAINT_DISRUPTED)
}

/// All budgets. Without them a pod that may never go is planned for, and its node waits in vain; so that is told.
async fn budgets(context: &Context) -> Vec<Arc<PodDisruptionBudget>> {
    let api: Api<PodDisruptionBudget> = Api::all(context.workload.clone());
    match api.list(&ListParams::default()).await {
        Ok(list) => list.items.into_iter().map(Arc::new).collect(),
        Err(error) => {
            tracing::warn!(
                error = kube_error::message(&error),
                "cannot list PodDisruptionBudgets; nodes may be created for pods that cannot be evicted"
            );
            Vec::new()
        }
    }
}
