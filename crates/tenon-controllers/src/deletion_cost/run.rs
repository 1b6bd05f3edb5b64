//! The loop: a pass every minute, and in between what it found is written.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::pass::{Passes, clean_up};
use super::queue::WriteQueue;
use crate::context::Context;
use crate::kube_error;
use crate::metrics::Loop;
use crate::stop::Stop;

/// How often the cluster is looked at. As in Karpenter.
const EVERY: Duration = Duration::from_secs(60);

/// How the loop is called in metrics.
const LOOP: &str = "pod.deletioncost";

/// How writes are called in metrics.
const QUEUE_LOOP: &str = "pod.deletioncost.queue";

/// Looks and writes until stopped.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let mut state = State::default();
    let mut next = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = tokio::time::sleep_until(next) => {
                state.look(&context).await;
                next = Instant::now() + EVERY;
            }
            () = state.queue.due() => state.write(&context).await,
        }
    }
}

#[derive(Default)]
struct State {
    passes: Passes,
    queue: WriteQueue,
    /// What was logged last: the same again is no news.
    reported: Option<String>,
    refused: Option<String>,
}

impl State {
    async fn look(&mut self, context: &Context) {
        if !context.settings.planning.feature_gates.pod_deletion_cost_management {
            return clean_up(context, &mut self.queue);
        }
        let began = Instant::now();
        let error = self.passes.pass(context, &mut self.queue).await.err();
        context.metrics.reconciled(LOOP, began, if error.is_none() { "success" } else { "error" });
        if let Some(error) = &error {
            context.metrics.errors.get_or_create(&Loop { controller: LOOP }).inc();
            if self.reported.as_ref() != Some(error) {
                tracing::warn!(error, "cannot rank nodes for pod deletion costs; retrying");
            }
        }
        self.reported = error;
    }

    async fn write(&mut self, context: &Context) {
        let failed = self.queue.write_some(context).await;
        let Some(error) = failed else { return };
        context.metrics.errors.get_or_create(&Loop { controller: QUEUE_LOOP }).inc();
        // Without the right to write, no other pod can be written either: the next pass tries again.
        let is_forbidden = matches!(&error, kube::Error::Api(refusal) if refusal.code == 403);
        if is_forbidden {
            self.queue.clear();
        }
        let error = kube_error::message(&error);
        if self.refused.as_ref() == Some(&error) {
            return;
        }
        if is_forbidden {
            tracing::warn!(
                error,
                "cannot write pod deletion costs; allow verb patch on pods (chart value \
                 settings.featureGates.podDeletionCostManagement)"
            );
        } else {
            tracing::warn!(error, "cannot write pod deletion cost; retrying");
        }
        self.refused = Some(error);
    }
}
