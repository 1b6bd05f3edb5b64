//! Drives one `NodeClaim` from intent to a ready node, and back to nothing.

use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tenon_api::{NodeClaim, condition_reasons, event_reasons, names};
use tenon_engine::claim::{ClaimStep, next_step};
use tenon_pve::RefusalKind;
use tokio::time::Instant;

use super::gather::{Observed, gather, is_true};
use super::outcome::{Outcome, report};
use super::{
    adoption, await_node, consistency, hydration, launch, launch_failure, readiness, reboot, registration,
    seed_cleanup, termination,
};
use crate::context::Context;
use crate::events::{Event, cut};
use crate::kube_error;
use crate::metrics::{Attempt, Loop, ProviderError};
use crate::moments::backoff;
use crate::panics;
use crate::provision::record_of;
use crate::status::Verdict;

/// A pass that ended with an error is retried after this long; twice as long each time …
const RETRY_FIRST: Duration = Duration::from_secs(1);

/// … up to this.
const RETRY_MOST: Duration = Duration::from_secs(60);

/// The longest message of condition Launched, in bytes, as with Karpenter.
const MESSAGE_MAX: usize = 1024;

/// One pass. Starts from what is true now, whatever woke it. When to reconcile again; `None` if the claim is no more.
pub(crate) async fn reconcile(name: &str, context: &Context) -> Option<Duration> {
    match panics::caught(reported_pass(name, context)).await {
        Ok(again) => again,
        Err(panic) => Some(on_panic(name, context, &panic)),
    }
}

async fn reported_pass(name: &str, context: &Context) -> Option<Duration> {
    let began = Instant::now();
    let (result, again) = match pass(name, context).await {
        Ok(again) => {
            context.memory.pass_succeeded(name);
            (if again.is_some() { "requeue_after" } else { "success" }, again)
        }
        Err(error) => ("error", Some(on_error(name, context, &error).await)),
    };
    context.metrics.reconciled("nodeclaim.lifecycle", began, result);
    again
}

async fn pass(name: &str, context: &Context) -> Result<Option<Duration>, ClaimError> {
    let found = gather(context, name).await.map_err(|source| ClaimError::kube("read the NodeClaim", source))?;
    let Some(observed) = found else { return Ok(None) };
    match hydration::pass(context, &observed).await {
        Ok(Some(outcome)) => return report(context, &observed.claim, outcome).await.map(Some),
        Ok(None) => {}
        // A label more or less keeps nothing from going on.
        Err(error) => context.memory.warn_of_extra(name, &error.full_message(), context.clock.now()),
    }
    let step = next_step(&observed.state, context.clock.seconds());
    let outcome = act(context, &observed, &step).await?;
    report(context, &observed.claim, outcome).await.map(Some)
}

async fn act(context: &Context, observed: &Observed, step: &ClaimStep) -> Result<Outcome, ClaimError> {
    match step {
        ClaimStep::AddFinalizer => registration::add_finalizer(context, observed).await,
        ClaimStep::LeaveAlone(why) => Ok(registration::leave_alone(observed, why)),
        ClaimStep::Adopt => adoption::pass(context, observed).await,
        ClaimStep::Launch(record) => launch::pass(context, observed, record).await,
        ClaimStep::ReportLaunched(record) => registration::report_launched(context, observed, record).await,
        ClaimStep::AwaitNode(mismatch) => await_node::await_node(context, observed, mismatch.as_deref()).await,
        ClaimStep::Register(record) => registration::register(context, observed, record).await,
        ClaimStep::AwaitReadiness(obstacle) => readiness::await_readiness(context, observed, obstacle).await,
        ClaimStep::Reboot(record) => reboot::pass(context, observed, record).await,
        ClaimStep::Initialize => registration::initialize(context, observed).await,
        ClaimStep::DeleteSeed(record) => seed_cleanup::delete_seed(context, observed, record).await,
        ClaimStep::Settled(record) => {
            let outcome = seed_cleanup::check_incomplete_clones(context, observed, record).await?;
            Ok(adoption::confirmed(observed, consistency::compare(context, observed, outcome)))
        }
        ClaimStep::Delete(cause) => termination::delete(context, observed, *cause).await,
        ClaimStep::DeleteNode => termination::delete_node(context, observed).await,
        ClaimStep::Drain => termination::drain_node(context, observed).await,
        ClaimStep::Release(record) => termination::release_vm(context, observed, record).await,
        ClaimStep::ReleaseWithoutVm(record) => {
            termination::release_without_vm(context, observed, record.as_ref()).await
        }
        ClaimStep::RemoveFinalizer => termination::finish(context, observed, None).await,
    }
}

/// Reports what went wrong; when it is retried.
async fn on_error(name: &str, context: &Context, error: &ClaimError) -> Duration {
    let message = error.full_message();
    let failure = context.memory.pass_failed(name, &message, context.clock.now());
    let wait = backoff(RETRY_FIRST, RETRY_MOST, failure.times);
    context.metrics.errors.get_or_create(&Loop { controller: "nodeclaim.lifecycle" }).inc();
    let claim = context.watched.claims.get(&ObjectRef::new(name));
    if let (ClaimError::Pve(error), Some(claim)) = (error, &claim) {
        count_provider_error(context, claim, error);
    }
    if let Some(claim) = &claim
        && let Some(ended) = launch_failure::time_out(context, claim, error).await
    {
        // What cannot be written now is tried by the next pass.
        let again = match ended {
            Ok(outcome) => report(context, claim, outcome).await,
            Err(error) => Err(error),
        };
        return again.unwrap_or(wait);
    }
    match (error, claim) {
        // The event is logged too, and repeated only now and then.
        (ClaimError::Pve(_), Some(claim)) => {
            let outcome = failed(&claim, &format!("{message}{}", hint(error, &claim))).requeued(wait);
            // What cannot be written now is reported by the next pass.
            let _ = report(context, &claim, outcome).await;
        }
        // Trouble with Kubernetes itself cannot be reported there. The same error again is no news.
        _ if failure.is_news => {
            tracing::warn!(
                claim = name,
                retry_s = wait.as_secs(),
                error = message,
                "cannot reconcile NodeClaim; retrying"
            );
        }
        _ => tracing::debug!(
            claim = name,
            retry_s = wait.as_secs(),
            error = message,
            "cannot reconcile NodeClaim; retrying"
        ),
    }
    wait
}

/// A request to Proxmox failed while a VM was created, or destroyed.
fn count_provider_error(context: &Context, claim: &NodeClaim, error: &tenon_pve::Error) {
    let is_ending = claim.metadata.deletion_timestamp.is_some();
    let attempt = if is_ending { Attempt::Delete } else { Attempt::Create };
    let kind = match error.refusal().map(|refusal| &refusal.kind) {
        Some(RefusalKind::NoSpace) => ProviderError::InsufficientCapacity,
        Some(RefusalKind::NotFound) => ProviderError::NotFound,
        _ => ProviderError::Unknown,
    };
    let pool = claim.labels().get(names::LABEL_NODEPOOL).map(String::as_str).unwrap_or_default();
    context.metrics.not_provided(attempt, kind, pool);
}

/// A bug of ours, which what somebody wrote may have found: said each time, since the log is where it is looked for.
fn on_panic(name: &str, context: &Context, panic: &str) -> Duration {
    let failure = context.memory.pass_failed(name, panic, context.clock.now());
    let wait = backoff(RETRY_FIRST, RETRY_MOST, failure.times);
    context.metrics.errors.get_or_create(&Loop { controller: "nodeclaim.lifecycle" }).inc();
    let retry_s = wait.as_secs();
    tracing::error!(claim = name, panic, retry_s, "reconciling NodeClaim panicked; retrying; please report this bug");
    wait
}

/// The next step, where Proxmox refuses what only an operator can change.
fn hint(error: &ClaimError, claim: &NodeClaim) -> String {
    let ClaimError::Pve(error) = error else { return String::new() };
    match (error.refusal().map(|refusal| &refusal.kind), record_of(claim)) {
        (Some(RefusalKind::Protected), Some(record)) => {
            format!("; on host {} run: qm set {} --protection 0", record.host(), record.vmid)
        }
        _ => String::new(),
    }
}

/// What a claim's owner is told when Proxmox failed a pass.
pub(super) fn failed(claim: &NodeClaim, message: &str) -> Outcome {
    let name = claim.name_any();
    if claim.metadata.deletion_timestamp.is_some() {
        let note = format!("Cannot delete the VM of NodeClaim {name}: {message}; retrying");
        return Outcome::default().with_event(Event::new(&event_reasons::FAILED_TERMINATION, note));
    }
    if is_true(claim, &condition_reasons::LAUNCHED) {
        let note = format!("Cannot reconcile NodeClaim {name}: {message}; retrying");
        return Outcome::default().with_event(Event::new(&event_reasons::LAUNCH_FAILED, note));
    }
    let note = format!("Cannot launch the VM of NodeClaim {name}: {message}; retrying");
    let outcome = Outcome::default().with_event(Event::new(&event_reasons::LAUNCH_FAILED, note.clone()));
    let verdict = Verdict::unknown(&condition_reasons::LAUNCH_FAILED, cut(&note, MESSAGE_MAX));
    outcome.with_condition(&condition_reasons::LAUNCHED, verdict)
}

/// Why a pass did not end.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Kubernetes did not do it.
    #[error("cannot {action}")]
    Kube {
        /// What was being done.
        action: String,
        /// What kube said.
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

    /// Whether the API server does not let us do it.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, ClaimError::Kube { source, .. } if kube_error::is_forbidden(source))
    }

    /// The error with its causes, in one line.
    pub fn full_message(&self) -> String {
        match self {
            ClaimError::Kube { action, source } => format!("cannot {action}: {}", kube_error::message(source)),
            ClaimError::Pve(error) => error.full_message(),
        }
    }
}
