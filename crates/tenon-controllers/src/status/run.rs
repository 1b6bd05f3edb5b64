//! Judges whenever something changed, and now and then because Proxmox tells nobody when it changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::pass::{StatusContext, StatusError, pass};
use crate::context::Context;
use crate::metrics::{InRegion, Loop};
use crate::stop::Stop;

/// Proxmox is looked at this often.
const EVERY: Duration = Duration::from_secs(15);

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
    loop {
        let mut every = EVERY;
        match pass(&judged, &context.clock.time()).await {
            Ok(report) => {
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
            Err(error) => failed(&context, &error),
        }
        tokio::select! {
            biased;
            _ = tokio::time::timeout(every, context.watched.rules_changed.notified()) => {}
            () = stop.wait() => return,
        }
        tokio::time::sleep(TOGETHER).await;
    }
}

fn failed(context: &Context, error: &StatusError) {
    context.metrics.errors.get_or_create(&Loop { controller: "status" }).inc();
    tracing::warn!(error = error.full_message(), "cannot update status of templates, classes and pools; retrying");
}

/// One line when a region falls silent, and one when it answers again.
fn note_regions(
    context: &Context,
    regions: &std::collections::BTreeMap<String, Result<(), String>>,
    silent: &mut BTreeSet<String>,
) {
    let now = context.clock.now();
    for (region, age) in context.regions.ages() {
        let at = now.as_second().saturating_sub(i64::try_from(age.as_secs()).unwrap_or(i64::MAX));
        context.metrics.listed_at.get_or_create(&InRegion { region }).set(at);
    }
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
