//! Judges whenever something changed, and now and then because not everything tells when it changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::pass::{StatusContext, StatusError, pass};
use crate::context::Context;
use crate::metrics::{InRegion, Loop};
use crate::settled::{Inputs, REFRESHED_EVERY, Settled};
use crate::stop::Stop;

/// What is not as it should be is judged this often. Where all is well, it waits until something changes.
const EVERY: Duration = Duration::from_secs(15);

/// How often it is asked whether something changed.
const ASKED_EVERY: Duration = Duration::from_secs(5);

/// A Secret that somebody is mending is looked at this often: others' Secrets are not watched.
const WHILE_MENDING: Duration = Duration::from_secs(3);

/// What somebody else wrote just before is judged again after this long.
const AFTER_CONFLICT: Duration = Duration::from_secs(1);

/// Changes that come together are judged together.
const TOGETHER: Duration = Duration::from_millis(300);

/// Judges until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let (workload, regions) = (context.workload.clone(), context.regions.clone());
    let (secrets, gates) = (context.secrets.clone(), context.settings.planning.feature_gates);
    let registrations = context.memory.registrations.clone();
    let judged = StatusContext { workload, secrets, regions, gates, join: context.join_checks(), registrations };
    let mut silent = BTreeSet::new();
    let mut settled = Settled::new("status", REFRESHED_EVERY);
    loop {
        let mut every = EVERY;
        let inputs = Inputs::of(&context);
        match pass(&judged, &context.clock.time()).await {
            Ok(report) => {
                settled.note(inputs, report.is_settled());
                for (object, event) in &report.events {
                    context.events.publish_for(object, event).await;
                }
                if report.awaits_secret {
                    every = WHILE_MENDING;
                }
                if report.is_outdated {
                    every = AFTER_CONFLICT;
                }
                note_regions(&context, &report.regions, &mut silent);
                report.errors.iter().for_each(|error| failed(&context, error));
            }
            Err(error) => {
                settled.note(inputs, false);
                failed(&context, &error);
            }
        }
        tokio::select! {
            biased;
            () = until_due(&context, &settled, every) => {}
            () = stop.wait() => return,
        }
        tokio::time::sleep(TOGETHER).await;
    }
}

/// Waits until somebody told of a change, or until so long after the last pass something changed that nobody tells of.
async fn until_due(context: &Context, settled: &Settled<Inputs>, every: Duration) {
    let (told, due) = (&context.watched.rules_changed, Instant::now() + every);
    loop {
        let asked = Instant::now() + ASKED_EVERY;
        let next = if Instant::now() < due { asked.min(due) } else { asked };
        if tokio::time::timeout_at(next, told.notified()).await.is_ok() {
            settled.count_full(context);
            return;
        }
        note_ages(context);
        if Instant::now() >= due && !settled.skips(context, &Inputs::of(context)) {
            return;
        }
    }
}

fn failed(context: &Context, error: &StatusError) {
    context.metrics.errors.get_or_create(&Loop { controller: "status" }).inc();
    tracing::warn!(error = error.full_message(), "cannot update status of templates, classes and pools; retrying");
}

/// Shows when each region was listed last.
fn note_ages(context: &Context) {
    let now = context.clock.now();
    for (region, age) in context.regions.ages() {
        let at = now.as_second().saturating_sub(i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
        context.metrics.listed_at.get_or_create(&InRegion { region }).set(at);
    }
}

/// One line when a region falls silent, and one when it answers again.
fn note_regions(
    context: &Context,
    regions: &std::collections::BTreeMap<String, Result<(), String>>,
    silent: &mut BTreeSet<String>,
) {
    note_ages(context);
    // What was taken out of the cloud config is not shown any more.
    let is_known = |values: &[String]| values.first().is_some_and(|region| regions.contains_key(region));
    context.metrics.region_up.retain(is_known);
    context.metrics.listed_at.retain(is_known);
    for (region, answer) in regions {
        let gauge = context.metrics.region_up.get_or_create(&InRegion { region: region.clone() });
        gauge.set(i64::from(answer.is_ok()));
        match answer {
            Err(why) if silent.insert(region.clone()) => tracing::warn!(region, error = why, "Proxmox API unavailable"),
            Ok(()) if silent.remove(region) => tracing::info!(region, "Proxmox API available again"),
            _ => {}
        }
    }
}
