//! Keeps every ProxmoxTemplate as it is described, until told to stop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::pass::{TemplateContext, TemplateMemory, TemplateReport, pass, version};
use crate::context::Context;
use crate::metrics::Loop;
use crate::panics;
use crate::regions::RegionFacts;
use crate::settled::{REFRESHED_EVERY, Settled, Version};
use crate::stop::Stop;

/// While something is under way, Proxmox is looked at this often …
const WHILE_BUSY: Duration = Duration::from_secs(2);

/// … and otherwise this often: somebody may have changed an object, or a template in Proxmox. If neither the objects nor the
/// listing changed, nothing is looked at.
const EVERY: Duration = Duration::from_secs(10);

/// The name of the loop in metrics and logs.
const NAME: &str = "nodetemplateclass";

/// Works until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let templates = TemplateContext {
        workload: context.workload.clone(),
        regions: context.regions.clone(),
        cluster_id: context.cluster_id.clone(),
        node_ids: context.settings.ids,
        memory: TemplateMemory::default(),
    };
    let mut settled = Settled::new(NAME, REFRESHED_EVERY);
    let mut said = BTreeMap::new();
    loop {
        let mut every = EVERY;
        let facts = context.regions.facts();
        match pass(&templates, &context.clock.time()).await {
            Ok(report) => {
                let is_quiet = report.events.is_empty() && report.errors.is_empty() && report.panics.is_empty();
                settled.note((facts, report.version), report.is_settled && is_quiet && !report.is_busy);
                if report.is_busy {
                    every = WHILE_BUSY;
                }
                if report.said != said {
                    said.clone_from(&report.said);
                    // Classes are judged by what templates say.
                    context.watched.rules_changed.notify_one();
                }
                tell(&context, report).await;
            }
            Err(error) => {
                settled.forget();
                failed(&context, &error.full_message());
            }
        }
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = until_due(&context, &templates, &settled, every) => {}
        }
    }
}

/// Waits for so long, and on while nothing changed since everything was in order.
async fn until_due(
    context: &Context,
    templates: &TemplateContext,
    settled: &Settled<(RegionFacts, Version)>,
    every: Duration,
) {
    loop {
        tokio::time::sleep(every).await;
        let facts = context.regions.facts();
        let version = if settled.is_any() { version(templates).await } else { None };
        if !version.is_some_and(|version| settled.skips(context, &(facts, version))) {
            return;
        }
    }
}

async fn tell(context: &Context, report: TemplateReport) {
    if !report.events.is_empty() {
        context.watched.rules_changed.notify_one();
    }
    for (object, event) in &report.events {
        let (template, note) = (object.name.as_deref().unwrap_or_default(), &event.note);
        tracing::info!(template, reason = event.reason.name(), note, "changed VM templates");
        context.events.publish_for(object, event).await;
    }
    report.errors.iter().for_each(|error| failed(context, &error.full_message()));
    for (template, panic) in &report.panics {
        panics::note(&context.metrics, NAME, template, panic);
    }
}

fn failed(context: &Context, error: &str) {
    context.metrics.errors.get_or_create(&Loop { controller: NAME }).inc();
    tracing::warn!(error, "cannot update VM templates; retrying");
}
