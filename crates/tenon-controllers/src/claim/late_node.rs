//! Gathers what is known of a node that is late, and says why it has not joined.

use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tenon_api::condition_reasons::{
    AWAITING_RECONCILIATION, CERTIFICATE_REQUEST_DENIED, CERTIFICATE_REQUEST_FAILED, CERTIFICATE_REQUEST_NOT_FOUND,
    CERTIFICATE_REQUEST_PENDING, ConditionReason, LAUNCHED, NODE_NOT_CREATED, REGISTERED,
};
use tenon_api::{Condition, NodeClaim, ProxmoxNodeClass, event_reasons};
use tenon_cloudinit::SeedFileName;
use tenon_model::LaunchRecord;
use tenon_pve::{AgentOption, Client, ProvenVm, RefusalKind};

use super::boot_log::{self, Secrets};
use super::diagnosis::{Agent, Diagnosis, JoinFacts, TokenFault, diagnose};
use super::gather::condition;
use super::outcome::Outcome;
use super::token::{self, FoundToken};
use crate::context::Context;
use crate::events::Event;
use crate::status::Verdict;

/// A node takes a while to boot and join. Until then nothing is asked, and nothing said.
const LATE_S: i64 = 60;

/// An agent that is there answers at once; Proxmox waits three seconds for one that is not.
const AGENT_WITHIN: Duration = Duration::from_secs(6);

/// What is only known of a node whose kubelet has requested a certificate.
const AFTER_REQUEST: [&ConditionReason; 4] =
    [&CERTIFICATE_REQUEST_PENDING, &CERTIFICATE_REQUEST_DENIED, &CERTIFICATE_REQUEST_FAILED, &NODE_NOT_CREATED];

/// How long a node has been awaited, if that is long enough to ask why.
pub(super) fn late_s(context: &Context, claim: &NodeClaim) -> Option<i64> {
    let launched = condition(claim, &LAUNCHED)?.last_transition_time.0;
    let waited = context.clock.seconds().0.saturating_sub(launched.as_second());
    (waited >= LATE_S).then_some(waited)
}

/// What is said of a node that is not late yet.
pub(super) fn not_joined_yet(name: &str) -> String {
    format!("The VM runs; Node {name} has not joined yet")
}

/// What a claim says of a node that does not come; what is said of every node that is not late yet is no diagnosis.
fn diagnosed(claim: &NodeClaim) -> Option<&Condition> {
    let general = not_joined_yet(&claim.name_any());
    let is_diagnosis = |said: &&Condition| {
        let is_general = said.message == general || said.reason == AWAITING_RECONCILIATION.name();
        !said.message.is_empty() && !is_general
    };
    condition(claim, &REGISTERED).filter(is_diagnosis)
}

/// Why the node did not come, as far as that was found out; or where to look.
pub(super) fn last_diagnosis(claim: &NodeClaim) -> String {
    match diagnosed(claim) {
        Some(said) => format!("last seen: {}", said.message),
        None => "read cloud-init and kubelet on the VM's console, and check that the VM can reach the API server \
                 (--cluster-endpoint)"
            .to_owned(),
    }
}

/// Why the node of a claim has not joined: the condition, and an event once the same cause was found twice in a row. A node
/// that is just about to join passes through some causes.
pub(super) fn report(context: &Context, claim: &NodeClaim, diagnosis: Diagnosis) -> Outcome {
    let Diagnosis { reason, message } = diagnosis;
    let times = context.memory.diagnoses.found(&claim.name_any(), reason.name());
    // Requests are deleted after a while; that a kubelet has asked stays true.
    let has_asked = diagnosed(claim).is_some_and(|said| AFTER_REQUEST.iter().any(|known| known.name() == said.reason));
    if reason == &CERTIFICATE_REQUEST_NOT_FOUND && has_asked {
        return Outcome::default();
    }
    let event = (times == 2).then(|| Event::new(&event_reasons::NODE_NOT_JOINED, message.clone()));
    let outcome = Outcome::default().with_condition(&REGISTERED, Verdict::unknown(reason, message));
    event.into_iter().fold(outcome, Outcome::with_event)
}

/// A VM that Proxmox shows as running.
pub(super) struct RunningVm {
    pub(super) vm: ProvenVm,
    /// What QEMU says.
    pub(super) qemu: Option<String>,
}

/// A node that is late.
pub(super) struct LateNode<'a> {
    pub(super) claim: &'a NodeClaim,
    pub(super) record: &'a LaunchRecord,
    /// Since its VM started.
    pub(super) waited_s: i64,
    /// Its VM, if that is seen to run.
    pub(super) vm: Option<&'a RunningVm>,
}

/// Finds out why the node of a claim has not joined. What cannot be asked is left out; nothing if it is just about to join.
pub(super) async fn examine(context: &Context, late: &LateNode<'_>) -> Option<Diagnosis> {
    let LateNode { claim, record, waited_s, vm } = *late;
    let (name, sight) = (claim.name_any(), context.board.look(context).await);
    let class = context.watched.classes.get(&ObjectRef::new(&claim.spec.node_class_ref.name));
    let used = class.as_deref().and_then(|class| context.board.uses.of(class));
    // Who joins in another way needs no binding and makes no request that could be told from others.
    let id = token::recorded(claim).filter(|_| used.is_some_and(|used| used.token));
    let requests = sight.requests.as_ref().ok().zip(id.map(|id| format!("system:bootstrap:{id}")));
    let requests = requests.map(|(all, user)| all.get(&user).cloned().unwrap_or_default());
    if requests.iter().flatten().last().is_some_and(|last| last.is_fresh(context.clock.now())) {
        return None;
    }
    let uuid = record.uuid.as_deref().unwrap_or_default().to_ascii_lowercase();
    let found = token::find(context, claim).await;
    Some(diagnose(&JoinFacts {
        vmid: record.vmid,
        host: vm.map_or(record.host(), |running| running.vm.host()).clone(),
        waited_s,
        qemu: vm.and_then(|running| running.qemu.clone()).filter(|state| state != "running"),
        token: id.and_then(|_| token_fault(context, found.as_ref().ok()?)),
        missing_bindings: sight.rights.missing().filter(|_| id.is_some()),
        requests,
        undecided: crate::csr::undecided(context),
        other_node: sight.nodes.get(&uuid).filter(|node| **node != name).cloned(),
        agent: match (context.region(&record.place.region), vm, class, found) {
            (Ok(pve), Some(RunningVm { vm, .. }), Some(class), Ok(token)) => {
                Guest { pve: &pve, vm, class: &class, token }.asked(context).await
            }
            _ => Agent::Unknown,
        },
        name,
    }))
}

fn token_fault(context: &Context, found: &FoundToken) -> Option<TokenFault> {
    let secret = found.secret.clone();
    match found.expires {
        _ if found.token.is_none() => Some(TokenFault::Gone(secret)),
        Some(expires) if expires <= context.clock.now() => Some(TokenFault::Expired(secret)),
        _ => None,
    }
}

/// A guest that is asked, and what it must not tell.
struct Guest<'a> {
    pve: &'a Client,
    vm: &'a ProvenVm,
    class: &'a ProxmoxNodeClass,
    token: FoundToken,
}

impl Guest<'_> {
    /// What its agent says, if it should have one.
    async fn asked(&self, context: &Context) -> Agent {
        let Guest { pve, vm, .. } = self;
        let option = vm.config().get("agent").and_then(|text| text.parse::<AgentOption>().ok());
        if !option.is_some_and(|agent| agent.is_enabled()) {
            return Agent::Unknown;
        }
        match tokio::time::timeout(AGENT_WITHIN, pve.agent_ping(vm.host(), vm.vmid())).await {
            Ok(Ok(())) => {
                let log = tokio::time::timeout(AGENT_WITHIN, self.log(context)).await;
                Agent::Answers(log.ok().flatten().unwrap_or_default())
            }
            Ok(Err(error)) if error.refusal().is_some_and(|told| told.kind == RefusalKind::WrongState) => Agent::Silent,
            // Without the right to ask, or without an answer of Proxmox, nothing is known.
            Ok(Err(_)) | Err(_) => Agent::Unknown,
        }
    }

    /// The last lines of the boot log. Without the secrets it may contain at hand, nothing of it is shown.
    async fn log(&self, context: &Context) -> Option<Vec<String>> {
        let log = self.pve.agent_read_file(self.vm.host(), self.vm.vmid(), boot_log::PATH).await.ok()?;
        let sources = context.secrets.sources(&self.class.spec.metadata_options).await.ok()?.ok()?;
        let mut values: Vec<String> = sources.values.text.into_values().collect();
        values.extend(sources.values.binary.into_values().filter_map(|bytes| String::from_utf8(bytes).ok()));
        if let Some(token) = &self.token.token {
            values.extend(token.expose().split('.').skip(1).map(str::to_owned));
            values.push(token.expose().to_owned());
        }
        let texts = SeedFileName::ALL.iter().filter_map(|file| sources.templates.get(*file));
        Some(boot_log::tail(
            &log,
            &Secrets { values, texts: texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect() },
        ))
    }
}
