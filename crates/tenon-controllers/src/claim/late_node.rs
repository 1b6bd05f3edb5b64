//! Gathers what is known of a node that is late, and says why it has not joined.

use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tenon_api::condition_reasons::{LAUNCHED, REGISTERED};
use tenon_api::{NodeClaim, event_reasons};
use tenon_model::LaunchRecord;
use tenon_pve::{AgentOption, Client, ProvenVm, RefusalKind};

use super::boot_log;
use super::diagnosis::{Agent, Diagnosis, JoinFacts, diagnose};
use super::gather::condition;
use super::outcome::Outcome;
use super::token;
use crate::context::Context;
use crate::events::Event;
use crate::status::Verdict;

/// A node takes a while to boot and join. Until then nothing is asked, and nothing said.
const LATE_S: i64 = 60;

/// An agent that is there answers at once; Proxmox waits three seconds for one that is not.
const AGENT_WITHIN: Duration = Duration::from_secs(6);

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

/// Why the node of a claim has not joined: the condition, and an event if that is another cause than before.
pub(super) fn report(claim: &NodeClaim, diagnosis: Diagnosis) -> Outcome {
    let Diagnosis { reason, message } = diagnosis;
    // What is said of every node that is not late yet is no diagnosis.
    let is_diagnosis = |said: &str| said != not_joined_yet(&claim.name_any());
    let said = condition(claim, &REGISTERED).filter(|said| is_diagnosis(&said.message));
    let is_known = said.is_some_and(|said| said.reason == reason.name());
    let event = (!is_known).then(|| Event::new(&event_reasons::NODE_NOT_JOINED, message.clone()));
    let outcome = Outcome::default().with_condition(&REGISTERED, Verdict::unknown(reason, message));
    event.into_iter().fold(outcome, Outcome::with_event)
}

/// A node that is late.
pub(super) struct LateNode<'a> {
    pub(super) claim: &'a NodeClaim,
    pub(super) record: &'a LaunchRecord,
    /// Since its VM started.
    pub(super) waited_s: i64,
    /// Its VM, if that is seen to run.
    pub(super) vm: Option<&'a ProvenVm>,
}

/// Finds out why the node of a claim has not joined. What cannot be asked is left out.
pub(super) async fn examine(context: &Context, late: &LateNode<'_>) -> Diagnosis {
    let LateNode { claim, record, waited_s, vm } = *late;
    let (name, sight) = (claim.name_any(), context.board.look(context).await);
    let uuid = record.uuid.as_deref().unwrap_or_default().to_ascii_lowercase();
    let user = token::recorded(claim).map(|id| format!("system:bootstrap:{id}"));
    let requests = sight.requests.as_ref().ok().zip(user);
    diagnose(&JoinFacts {
        vmid: record.vmid,
        host: vm.map_or(record.host(), ProvenVm::host).clone(),
        waited_s,
        missing_bindings: sight.rights.missing(),
        requests: requests.map(|(all, user)| all.get(&user).cloned().unwrap_or_default()),
        undecided: crate::csr::undecided(context),
        other_node: sight.nodes.get(&uuid).filter(|node| **node != name).cloned(),
        agent: match (context.region(&record.place.region), vm) {
            (Ok(pve), Some(vm)) => agent(context, pve, claim, vm).await,
            _ => Agent::Unknown,
        },
        name,
    })
}

/// Asks the agent of a VM that should have one.
async fn agent(context: &Context, pve: &Client, claim: &NodeClaim, vm: &ProvenVm) -> Agent {
    let option = vm.config().get("agent").and_then(|text| text.parse::<AgentOption>().ok());
    if !option.is_some_and(|agent| agent.is_enabled()) {
        return Agent::Unknown;
    }
    match tokio::time::timeout(AGENT_WITHIN, pve.agent_ping(vm.host(), vm.vmid())).await {
        Ok(Ok(())) => {
            let log = tokio::time::timeout(AGENT_WITHIN, log(context, pve, claim, vm)).await;
            Agent::Answers(log.ok().flatten().unwrap_or_default())
        }
        Ok(Err(error)) if error.refusal().is_some_and(|told| told.kind == RefusalKind::WrongState) => Agent::Silent,
        // Without the right to ask, or without an answer of Proxmox, nothing is known.
        Ok(Err(_)) | Err(_) => Agent::Unknown,
    }
}

/// The last lines of the boot log. Without the secrets it may contain at hand, nothing of it is shown.
async fn log(context: &Context, pve: &Client, claim: &NodeClaim, vm: &ProvenVm) -> Option<Vec<String>> {
    let log = pve.agent_read_file(vm.host(), vm.vmid(), boot_log::PATH).await.ok()?;
    let class = context.watched.classes.get(&ObjectRef::new(&claim.spec.node_class_ref.name))?;
    let sources = context.secrets.sources(&class.spec.metadata_options).await.ok()?.ok()?;
    let token = token::read(&context.workload, claim).await.ok()?;
    let mut secrets: Vec<String> = sources.values.text.into_values().collect();
    secrets.extend(sources.values.binary.into_values().filter_map(|bytes| String::from_utf8(bytes).ok()));
    if let Some(token) = token {
        secrets.extend(token.expose().split('.').skip(1).map(str::to_owned));
        secrets.push(token.expose().to_owned());
    }
    Some(boot_log::tail(&log, &secrets))
}
