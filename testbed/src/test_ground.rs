//! What tests of every crate do with a control plane: share one, wait for what it does by itself, with a bound.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::cluster::Testbed;
use crate::error::{Error, Result};
use crate::programs::Program;
use crate::proof::with_programs;

/// What a loaded machine needs at most for anything a control plane does by itself.
const PATIENCE: Duration = Duration::from_secs(180);

/// How often is asked again.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A control plane of the test's own; `None` where there are no programs for one and none are required.
pub fn own_testbed() -> Result<Option<Testbed>> {
    // One start at a time: four at once on two cores are slower than four in a row.
    static STARTING: Mutex<()> = Mutex::new(());
    if with_programs(&Program::CONTROL_PLANE)?.is_none() {
        return Ok(None);
    }
    let _turn = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    Testbed::start().map(Some)
}

/// The control plane that tests of one binary share which do not harm it.
pub fn shared_testbed() -> Result<Option<&'static Testbed>> {
    // Never dropped: the keeper cleans up when this process ends.
    static SHARED: OnceLock<Result<Option<Testbed>>> = OnceLock::new();
    let shared = SHARED.get_or_init(own_testbed).as_ref();
    shared.map(Option::as_ref).map_err(|error| Error::Shared { reason: error.to_string() })
}

/// Asks again and again until the answer is `Some`, and gives up with the name of what was waited for.
///
/// For tests, which mix errors of many crates: hence `anyhow`, here and nowhere else in this crate.
pub async fn eventually<T>(what: &str, mut ask: impl AsyncFnMut() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    let asking = async {
        loop {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(answer) => answer,
        Err(_) => anyhow::bail!("waited {} s for: {what}", PATIENCE.as_secs()),
    }
}
