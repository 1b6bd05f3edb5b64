//! How one request is made: address, parameters, credentials, patience, and another endpoint if the first is not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::Instant;

pub(crate) use crate::address::{Form, segment};

use crate::address::{Endpoint, encode};
use crate::credentials::Credentials;
use crate::error::{Cause, Doubtful, Error, Result};
use crate::limits::{Gates, Limits, Target};
use crate::observer::{self, Exchange, Observer};
use crate::redact::{Redactor, SECRET_PARAMS};
use crate::refusal::RefusalKind;
use crate::reply;
use crate::retry::Retry;
use crate::session::{Authority, Session};
use crate::transport::{ChangesNothing, OwnConnection, Transport, TransportError};
use crate::upid::Upid;

/// Every call answers in well under a second, but a refused token takes three, a lock ten, an unreachable host
/// fourteen.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A read that another endpoint may answer waits no longer than this: just longer than Proxmox takes to give up a host of its
/// own that is unreachable, since that is an answer.
const READ_WITHIN: Duration = Duration::from_secs(16);

/// The slowest link an upload is given time for, in bytes a second.
const SLOWEST_UPLOAD: usize = 1024 * 1024;

/// Speaks to one Proxmox cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
    answer_within: Duration,
    observer: Option<Arc<dyn Observer>>,
}

#[derive(Debug)]
struct Inner {
    endpoints: Vec<Endpoint>,
    /// The endpoint that answered last, so that a dead one is not asked first each time.
    preferred: AtomicUsize,
    transport: Transport,
    session: Session,
    redactor: Redactor,
    gates: Gates,
    retry: Retry,
}

/// How hard a client tries, and how hard it leans on Proxmox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tuning {
    /// How many requests may be under way at once.
    pub limits: Limits,
    /// How often a request goes out.
    pub retry: Retry,
}

/// Parameters of a call, in order.
pub(crate) type Params<'a> = &'a [(&'a str, String)];

/// One request, before it has an address.
pub(crate) struct Call<'a> {
    /// What it is meant to do, as it stands behind "cannot".
    pub(crate) action: String,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) params: Params<'a>,
}

/// What goes out for a call, to whichever endpoint.
pub(crate) struct Message {
    /// The path, with the parameters that stand behind it.
    pub(crate) path: String,
    /// The type of the body; none if there is no body.
    pub(crate) content_type: Option<String>,
    pub(crate) body: Bytes,
}

impl Client {
    /// A client of the cluster whose hosts answer at these endpoints; the first that can be reached is used.
    pub fn new(endpoints: Vec<Endpoint>, transport: Transport, credentials: impl Into<Credentials>) -> Client {
        Client::tuned(endpoints, transport, credentials, Tuning::default())
    }

    /// The same with other limits.
    pub fn tuned(
        endpoints: Vec<Endpoint>,
        transport: Transport,
        credentials: impl Into<Credentials>,
        tuning: Tuning,
    ) -> Client {
        let (credentials, redactor) = (credentials.into(), Redactor::default());
        redactor.learn(credentials.secret());
        let (session, gates) = (Session::new(credentials), Gates::new(tuning.limits));
        let (preferred, retry) = (AtomicUsize::new(0), tuning.retry);
        let inner = Inner { endpoints, preferred, transport, session, redactor, gates, retry };
        Client { inner: Arc::new(inner), answer_within: ANSWER_WITHIN, observer: None }
    }

    /// The same client, for one who cannot wait longer than this for the answer of an endpoint.
    #[must_use]
    pub fn within(&self, answer_within: Duration) -> Client {
        Client { answer_within, ..self.clone() }
    }

    /// The same client, telling of every request and task.
    #[must_use]
    pub fn observed(self, observer: Arc<dyn Observer>) -> Client {
        Client { observer: Some(observer), ..self }
    }

    pub(crate) fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    /// Whether both are one client, with the same session and connections.
    pub fn is_same(&self, other: &Client) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether Proxmox lets it set what only root may: `root@pam` with a password does, a token of root does not.
    pub fn is_root(&self) -> bool {
        self.session().is_root()
    }

    pub(crate) fn session(&self) -> &Session {
        &self.inner.session
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.inner.redactor
    }

    /// Reads without parameters.
    pub(crate) async fn get(&self, action: String, path: String) -> Result<Value> {
        self.call(&Call { action, method: Method::GET, path, params: &[] }).await
    }

    /// Reads into a type of ours.
    pub(crate) async fn read<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T> {
        let data = self.call(&call).await?;
        reply::parse(data).map_err(|cause| self.told_safely(Error::new(call.action, cause), call.params))
    }

    /// A call that answers with the name of the task that does the work.
    pub(crate) async fn task_call(&self, call: Call<'_>) -> Result<Upid> {
        let data = self.call(&call).await?;
        self.task_of(&call, &data)
    }

    /// The task a reply names.
    pub(crate) fn task_of(&self, call: &Call<'_>, data: &Value) -> Result<Upid> {
        let upid = data.as_str().and_then(|text| text.parse().ok());
        let error = || Error::new(&call.action, reply::unreadable(&format!("`{data}` is not a task")));
        let upid: Upid = upid.ok_or_else(|| self.told_safely(error(), call.params))?;
        self.observer().into_iter().for_each(|observer| observer.task_began(&upid));
        Ok(upid)
    }

    /// Makes one call.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Value> {
        self.send(call, &message(call)).await
    }

    /// Makes one call with the rights of `authority`, outside all limits: it is part of another call that is inside.
    pub(crate) async fn call_as(&self, call: &Call<'_>, authority: &Authority) -> Result<Value> {
        self.over_endpoints(call, &message(call), authority).await
    }

    /// Sends a body of any type, as [`Client::call`] does with parameters.
    pub(crate) async fn send(&self, call: &Call<'_>, message: &Message) -> Result<Value> {
        let Some(observer) = self.observer() else { return self.attempts(call, message).await };
        let began = Instant::now();
        let outcome = self.attempts(call, message).await;
        let (path, error) = (observer::template(&call.path), outcome.as_ref().err().map(observer::word));
        observer.replied(&Exchange { method: &call.method, path, took: began.elapsed(), error });
        outcome
    }

    async fn attempts(&self, call: &Call<'_>, message: &Message) -> Result<Value> {
        let crowded = |error| Error::new(&call.action, Cause::NotSent(TransportError::Withheld(Box::new(error))));
        let place = Target::of(&message.path, call.params);
        let _admission = self.inner.gates.enter(&place).await.map_err(crowded)?;
        let mut made = 0;
        loop {
            made += 1;
            let error = match self.attempt(call, message).await {
                Ok(data) => return Ok(data),
                Err(error) => error,
            };
            match self.inner.retry.pause_after(made, &call.method, error.cause()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(self.told_safely(error, call.params)),
            }
        }
    }

    /// One attempt, with a new ticket if the one it carried was refused. A refused ticket means that nothing was done.
    async fn attempt(&self, call: &Call<'_>, message: &Message) -> Result<Value> {
        let authority = self.authority().await?;
        let outcome = self.over_endpoints(call, message, &authority).await;
        let is_unauthorized =
            |error: &Error| error.refusal().is_some_and(|refusal| refusal.kind == RefusalKind::Unauthorized);
        match outcome {
            Err(error) if is_unauthorized(&error) && self.inner.session.forget(&authority).await => {
                let authority = self.authority().await?;
                self.over_endpoints(call, message, &authority).await
            }
            outcome => outcome,
        }
    }

    /// Asks the endpoints one after the other. Only what was certainly not sent goes to the next, and a read that got no
    /// answer. Whatever it was, an endpoint that did not answer is not asked first again.
    async fn over_endpoints(&self, call: &Call<'_>, message: &Message, authority: &Authority) -> Result<Value> {
        let (endpoints, mut last) = (&self.inner.endpoints, None);
        let first = self.inner.preferred.load(Ordering::Relaxed);
        for offset in 0..endpoints.len() {
            let index = (first + offset) % endpoints.len();
            let request = request(&endpoints[index], call, message, authority)?;
            match self.inner.transport.send(request, self.patience(call, message)).await {
                Ok(reply) => {
                    self.inner.preferred.store(index, Ordering::Relaxed);
                    return reply::read(&reply).map_err(|cause| Error::new(&call.action, cause));
                }
                // What was kept back here is kept back from every endpoint.
                Err(error @ TransportError::Withheld(_)) => {
                    return Err(Error::new(&call.action, Cause::NotSent(error)));
                }
                Err(error) if error.is_not_sent() => last = Some(Cause::NotSent(error.at(&endpoints[index]))),
                Err(error) => {
                    let is_timed_out = matches!(error, TransportError::TimedOut(_));
                    let cause = Cause::MaybeDone(Doubtful::Lost(error));
                    if is_timed_out {
                        self.pass_over(index);
                    }
                    if !is_timed_out || call.method != Method::GET {
                        return Err(Error::new(&call.action, cause));
                    }
                    last = Some(cause);
                }
            }
        }
        let none = || Cause::NotSent(TransportError::Connect("no endpoint is configured".into()));
        Err(Error::new(&call.action, last.unwrap_or_else(none)))
    }

    /// An endpoint did not answer: the next call begins with the one after it, unless another call knows a better one.
    fn pass_over(&self, index: usize) {
        let next = index.wrapping_add(1).checked_rem(self.inner.endpoints.len()).unwrap_or_default();
        // Lost to another call that changed it meanwhile: that one knows more.
        let _ = self.inner.preferred.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// How long one endpoint has to answer. A read has less time where another endpoint can be asked.
    fn patience(&self, call: &Call<'_>, message: &Message) -> Duration {
        let may_rotate = call.method == Method::GET && self.inner.endpoints.len() > 1;
        let within = if may_rotate { self.answer_within.min(READ_WITHIN) } else { self.answer_within };
        within + Duration::from_secs((message.body.len() / SLOWEST_UPLOAD) as u64)
    }

    /// The error without any secret in it.
    fn told_safely(&self, error: Error, params: Params<'_>) -> Error {
        let is_secret = |name: &str| SECRET_PARAMS.contains(&name);
        let more: Vec<&str> =
            params.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value.as_str()).collect();
        error.redacted(&|text| self.inner.redactor.hide(text, &more))
    }
}

/// Puts the parameters where Proxmox wants them: behind the path of a GET or DELETE, else into the body.
fn message(call: &Call<'_>) -> Message {
    let parameters = encode(call.params);
    if call.method == Method::POST || call.method == Method::PUT {
        let content_type = Some("application/x-www-form-urlencoded".to_owned());
        return Message { path: call.path.clone(), content_type, body: Bytes::from(parameters) };
    }
    let mark = if parameters.is_empty() { "" } else { "?" };
    Message { path: format!("{}{mark}{parameters}", call.path), content_type: None, body: Bytes::new() }
}

fn request(endpoint: &Endpoint, call: &Call<'_>, message: &Message, authority: &Authority) -> Result<Request<Bytes>> {
    let mut request = Request::builder()
        .method(call.method.clone())
        .uri(format!("{endpoint}{}", message.path))
        .header(header::USER_AGENT, concat!("tenon/", env!("CARGO_PKG_VERSION")));
    request = authority.sign(request, &call.method);
    if matches!(authority, Authority::Nobody) {
        request = request.extension(ChangesNothing);
    }
    if message.content_type.as_deref().is_some_and(|kind| kind.starts_with("multipart/")) {
        request = request.extension(OwnConnection).header(header::CONNECTION, "close");
    }
    if let Some(content_type) = &message.content_type {
        // Proxmox refuses chunked bodies, so the length is always said; a GET or DELETE must have none.
        request = request.header(header::CONTENT_TYPE, content_type).header(header::CONTENT_LENGTH, message.body.len());
    }
    let unsendable = |error: http::Error| Cause::NotSent(TransportError::Withheld(error.into()));
    request.body(message.body.clone()).map_err(|error| Error::new(&call.action, unsendable(error)))
}
