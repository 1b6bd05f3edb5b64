//! Carries a command out, one recorded step after the other, and takes it back where it fails.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Api, PostParams};
use tenon_api::{NodeClaim, event_reasons, names};
use tenon_engine::disruption_command::{Candidate, CommandStep, Failure, Successor};
use tenon_model::DisruptionReason;

use super::candidate::is_still_empty;
use super::gather::model_time;
use super::labels::{consolidation, deletion_reason, method_of, reason_label, recorded_decision, state_of};
use super::marks::{mark, note_surplus, record, unmark};
use super::observe::CommandObjects;
use super::queue::{Queue, Running};
use super::repair_bound::{mode, tighten};
use crate::claim::{ClaimError, delete_claim};
use crate::context::Context;
use crate::events::Event;
use crate::metrics::Created;
use crate::node_health::{Repaired, count_repaired};
use crate::provision::nominate;
use crate::writes::is_outdated;

/// Steps of one command in one go: more than there are, for those that somebody else was faster in.
const STEPS_MOST: usize = 16;

/// What became of a command.
#[derive(Debug)]
pub(super) enum Advanced {
    /// It goes on.
    Waits,
    /// Its nodes are being deleted.
    Done,
    /// Its nodes stay.
    RolledBack(Failure, Box<Running>),
}

/// Takes as many steps of a command as can be taken now. Everything is read from the API server before it is changed.
pub(super) async fn advance(context: &Context, queue: &mut Queue, id: &str) -> Result<Advanced, ClaimError> {
    for _ in 0..STEPS_MOST {
        let Some(mut running) = queue.get(id) else { return Ok(Advanced::Done) };
        let objects = CommandObjects::read(context, &running.record).await?;
        let now = context.clock.now();
        let observed = objects.observed(&running.record, running.planned.is_some(), queue.nodes());
        let step = running.failing.map_or_else(|| observed.next_step(model_time(now)), CommandStep::RollBack);
        match step {
            CommandStep::Record => write_record(context, &running, &objects, Candidate::Unrecorded).await?,
            CommandStep::Mark => mark_all(context, &running, &objects).await?,
            CommandStep::Create => create_replacements(context, &running, &objects).await?,
            CommandStep::Advance => {
                running.record.replacing = true;
                write_record(context, &running, &objects, Candidate::Marked).await?;
                queue.put(running, now);
            }
            CommandStep::Await => {
                waits(context, &running, &objects).await;
                return Ok(Advanced::Waits);
            }
            CommandStep::Delete => {
                let kept = delete_candidates(context, &running, &objects).await?;
                running.record.candidates.retain(|name| !kept.contains(name));
                queue.put(running, now);
            }
            CommandStep::Done => {
                expect_pods(context, &running);
                queue.end(id, now);
                return Ok(Advanced::Done);
            }
            CommandStep::RollBack(failure) => {
                running.failing = Some(failure);
                queue.put(running.clone(), now);
                if roll_back(context, &running, &objects, failure).await? {
                    queue.end(id, now);
                    return Ok(Advanced::RolledBack(failure, Box::new(running)));
                }
            }
        }
    }
    Ok(Advanced::Waits)
}

/// Pods are expected on replacements and on the nodes that were chosen for them, so those are not removed for being empty.
pub(super) fn expect_pods(context: &Context, running: &Running) {
    for name in running.record.replacements.iter().chain(&running.destinations) {
        nominate(context, name);
    }
}

async fn write_record(
    context: &Context,
    running: &Running,
    objects: &CommandObjects,
    of: Candidate,
) -> Result<(), ClaimError> {
    for name in &running.record.candidates {
        if let Some(claim) = objects.claims.get(name).filter(|_| objects.candidate(&running.record, name) == of) {
            record(context, claim, &running.record).await?;
        }
    }
    Ok(())
}

async fn mark_all(context: &Context, running: &Running, objects: &CommandObjects) -> Result<(), ClaimError> {
    for name in &running.record.candidates {
        let is_due = objects.candidate(&running.record, name) == Candidate::Recorded;
        if let Some(claim) = objects.claims.get(name).filter(|_| is_due) {
            mark(context, (claim, objects.nodes.get(name)), &running.record).await?;
        }
    }
    Ok(())
}

/// Creates what does not exist yet. One that exists already was created before the answer was lost, and is found again.
async fn create_replacements(context: &Context, running: &Running, objects: &CommandObjects) -> Result<(), ClaimError> {
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    for claim in running.planned.iter().flatten() {
        let name = claim.name_any();
        if objects.successor(&running.record, &name) != Successor::Absent {
            continue;
        }
        let made = match api.create(&PostParams::default(), claim).await {
            Ok(made) => made,
            Err(error) if is_outdated(&error) => continue,
            Err(source) => return Err(ClaimError::kube(&format!("create NodeClaim {name}"), source)),
        };
        // Known from here on, whenever the watch shows it: the next plan counts on it.
        context.memory.add_claim(&made, Vec::new(), context.clock.now());
        let label = |label: &str| made.labels().get(label).cloned().unwrap_or_default();
        let counted = Created {
            reason: reason_label(running.record.reason).to_owned(),
            nodepool: label(names::LABEL_NODEPOOL),
            min_values_relaxed: "false".to_owned(),
        };
        context.metrics.claims_created.get_or_create(&counted).inc();
        let replaced = running.record.candidates.join(", ");
        tracing::info!(claim = name, replaces = replaced, command = running.record.id, "created replacement NodeClaim");
        let note = format!(
            "Created NodeClaim {name} to replace NodeClaim {replaced} ({})",
            super::labels::condition_reason(running.record.reason).name()
        );
        context.events.publish(&made, &Event::new(&event_reasons::DISRUPTION_LAUNCHING, note)).await;
    }
    expect_pods(context, running);
    Ok(())
}

/// Says what is waited for.
pub(super) async fn waits(context: &Context, running: &Running, objects: &CommandObjects) {
    expect_pods(context, running);
    for name in &running.record.replacements {
        let is_rising = objects.successor(&running.record, name) == Successor::Rising;
        if let Some(claim) = objects.claims.get(name).filter(|_| is_rising) {
            let replaced = running.record.candidates.join(", ");
            let note =
                format!("Waiting until the Node of NodeClaim {name} is ready before NodeClaim {replaced} is deleted");
            let event = Event::new(&event_reasons::DISRUPTION_WAITING_READINESS, note);
            context.events.publish(claim.as_ref(), &event).await;
        }
    }
}

/// Deletes the claims. Returns those that stay after all: an empty node that has a pod by now is in use.
async fn delete_candidates(
    context: &Context,
    running: &Running,
    objects: &CommandObjects,
) -> Result<Vec<String>, ClaimError> {
    let mut kept = Vec::new();
    for name in &running.record.candidates {
        let is_due = objects.candidate(&running.record, name) == Candidate::Marked;
        let Some(claim) = objects.claims.get(name).filter(|_| is_due) else { continue };
        let node = objects.nodes.get(name);
        if running.record.reason == DisruptionReason::Empty
            && let Err(blocked) = is_still_empty(context, claim, node).await?
        {
            tracing::info!(claim = name, "skipped disruption after the second check: {blocked}");
            if let Some(method) = method_of(&running.record.method) {
                context.metrics.failed_validations.get_or_create(&consolidation(method)).inc();
            }
            if unmark(context, claim, node.map(AsRef::as_ref)).await? {
                kept.push(name.clone());
            }
            continue;
        }
        let repair = running.record.repair.as_ref();
        let bound = repair.and_then(|repair| repair.drain_bound_ns).map(Duration::from_nanos);
        if let Some(bound) = bound
            && !tighten(context, claim, bound).await?
        {
            continue;
        }
        let ready = match running.record.replacements.as_slice() {
            [] => String::new(),
            [one] => format!("; replacement NodeClaim {one} is ready"),
            several => format!("; replacement NodeClaims {} are ready", several.join(", ")),
        };
        let note = format!("Deleting NodeClaim {name}: Node {name} {}{ready}", state_of(&running.record));
        context.events.publish(claim.as_ref(), &Event::new(&event_reasons::DISRUPTION_TERMINATING, note)).await;
        delete_claim(context, claim, deletion_reason(running.record.reason)).await?;
        if let Some(repair) = repair {
            count_repaired(context, claim, Repaired { condition: &repair.condition, mode: mode(bound, claim) });
        }
    }
    Ok(kept)
}

/// Removes the marks of all nodes that stay. Whether none is left. Replacements that exist stay as nodes like any other, and are
/// removed as such if nobody needs them, also where `consolidateAfter` is `Never`.
async fn roll_back(
    context: &Context,
    running: &Running,
    objects: &CommandObjects,
    failure: Failure,
) -> Result<bool, ClaimError> {
    let record = &running.record;
    let mut is_done = true;
    for name in &record.replacements {
        let is_there = matches!(objects.successor(record, name), Successor::Rising | Successor::Initialized);
        if let Some(claim) = objects.claims.get(name).filter(|_| is_there) {
            is_done &= note_surplus(context, claim, record).await?;
        }
    }
    for name in &record.candidates {
        let is_ours = matches!(objects.candidate(record, name), Candidate::Recorded | Candidate::Marked);
        // One that lost the command may still have the taint.
        let is_bare = objects.candidate(record, name) == Candidate::Unrecorded;
        if let Some(claim) = objects.claims.get(name).filter(|_| is_ours || is_bare) {
            is_done &= unmark(context, claim, objects.nodes.get(name).map(AsRef::as_ref)).await?;
        }
    }
    if is_done {
        report_failure(context, running, objects, failure).await;
    }
    Ok(is_done)
}

async fn report_failure(context: &Context, running: &Running, objects: &CommandObjects, failure: Failure) {
    let record = &running.record;
    let successors = || record.replacements.iter().map(|name| objects.successor(record, name));
    let failed = successors().filter(|state| *state != Successor::Initialized).count();
    if failed > 0 {
        context.metrics.queue_failures.get_or_create(&recorded_decision(record)).inc_by(failed);
    }
    let why = why(running, objects, failure);
    for name in &record.candidates {
        tracing::info!(claim = name, command = record.id, why, "stopped disruption; the node stays");
        if let Some(claim) = objects.claims.get(name).filter(|_| failure.is_of_replacement()) {
            let note = format!("Stopped disruption of NodeClaim {name}: {why}; the Node stays");
            context.events.publish(claim.as_ref(), &Event::new(&event_reasons::DISRUPTION_BLOCKED, note)).await;
        }
    }
}

/// Why the nodes stay, as a part of a sentence.
pub(super) fn why(running: &Running, objects: &CommandObjects, failure: Failure) -> String {
    let record = &running.record;
    let first = |states: &[Successor]| {
        let found = record.replacements.iter().find(|name| states.contains(&objects.successor(record, name)));
        found.cloned().unwrap_or_default()
    };
    match failure {
        Failure::Interrupted => "the controller was restarted before all replacements were created".to_owned(),
        Failure::ReplacementLost => {
            format!(
                "replacement NodeClaim {} was deleted before it was ready",
                first(&[Successor::Absent, Successor::Lost])
            )
        }
        Failure::TimedOut => {
            format!("replacement NodeClaim {} was not ready in time", first(&[Successor::Rising, Successor::Absent]))
        }
        Failure::CandidateLost => "another NodeClaim of the same command was deleted or changed".to_owned(),
    }
}
