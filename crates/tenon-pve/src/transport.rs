//! The one seam to Proxmox: a service that takes a whole request and gives a whole reply.
//!
//! Production puts HTTPS under it, tests put the simulator under it, and everything above is the same code.

use std::error::Error as StdError;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};

use crate::address::Endpoint;
use crate::tls::{TlsError, Trust};

type BoxError = Box<dyn StdError + Send + Sync>;

/// A host on the same network answers a connection attempt at once, or it is not there.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Proxmox drops a connection that is idle for five seconds; one dropped while we write looks like a lost answer.
const IDLE_AT_MOST: Duration = Duration::from_secs(3);

/// A request that got no reply.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// No connection was made, so nothing was sent.
    #[error("cannot connect")]
    Connect(#[source] BoxError),
    /// Something of our own kept the request back, so nothing was sent.
    #[error(transparent)]
    Withheld(BoxError),
    /// The connection broke while something was under way.
    #[error("lost the connection")]
    Broken(#[source] BoxError),
    /// No reply in the time the call was given.
    #[error("no reply within {0} s")]
    TimedOut(u64),
}

/// Why an endpoint could not be reached.
#[derive(Debug, thiserror::Error)]
#[error("{endpoint}")]
struct AtEndpoint {
    endpoint: String,
    #[source]
    source: BoxError,
}

impl TransportError {
    /// The same, with the address that was tried.
    pub(crate) fn at(self, endpoint: &Endpoint) -> TransportError {
        match self {
            TransportError::Connect(source) => {
                TransportError::Connect(Box::new(AtEndpoint { endpoint: endpoint.to_string(), source }))
            }
            other => other,
        }
    }

    /// Whether nothing can have reached the other side.
    pub fn is_not_sent(&self) -> bool {
        matches!(self, TransportError::Connect(_) | TransportError::Withheld(_))
    }

    /// Replaces an underlying error that tells what it must not, at the price of its type.
    pub(crate) fn redact(&mut self, hide: &dyn Fn(&str) -> String) {
        let (TransportError::Connect(source) | TransportError::Withheld(source) | TransportError::Broken(source)) =
            self
        else {
            return;
        };
        let (mut chain, mut told) = (source.source(), format!("{source:?}: {source}"));
        let mut words = source.to_string();
        while let Some(error) = chain {
            told = format!("{told}: {error:?}: {error}");
            words = format!("{words}: {error}");
            chain = error.source();
        }
        if hide(&told) != told {
            *source = hide(&words).into();
        }
    }
}

/// Marks a request that is a POST and yet changes nothing: the one that fetches a ticket. A layer that keeps writes back
/// finds it among the request's extensions and lets it pass, or else reads would be kept back as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangesNothing;

/// Marks a request that goes on a connection of its own. Proxmox answers a refused upload without reading it, and takes what
/// is left of it for the next request of that connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnConnection;

/// What carries a request, as a layer sees it.
pub type TransportService = BoxCloneSyncService<Request<Bytes>, Response<Bytes>, TransportError>;

/// Carries requests to Proxmox. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Transport {
    service: TransportService,
}

type HttpsClient = hyper_util::client::legacy::Client<hyper_rustls::HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client that keeps so many idle connections to a host at the most.
fn pooled(trust: &Trust, idle: usize) -> Result<HttpsClient, TlsError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_connect_timeout(Some(CONNECT_WITHIN));
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(trust.client_config()?)
        .https_only()
        .enable_http1()
        .wrap_connector(http);
    Ok(hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE_AT_MOST)
        .pool_max_idle_per_host(idle)
        .pool_timer(hyper_util::rt::TokioTimer::new())
        // A request on a connection that was closed meanwhile may have been read: only the caller knows if it may go again.
        .retry_canceled_requests(false)
        .build(connector))
}

impl Transport {
    /// HTTPS, trusting what `trust` says.
    pub fn https(trust: &Trust) -> Result<Transport, TlsError> {
        let (kept, once) = (pooled(trust, usize::MAX)?, pooled(trust, 0)?);
        let client = tower::service_fn(move |request: Request<Full<Bytes>>| {
            let is_once = request.extensions().get::<OwnConnection>().is_some();
            if is_once { once.request(request) } else { kept.request(request) }
        });
        Ok(Transport::over::<_, Full<Bytes>, _, _>(client, hyper_util::client::legacy::Error::is_connect))
    }

    /// Any HTTP service, such as a simulator in memory. `is_connect` tells errors before anything was sent.
    pub fn over<S, Sent, Received, E>(service: S, is_connect: fn(&E) -> bool) -> Transport
    where
        S: Service<Request<Sent>, Response = Response<Received>, Error = E> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        Sent: From<Bytes> + Send + 'static,
        Received: http_body::Body<Data = Bytes> + Send + 'static,
        Received::Error: Into<BoxError>,
        E: Into<BoxError> + 'static,
    {
        let exchange = tower::service_fn(move |request: Request<Bytes>| {
            let service = service.clone();
            async move {
                let request = request.map(Sent::from);
                let failed = |error: E| {
                    let is_connect = is_connect(&error);
                    let source = error.into();
                    if is_connect { TransportError::Connect(source) } else { TransportError::Broken(source) }
                };
                let (head, body) = service.oneshot(request).await.map_err(failed)?.into_parts();
                let body = body.collect().await.map_err(|error| TransportError::Broken(error.into()))?;
                Ok(Response::from_parts(head, body.to_bytes()))
            }
        });
        Transport { service: BoxCloneSyncService::new(exchange) }
    }

    /// The same with a layer around it. A layer that keeps a request back says so with [`TransportError::Withheld`].
    pub fn wrapped<L>(self, layer: &L) -> Transport
    where
        L: Layer<TransportService>,
        L::Service: Service<Request<Bytes>, Response = Response<Bytes>, Error = TransportError>,
        L::Service: Clone + Send + Sync + 'static,
        <L::Service as Service<Request<Bytes>>>::Future: Send + 'static,
    {
        Transport { service: BoxCloneSyncService::new(layer.layer(self.service)) }
    }

    /// Sends one request and waits for its whole reply, `within` at the most.
    pub(crate) async fn send(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<Response<Bytes>, TransportError> {
        match tokio::time::timeout(within, self.service.clone().oneshot(request)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(TransportError::TimedOut(within.as_secs())),
        }
    }
}
