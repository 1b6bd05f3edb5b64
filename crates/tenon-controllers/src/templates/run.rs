//! Keeps every ProxmoxTemplate as it is described, until told to stop.

use std::sync::Arc;
use std::time::Duration;

use super::pass::{TemplateContext, TemplateMemory, TemplateReport, pass};
use crate::context::Context;
use crate::metrics::Loop;
use crate::panics;
use crate::stop::Stop;

/// While something is under way, Proxmox is looked at this often …
const WHILE_BUSY: Duration = Duration::from_secs(2);

/// … and otherwise this often: somebody may have changed an object, or a template in Proxmox.
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
    loop {
        let mut every = EVERY;
        match pass(&templates, &context.clock.time()).await {
            Ok(report) => {
                if report.is_busy {
                    every = WHILE_BUSY;
                }
                tell(&context, report).await;
            }
            Err(error) => failed(&context, &error.full_message()),
        }
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = tokio::time::sleep(every) => {}
        }
    }
}

async fn tell(context: &Context, report: TemplateReport) {
    if !report.events.is_empty() {
        // Classes are judged by what templates say.
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
