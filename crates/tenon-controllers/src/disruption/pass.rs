//! Takes empty nodes away, after a second look, and says why the others stay.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;
use tenon_api::{NodeClaim, NodePool, condition_reasons, event_reasons, names};

use super::emptiness::{Consolidatable, EmptinessInput, EmptinessVerdict, judge};
use super::keep::Keep;
use super::node::NodeFacts;
use crate::claim::{ClaimError, count_disrupted, fence, pods_on};
use crate::context::{Context, is_ours};
use crate::events::Event;
use crate::metrics::Loop;
use crate::status::{Verdict, stated, subject};
use crate::stop::Stop;
use crate::writes;

/// How often nodes are looked at.
const EVERY: Duration = Duration::from_secs(10);

/// An empty node must still be empty after this long: a pod that ends is often followed by another.
const SECOND_LOOK: SignedDuration = SignedDuration::from_secs(15);

/// A node we just gave to be taken away is not mistaken for a left-over while the stores are behind.
const SETTLES: SignedDuration = SignedDuration::from_secs(60);

/// What is remembered from look to look.
#[derive(Default)]
struct Looks {
    /// When each candidate was first seen empty.
    since: BTreeMap<String, Timestamp>,
    /// What was given to be taken away, and when.
    taken: BTreeMap<String, Timestamp>,
}

/// Looks at nodes until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let mut looks = Looks::default();
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(EVERY) => {}
            () = stop.wait() => return,
        }
        if let Err(error) = pass(&context, &mut looks).await {
            context.metrics.errors.get_or_create(&Loop { controller: "disruption" }).inc();
            tracing::warn!("looking for empty nodes failed: {}", error.full_message());
        }
    }
}

/// Everything the decision is made from.
struct Gathered {
    claims: Vec<Arc<NodeClaim>>,
    pools: Vec<Arc<NodePool>>,
    nodes: BTreeMap<String, Arc<Node>>,
    pods: BTreeMap<String, Vec<Arc<Pod>>>,
}

async fn pass(context: &Context, looks: &mut Looks) -> Result<(), ClaimError> {
    let gathered = gather(context);
    let now = context.clock.now();
    looks.taken.retain(|_, at| *at + SETTLES > now);
    let verdict = decide(context, &gathered, now);
    for (name, consolidatable) in &verdict.consolidatable {
        write_consolidatable(context, &gathered, (name, *consolidatable)).await?;
    }
    report(context, &gathered, &verdict).await;
    unfence_left_overs(context, &gathered, looks).await?;
    looks.since.retain(|name, _| verdict.remove.contains(name));
    for name in &verdict.remove {
        let since = *looks.since.entry(name.clone()).or_insert(now);
        if since + SECOND_LOOK <= now {
            looks.taken.insert(name.clone(), now);
            take(context, &gathered, name).await?;
        }
    }
    Ok(())
}

fn gather(context: &Context) -> Gathered {
    let watched = &context.watched;
    let mut pods: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
    let claims: Vec<_> = watched.claims.state().into_iter().filter(|claim| is_ours(claim)).collect();
    let nodes = watched.nodes.state().into_iter().map(|node| (node.name_any(), node)).collect();
    for pod in watched.pods.state() {
        if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) {
            pods.entry(node).or_default().push(pod);
        }
    }
    Gathered { claims, pools: watched.pools.state(), nodes, pods }
}

fn decide<'a>(context: &Context, gathered: &'a Gathered, now: Timestamp) -> EmptinessVerdict {
    let facts = |claim: &'a Arc<NodeClaim>| facts(context, gathered, claim, now);
    judge(&EmptinessInput {
        now,
        pools: gathered.pools.iter().map(AsRef::as_ref).collect(),
        nodes: gathered.claims.iter().map(facts).collect(),
    })
}

fn facts<'a>(context: &Context, gathered: &'a Gathered, claim: &'a NodeClaim, now: Timestamp) -> NodeFacts<'a> {
    let name = claim.name_any();
    NodeFacts {
        claim,
        node: gathered.nodes.get(&name).map(AsRef::as_ref),
        pods: gathered.pods.get(&name).into_iter().flatten().map(AsRef::as_ref).collect(),
        nominated: context.memory.is_nominated(&name, now),
    }
}

/// The owner hears why a node that has nothing to do stays; that a node is busy or young is no news.
async fn report(context: &Context, gathered: &Gathered, verdict: &EmptinessVerdict) {
    for (name, keep) in &verdict.keep {
        let reason = match keep {
            Keep::DoNotDisrupt { .. } | Keep::Budget { .. } | Keep::PatienceUnreadable { .. } => {
                &event_reasons::DISRUPTION_BLOCKED
            }
            Keep::ConsolidationOff { .. } => &event_reasons::UNCONSOLIDATABLE,
            _ => continue,
        };
        if let Some(claim) = gathered.claims.iter().find(|claim| claim.name_any() == *name) {
            context.events.publish(claim.as_ref(), &Event::new(reason, keep.to_string())).await;
        }
    }
    for budget in verdict.pools.iter().filter(|budget| !budget.faults.is_empty()) {
        if let Some(pool) = gathered.pools.iter().find(|pool| pool.name_any() == budget.pool) {
            let told = Event::new(&event_reasons::DISRUPTION_BLOCKED, budget.faults.join("; "));
            context.events.publish(pool.as_ref(), &told).await;
        }
    }
}

async fn write_consolidatable(
    context: &Context,
    gathered: &Gathered,
    (name, consolidatable): (&String, Consolidatable),
) -> Result<(), ClaimError> {
    let Some(claim) = gathered.claims.iter().find(|claim| claim.name_any() == *name) else { return Ok(()) };
    let present = claim.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let stands = present.iter().any(|told| told.type_ == "Consolidatable");
    let holds = consolidatable == Consolidatable::Holds;
    if stands == holds {
        return Ok(());
    }
    let conditions = if holds {
        let verdict = Verdict::holds(&condition_reasons::CONSOLIDATABLE);
        let subject = subject(&claim.metadata, &context.clock.time());
        stated(crate::status::CLAIM_CONDITIONS, Some(&present), &subject, &[("Consolidatable", &verdict)])
    } else {
        present.into_iter().filter(|told| told.type_ != "Consolidatable").collect()
    };
    let written = writes::merge_status(&context.workload, claim.as_ref(), &json!({ "conditions": conditions })).await;
    written.map(drop).map_err(|source| ClaimError::kube("say whether the node may go", source))
}

/// Keeps new pods off, looks once more at what the API server itself says, and only then deletes the claim.
async fn take(context: &Context, gathered: &Gathered, name: &str) -> Result<(), ClaimError> {
    let claim = gathered.claims.iter().find(|claim| claim.name_any() == name);
    let nodes: Api<Node> = Api::all(context.workload.clone());
    let read = |source| ClaimError::kube("read the node", source);
    let (Some(claim), Some(node)) = (claim, nodes.get_opt(name).await.map_err(read)?) else { return Ok(()) };
    if !fence(context, &node).await? {
        return Ok(());
    }
    let pods = pods_on(context, &node).await?;
    let now = context.clock.now();
    let verdict = judge(&EmptinessInput {
        now,
        pools: gathered.pools.iter().map(AsRef::as_ref).collect(),
        nodes: vec![NodeFacts {
            pods: pods.iter().map(AsRef::as_ref).collect(),
            ..facts(context, gathered, claim, now)
        }],
    });
    if let Some((_, keep)) = verdict.keep.iter().find(|(_, keep)| !matches!(keep, Keep::Budget { .. })) {
        tracing::info!(claim = name, "not taken away after all: {keep}");
        return match nodes.get_opt(name).await.map_err(read)? {
            Some(node) => unfence(context, &node).await,
            None => Ok(()),
        };
    }
    let told = "the node is empty, and its pool lets it go";
    context.events.publish(claim.as_ref(), &Event::new(&event_reasons::DISRUPTION_TERMINATING, told)).await;
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    writes::delete(&api, claim.as_ref()).await.map_err(|source| ClaimError::kube("delete the claim", source))?;
    count_disrupted(context, claim, "empty");
    Ok(())
}

/// A controller that died between the fence and the deletion left a node that nobody may use and nobody takes away.
async fn unfence_left_overs(context: &Context, gathered: &Gathered, looks: &Looks) -> Result<(), ClaimError> {
    for claim in gathered.claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none()) {
        let name = claim.name_any();
        let Some(node) = gathered.nodes.get(&name).filter(|_| !looks.taken.contains_key(&name)) else { continue };
        let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        if node.metadata.deletion_timestamp.is_none() && taints.any(|taint| taint.key == names::TAINT_DISRUPTED) {
            tracing::info!(node = name, "a fence that was left behind is taken down");
            unfence(context, node).await?;
        }
    }
    Ok(())
}

async fn unfence(context: &Context, node: &Node) -> Result<(), ClaimError> {
    let present = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let taints: Vec<_> = present.filter(|taint| taint.key != names::TAINT_DISRUPTED).collect();
    let labels = json!({ names::LABEL_EXCLUDE_BALANCERS: null });
    let patch = json!({ "metadata": { "labels": labels }, "spec": { "taints": taints } });
    let written = writes::merge(&context.workload, node, patch).await;
    written.map(drop).map_err(|source| ClaimError::kube("take the fence down", source))
}
