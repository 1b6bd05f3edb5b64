//! When is it looked, and when are running commands carried on?

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::pass::{Disruptor, Failures};
use crate::context::Context;
use crate::metrics::Loop;
use crate::stop::Stop;

/// How often nodes are looked at while nothing is done.
const EVERY: Duration = Duration::from_secs(10);

/// How often running commands are looked at.
const WHILE_RUNNING: Duration = Duration::from_secs(1);

/// Looks until stopped.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let mut disruptor = Disruptor::default();
    // What failed the last time: the same again is no news.
    let mut failed = BTreeMap::new();
    // Commands of a controller that ended are carried on at once: their nodes take no pods.
    let mut wait = Duration::ZERO;
    let mut next_pass = Instant::now() + EVERY;
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            () = stop.wait() => return,
        }
        let began = Instant::now();
        let failures = if began < next_pass {
            disruptor.carry_on(&context).await
        } else {
            let pass = disruptor.pass(&context).await;
            next_pass = Instant::now() + if pass.is_again { WHILE_RUNNING } else { EVERY };
            let result = if pass.failures.is_empty() { "success" } else { "error" };
            context.metrics.reconciled("disruption", began, result);
            pass.failures
        };
        failed = log(&context, failures, &failed);
        let due = disruptor.due().map_or(next_pass, |due| due.min(next_pass));
        next_pass = due;
        wait = due.saturating_duration_since(Instant::now());
        if disruptor.is_running() {
            wait = wait.min(WHILE_RUNNING);
        }
    }
}

fn log(context: &Context, failures: Failures, before: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut failed = BTreeMap::new();
    for (name, error) in failures {
        context.metrics.errors.get_or_create(&Loop { controller: "disruption" }).inc();
        let error = error.full_message();
        if before.get(&name) != Some(&error) {
            tracing::warn!(claim = name, error, "cannot disrupt NodeClaim; retrying");
        }
        failed.insert(name, error);
    }
    failed
}
