//! Plans for the pods that fit nowhere, and writes each new node down as a NodeClaim.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use kube::runtime::reflector::ObjectRef;
use tenon_api::kube_objects::Pod;
use tenon_api::planning::is_provisionable;
use tenon_api::{NodeClaim, NodePool, event_reasons};
use tenon_engine::{CheckedPlan, Engine};
use tenon_model::{NewNode, Plan, Reason, Snapshot, Unplaced, Volume};

use tokio::time::Instant;

use super::batcher::{Batcher, PendingUids};
use super::claims::{ClaimError, to_claims};
use super::gather::{Gathered, gather, is_being_emptied};
use super::recheck::Usage;
use super::report::{Report, nominate};
use super::snapshot::Lookout;
use super::standalone::{self, is_unplanned};
use crate::context::Context;
use crate::events::Event;
use crate::kube_error;
use crate::metrics::{Created, Loop, Metrics, PlanCounts, PlanDecision, PlanPhase, WaitingPod, variant};
use crate::stop::Stop;
use crate::watched::Related;

/// That no instance type meets a pool is repeated after this long.
const EMPTY_POOL_REPEAT_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// One bug may break a rule for each of many pods; so many are enough to find it.
const VIOLATIONS_LOGGED: usize = 10;

/// How this loop is called in metrics.
const LOOP: Loop = Loop { controller: "provisioner" };

/// Plans whenever pods wait, until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let mut batcher = Batcher::new(context.settings.batch_idle, context.settings.batch_max);
    let mut lookout = Lookout::default();
    loop {
        tokio::select! {
            biased;
            () = batcher.wait(|| pending(&context), &context.watched.pods_changed) => {}
            () = stop.wait() => return,
        }
        pass(&context, &mut lookout).await;
    }
}

/// Everything that needs a plan, by uid.
pub(super) fn pending(context: &Context) -> PendingUids {
    let pods = context.watched.pods.state_filter(is_provisionable);
    let counted = pods.iter().map(|pod| WaitingPod { uid: pod.uid(), namespace: pod.namespace(), name: pod.name() });
    context.metrics.scheduling.waiting(counted);
    let claims = context.watched.claims.state_filter(is_unplanned);
    // The pods of a node that is being emptied need another.
    let nodes = context.watched.nodes.state_filter(is_being_emptied);
    let others = claims.iter().filter_map(|claim| claim.uid()).chain(nodes.iter().filter_map(|node| node.uid()));
    let with_claims = pods.iter().filter_map(|pod| storage_of(pod, &context.watched.related));
    let uids = pods.iter().map(|pod| pod.uid().to_owned());
    let pending: PendingUids = uids.chain(with_claims).chain(others).collect();
    if pending.is_empty() {
        context.metrics.scheduling.report(&LOOP, &PlanCounts::default());
    }
    pending
}

/// What a pod with claims waits for besides: when one of its claims is another, it triggers as if it were new.
fn storage_of(pod: &Pod, related: &Related) -> Option<String> {
    let claims = tenon_api::pod::claims(pod);
    let version = |claim: &Volume| related.volume_claims.version(pod.namespace(), &claim.claim).unwrap_or_default();
    let versions: Vec<String> = claims.iter().map(|claim| version(claim).to_string()).collect();
    let classes = related.storage_classes.changes();
    (!claims.is_empty()).then(|| format!("{}/claims {}/classes {classes}", pod.uid(), versions.join(",")))
}

/// One pass: gather, decide, check, act, report.
pub(super) async fn pass(context: &Context, lookout: &mut Lookout) {
    confirm_claims(context).await;
    standalone::pass(context).await;
    let mut phases = Phases { metrics: &context.metrics, began: Instant::now() };
    let began = phases.began;
    let gathered = gather(context).await;
    phases.end("gather");
    let snapshot = lookout.look(&gathered, &context.settings.types);
    lookout.engine.advance(&snapshot);
    context.memory.note_hosts(&snapshot.hosts);
    phases.end("snapshot");
    report_empty_pools(context, &lookout.engine, &gathered).await;
    let solving = context.metrics.scheduling.begin(&LOOP, snapshot.pods.len());
    let plan = lookout.engine.plan();
    solving.end(unschedulable(&plan));
    phases.end("plan");
    let plan = checked(context, &snapshot, plan);
    phases.end("check");
    count(context, &plan, lookout.engine.effective_zones(&snapshot));
    let mut report = Report::new(context, &gathered);
    let planned = Planned { plan: &plan, snapshot: &snapshot, gathered: &gathered };
    create(context, &planned, &mut report).await;
    report.of(&plan, &gathered).await;
    phases.end("create");
    context.metrics.reconciled(LOOP.controller, began, "success");
}

/// The parts of a pass, one after the other.
struct Phases<'a> {
    metrics: &'a Metrics,
    began: Instant,
}

impl Phases<'_> {
    fn end(&mut self, phase: &'static str) {
        self.metrics.plan_time.get_or_create(&PlanPhase { phase }).observe(self.began.elapsed().as_secs_f64());
        self.began = Instant::now();
    }
}

/// The plan without what breaks its own rules. That is a bug of ours, and must not keep all other pods waiting.
pub(super) fn checked(context: &Context, snapshot: &Snapshot, plan: Plan) -> Plan {
    let CheckedPlan { plan, violations } = tenon_engine::sound_part(snapshot, plan);
    if !violations.is_empty() {
        context.metrics.errors.get_or_create(&LOOP).inc();
        let logged: Vec<String> = violations.iter().take(VIOLATIONS_LOGGED).map(ToString::to_string).collect();
        tracing::error!(
            count = violations.len(),
            violations = logged.join("; "),
            "plan check failed: dropped the affected nodes from the plan; this is a bug in Tenon, please report it"
        );
    }
    plan
}

/// Claims we made count until the watch shows them. Where it does not for long, it is broken, or they came and went while
/// nobody looked: the API server knows. One that does not answer is asked again in the next pass.
async fn confirm_claims(context: &Context) {
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    for name in context.memory.unconfirmed(context.clock.now()) {
        match api.get_metadata_opt(&name).await {
            Ok(Some(_)) => context.memory.confirm(&name, context.clock.now()),
            Ok(None) => context.memory.forget(&name),
            Err(error) => {
                tracing::debug!(claim = name, error = kube_error::message(&error), "cannot confirm created NodeClaim");
            }
        }
    }
}

/// Pods no node can be made for. One that asks for what no node can ever be is not among them, nor one that only waits for
/// the next plan.
fn unschedulable(plan: &Plan) -> usize {
    let counts = |unplaced: &&Unplaced| !unplaced.reason.is_deferred() && !is_ignored(unplaced);
    plan.unplaced.iter().filter(counts).count()
}

fn is_ignored(unplaced: &Unplaced) -> bool {
    matches!(unplaced.reason, Reason::Invalid(_))
}

fn count(context: &Context, plan: &Plan, by_zone: BTreeMap<String, u64>) {
    let scheduling = &context.metrics.scheduling;
    let ignored = plan.unplaced.iter().filter(|unplaced| is_ignored(unplaced)).count();
    let outcome = PlanCounts { ignored, unschedulable: unschedulable(plan), by_zone };
    scheduling.report(&LOOP, &outcome);
    let placed = plan.placements.iter().map(|placement| &placement.pod);
    let made = plan.new_nodes.iter().flat_map(|node| &node.pods);
    let refused = plan.unplaced.iter().map(|unplaced| &unplaced.pod);
    context.metrics.pods.placed(placed.clone().chain(made.clone()), context.clock.now());
    count_decisions(context, plan);
    scheduling.decided(placed.chain(made).chain(refused).map(|key| &*key.uid));
}

fn count_decisions(context: &Context, plan: &Plan) {
    let counts = &context.metrics.plan_decisions;
    let add = |decision, reason: String, pods: usize| {
        if pods > 0 {
            counts.get_or_create(&PlanDecision { decision, reason }).inc_by(pods);
        }
    };
    add("existing_node", String::new(), plan.placements.len());
    add("new_node", String::new(), plan.new_nodes.iter().map(|node| node.pods.len()).sum());
    for unplaced in &plan.unplaced {
        add("unschedulable", variant(&unplaced.reason), 1);
    }
}

/// A plan, and what it was made from.
pub(super) struct Planned<'a> {
    pub(super) plan: &'a Plan,
    pub(super) snapshot: &'a Snapshot,
    pub(super) gathered: &'a Gathered,
}

/// Writes each new node as a NodeClaim.
pub(super) async fn create(context: &Context, planned: &Planned<'_>, report: &mut Report<'_>) {
    let Planned { plan, snapshot, gathered } = planned;
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    let claims = to_claims(plan, snapshot, gathered);
    let mut usage = Usage::at(snapshot);
    for (node, claim) in plan.new_nodes.iter().zip(claims) {
        let claim = match claim.and_then(|claim| still_allowed(context, gathered, &usage, node).map(|()| claim)) {
            Ok(claim) => claim,
            Err(error) => {
                report.publish(&node.pods, &Event::failed_scheduling(error.to_string())).await;
                continue;
            }
        };
        match api.create(&PostParams::default(), &claim).await {
            Ok(made) => {
                usage.add(node, snapshot);
                made_for(context, report, node, &made).await;
            }
            // The pods still wait, and the next pass plans for them again.
            Err(error) => {
                context.metrics.errors.get_or_create(&LOOP).inc();
                let error = kube_error::message(&error);
                tracing::warn!(pool = node.pool, error, "cannot create NodeClaim; planning again");
            }
        }
    }
}

/// Asks the pool as it is now, not as it was when the plan was made.
fn still_allowed(context: &Context, gathered: &Gathered, usage: &Usage, node: &NewNode) -> Result<(), ClaimError> {
    let gone = || ClaimError::NotFound(node.pool.clone());
    let planned = gathered.pools.iter().find(|pool| pool.name_any() == node.pool).ok_or_else(gone)?;
    let now = context.watched.pools.get(&ObjectRef::<NodePool>::new(&node.pool));
    usage.allows(planned, now.as_deref())
}

async fn made_for(context: &Context, report: &mut Report<'_>, node: &NewNode, made: &NodeClaim) {
    let (name, now) = (made.name_any(), context.clock.now());
    // Known from here on, whenever the watch shows it: the next plan counts on it.
    context.memory.add_claim(made, report.references(&node.pods), now);
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
        instance_type = node.chosen.instance_type,
        host,
        vmid,
        pods = node.pods.len(),
        "created NodeClaim"
    );
    report.publish(&node.pods, &Event::nominated(format!("Created NodeClaim {name} for this pod"))).await;
}

/// Whoever wrote a pool that no instance type meets gets an event, whether or not its pods find a node elsewhere.
async fn report_empty_pools(context: &Context, engine: &Engine, gathered: &Gathered) {
    for name in engine.pools_without_sizes() {
        if let Some(pool) = gathered.pools.iter().find(|pool| pool.name_any() == name) {
            let note = format!(
                "No instance type meets the requirements of NodePool {name}; relax spec.template.spec.requirements"
            );
            let event = Event::new(&event_reasons::NO_COMPATIBLE_INSTANCE_TYPES, note);
            context.events.publish(pool.as_ref(), &event.repeat_after(EMPTY_POOL_REPEAT_AFTER)).await;
        }
    }
}
