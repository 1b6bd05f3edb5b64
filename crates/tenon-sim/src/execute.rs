//! How a call is executed: what the rules do to it, the wait for file locks, rights, host, parameters, handler.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::endpoints::{self, Endpoint};
use crate::estate::Estate;
use crate::fault::{AnswerFault, Occurrence, Strike};
use crate::fetch;
use crate::http::ParsedRequest;
use crate::ledger::{LedgerEntry, redact};
use crate::params::{Call, Raw};
use crate::rights;
use crate::schema;
use crate::state::State;
use crate::tasks::lock_timeout;
use crate::vm::Vm;
use crate::wire::{Answer, Halt, Refusal, Reply, Shape};

/// How often a call that waits for a file lock looks again.
const LOCK_POLL: Duration = Duration::from_millis(50);
/// A digest no config has.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000";

/// What becomes of an answer on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Arrives,
    /// The connection is closed instead.
    Lost,
    /// It ends in the middle of its body.
    Cut,
    /// Nothing comes and nothing is closed.
    Never,
}

/// What goes back, before it is bytes.
pub(crate) struct Outgoing {
    pub(crate) answer: Result<Reply, Refusal>,
    pub(crate) delivery: Delivery,
    pub(crate) close: bool,
}

pub(crate) async fn execute(estate: &Estate, mut asked: ParsedRequest) -> Outgoing {
    let strike = estate.with(|state| state.struck(&asked));
    if strike.wrong_digest {
        asked.given.insert("digest".into(), Raw::Text(NO_DIGEST.into()));
    }
    let (close, began) = (asked.file.is_some(), tokio::time::Instant::now());
    loop {
        let answer = estate.with(|state| {
            let answer = attempt(state, &asked, &strike);
            let waited_out = began.elapsed() >= state.config.pace.lock_wait;
            let settled = match answer {
                Ok(reply) => Some(Ok(reply)),
                Err(Halt::Refused(refusal)) => Some(Err(refusal)),
                Err(Halt::Busy(vmid)) if waited_out => Some(Err(Refusal::failed(lock_timeout(vmid)))),
                Err(Halt::Busy(_)) => None,
            };
            if let Some(settled) = &settled {
                record(state, &asked, settled);
            }
            settled
        });
        match answer {
            Some(answer) => {
                if let Some(wanted) = answer.as_ref().ok().and_then(|reply| reply.fetch.clone()) {
                    fetch::start(estate.clone(), wanted);
                }
                return deliver(answer, strike.answer, close);
            }
            None => tokio::time::sleep(LOCK_POLL).await,
        }
    }
}

/// What the rules let come back of an answer.
fn deliver(answer: Result<Reply, Refusal>, fault: Option<AnswerFault>, close: bool) -> Outgoing {
    let (answer, delivery) = match fault {
        // What was refused anyway is not executed, so there is nothing to fail after.
        Some(AnswerFault::FailedAfter(status, text)) => {
            (answer.and_then(|reply| Err(refusal(status, &text).after(reply.delay))), Delivery::Arrives)
        }
        Some(AnswerFault::SilentBefore | AnswerFault::SilentAfter) => (answer, Delivery::Never),
        Some(AnswerFault::Dropped) => (answer, Delivery::Lost),
        Some(AnswerFault::Cut) => (answer, Delivery::Cut),
        _ => (answer, Delivery::Arrives),
    };
    Outgoing { answer, delivery, close }
}

fn refusal(status: u16, text: &str) -> Refusal {
    let shape = if status == 401 || status >= 590 { Shape::Empty } else { Shape::Json };
    Refusal::new(status, text, shape)
}

fn attempt(state: &mut State, asked: &ParsedRequest, strike: &Strike) -> Answer {
    match &strike.answer {
        Some(AnswerFault::Refused(status, text)) => return Err(refusal(*status, text).into()),
        Some(AnswerFault::SilentBefore) => return Err(Refusal::new(0, "no answer", Shape::Empty).into()),
        Some(AnswerFault::Unauthorized) => {
            let refusal = Refusal::new(401, "Authentication failed!", Shape::Empty);
            return Err(refusal.after(state.config.pace.unauthorized).into());
        }
        _ => {}
    }
    let Some((endpoint, in_path)) = endpoints::find(state.config.version, &asked.method, &asked.path) else {
        return Err(Refusal::not_implemented(&asked.method, &asked.path).into());
    };
    let call = check_call(state, endpoint, asked, in_path)?;
    check_cluster_lock(state, asked, &call)?;
    (state.tasks.next_lot, state.crowded) = (strike.task.clone(), strike.task.full);
    let answer = match strike.stale {
        Some(age) => state.as_of(age, |state| (endpoint.run)(state, &call)),
        None => (endpoint.run)(state, &call),
    };
    (state.tasks.next_lot, state.crowded) = Default::default();
    answer
}

impl State {
    /// What the rules do to a call.
    fn struck(&mut self, asked: &ParsedRequest) -> Strike {
        let found = endpoints::find(self.config.version, &asked.method, &asked.path);
        let in_path = found.map(|(_, found)| found).unwrap_or_default();
        let given = |name: &str| asked.given.get(name).map(Raw::text);
        let number = |text: &str| text.parse::<u32>().ok();
        let vmids = [in_path.get("vmid").map(String::as_str), given("newid"), given("vmid")];
        let vmids: Vec<u32> = vmids.into_iter().flatten().filter_map(number).collect();
        let named = in_path.get("storage").map(String::as_str).into_iter().chain(given("storage"));
        let values = asked.given.values().filter_map(|raw| raw.text().split_once(':')).map(|(storage, _)| storage);
        let vms = vmids.iter().filter_map(|vmid| self.vms.get(vmid));
        let drives = vms.flat_map(Vm::drives).map(|(_, drive)| drive.file);
        let of_drives = drives.filter_map(|file| Some(file.split_once(':')?.0.to_string()));
        let storages = named.chain(values).map(str::to_owned).chain(of_drives).collect();
        let has_digest = asked.given.contains_key("digest");
        let (method, path, now) = (asked.method.as_str(), asked.path.as_str(), self.now);
        let strike = self.faults.strike(&Occurrence { method, path, storages, vmids: vmids.clone(), has_digest, now });
        if strike.answer == Some(AnswerFault::Locked) {
            vmids.into_iter().for_each(|vmid| self.hog_lock(vmid));
        }
        strike
    }
}

/// Rights first, then the host is reached, and there the parameters are checked.
fn check_call(
    state: &State,
    endpoint: &Endpoint,
    asked: &ParsedRequest,
    mut in_path: BTreeMap<String, String>,
) -> Result<Call, Refusal> {
    if let Some(node) = in_path.get_mut("node").filter(|node| *node == "localhost") {
        *node = state.entry_host();
    }
    let mut given = asked.given.clone();
    for (name, value) in &in_path {
        let other = given.insert(name.clone(), Raw::Text(value.clone()));
        if other.is_some_and(|other| other != Raw::Text(value.clone())) {
            let text = "duplicate parameter (already defined in URI) with conflicting values!";
            return Err(Refusal::invalid_field(name, text));
        }
    }
    let upload = |refusal| if asked.path.ends_with("/upload") { unread(state, asked, refusal) } else { refusal };
    rights::check(state, &asked.user, &endpoint.spec.rights, &given).map_err(upload)?;
    if let Some(node) = in_path.get("node") {
        reach(state, node)?;
    }
    let params =
        schema::check(schema::of(state.config.version), &endpoint.spec.props, given).map_err(Refusal::invalid)?;
    Ok(Call { user: asked.user.clone(), params, file: asked.file.clone() })
}

/// An upload is refused before its body is read. On a connection that was used before, the body is then taken for the next
/// request, and what the client sees is the refusal of that.
fn unread(state: &State, asked: &ParsedRequest, refusal: Refusal) -> Refusal {
    if asked.reused {
        return Refusal::new(400, "bad request", Shape::Empty);
    }
    Refusal { shape: Shape::Empty, ..refusal }.after(state.config.pace.unauthorized)
}

/// Files of the whole cluster are changed under a lock of the cluster, and without quorum that is waited for in vain.
fn check_cluster_lock(state: &State, asked: &ParsedRequest, call: &Call) -> Result<(), Refusal> {
    let lock = match asked.method.as_str() {
        "GET" => return Ok(()),
        "POST" if asked.path == "/pools" => "create pool failed: cfs-lock 'file-user_cfg'".to_string(),
        "PUT" if asked.path.starts_with("/pools") => "update pools failed: cfs-lock 'file-user_cfg'".to_string(),
        "DELETE" if asked.path.starts_with("/pools") => "delete pool failed: cfs-lock 'file-user_cfg'".to_string(),
        _ if asked.path.contains("/firewall/") && call.text("vmid").is_some() => {
            format!("cfs-lock 'firewall-vm-{}'", call.vmid())
        }
        _ => return Ok(()),
    };
    if state.is_quorate() {
        return Ok(());
    }
    Err(Refusal::failed(format!("{lock} error: no quorum!")).after(state.config.pace.lock_wait))
}

fn reach(state: &State, node: &str) -> Result<(), Refusal> {
    if !state.hosts.contains_key(node) {
        let text = format!(
            "hostname lookup '{node}' failed - failed to get address info for: {node}: Name or service not known"
        );
        return Err(Refusal::failed(text));
    }
    if !state.is_online(node) {
        let delay = state.hosts.get(node).and_then(|host| host.dead_delay).unwrap_or(state.config.pace.dead_host);
        return Err(Refusal::new(595, "No route to host", Shape::Empty).after(delay));
    }
    Ok(())
}

pub(crate) fn record(state: &mut State, asked: &ParsedRequest, answer: &Result<Reply, Refusal>) {
    let (status, reason, upid) = match answer {
        Ok(reply) => (200, "OK".to_string(), reply.upid.clone()),
        Err(refusal) => (refusal.status, refusal.reason.clone(), None),
    };
    let (user, method, path) = (asked.user.clone(), asked.method.clone(), asked.path.clone());
    let params = redact(&asked.given);
    state.record(LedgerEntry { at: state.now, user, method, path, params, status, reason, upid });
}
