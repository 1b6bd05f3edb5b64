//! How long does a request to Kubernetes wait for its reply? Never longer than it was told, and what went silent is not asked
//! again: behind one address there may be several API servers, and one of them may accept connections and answer nothing.
//!
//! A watch has to begin in that time; how long it may then say nothing is decided where it is read (`watched.rs`).

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Frame;
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tower::{BoxError, Service, ServiceExt as _};

use crate::moments::instant_after;

/// How often a request goes out that could not be sent: another connection may reach another API server.
const CONNECTS: u32 = 3;

/// A request to Kubernetes that got no reply. Whether it was carried out is not known.
#[derive(Debug, thiserror::Error)]
#[error("no reply from the Kubernetes API within {} s", within.as_secs_f64())]
pub struct NoReply {
    within: Duration,
}

/// Sends requests over connections that `make` gives. When one goes silent, all that are kept for later requests are dropped,
/// and others made: which of them lead to the same server is not known.
pub struct Patient<S, E> {
    connections: Connections<S, E>,
    within: Duration,
}

struct Connections<S, E> {
    make: Arc<dyn Fn() -> S + Send + Sync>,
    current: Arc<Mutex<(u64, S)>>,
    /// Whether an error means that nothing was sent.
    is_not_sent: fn(&E) -> bool,
}

impl<S, E> Clone for Connections<S, E> {
    fn clone(&self) -> Connections<S, E> {
        let Connections { make, current, is_not_sent } = self;
        Connections { make: make.clone(), current: current.clone(), is_not_sent: *is_not_sent }
    }
}

impl<S, E> Clone for Patient<S, E> {
    fn clone(&self) -> Patient<S, E> {
        Patient { connections: self.connections.clone(), within: self.within }
    }
}

impl<S: Clone, E> Patient<S, E> {
    /// Over connections that are kept by what `make` gives, with so much time for each request.
    pub fn new(make: impl Fn() -> S + Send + Sync + 'static, is_not_sent: fn(&E) -> bool, within: Duration) -> Self {
        let current = Arc::new(Mutex::new((0, make())));
        Patient { connections: Connections { make: Arc::new(make), current, is_not_sent }, within }
    }
}

impl<S: Clone, E> Connections<S, E> {
    fn current(&self) -> (u64, S) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes new ones, unless somebody else did since.
    fn renew(&self, of: u64) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 == of {
            *current = (of.wrapping_add(1), (self.make)());
        }
    }
}

impl<S, B, E> Service<Request<Body>> for Patient<S, E>
where
    S: Service<Request<Body>, Response = Response<B>, Error = E> + Clone + Send + 'static,
    S::Future: Send,
    E: Into<BoxError> + 'static,
    B: Send + 'static,
{
    type Response = Response<Bounded<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (connections, within) = (self.connections.clone(), self.within);
        let bound = (!is_watch(&request)).then_some(within);
        async move {
            let (generation, service) = connections.current();
            let sent = send(service, request, connections.is_not_sent);
            let give_up: GiveUp = Box::new(move || connections.renew(generation));
            match timeout_at(instant_after(Instant::now(), within), sent).await {
                Ok(reply) => Ok(reply.map_err(Into::into)?.map(|body| Bounded::new(body, bound, give_up))),
                Err(_) => {
                    give_up();
                    Err(NoReply { within }.into())
                }
            }
        }
        .boxed()
    }
}

/// Sends a request; again if it was certainly not sent.
async fn send<S, B>(service: S, request: Request<Body>, is_not_sent: fn(&S::Error) -> bool) -> Result<B, S::Error>
where
    S: Service<Request<Body>, Response = B> + Clone,
{
    let mut request = request;
    for _ in 1..CONNECTS {
        let Some(spare) = copied(&request) else { break };
        match service.clone().oneshot(request).await {
            Err(error) if is_not_sent(&error) => request = spare,
            outcome => return outcome,
        }
    }
    service.oneshot(request).await
}

fn copied(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

pub(crate) fn is_watch(request: &Request<Body>) -> bool {
    request.uri().query().unwrap_or_default().split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

type GiveUp = Box<dyn Fn() + Send>;

/// A reply whose next piece has to come in time.
pub struct Bounded<B> {
    body: B,
    /// Unset: it may take as long as it likes.
    bound: Option<(Duration, Pin<Box<Sleep>>)>,
    give_up: GiveUp,
}

impl<B> Bounded<B> {
    fn new(body: B, bound: Option<Duration>, give_up: GiveUp) -> Bounded<B> {
        let bound = bound.map(|within| (within, Box::pin(sleep_until(instant_after(Instant::now(), within)))));
        Bounded { body, bound, give_up }
    }
}

impl<B> http_body::Body for Bounded<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            if let Some((within, end)) = &mut this.bound {
                end.as_mut().reset(instant_after(Instant::now(), *within));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let Some((within, end)) = &mut this.bound else { return Poll::Pending };
        ready!(end.as_mut().poll(cx));
        (this.give_up)();
        Poll::Ready(Some(Err(NoReply { within: *within }.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
