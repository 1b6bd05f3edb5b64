//! Plans for the pods that fit nowhere, and writes each new node down as a NodeClaim.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::api::{Api, PostParams};
use kube::{Resource, ResourceExt};
use tenon_api::NodeClaim;
use tenon_api::planning::is_provisionable;
use tenon_engine::Prepared;
use tenon_model::{NewNode, Plan, PodKey, PoolRefusal, Unplaced};
use tokio::time::Instant;

use super::by_hand::{self, is_unplanned};
use super::claims::to_claims;
use super::gather::{Gathered, gather, is_being_emptied};
use super::snapshot::Lookout;
use crate::context::Context;
use crate::events::Saying;
use crate::metrics::{Created, Loop};
use crate::stop::Stop;

/// Pods that wait are planned for again after this long, even if nothing changed that we would see.
const AGAIN: Duration = Duration::from_secs(10);

/// Pods that are told in one pass what becomes of them; the rest hear it in the next ones.
const TOLD: usize = 100;

/// A pool is told this often that nothing can be made from it.
const EMPTY_POOL_TOLD_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// How this loop is called in metrics.
const LOOP: Loop = Loop { controller: "provisioner" };

/// Plans whenever pods wait, until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let (mut planned, mut lookout) = (BTreeSet::new(), Lookout::default());
    loop {
        tokio::select! {
            biased;
            window = window(&context, &planned) => planned = window,
            () = stop.wait() => return,
        }
        pass(&context, &mut lookout).await;
    }
}

/// Waits for pods that wait, and then until no more come. Returns those it saw.
async fn window(context: &Context, planned: &BTreeSet<String>) -> BTreeSet<String> {
    let (begun, changed) = (Instant::now(), &context.watched.pods_changed);
    let mut seen = loop {
        let waiting = waiting(context);
        let is_new = waiting.iter().any(|uid| !planned.contains(uid));
        if is_new || (!waiting.is_empty() && begun.elapsed() >= AGAIN) {
            break waiting;
        }
        if waiting.is_empty() {
            context.metrics.unschedulable_pods.get_or_create(&LOOP).set(0);
        }
        // Nobody tells when the time is up for pods that wait already.
        let _ = tokio::time::timeout(Duration::from_secs(1), changed.notified()).await;
    };
    let opened = Instant::now();
    let mut last = opened;
    loop {
        let close = (last + context.settings.batch_idle).min(opened + context.settings.batch_max);
        if tokio::time::timeout_at(close, changed.notified()).await.is_err() {
            return seen;
        }
        let waiting = waiting(context);
        if waiting.iter().any(|uid| !seen.contains(uid)) {
            last = Instant::now();
        }
        // Who is in the window already does not keep it open, even if he went in between.
        seen.extend(waiting);
    }
}

fn waiting(context: &Context) -> BTreeSet<String> {
    let pods = context.watched.pods.state_filter(is_provisionable);
    let claims = context.watched.claims.state_filter(is_unplanned);
    // The pods of a node that is being emptied need another.
    let nodes = context.watched.nodes.state_filter(is_being_emptied);
    let uids = pods.iter().filter_map(|pod| pod.uid()).chain(claims.iter().filter_map(|claim| claim.uid()));
    uids.chain(nodes.iter().filter_map(|node| node.uid())).collect()
}

/// One pass: gather, decide, check, act, report.
async fn pass(context: &Context, lookout: &mut Lookout) {
    by_hand::pass(context).await;
    let gathered = gather(context).await;
    let snapshot = lookout.look(&gathered, &context.settings.types);
    let prepared = Prepared::new(&snapshot, &mut lookout.indexes);
    tell_empty_pools(context, &prepared, &gathered).await;
    let plan = prepared.solve();
    let violations = tenon_engine::check(&snapshot, &plan);
    if !violations.is_empty() {
        // A plan that breaks its own rules is a fault of ours; nothing is made from it.
        context.metrics.errors.get_or_create(&LOOP).inc();
        tracing::error!(?violations, "the plan does not hold and was thrown away; please report this");
        return;
    }
    create(context, &plan, &gathered).await;
    report(context, &plan, &gathered).await;
}

async fn create(context: &Context, plan: &Plan, gathered: &Gathered) {
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    let claims = to_claims(plan, gathered, context.settings.ids, context.clock.seconds());
    for (node, claim) in plan.new_nodes.iter().zip(claims) {
        let claim = match claim {
            Ok(claim) => claim,
            Err(error) => {
                let told = Saying::warning("FailedScheduling", error.to_string());
                tell(context, gathered, &node.pods, &told).await;
                continue;
            }
        };
        match api.create(&PostParams::default(), &claim).await {
            Ok(made) => made_for(context, gathered, node, &made).await,
            // The pods still wait, and the next pass plans for them again.
            Err(error) => {
                context.metrics.errors.get_or_create(&LOOP).inc();
                tracing::warn!(pool = node.pool, %error, "a NodeClaim could not be written");
            }
        }
    }
}

async fn made_for(context: &Context, gathered: &Gathered, node: &NewNode, made: &NodeClaim) {
    let (name, now) = (made.name_any(), context.clock.now());
    let pods = node.pods.iter().filter_map(|key| find(gathered, key)).map(|pod| pod.object_ref(&())).collect();
    context.memory.add_claim(made, pods, now);
    nominate(context, &name);
    let counted = Created {
        reason: "provisioned".to_owned(),
        nodepool: node.pool.clone(),
        min_values_relaxed: node.min_values_relaxed.to_string(),
    };
    context.metrics.claims_created.get_or_create(&counted).inc();
    let record = super::record_of(made);
    let vmid = record.as_ref().map(|record| record.vmid.get());
    let host = record.as_ref().map(|record| record.place.host.as_str());
    tracing::info!(
        claim = name,
        pool = node.pool,
        size = node.chosen.instance_type,
        host,
        vmid,
        pods = node.pods.len(),
        "a node is to be made"
    );
    let told = format!("a node is being made for it: nodeclaim/{name}");
    tell(context, gathered, &node.pods, &Saying::normal("Nominated", told)).await;
}

async fn report(context: &Context, plan: &Plan, gathered: &Gathered) {
    // Who only waits for the next plan is not told that he cannot be helped.
    let refused: Vec<&Unplaced> = plan.unplaced.iter().filter(|unplaced| !unplaced.reason.is_deferred()).collect();
    let waiting = i64::try_from(refused.len()).unwrap_or(i64::MAX);
    context.metrics.unschedulable_pods.get_or_create(&LOOP).set(waiting);
    for placement in &plan.placements {
        nominate(context, &placement.node);
    }
    for placement in plan.placements.iter().take(TOLD) {
        let kind =
            if gathered.nodes.iter().any(|node| node.name_any() == placement.node) { "node" } else { "nodeclaim" };
        let told = format!("it is expected on {kind}/{}", placement.node);
        tell(context, gathered, std::slice::from_ref(&placement.pod), &Saying::normal("Nominated", told)).await;
    }
    for unplaced in refused.into_iter().take(TOLD) {
        let told = Saying::warning("FailedScheduling", unplaced.reason.to_string());
        tell(context, gathered, std::slice::from_ref(&unplaced.pod), &told).await;
    }
}

/// Whoever wrote a pool that no size meets hears it, whether or not its pods find a node elsewhere.
async fn tell_empty_pools(context: &Context, prepared: &Prepared<'_>, gathered: &Gathered) {
    let told = Saying::warning("NoCompatibleInstanceTypes", format!("{}; widen them", PoolRefusal::NothingOffered));
    let told = told.again_after(EMPTY_POOL_TOLD_EVERY);
    for name in prepared.pools_without_sizes() {
        if let Some(pool) = gathered.pools.iter().find(|pool| pool.name_any() == name) {
            context.events.say(pool.as_ref(), &told).await;
        }
    }
}

/// Pods are expected there, so it is not taken away for being empty.
fn nominate(context: &Context, name: &str) {
    let until = SignedDuration::try_from(context.settings.nomination()).unwrap_or(SignedDuration::from_secs(20));
    context.memory.nominate(name, context.clock.now() + until);
}

async fn tell(context: &Context, gathered: &Gathered, pods: &[PodKey], saying: &Saying) {
    for key in pods.iter().take(TOLD) {
        if let Some(pod) = find(gathered, key) {
            let reference: ObjectReference = pod.object_ref(&());
            context.events.say_of(&reference, saying).await;
        }
    }
}

fn find<'a>(gathered: &'a Gathered, key: &PodKey) -> Option<&'a Arc<Pod>> {
    gathered.pods.iter().find(|pod| pod.metadata.uid.as_deref() == Some(&key.uid))
}
