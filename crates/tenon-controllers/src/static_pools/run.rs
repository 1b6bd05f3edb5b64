//! Whose turn is it among pools of fixed size? Each is looked at when something about it changed, and now and then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Api, ListParams};
use tenon_api::{NodeClaim, NodePool, event_reasons, names};
use tenon_engine::StaticCounts;
use tenon_engine::static_pool::{StaticPool, StaticStep};
use tokio::time::Instant;

use super::observe::{StaticLook, is_static};
use super::{deprovision, provision};
use crate::context::Context;
use crate::events::Event;
use crate::kube_error;
use crate::metrics::Loop;
use crate::moments::instant_after;
use crate::panics::{caught, note};
use crate::stop::Stop;

/// How often the stores are asked whether something changed.
const EVERY: Duration = Duration::from_secs(1);

/// A pool about which nothing changed is looked at again after this long …
const SETTLED: Duration = Duration::from_secs(60);

/// … and one that wants more than it gets after this.
const WANTING: Duration = Duration::from_secs(30);

/// A pass that failed is tried again after this long.
const RETRY: Duration = Duration::from_secs(5);

/// What the stores showed of a pool when it was last looked at, and when it is looked at again if nothing changes.
struct Previous {
    shown: Shown,
    due: Instant,
}

/// What of a pool makes another look worth while: which object it is, in which version of its spec, whether nodes can be
/// made from it, what it has, and how many of that wait for a size and a host.
type Shown = (Option<String>, Option<i64>, bool, StaticCounts, usize);

/// Why a pool is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Changed,
    Waited,
}

/// Looks after pools of fixed size until told to stop; after none while the gate is off, which their condition says.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    if !context.settings.planning.feature_gates.static_capacity {
        return;
    }
    let mut previous: BTreeMap<String, Previous> = BTreeMap::new();
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(EVERY) => {}
            () = stop.wait() => return,
        }
        let mut pools = context.watched.pools.state_filter(is_static);
        pools.sort_by_key(|pool| pool.name_any());
        previous.retain(|name, _| pools.iter().any(|pool| pool.name_any() == *name));
        for pool in pools {
            let shown = shown(&context, &pool);
            let last = previous.get(&pool.name_any());
            let cause = match last.filter(|last| last.shown == shown) {
                Some(last) if last.due > Instant::now() => continue,
                Some(_) => Cause::Waited,
                None => Cause::Changed,
            };
            let wait = caught(pass(&context, &pool.name_any(), cause)).await.unwrap_or_else(|panic| {
                note(&context.metrics, "static.provisioning", &format!("NodePool {}", pool.name_any()), &panic);
                RETRY
            });
            previous.insert(pool.name_any(), Previous { shown, due: instant_after(Instant::now(), wait) });
        }
    }
}

/// What the stores show of a pool.
fn shown(context: &Context, pool: &NodePool) -> Shown {
    // Pods only say who goes first; nobody is chosen here.
    let (claims, nodes) = (context.watched.claims.state(), context.watched.nodes.state());
    let has = StaticLook { claims, nodes, ..StaticLook::default() }.of(pool);
    let waiting = has.nodes.iter().filter(|node| node.is_unplanned()).count();
    (pool.uid(), pool.metadata.generation, has.is_ready, has.counts(), waiting)
}

/// One pass: gather, decide, act, report. How long until the next, if nothing changes before.
async fn pass(context: &Context, name: &str, cause: Cause) -> Duration {
    let observed = match gather(context, name).await {
        Ok(observed) => observed,
        Err(error) => {
            failed(context, "static.provisioning");
            let error = kube_error::message(&error);
            tracing::warn!(pool = name, error, "cannot read NodeClaims of static NodePool; retrying");
            return RETRY;
        }
    };
    let Some((pool, claims, has)) = observed else { return SETTLED };
    let step = has.next_step();
    let outcome = match &step {
        StaticStep::Make(count) => provision::make(context, &pool, *count).await,
        StaticStep::Remove(victims) => deprovision::remove(context, &pool, &claims, victims).await,
        _ => Ok(()),
    };
    report(context, &pool, &step, cause).await;
    match (&step, outcome) {
        (_, Err(controller)) => {
            failed(context, controller);
            RETRY
        }
        (StaticStep::AtLimit { .. } | StaticStep::AwaitRoom { .. }, Ok(())) => WANTING,
        (_, Ok(())) => SETTLED,
    }
}

/// The pool and its claims as the API server has them now; their nodes and pods as the stores show them, which at worst
/// chooses another of equal nodes.
async fn gather(
    context: &Context,
    name: &str,
) -> Result<Option<(NodePool, Vec<Arc<NodeClaim>>, StaticPool)>, kube::Error> {
    let pools: Api<NodePool> = Api::all(context.workload.clone());
    let Some(pool) = pools.get_opt(name).await?.filter(is_static) else { return Ok(None) };
    let claims: Api<NodeClaim> = Api::all(context.workload.clone());
    let of_pool = ListParams::default().labels(&format!("{}={name}", names::LABEL_NODEPOOL));
    let claims: Vec<_> = claims.list(&of_pool).await?.items.into_iter().map(Arc::new).collect();
    let (nodes, pods) = (context.watched.nodes.state(), context.watched.pods.state());
    let gates = context.settings.planning.feature_gates;
    let has = StaticLook { claims: claims.clone(), nodes, pods, now: context.clock.now(), gates }.of(&pool);
    Ok(Some((pool, claims, has)))
}

fn failed(context: &Context, controller: &'static str) {
    context.metrics.errors.get_or_create(&Loop { controller }).inc();
}

/// Whoever set the number hears why it is not reached. That a pool is not ready its own conditions say.
async fn report(context: &Context, pool: &NodePool, step: &StaticStep, cause: Cause) {
    let (name, replicas) = (pool.name_any(), pool.spec.replicas.unwrap_or_default());
    let event = match step {
        StaticStep::AtLimit { limit, taken, missing } => Event::new(
            &event_reasons::NODE_LIMIT_REACHED,
            format!(
                "NodePool {name} lacks {missing} of {replicas} Nodes, but spec.limits.nodes is {limit} and {taken} exist \
                 or are terminating; raise spec.limits.nodes or lower spec.replicas"
            ),
        ),
        // A claim that was just created waits for a moment; that is no news.
        StaticStep::AwaitRoom { waiting, .. } if cause == Cause::Waited => Event::new(
            &event_reasons::NO_ROOM_FOR_NODES,
            format!(
                "NodePool {name}: no host has room for {}; no more are created until then. See their events",
                counted(*waiting, "NodeClaim")
            ),
        ),
        StaticStep::NotOurs { excess } => Event::new(
            &event_reasons::POOL_DISRUPTION_BLOCKED,
            format!(
                "NodePool {name} has {} more than spec.replicas whose VM another controller created; Tenon keeps them",
                counted(*excess, "Node")
            ),
        ),
        _ => return,
    };
    context.events.publish(pool, &event).await;
}

/// So many of a kind, in the right number.
fn counted(count: impl Into<u64>, kind: &str) -> String {
    match count.into() {
        1 => format!("1 {kind}"),
        count => format!("{count} {kind}s"),
    }
}
