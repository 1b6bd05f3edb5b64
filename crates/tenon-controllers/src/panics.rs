//! What happens when a pass panics? A panic is a bug, and what some tenant wrote may be what finds it: it is counted, named and
//! tried again after a while, and everything else goes on.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;

use crate::context::Context;
use crate::metrics::{Loop, Metrics};
use crate::moments::backoff;
use crate::stop::Stop;

/// A controller that panicked starts again after this long; twice as long each time …
const RESTART_FIRST: Duration = Duration::from_secs(1);

/// … up to this.
const RESTART_MOST: Duration = Duration::from_secs(60);

/// One that ran for so long since it started last is healthy again.
const HEALTHY_AFTER: Duration = Duration::from_secs(300);

/// What the work comes to, or the words of its panic.
///
/// What a panic left behind must be dropped or be valid at any time: stores and memory are, since each change of theirs is
/// one call.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| words(panic.as_ref()))
}

/// Does what does not wait; a panic is counted and logged with what was worked on.
pub(crate) fn survived(metrics: &Metrics, controller: &'static str, object: &str, work: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
        note(metrics, controller, object, &words(panic.as_ref()));
    }
}

/// Counts and logs a panic, with what was worked on.
pub(crate) fn note(metrics: &Metrics, controller: &'static str, object: &str, panic: &str) {
    count(metrics, controller);
    tracing::error!(controller, object, panic, "controller panicked; continuing; please report this bug");
}

/// Runs a loop until it ends; one that panics starts again, with nothing of what it remembered.
pub(crate) async fn restarted<F>(context: &Context, controller: &'static str, mut stop: Stop, begin: impl Fn() -> F)
where
    F: Future<Output = ()>,
{
    let mut failures = 0_u32;
    loop {
        let started = Instant::now();
        let Err(panic) = caught(begin()).await else { return };
        failures = if started.elapsed() < HEALTHY_AFTER { failures.saturating_add(1) } else { 1 };
        let wait = backoff(RESTART_FIRST, RESTART_MOST, failures);
        count(&context.metrics, controller);
        let retry_s = wait.as_secs();
        tracing::error!(controller, panic, retry_s, "controller panicked; restarting it; please report this bug");
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

fn count(metrics: &Metrics, controller: &'static str) {
    metrics.errors.get_or_create(&Loop { controller }).inc();
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
