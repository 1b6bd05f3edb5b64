//! How connections to a Kubernetes API are made and kept: with a bound on every wait, so that a server that accepts a
//! connection and says nothing costs seconds.

use std::time::Duration;

use http::Uri;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client as HttpClient, Error as HttpError};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::Config;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use tenon_controllers::Patient;
use tokio::net::TcpStream;
use tower::util::{BoxCloneSyncService, BoxService};
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

/// An API server answers a connection attempt and shows its certificate within this time, or another is tried.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A request is not given up before it tried another server.
const CONNECT_SHARE: u32 = 3;

/// A connection that nothing was sent over for this long is closed: load balancers forget such connections silently.
const IDLE_AT_MOST: Duration = Duration::from_secs(30);

/// A quiet connection, such as a watch, is probed after this long, and then this often …
const PROBED_AFTER: Duration = Duration::from_secs(15);
const PROBED_EVERY: Duration = Duration::from_secs(5);

/// … and is dead after this many probes without an answer.
const PROBES: u32 = 3;

/// What is written and not acknowledged for so long will not be.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(30);

type Connector = BoxCloneSyncService<Uri, MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;
type Reply = http::Response<tenon_controllers::Bounded<hyper::body::Incoming>>;

/// What carries requests to a cluster.
pub(super) type KubeService = BoxService<http::Request<Body>, Reply, BoxError>;

/// A builder of clients of a cluster whose requests get a reply within this time, or fail.
pub(super) fn builder(config: &Config, within: Duration) -> Result<ClientBuilder<KubeService>, kube::Error> {
    let connector = connector(config, CONNECT_WITHIN.min(within / CONNECT_SHARE))?;
    let make = move || {
        HttpClient::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_AT_MOST)
            .pool_timer(TokioTimer::new())
            .build::<_, Body>(connector.clone())
    };
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(Patient::new(make, HttpError::is_connect, within));
    Ok(ClientBuilder::new(service.boxed(), config.default_namespace.clone()))
}

fn connector(config: &Config, within: Duration) -> Result<Connector, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(PROBED_AFTER));
    tcp.set_keepalive_interval(Some(PROBED_EVERY));
    tcp.set_keepalive_retries(Some(PROBES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(ACKNOWLEDGED_WITHIN));
    let tls = config.rustls_https_connector_with_connector(tcp)?;
    // Around both: a server that is frozen accepts, and never shows its certificate.
    let bounded = tower::service_fn(move |uri: Uri| {
        let tls = tls.clone();
        async move {
            let connected = tokio::time::timeout(within, tls.oneshot(uri)).await;
            connected.map_err(|_| BoxError::from(format!("no connection within {} s", within.as_secs_f64())))?
        }
    });
    Ok(BoxCloneSyncService::new(bounded))
}
