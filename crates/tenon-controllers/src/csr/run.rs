//! Watches requests for certificates of kubelets, and has those that are due decided about.
//!
//! Each signer has a watch and a loop of its own. Requests are looked at beside the watch and each other, so that one whose
//! VM or claim cannot be read holds up nobody else.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future;
use futures::stream::FuturesUnordered;
use jiff::SignedDuration;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use tokio::time::{Instant, sleep_until, timeout};

use super::approvals::Approvals;
use super::book::{Book, Open};
use super::decide::{Approver, CONTROLLER, Outcome, report_unlisted};
use super::request::Signer;
use crate::context::Context;
use crate::kube_error;
use crate::metrics::Loop;
use crate::moments::after;
use crate::panics::{caught, note};
use crate::settings::CsrApprover;
use crate::stop::Stop;
use crate::watched::{Changes, WATCHED_FOR_S};

/// Requests of one signer that are looked at, at the same time.
const AT_ONCE: usize = 16;

/// One look takes so long at most; then the request is looked at again later. Proxmox alone has ten seconds to answer.
const LOOK_WITHIN: Duration = Duration::from_secs(30);

/// A kubelet waits so long for its certificate and then asks anew. An older request is left as it is.
const GIVEN_UP_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// Decides about requests until told to stop; about none unless it is switched on.
pub(crate) async fn run(context: Arc<Context>, stop: Stop) {
    if context.settings.csr_approver == CsrApprover::Tenon {
        future::join(follow(&context, Signer::Client, stop.clone()), follow(&context, Signer::Serving, stop)).await;
    }
}

async fn follow(context: &Context, signer: Signer, mut stop: Stop) {
    let approver = Approver { context, signer, approvals: Approvals::default() };
    let (mut changes, mut book) = (watch(&context.workload, signer), Book::default());
    let (mut looks, mut is_listed) = (FuturesUnordered::new(), false);
    loop {
        // What was approved before is counted first.
        let due = book.next_due().filter(|_| is_listed && looks.len() < AT_ONCE);
        let list_again = book.list_again_at();
        tokio::select! {
            biased;
            () = stop.wait() => break,
            Some((open, outcome)) = looks.next(), if !looks.is_empty() => end(context, &mut book, &open, outcome),
            () = at(due), if due.is_some() => {
                looks.extend(book.take(Instant::now()).map(|open| look(&approver, open)));
            }
            () = at(list_again), if list_again.is_some() => {
                book.begin_list();
                changes = watch(&context.workload, signer);
            }
            change = changes.next() => match change {
                Some(Ok(event)) => {
                    is_listed |= matches!(event, Event::InitDone);
                    count(&approver, &event);
                    book.note(event, Instant::now());
                }
                Some(Err(error)) => interrupted(context, &error).await,
                None => break,
            },
        }
    }
    // What was begun is finished, so that every approval is reported.
    while looks.next().await.is_some() {}
}

async fn at(moment: Option<Instant>) {
    sleep_until(moment.unwrap_or_else(Instant::now)).await;
}

fn watch(client: &Client, signer: Signer) -> Changes<CertificateSigningRequest> {
    let fields = format!("spec.signerName={}", signer.name());
    let config = watcher::Config::default().timeout(WATCHED_FOR_S).fields(&fields);
    let requests = watcher(Api::<CertificateSigningRequest>::all(client.clone()), config).default_backoff();
    requests.modify(|request| request.managed_fields_mut().clear()).boxed()
}

/// What we approved before, perhaps as another process.
fn count(approver: &Approver<'_>, event: &Event<CertificateSigningRequest>) {
    if let Event::InitApply(request) | Event::Apply(request) = event {
        approver.approvals.count(approver.signer, request, approver.context.clock.now());
    }
}

async fn interrupted(context: &Context, error: &watcher::Error) {
    let (is_forbidden, error) = (is_forbidden(error), kube_error::of_watch(error));
    tracing::warn!(kind = "CertificateSigningRequest", error, "watch interrupted; reconnecting");
    // Reporting must not hold up what was seen before.
    if is_forbidden && timeout(LOOK_WITHIN, report_unlisted(context, &error)).await.is_err() {
        tracing::warn!(
            "cannot report that CertificateSigningRequests cannot be listed: no reply from the Kubernetes API"
        );
    }
}

fn is_forbidden(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(cause)
        | watcher::Error::WatchStartFailed(cause)
        | watcher::Error::WatchFailed(cause) => kube_error::is_forbidden(cause),
        watcher::Error::WatchError(status) => status.code == 403,
        watcher::Error::NoResourceVersion => false,
    }
}

/// One look at one request, which must neither end nor hold up the others.
async fn look(approver: &Approver<'_>, open: Open) -> (Open, Outcome) {
    let (context, csr) = (approver.context, open.request.name_any());
    let outcome = match caught(timeout(LOOK_WITHIN, approver.look(&open))).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => {
            context.metrics.errors.get_or_create(&Loop { controller: CONTROLLER }).inc();
            let seconds = LOOK_WITHIN.as_secs();
            tracing::warn!(csr, seconds, "no decision about CertificateSigningRequest in time; retrying");
            let why =
                format!("reading what it needs took longer than {seconds} s; check the API server and the Proxmox API");
            context.memory.undecided.note(&csr, why);
            Outcome::Later
        }
        Err(panic) => {
            note(&context.metrics, CONTROLLER, &format!("CertificateSigningRequest {csr}"), &panic);
            Outcome::Later
        }
    };
    (open, outcome)
}

fn end(context: &Context, book: &mut Book, open: &Open, outcome: Outcome) {
    match outcome {
        Outcome::Later if !is_given_up(context, &open.request) => book.postpone(open, Instant::now()),
        Outcome::Later => book.settle(open),
        Outcome::Settled => {
            context.memory.undecided.forget(&open.request.name_any());
            book.settle(open);
        }
    }
}

fn is_given_up(context: &Context, request: &CertificateSigningRequest) -> bool {
    let asked = request.creation_timestamp();
    asked.is_some_and(|asked| after(asked.0, GIVEN_UP_AFTER) <= context.clock.now())
}
