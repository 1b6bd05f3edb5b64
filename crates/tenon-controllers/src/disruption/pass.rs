//! One look for nodes to disrupt: gather, decide, act, report. Moves that are confirmed wait in between, and hold only if they are
//! decided a second time.

use std::sync::Arc;
use std::time::Duration;
use tenon_api::kube_objects::Node;

use kube::ResourceExt;
use tenon_api::NodeClaim;
use tenon_api::condition_reasons::REBOOTING;
use tenon_engine::disruption::{Command, Scanner, judge_emptiness};
use tenon_engine::disruption_command::CommandStep;
use tenon_model::RepairDecision;
use tokio::time::Instant;

use super::act::{Advanced, advance, waits};
use super::candidate::Shown;
use super::consolidatable::write_consolidatable;
use super::gather::{Look, look, model_time};
use super::labels::consolidation;
use super::marks::{is_marked, unmark};
use super::memo::{self, Memo};
use super::observe::CommandObjects;
use super::queue::Queue;
use super::reboot_history::RebootHistory;
use super::repair_bound::drain_bound;
use super::report::{report, report_rejection};
use super::start::command_of;
use super::stopped_vms::StoppedVms;
use super::{count, reboot, rollout, scores};
use crate::claim::{ClaimError, is_true};
use crate::context::Context;
use crate::moments::instant_after;
use crate::provision::Lookout;

/// A move must hold again after this long: a pod that ends is often followed by another.
const CONFIRMED_AFTER: Duration = Duration::from_secs(15);

/// What failed, by NodeClaim or NodePool; the others go on.
pub(super) type Failures = Vec<(String, ClaimError)>;

/// What one look came to.
#[derive(Debug, Default)]
pub(super) struct Pass {
    pub(super) failures: Failures,
    /// Whether to look again at once: something was done, or caches were behind.
    pub(super) is_again: bool,
}

/// Who looks, and what is remembered from look to look.
#[derive(Debug, Default)]
pub(super) struct Disruptor {
    lookout: Lookout,
    scanner: Scanner,
    queue: Queue,
    pending: Option<Pending>,
    memo: Memo,
    reboots: RebootHistory,
    stopped: StoppedVms,
}

/// A move that waits to be confirmed.
#[derive(Debug)]
struct Pending {
    command: Command,
    due: Instant,
}

impl Disruptor {
    /// When a move is to be confirmed.
    pub(super) fn due(&self) -> Option<Instant> {
        self.pending.as_ref().map(|pending| pending.due)
    }

    /// Whether commands run.
    pub(super) fn is_running(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Carries running commands on, those included that another process began.
    pub(super) async fn carry_on(&mut self, context: &Context) -> Failures {
        let shown = Shown::read(context);
        self.carry_on_as(context, &shown).await
    }

    async fn carry_on_as(&mut self, context: &Context, shown: &Shown) -> Failures {
        let mut failures = Failures::new();
        self.queue.recover(&shown.claims);
        for id in self.queue.ids() {
            let Some(running) = self.queue.get(&id) else { continue };
            let seen = CommandObjects::cached(context, &running.record, &shown.claims);
            let observed = seen.observed(&running.record, running.planned.is_some(), self.queue.nodes());
            let step = observed.next_step(model_time(context.clock.now()));
            // Nobody asks the API server as long as the caches show that there is nothing to do.
            if step == CommandStep::Await && running.failing.is_none() {
                waits(context, &running, &seen).await;
            } else if let Err(error) = self.step(context, shown, &id).await {
                failures.push((running.record.candidates.join(", "), error));
            }
        }
        failures
    }

    async fn step(&mut self, context: &Context, shown: &Shown, id: &str) -> Result<(), ClaimError> {
        let Advanced::RolledBack(failure, running) = advance(context, &mut self.queue, id).await? else {
            return Ok(());
        };
        self.memo.clear();
        if failure.is_of_replacement() {
            self.queue.note_failure(&running.record, context.clock.now());
        }
        rollout::halt(context, shown, &running, failure).await
    }

    /// One look.
    pub(super) async fn pass(&mut self, context: &Context) -> Pass {
        let shown = Shown::read(context);
        let mut failures = self.carry_on_as(context, &shown).await;
        // What was done is not shown yet, but looked at again below only once it is.
        failures.extend(self.keep_conditions(context, &shown).await);
        let now = context.clock.now();
        if !self.queue.is_shown(context, &shown.claims, now) {
            return Pass { failures, is_again: true };
        }
        failures.extend(remove_stale_marks(context, &shown, &self.queue).await);
        failures.extend(self.stopped.start(context, &shown, &self.queue, &mut self.reboots).await);
        if self.pending.as_ref().is_some_and(|pending| pending.due > Instant::now()) {
            return Pass { failures, is_again: false };
        }
        let state = memo::state_of(context, &shown);
        if shown.claims.is_empty() {
            count::nothing(&context.metrics);
            self.pending = None;
        } else if self.pending.is_some() || !self.memo.holds(state, now) {
            let (found, is_again) = self.decide(context, &shown, state).await;
            failures.extend(found);
            return Pass { failures, is_again };
        }
        Pass { failures, is_again: false }
    }

    /// Writes conditions of claims and pools that do not depend on what is decided.
    async fn keep_conditions(&self, context: &Context, shown: &Shown) -> Failures {
        let mut failures = Failures::new();
        let verdict = judge_emptiness(&shown.emptiness_input(context, context.clock.now()));
        for (name, consolidatable) in verdict.consolidatable {
            // A claim that is in a command is written by whoever carries that out.
            let Some(claim) = shown.claim(&name).filter(|_| !self.queue.has(&name)) else { continue };
            let written = write_consolidatable(context, claim, consolidatable).await;
            failures.extend(written.err().map(|error| (name, error)));
        }
        let refreshed = rollout::refresh(context, shown).await;
        failures.extend(refreshed.err().map(|error| ("drift roll-out".to_owned(), error)));
        failures
    }

    /// Decides on a fresh look: whether the move that waits still holds, or which one is next. What failed, and whether
    /// something was begun.
    async fn decide(&mut self, context: &Context, shown: &Shown, state: u64) -> (Failures, bool) {
        let mut look = look(context, &mut self.lookout, &mut self.queue).await;
        look.snapshot.disruption.in_progress.extend(self.stopped.names());
        look.snapshot.disruption.rebooted_often = self.reboots.often(&shown.claims, context.clock.now());
        if let Some(pending) = self.pending.take() {
            match self.scanner.confirm(&pending.command, &look.snapshot) {
                Ok(command) => {
                    self.memo.clear();
                    return (self.begin(context, (shown, &look), &[command]).await, true);
                }
                Err(rejection) => {
                    let method = consolidation(pending.command.method);
                    context.metrics.failed_validations.get_or_create(&method).inc();
                    report_rejection(context, shown, &pending.command, &rejection).await;
                }
            }
        }
        let mut timer = count::MethodTimer::begin(&context.metrics);
        let disruption = self.scanner.decide_telling(&look.snapshot, &mut |method| timer.done(method));
        count::decided(&context.metrics, &disruption, &look.snapshot);
        scores::count(&context.metrics, &disruption, &look.snapshot);
        scores::report(context, shown, &disruption).await;
        self.memo.note(&disruption, state, context.clock.now());
        report(context, shown, &disruption).await;
        match disruption.commands.as_slice() {
            [] => (Failures::new(), false),
            [first, ..] if first.method.is_confirmed() => {
                let due = instant_after(Instant::now(), CONFIRMED_AFTER);
                self.pending = Some(Pending { command: first.clone(), due });
                (Failures::new(), false)
            }
            commands => (self.begin(context, (shown, &look), commands).await, true),
        }
    }

    /// Hands a node over that is rebooted.
    async fn reboot(&mut self, context: &Context, command: &Command) -> Result<(), ClaimError> {
        let Some(claim) = reboot::commit(context, command).await? else { return Ok(()) };
        count::begun(&context.metrics, command);
        self.reboots.note(&claim, context.clock.now());
        self.memo.clear();
        tracing::info!(claim = claim.name_any(), "requested reboot of unhealthy Node");
        Ok(())
    }

    async fn begin(&mut self, context: &Context, (shown, look): (&Shown, &Look), commands: &[Command]) -> Failures {
        let mut failures = Failures::new();
        for command in commands {
            let nodes = command.names().join(", ");
            if let Some(repair) = &command.repair {
                log_repair(context, shown, command, repair);
            }
            if command.is_reboot() {
                failures.extend(self.reboot(context, command).await.err().map(|error| (nodes, error)));
                continue;
            }
            let running = match command_of(context, look, command) {
                Ok(running) => running,
                Err(why) => {
                    tracing::warn!(claim = nodes, method = %command.method, "cannot replace NodeClaim: {why}");
                    continue;
                }
            };
            let id = running.record.id.clone();
            tracing::info!(
                command = id,
                method = %command.method,
                claims = nodes,
                replacements = running.record.replacements.join(", "),
                savings = command.savings,
                "disrupting NodeClaims"
            );
            count::begun(&context.metrics, command);
            self.queue.put(running, context.clock.now());
            let stepped = self.step(context, shown, &id).await;
            failures.extend(stepped.err().map(|error| (nodes, error)));
        }
        failures
    }
}

/// Why a node is repaired, and how.
fn log_repair(context: &Context, shown: &Shown, command: &Command, repair: &RepairDecision) {
    let Some(claim) = command.removed.first().and_then(|removed| shown.claim(&removed.claim)) else { return };
    let (bound, source) = drain_bound(repair.drain_bound, claim);
    let bound = bound.map_or_else(|| "none".to_owned(), |bound| format!("{}s", bound.as_secs_f64()));
    let driver = &repair.driver;
    tracing::info!(
        claim = claim.name_any(),
        condition = driver.condition,
        status = driver.status,
        reason = driver.reason,
        regex = driver.policy.reason_regex,
        fallback = driver.is_fallback,
        action = %repair.action,
        eligible_at = %repair.eligible_at,
        waited_s = model_time(context.clock.now()).seconds().since(repair.eligible_at.seconds()),
        drain_bound = bound,
        bound_source = source.as_str(),
        "repairing unhealthy Node"
    );
}

/// A controller that died, or whoever marked a node by hand, left one that takes no pods and that nobody removes.
async fn remove_stale_marks(context: &Context, shown: &Shown, queue: &Queue) -> Failures {
    let mut failures = Failures::new();
    let kept = shown.claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none());
    let free: Vec<(&Arc<NodeClaim>, Option<&Arc<Node>>)> = kept
        .map(|claim| (claim, shown.nodes.get(&claim.name_any())))
        .filter(|(claim, node)| {
            let is_node_leaving = node.is_some_and(|node| node.metadata.deletion_timestamp.is_some());
            // A node that is rebooted keeps the reason why.
            let is_free = !queue.has(&claim.name_any()) && !is_node_leaving && !is_true(claim, &REBOOTING);
            is_free && is_marked(claim, node.map(AsRef::as_ref))
        })
        .collect();
    for (claim, node) in free {
        let name = claim.name_any();
        match unmark(context, claim, node.map(AsRef::as_ref)).await {
            Ok(true) => tracing::info!(node = name, "removed stale disruption marks"),
            Ok(false) => {}
            Err(error) => failures.push((name, error)),
        }
    }
    failures
}
