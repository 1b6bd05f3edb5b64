//! Drives one `NodeClaim` from intent to a ready node, and back to nothing.

use std::time::Duration;

use kube::runtime::reflector::ObjectRef;
use tenon_engine::claim::{ClaimStep, next_step};

use super::gather::{Observed, gather, is_true};
use super::outcome::{Outcome, report};
use super::{arrive, depart, drain, making, retire};
use crate::context::Context;
use crate::events::Saying;
use crate::metrics::Loop;
use crate::status::Verdict;

/// A pass that ended with an error is tried again after this long; twice as long each time …
const RETRY_FIRST: Duration = Duration::from_secs(1);

/// … up to this.
const RETRY_MOST: Duration = Duration::from_secs(60);

/// One pass. Starts from what is true now, whatever woke it. When to look again; `None` if there is nothing to look at.
pub(crate) async fn reconcile(name: &str, context: &Context) -> Option<Duration> {
    match pass(name, context).await {
        Ok(again) => {
            context.memory.went_well(name);
            again
        }
        Err(error) => Some(on_error(name, context, &error).await),
    }
}

async fn pass(name: &str, context: &Context) -> Result<Option<Duration>, ClaimError> {
    let look = gather(context, name).await.map_err(|source| ClaimError::kube("read the claim", source))?;
    let Some(observed) = look else { return Ok(None) };
    let step = next_step(&observed.seen, context.clock.seconds());
    let outcome = act(context, &observed, &step).await?;
    report(context, &observed.claim, outcome).await.map(Some)
}

async fn act(context: &Context, observed: &Observed, step: &ClaimStep) -> Result<Outcome, ClaimError> {
    match step {
        ClaimStep::Hold => arrive::hold(context, observed).await,
        ClaimStep::Leave(why) => Ok(arrive::leave(observed, why)),
        ClaimStep::Launch(record) => making::go_on(context, observed, record).await,
        ClaimStep::SayLaunched(record) => arrive::say_launched(context, observed, record).await,
        ClaimStep::AwaitNode(why) => Ok(arrive::await_node(observed, why.as_deref())),
        ClaimStep::Register(record) => arrive::register(context, observed, record).await,
        ClaimStep::AwaitReadiness(obstacle) => Ok(arrive::await_readiness(obstacle)),
        ClaimStep::Initialize => arrive::initialize(context, observed).await,
        ClaimStep::RetireSeed(record) => retire::seed(context, observed, record).await,
        ClaimStep::Settled(record) => retire::look_after_husks(context, observed, record).await,
        ClaimStep::Delete(ending) => depart::end(context, observed, *ending).await,
        ClaimStep::DeleteNode => depart::delete_node(context, observed).await,
        ClaimStep::Drain => drain::pass(context, observed).await,
        ClaimStep::Release(record) => depart::release_vm(context, observed, record).await,
        ClaimStep::LetGo => depart::let_go(context, observed).await,
    }
}

/// Says what went wrong, and when it is tried again.
async fn on_error(name: &str, context: &Context, error: &ClaimError) -> Duration {
    let times = context.memory.went_wrong(name);
    let wait = (1..times).fold(RETRY_FIRST, |wait, _| (wait * 2).min(RETRY_MOST));
    context.metrics.errors.get_or_create(&Loop { controller: "nodeclaim.lifecycle" }).inc();
    tracing::warn!(claim = name, retry_s = wait.as_secs(), "a pass failed: {}", error.told());
    // Trouble with Kubernetes itself cannot be told there.
    let claim = context.watched.claims.get(&ObjectRef::new(name));
    if let (ClaimError::Pve(_), Some(claim)) = (error, claim) {
        let is_leaving = claim.metadata.deletion_timestamp.is_some();
        let (reason, note) = if is_leaving {
            ("FailedTermination", format!("cannot take the vm away: {}; it is tried again", error.told()))
        } else {
            ("LaunchFailed", format!("{}; it is tried again", error.told()))
        };
        let mut outcome = Outcome::after(wait).tells(Saying::warning(reason, note.clone()));
        if !is_leaving && !is_true(&claim, "Launched") {
            outcome = outcome.says("Launched", Verdict::unknown("LaunchFailed", note));
        }
        // What cannot be written now is said by the next pass.
        let _ = report(context, &claim, outcome).await;
    }
    wait
}

/// Why a pass did not end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    /// Kubernetes did not do it.
    #[error("cannot {action}")]
    Kube {
        action: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// Proxmox did not do it.
    #[error(transparent)]
    Pve(#[from] tenon_pve::Error),
}

impl ClaimError {
    pub(crate) fn kube(action: &str, source: kube::Error) -> ClaimError {
        ClaimError::Kube { action: action.to_owned(), source: Box::new(source) }
    }

    /// The whole story in one line.
    pub(crate) fn told(&self) -> String {
        match self {
            ClaimError::Kube { action, source } => format!("cannot {action}: {source}"),
            ClaimError::Pve(error) => error.full_message(),
        }
    }
}
