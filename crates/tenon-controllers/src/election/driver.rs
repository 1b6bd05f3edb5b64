//! Asks the API server for the Lease, and does what was decided. It has a connection of its own, which no fence guards
//! and no other request can hold up.
//!
//! No randomness: two that want the Lease in the same moment are told apart by its resourceVersion.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, PostParams};
use tenon_api::status_message;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::decide::{Candidate, Decision, Lost, Moment};
use super::fence::Fence;
use super::lease::{Holder, held, holder, released};
use super::timing::Timing;
use crate::clock::Clock;
use crate::kube_error;

/// Random bytes in a name.
const RANDOM: usize = 8;

/// Where the Lease is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub name: String,
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// No name could be made, because the system gave no random bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read random bytes from the system: {0}")]
pub struct NoRandomness(String);

/// A name that no other process has, nor this one after a restart.
pub fn identity(host: &str) -> Result<String, NoRandomness> {
    let mut random = [0_u8; RANDOM];
    getrandom::fill(&mut random).map_err(|error| NoRandomness(error.to_string()))?;
    let suffix: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{host}_{suffix}"))
}

/// What one process wants: which Lease, under which name, and in what time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bid {
    /// The Lease.
    pub at: LeaseName,
    /// The name that will stand in it, from [`identity`].
    pub identity: String,
    /// The times.
    pub timing: Timing,
}

/// One process's part in an election.
pub struct Election {
    leases: Api<Lease>,
    at: LeaseName,
    candidate: Candidate,
    fence: Fence,
    clock: Clock,
    /// Whether our name may stand in the Lease.
    has_written: bool,
    /// What was logged last, so that nothing is logged twice in a row.
    logged: String,
}

/// A request to the API server that came to nothing.
enum Failed {
    /// Somebody changed, made or deleted the Lease meanwhile.
    Conflict,
    Other(String),
}

impl Election {
    /// Wants the Lease of the cluster that `client` speaks to, and opens `fence` while it has it. The client must not be
    /// behind that fence.
    pub fn new(client: Client, bid: Bid, fence: Fence) -> Election {
        let Bid { at, identity, timing } = bid;
        let leases = Api::namespaced(client, &at.namespace);
        let clock = fence.clock();
        let candidate = Candidate::new(identity, timing);
        Election { leases, at, candidate, fence, clock, has_written: false, logged: String::new() }
    }

    /// The name of the Lease.
    pub(crate) fn lease_name(&self) -> &str {
        &self.at.name
    }

    /// Waits until the Lease is ours. `waiting` is called whenever another is seen to hold it.
    pub(crate) async fn win(&mut self, waiting: impl Fn()) {
        tracing::info!(lease = %self.at, identity = self.candidate.identity(), "starting leader election");
        loop {
            let mut pause = Instant::now() + self.candidate.timing().retry();
            if self.look().await {
                match self.candidate.decide(self.now()) {
                    Decision::Wait(until) => {
                        waiting();
                        let other = self.candidate.lease().map(holder).unwrap_or_default().to_owned();
                        self.log_once(&format!("waiting for leadership: {other} is the leader"), false);
                        pause = until;
                    }
                    _ if self.write().await => {
                        tracing::info!(lease = %self.at, identity = self.candidate.identity(), "acquired leadership");
                        return;
                    }
                    _ => {}
                }
            }
            sleep_until(pause).await;
        }
    }

    /// Keeps the Lease; ends when it is lost, with the fence closed.
    pub(crate) async fn keep(&mut self) -> Lost {
        loop {
            let now = self.now();
            self.candidate.tick(now);
            let is_done = match self.candidate.decide(now) {
                Decision::Lost(lost) => {
                    self.fence.close();
                    tracing::error!(lease = %self.at, "lost leadership: {lost}");
                    return lost;
                }
                Decision::Wait(until) => {
                    sleep_until(until).await;
                    true
                }
                Decision::Look => {
                    tracing::warn!(lease = %self.at, "process was paused or a clock was set; reading the Lease before any change");
                    self.look().await
                }
                Decision::Acquire | Decision::Renew => self.write().await,
            };
            if !is_done && !matches!(self.candidate.decide(self.now()), Decision::Lost(_)) {
                sleep(self.candidate.timing().retry().min(self.patience())).await;
            }
        }
    }

    /// Gives the Lease back if it is ours, so that the next need not wait. The fence is closed first.
    pub(crate) async fn release(&mut self) {
        self.fence.close();
        // Read anew: an answer that was lost may have been a renewal. Whoever never wrote has nothing to give back.
        if !self.has_written || !self.look().await {
            return;
        }
        let Some(lease) = self.candidate.lease().filter(|lease| holder(lease) == self.candidate.identity()) else {
            return;
        };
        let (params, free) = (PostParams::default(), released(lease.clone(), self.clock.now()));
        let within = self.candidate.timing().request();
        match ask(within, self.leases.replace(&self.at.name, &params, &free)).await {
            Ok(_) => tracing::info!(lease = %self.at, "released the Lease"),
            Err(failed) => {
                tracing::warn!(lease = %self.at, "cannot release the Lease; the next leader waits until it expires: {failed}");
            }
        }
    }

    fn now(&self) -> Moment {
        Moment { monotonic: Instant::now(), wall: self.clock.now() }
    }

    /// How long the next request may take: what lies beyond a leader's deadline helps nobody.
    fn patience(&self) -> Duration {
        let limit = self.candidate.timing().request();
        self.candidate.deadline().map_or(limit, |end| limit.min(end.saturating_duration_since(Instant::now())))
    }

    /// Reads the Lease.
    async fn look(&mut self) -> bool {
        match ask(self.patience(), self.leases.get_opt(&self.at.name)).await {
            Ok(lease) => {
                let now = self.now();
                self.candidate.saw(lease, now);
                true
            }
            Err(failed) => self.note(&failed),
        }
    }

    /// Writes our name into the Lease as we saw it last, or makes it. A leader that finds it changed reads it again.
    async fn write(&mut self) -> bool {
        let sent = self.now();
        // The Lease has no more digits than these.
        let wall = Timestamp::from_microsecond(sent.wall.as_microsecond()).unwrap_or(sent.wall);
        let (params, before) = (PostParams::default(), self.candidate.lease());
        let seconds = self.candidate.timing().lease_seconds();
        let me = Holder { identity: self.candidate.identity(), seconds };
        let lease = held(before, &self.at.name, &me, wall);
        let exists = before.is_some();
        self.has_written = true;
        let patience = self.patience();
        let outcome = if exists {
            ask(patience, self.leases.replace(&self.at.name, &params, &lease)).await
        } else {
            ask(patience, self.leases.create(&params, &lease)).await
        };
        match outcome {
            Ok(lease) => {
                self.candidate.wrote(lease, sent);
                self.fence.allow(sent, self.candidate.timing().renew());
                self.logged.clear();
                true
            }
            Err(Failed::Conflict) => {
                self.look().await;
                false
            }
            Err(failed) => self.note(&failed),
        }
    }

    fn note(&mut self, failed: &Failed) -> bool {
        self.candidate.failure = failed.to_string();
        self.log_once(&format!("cannot read or write the Lease; retrying: {failed}"), true);
        false
    }

    fn log_once(&mut self, words: &str, is_trouble: bool) {
        if self.logged == words {
            return;
        }
        if is_trouble {
            tracing::warn!(lease = %self.at, "{words}");
        } else {
            tracing::info!(lease = %self.at, "{words}");
        }
        words.clone_into(&mut self.logged);
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Conflict => f.write_str("another instance changed the Lease at the same time"),
            Failed::Other(words) => f.write_str(words),
        }
    }
}

/// One request, with an end to its time.
async fn ask<T>(within: Duration, request: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
    match timeout(within, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(Failed::Conflict),
        Ok(Err(kube::Error::Api(status))) => Err(Failed::Other(match status.code {
            // Made or deleted between our look and our write; a namespace that is missing says so in the server's words.
            404 if status.details.as_ref().is_some_and(|details| details.kind == "leases") => {
                return Err(Failed::Conflict);
            }
            401 | 403 => format!(
                "{}; allow get, create and update on leases, or see --leader-election-namespace",
                status.message
            ),
            404 => format!("{}; see --leader-election-namespace", status.message),
            _ => status_message(&status),
        })),
        Ok(Err(error)) => Err(Failed::Other(kube_error::message(&error))),
        Err(_) => Err(Failed::Other(format!("no answer within {} s", within.as_secs_f64()))),
    }
}
