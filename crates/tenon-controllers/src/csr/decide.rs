//! Decides about one request: approves or denies it, or says what it waits for.

use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::api::{Api, PostParams};
use kube::{Resource as _, ResourceExt};
use tenon_api::NodeClaim;
use tenon_api::condition_reasons::REGISTERED;

use super::addresses;
use super::approvals::{self, Approvals};
use super::book::Open;
use super::judge::{Known, Verdict, Wait, judge};
use super::known::gather;
use super::refusal::Refusal;
use super::request::{ParsedRequest, Signer};
use crate::claim::{is_true, recorded_token};
use crate::context::{Context, is_ours};
use crate::events::Event;
use crate::kube_error;
use crate::metrics::{CsrDecision, Loop};
use crate::writes;

/// As metrics and logs name this loop.
pub(super) const CONTROLLER: &str = "csr.approver";

/// A request that still waits at this try is worth an event: an agent needs some seconds to start.
const REPORTED_AT: u32 = 3;

/// What to do if the API server refuses.
const GRANT: &str = "set the ServiceAccount of the controller in examples/csr-approver-rbac.yaml, and run `kubectl apply -f \
                     examples/csr-approver-rbac.yaml`";

/// NodeClaims that are told that requests cannot be listed, at most; the log has it, too.
const TOLD_MOST: usize = 10;

/// What came of looking at a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is nothing more to do about it.
    Settled,
    Later,
}

/// A request, and the NodeClaim whose token or Node asks.
#[derive(Clone, Copy)]
struct Case<'a> {
    open: &'a Open,
    claim: &'a NodeClaim,
}

/// Decides about the requests of one signer.
pub(super) struct Approver<'a> {
    pub(super) context: &'a Context,
    pub(super) signer: Signer,
    pub(super) approvals: Approvals,
}

impl Approver<'_> {
    /// One look at one request.
    pub(super) async fn look(&self, open: &Open) -> Outcome {
        let Some(parsed) = ParsedRequest::read(self.signer, &open.request) else { return Outcome::Settled };
        match self.decide(open, &parsed).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.context.metrics.errors.get_or_create(&Loop { controller: CONTROLLER }).inc();
                let (csr, error) = (open.request.name_any(), kube_error::message(&error));
                self.context.memory.undecided.note(&csr, error.clone());
                tracing::warn!(csr, error, "cannot decide about CertificateSigningRequest; retrying");
                Outcome::Later
            }
        }
    }

    async fn decide(&self, open: &Open, parsed: &ParsedRequest) -> Result<Outcome, kube::Error> {
        let gathered = gather(self.context, parsed).await?;
        let mut verdict = judge(parsed, &gathered.known);
        // Proxmox is asked only if everything else is right.
        if let (Verdict::Wait(Wait::Addresses(_)), Some(of), Ok(wanted)) = (&verdict, &gathered.claim, &parsed.wanted) {
            let addresses = addresses::of_vm(self.context, of, &wanted.addresses).await;
            verdict = judge(parsed, &Known { addresses, ..gathered.known });
        }
        let Some((claim, _)) = gathered.claim else {
            return Ok(if verdict == Verdict::NotOurs { Outcome::Settled } else { Outcome::Later });
        };
        let case = Case { open, claim: &claim };
        match verdict {
            Verdict::NotOurs => Ok(Outcome::Settled),
            Verdict::Approve => self.approve(case).await,
            Verdict::Refuse(refusal) => self.deny(case, &refusal).await,
            Verdict::Wait(wait) => {
                self.report_wait(case, &wait).await;
                Ok(Outcome::Later)
            }
        }
    }

    /// Approves, unless so many were approved that something is wrong.
    async fn approve(&self, case: Case<'_>) -> Result<Outcome, kube::Error> {
        let Case { open, claim } = case;
        let (csr, node, word) = (open.request.name_any(), claim.name_any(), self.signer.word());
        if !self.approvals.reserve(&node, &open.request, self.context.clock.now()) {
            return self.deny(case, &Refusal::TooMany { approved: approvals::MOST, word }).await;
        }
        let message = format!("Approved {word} certificate of Node {node} (CSR {csr})");
        let concluded = self.conclude(case, "Approved", Event::csr_approved(message)).await;
        if !matches!(concluded, Ok(Outcome::Settled)) {
            self.approvals.release(&node, &open.request);
        }
        concluded
    }

    async fn deny(&self, case: Case<'_>, refusal: &Refusal) -> Result<Outcome, kube::Error> {
        let Case { open, claim } = case;
        let (csr, word, why) = (open.request.name_any(), self.signer.word(), refusal.sentence(&claim.name_any()));
        let user = open.request.spec.username.as_deref().unwrap_or_default();
        let message = format!("Denied {word} certificate for user {user} (CSR {csr}): {why}");
        self.conclude(case, "Denied", Event::csr_denied(message)).await
    }

    /// Writes the decision into the request as it was read; condition and event say the same. If somebody was faster, the
    /// watch shows it.
    async fn conclude(&self, case: Case<'_>, kind: &'static str, event: Event) -> Result<Outcome, kube::Error> {
        let Case { open, claim } = case;
        let requests: Api<CertificateSigningRequest> = Api::all(self.context.workload.clone());
        let (decided, name) = (with_condition(&open.request, kind, &event), open.request.name_any());
        match requests.replace_subresource("approval", &name, &PostParams::default(), &decided).await {
            Ok(_) => {}
            Err(error) if writes::is_outdated(&error) => return Ok(Outcome::Later),
            Err(error) if kube_error::is_forbidden(&error) => {
                self.report_forbidden(case, kind, &error).await;
                return Ok(Outcome::Later);
            }
            Err(error) => return Err(error),
        }
        let decision = CsrDecision { signer: self.signer.word(), decision: kind };
        self.context.metrics.csr_decisions.get_or_create(&decision).inc();
        self.context.events.publish(claim, &event).await;
        Ok(Outcome::Settled)
    }

    async fn report_forbidden(&self, Case { open, claim }: Case<'_>, kind: &str, error: &kube::Error) {
        self.context.metrics.errors.get_or_create(&Loop { controller: CONTROLLER }).inc();
        let (csr, name) = (open.request.name_any(), claim.name_any());
        let verb = if kind == "Approved" { "approve" } else { "deny" };
        let why = format!("Tenon may not {verb} it: {}; {GRANT}", kube_error::message(error));
        let note = format!("Cannot decide about CSR {csr} of Node {name}: {why}");
        self.context.memory.undecided.note(&csr, why);
        self.context.events.publish(claim, &Event::csr_undecided(note)).await;
    }

    /// What an operator can do something about, once it has lasted for some seconds.
    async fn report_wait(&self, Case { open, claim }: Case<'_>, wait: &Wait) {
        let (csr, name) = (open.request.name_any(), claim.name_any());
        let why = match wait {
            Wait::Addresses(why) => format!("the addresses of its VM are not known: {why}"),
            Wait::Node(node) => format!("Node {node} has not joined; its NodeClaim says why"),
            Wait::Claim => return,
        };
        if open.tries >= REPORTED_AT {
            let note = format!("Cannot decide about CSR {csr} of Node {name} yet: {why}; retrying");
            self.context.events.publish(claim, &Event::csr_undecided(note)).await;
        }
        self.context.memory.undecided.note(&csr, why);
    }
}

/// Tells the NodeClaims whose nodes wait that nobody can look at their requests.
pub(super) async fn report_unlisted(context: &Context, error: &str) {
    let waits = |claim: &NodeClaim| is_ours(claim) && recorded_token(claim).is_some() && !is_true(claim, &REGISTERED);
    let mut waiting = context.watched.claims.state_filter(waits);
    waiting.sort_by_key(|claim| claim.name_any());
    let note = format!("Cannot decide about CertificateSigningRequests: {error}; {GRANT}");
    if waiting.is_empty() {
        tracing::warn!("{note}");
    }
    for claim in waiting.iter().take(TOLD_MOST) {
        context.events.publish_for(&claim.object_ref(&()), &Event::csr_undecided(note.clone())).await;
    }
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
