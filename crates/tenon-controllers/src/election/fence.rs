//! What keeps a process that does not lead, or does not lead any more, from changing anything outside.
//!
//! Every client of an outside system is wrapped in the same layer: reads pass, and every other request is refused before
//! it is sent unless the fence is open. It closes by itself, by the clocks alone, when the Lease was not renewed in time:
//! a process that was frozen finds it closed when it wakes, whatever it was about to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{Either, Ready, ready};
use http::{Method, Request};
use tokio::time::Instant;
use tower::{Layer, Service};

use super::decide::Moment;
use crate::clock::Clock;

/// Says until when this process may change things. Cheap to clone; clones say the same.
#[derive(Debug, Clone)]
pub struct Fence {
    shared: Arc<Shared>,
}

/// Times in milliseconds; it is open before both. A reader that sees one of the two renewed and the other not yet sees
/// the earlier one, which is the safe side.
#[derive(Debug)]
struct Shared {
    clock: Clock,
    origin: Instant,
    /// Since `origin`. The only clock that nobody can set.
    monotonic_until: AtomicU64,
    /// Since 1970. The only clock that goes on while the machine sleeps.
    wall_until: AtomicI64,
}

/// A request that was not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{method} {path} was not sent: this instance is not the leader, or did not renew its Lease in time")]
pub struct Withheld {
    method: Method,
    path: String,
}

/// A service that refuses to change anything while the fence is closed.
#[derive(Debug, Clone)]
pub struct Fenced<S> {
    inner: S,
    fence: Fence,
}

impl Fence {
    /// Closed until an election opens it.
    pub fn closed(clock: Clock) -> Fence {
        Fence::until(clock, 0, i64::MIN)
    }

    /// Always open, for a process that is alone.
    pub fn open() -> Fence {
        Fence::until(Clock::Wall, u64::MAX, i64::MAX)
    }

    fn until(clock: Clock, monotonic: u64, wall: i64) -> Fence {
        let (monotonic_until, wall_until) = (AtomicU64::new(monotonic), AtomicI64::new(wall));
        Fence { shared: Arc::new(Shared { clock, origin: Instant::now(), monotonic_until, wall_until }) }
    }

    /// Whether things may be changed now.
    pub fn is_open(&self) -> bool {
        let shared = &self.shared;
        let monotonic = u64::try_from(shared.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        monotonic < shared.monotonic_until.load(Ordering::SeqCst)
            && shared.clock.now().as_millisecond() < shared.wall_until.load(Ordering::SeqCst)
    }

    /// The clock it goes by.
    pub(crate) fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Opens it for a while, counted from a moment by both clocks.
    pub(crate) fn allow(&self, from: Moment, within: Duration) {
        let monotonic = from.monotonic.saturating_duration_since(self.shared.origin) + within;
        let millis = i64::try_from(within.as_millis()).unwrap_or(0);
        self.shared.wall_until.store(from.wall.as_millisecond().saturating_add(millis), Ordering::SeqCst);
        let monotonic = u64::try_from(monotonic.as_millis()).unwrap_or(0);
        self.shared.monotonic_until.store(monotonic, Ordering::SeqCst);
    }

    /// Closes it.
    pub(crate) fn close(&self) {
        self.shared.monotonic_until.store(0, Ordering::SeqCst);
    }
}

impl<S> Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced { inner, fence: self.clone() }
    }
}

impl<S, B> Service<Request<B>> for Fenced<S>
where
    S: Service<Request<B>>,
    S::Error: From<Withheld>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<S::Response, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // A login at Proxmox is a POST that changes nothing, and reads need it.
        let is_login = request.extensions().get::<tenon_pve::ChangesNothing>().is_some();
        let is_read = is_login || matches!(*request.method(), Method::GET | Method::HEAD);
        if is_read || self.fence.is_open() {
            return Either::Left(self.inner.call(request));
        }
        // Without the query: a parameter may be a secret.
        let withheld = Withheld { method: request.method().clone(), path: request.uri().path().to_owned() };
        Either::Right(ready(Err(withheld.into())))
    }
}

impl From<Withheld> for tenon_pve::TransportError {
    fn from(withheld: Withheld) -> tenon_pve::TransportError {
        tenon_pve::TransportError::Withheld(Box::new(withheld))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use tenon_api::kube_objects::Namespace;

    use bytes::Bytes;
    use http::Response;
    use jiff::Timestamp;
    use kube::api::{Api, DeleteParams};
    use kube::client::{Body, ClientBuilder};
    use tenon_pve::{Client, Endpoint, Token, Transport};
    use tenon_sim::{Estate, EstateConfig};
    use tower::BoxError;

    use super::*;

    fn stage() -> (Fence, Clock) {
        let clock = Clock::Runtime { epoch: Timestamp::from_second(1_800_000_000).unwrap(), origin: Instant::now() };
        (Fence::closed(clock), clock)
    }

    fn now(clock: Clock) -> Moment {
        Moment { monotonic: Instant::now(), wall: clock.now() }
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_open_for_as_long_as_it_was_allowed() {
        let (fence, clock) = stage();
        assert!(!fence.is_open() && Fence::open().is_open());
        fence.allow(now(clock), Duration::from_secs(10));
        let other = fence.clone();
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(other.is_open());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!other.is_open());
        fence.allow(now(clock), Duration::from_secs(10));
        assert!(other.is_open());
        fence.close();
        assert!(!other.is_open());
    }

    #[tokio::test(start_paused = true)]
    async fn either_clock_closes_it() {
        let (fence, clock) = stage();
        let moment = now(clock);
        let later = moment.wall + Duration::from_secs(3_600);
        fence.allow(Moment { wall: later, ..moment }, Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(!fence.is_open(), "the wall clock was set back, the other one counts");
        let moment = now(clock);
        let earlier = moment.wall - Duration::from_secs(10);
        fence.allow(Moment { wall: earlier, ..moment }, Duration::from_secs(10));
        assert!(!fence.is_open(), "the machine slept, which only the wall clock saw");
    }

    #[tokio::test]
    async fn kubernetes_sees_no_write_and_every_read() {
        let (fence, clock) = stage();
        let server = tower::service_fn(async |request: Request<Body>| {
            assert_eq!(request.method(), Method::GET, "a write came through");
            let body = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}"#;
            Ok::<_, BoxError>(Response::new(Body::from(body.as_bytes().to_vec())))
        });
        let client = ClientBuilder::new(server, "default").with_layer(&fence).build();
        let namespaces: Api<Namespace> = Api::all(client);
        namespaces.get("a").await.unwrap();
        let error = namespaces.delete("a", &DeleteParams::default()).await.unwrap_err();
        let kube::Error::Service(cause) = error else { panic!("{error:?}") };
        let words = "DELETE /api/v1/namespaces/a was not sent: this instance is not the leader";
        assert!(cause.to_string().starts_with(words), "{cause}");
        fence.allow(now(clock), Duration::from_secs(10));
        assert!(fence.is_open());
    }

    #[tokio::test]
    async fn proxmox_sees_no_write_and_the_caller_knows_that_it_was_not_sent() {
        let (fence, clock) = stage();
        let estate = Estate::new(EstateConfig::default());
        let never: fn(&Infallible) -> bool = |_| false;
        let transport = Transport::over(estate.service(), never).wrapped(&fence);
        let token = Token::new("tenon@pve!sim", "11111111-2222-3333-4444-555555555555").unwrap();
        let client = Client::new(vec![Endpoint::new("https://pve.example:8006").unwrap()], transport, token);
        client.resources().await.unwrap();
        let (host, image) = ("pve1".parse().unwrap(), Bytes::from_static(&[0; 2048]));
        let upload = async || client.upload_iso(&host, "local", "a.iso", &image).await;
        let error = upload().await.unwrap_err();
        assert!(error.is_not_sent(), "{}", error.full_message());
        assert!(
            error.full_message().contains("request not sent") && error.full_message().contains("is not the leader"),
            "{}",
            error.full_message()
        );
        assert!(estate.ledger().iter().all(|entry| entry.method == "GET"));
        fence.allow(now(clock), Duration::from_secs(10));
        upload().await.unwrap();
    }

    #[tokio::test]
    async fn a_login_at_proxmox_passes_because_reads_need_it() {
        let (fence, _) = stage();
        let server = tower::service_fn(async |request: Request<Bytes>| {
            let is_login = request.uri().path().ends_with("/access/ticket");
            assert!(is_login || request.method() == Method::GET, "a write came through");
            let body = r#"{"data":{"ticket":"t","CSRFPreventionToken":"c","version":"9.2"}}"#;
            Ok::<_, Infallible>(Response::new(Body::from(body.as_bytes().to_vec())))
        });
        let transport = Transport::over(server, |_: &Infallible| false).wrapped(&fence);
        let password = tenon_pve::Password::new("root@pam", "secret").unwrap();
        let client = Client::new(vec![Endpoint::new("https://pve.example:8006").unwrap()], transport, password);
        assert_eq!(client.version().await.unwrap(), "9.2");
        assert!(client.create_pool("p", None).await.unwrap_err().is_not_sent());
    }
}
