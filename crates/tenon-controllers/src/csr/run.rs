//! Watches requests for certificates of kubelets, approves or denies those of our claims, and says so.
//!
//! Each signer has a watch and a loop of its own: a node that joins never waits for a guest agent of another.

use std::sync::Arc;

use futures::{StreamExt as _, future};
use jiff::SignedDuration;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::api::{Api, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, Resource as _, ResourceExt};
use tenon_api::NodeClaim;
use tenon_api::event_reasons::{CSR_APPROVED, CSR_UNDECIDED};
use tokio::time::{Instant, sleep_until};

use super::addresses;
use super::book::{Book, Open};
use super::judge::{Known, Refusal, Verdict, Wait, judge};
use super::known::{Tokens, gather, tokens};
use super::request::{ParsedRequest, Signer};
use crate::context::Context;
use crate::events::Event;
use crate::kube_error;
use crate::metrics::{CsrDecision, Loop};
use crate::moments::after;
use crate::panics::{caught, note};
use crate::settings::CsrApprover;
use crate::stop::Stop;
use crate::watched::{Changes, WATCHED_FOR_S};
use crate::writes;

/// As metrics and logs name this loop.
const CONTROLLER: &str = "csr.approver";

/// Requests that are looked at, at the same time.
const AT_ONCE: usize = 8;

/// A kubelet waits so long for its certificate and then asks anew. An older request is left as it is.
const GIVEN_UP_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// A request that still waits at this try is worth an event: an agent needs some seconds to start.
const REPORTED_AT: u32 = 3;

/// What came of looking at a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// There is nothing more to do about it.
    Settled,
    Later,
}

/// Decides about requests until told to stop; about none unless it is switched on.
pub(crate) async fn run(context: Arc<Context>, stop: Stop) {
    if context.settings.csr_approver == CsrApprover::Tenon {
        future::join(follow(&context, Signer::Client, stop.clone()), follow(&context, Signer::Serving, stop)).await;
    }
}

async fn follow(context: &Context, signer: Signer, mut stop: Stop) {
    let (mut changes, mut book) = (watch(&context.workload, signer), Book::default());
    loop {
        let due = book.next_due();
        tokio::select! {
            biased;
            () = stop.wait() => return,
            change = changes.next() => match change {
                Some(Ok(event)) => book.note(event, Instant::now()),
                Some(Err(error)) => {
                    let error = kube_error::of_watch(&error);
                    tracing::warn!(kind = "CertificateSigningRequest", error, "watch interrupted; reconnecting");
                }
                None => return,
            },
            () = async { sleep_until(due.unwrap_or_else(Instant::now)).await }, if due.is_some() => {
                pass(context, signer, &mut book).await;
            }
        }
    }
}

fn watch(client: &Client, signer: Signer) -> Changes<CertificateSigningRequest> {
    let fields = format!("spec.signerName={}", signer.name());
    let config = watcher::Config::default().timeout(WATCHED_FOR_S).fields(&fields);
    let requests = watcher(Api::<CertificateSigningRequest>::all(client.clone()), config).default_backoff();
    requests.modify(|request| request.managed_fields_mut().clear()).boxed()
}

/// Looks at everything that is due.
async fn pass(context: &Context, signer: Signer, book: &mut Book) {
    let due = book.due(Instant::now());
    let tokens = tokens(context);
    let looks = due.into_iter().map(|open| survive(context, signer, open, &tokens));
    let looked: Vec<(Open, Outcome)> = futures::stream::iter(looks).buffer_unordered(AT_ONCE).collect().await;
    for (open, outcome) in looked {
        let name = open.request.name_any();
        match outcome {
            Outcome::Later if !is_given_up(context, &open.request) => book.postpone(&name, Instant::now()),
            _ => book.settle(&name),
        }
    }
}

/// One look at one request, which must not end the others.
async fn survive(context: &Context, signer: Signer, open: Open, tokens: &Tokens) -> (Open, Outcome) {
    let outcome = caught(look(context, signer, &open, tokens)).await.unwrap_or_else(|panic| {
        note(&context.metrics, CONTROLLER, &format!("CertificateSigningRequest {}", open.request.name_any()), &panic);
        Outcome::Later
    });
    (open, outcome)
}

fn is_given_up(context: &Context, request: &CertificateSigningRequest) -> bool {
    let asked = request.creation_timestamp();
    asked.is_some_and(|asked| after(asked.0, GIVEN_UP_AFTER) <= context.clock.now())
}

async fn look(context: &Context, signer: Signer, open: &Open, tokens: &Tokens) -> Outcome {
    let Some(parsed) = ParsedRequest::read(signer, &open.request) else { return Outcome::Settled };
    match decide(context, open, &parsed, tokens).await {
        Ok(outcome) => outcome,
        Err(error) => {
            context.metrics.errors.get_or_create(&Loop { controller: CONTROLLER }).inc();
            let (csr, error) = (open.request.name_any(), kube_error::message(&error));
            tracing::warn!(csr, error, "cannot decide about CertificateSigningRequest; retrying");
            Outcome::Later
        }
    }
}

async fn decide(
    context: &Context,
    open: &Open,
    parsed: &ParsedRequest,
    tokens: &Tokens,
) -> Result<Outcome, kube::Error> {
    let gathered = gather(context, parsed, tokens).await?;
    let mut verdict = judge(parsed, &gathered.known);
    // Proxmox is asked only if everything else is right.
    if let (Verdict::Wait(Wait::Addresses(_)), Some(of), Ok(wanted)) = (&verdict, &gathered.claim, &parsed.wanted) {
        let addresses = addresses::of_vm(context, of, &wanted.addresses).await;
        verdict = judge(parsed, &Known { addresses, ..gathered.known });
    }
    let Some((claim, _)) = gathered.claim else {
        return Ok(if verdict == Verdict::NotOurs { Outcome::Settled } else { Outcome::Later });
    };
    let signer = parsed.signer;
    match verdict {
        Verdict::NotOurs => Ok(Outcome::Settled),
        Verdict::Approve => conclude(context, open, Conclusion::approved(open, signer, &claim), &claim).await,
        Verdict::Refuse(refusal) => conclude(context, open, Conclusion::denied(open, signer, &refusal), &claim).await,
        Verdict::Wait(wait) => {
            report_wait(context, open, &wait, &claim).await;
            Ok(Outcome::Later)
        }
    }
}

/// A decision, as a condition and as an event, which say the same.
struct Conclusion {
    kind: &'static str,
    event: Event,
    signer: Signer,
}

impl Conclusion {
    fn approved(open: &Open, signer: Signer, claim: &NodeClaim) -> Conclusion {
        let (csr, word) = (open.request.name_any(), signer.word());
        let message = format!("Approved {word} certificate of Node {} (CSR {csr})", claim.name_any());
        Conclusion { kind: "Approved", event: Event::new(&CSR_APPROVED, message), signer }
    }

    fn denied(open: &Open, signer: Signer, refusal: &Refusal) -> Conclusion {
        let (csr, word) = (open.request.name_any(), signer.word());
        let user = open.request.spec.username.as_deref().unwrap_or_default();
        let message = format!("Denied {word} certificate for user {user} (CSR {csr}): {refusal}");
        Conclusion { kind: "Denied", event: Event::csr_denied(message), signer }
    }
}

/// Writes the decision into the request as it was read. If somebody was faster, the watch shows it.
async fn conclude(
    context: &Context,
    open: &Open,
    conclusion: Conclusion,
    claim: &NodeClaim,
) -> Result<Outcome, kube::Error> {
    let Conclusion { kind, event, signer } = conclusion;
    let requests: Api<CertificateSigningRequest> = Api::all(context.workload.clone());
    let decided = with_condition(&open.request, kind, &event);
    let name = open.request.name_any();
    match requests.replace_subresource("approval", &name, &PostParams::default(), &decided).await {
        Ok(_) => {}
        Err(error) if writes::is_outdated(&error) => return Ok(Outcome::Later),
        Err(error) => return Err(error),
    }
    context.metrics.csr_decisions.get_or_create(&CsrDecision { signer: signer.word(), decision: kind }).inc();
    context.events.publish(claim, &event).await;
    Ok(Outcome::Settled)
}

fn with_condition(request: &CertificateSigningRequest, kind: &str, event: &Event) -> CertificateSigningRequest {
    let mut decided = request.clone();
    let condition = CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(event.reason.name().to_owned()),
        message: Some(event.note.clone()),
        ..CertificateSigningRequestCondition::default()
    };
    let status = decided.status.get_or_insert_default();
    status.conditions.get_or_insert_default().push(condition);
    decided
}

/// What an operator can do something about, once it has lasted for some seconds.
async fn report_wait(context: &Context, open: &Open, wait: &Wait, claim: &NodeClaim) {
    let (csr, name) = (open.request.name_any(), claim.name_any());
    let why = match wait {
        Wait::Addresses(why) => format!("the addresses of its VM are not known: {why}"),
        Wait::Node(node) => format!("Node {node} has not joined"),
        Wait::Claim => return,
    };
    if open.tries >= REPORTED_AT {
        let note = format!(
            "Cannot decide about CSR {csr} of Node {name} yet: {why}; retrying. To decide yourself, run `kubectl certificate \
             approve {csr}`"
        );
        context.events.publish_for(&claim.object_ref(&()), &Event::new(&CSR_UNDECIDED, note)).await;
    }
}
