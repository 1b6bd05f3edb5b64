//! How an estate or a cluster is reached over HTTPS: HTTP/1.1 behind TLS.
//!
//! With PVE's connection habits idle connections are dropped after five seconds, the hundredth answer closes its
//! connection, and a lost reply closes it without a word.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::Body;
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tower::Service;

use crate::fault::ReplyLost;
use crate::hosts::fingerprint;
use crate::http::Reused;

/// First and last year of a certificate nobody renewed.
const EXPIRED: (i32, i32) = (2019, 2020);

/// How a server treats its connections. By default it leaves them alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    /// After how long without a request a connection is dropped.
    idle: Option<Duration>,
    /// After how many answers it is closed.
    answers: Option<u32>,
}

impl Habits {
    pub(crate) const PVE: Self = Self { idle: Some(Duration::from_secs(5)), answers: Some(100) };
}

/// The certificate a client has shown and the server's verifier has accepted.
#[derive(Clone, Debug)]
pub(crate) struct PeerCertificate {
    pub(crate) fingerprint: String,
}

/// What can go wrong while a certificate is made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate could not be generated.
    #[error("cannot generate a certificate")]
    Generate(#[from] rcgen::Error),
    /// The TLS library refused the certificate.
    #[error("cannot use the generated certificate")]
    Config(#[from] rustls::Error),
}

/// A server certificate for `localhost`, 127.0.0.1 and ::1, and the authority that signed it.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    ca_pem: String,
    /// Unless it signs for itself elsewhere.
    authority: Option<Arc<Authority>>,
    fingerprint: String,
}

/// Who signs.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl Tls {
    /// A certificate of a fresh authority, as a new cluster makes it for itself.
    pub fn self_signed() -> Result<Self, TlsError> {
        Self::signed_by(Arc::new(Authority::new()?), (2020, 4000))
    }

    /// The same, but out of date for years.
    pub fn expired() -> Result<Self, TlsError> {
        Self::signed_by(Arc::new(Authority::new()?), EXPIRED)
    }

    /// What is left when nobody renews this certificate: one of the same authority, out of date for years.
    pub fn run_out(&self) -> Result<Self, TlsError> {
        let authority = match &self.authority {
            Some(authority) => authority.clone(),
            None => Arc::new(Authority::new()?),
        };
        Self::signed_by(authority, EXPIRED)
    }

    fn signed_by(authority: Arc<Authority>, (first, last): (i32, i32)) -> Result<Self, TlsError> {
        let names = ["localhost", "127.0.0.1", "::1"].map(String::from);
        let mut leaf = CertificateParams::new(names)?;
        leaf.distinguished_name.push(DnType::CommonName, "pve1");
        leaf.not_before = date_time_ymd(first, 1, 1);
        leaf.not_after = date_time_ymd(last, 1, 1);
        let key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&key, &authority.issuer)?;
        let fingerprint = fingerprint(certificate.der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )?;
        let tls = Self::new(config, authority.pem.clone(), fingerprint);
        Ok(Self { authority: Some(authority), ..tls })
    }

    /// A certificate that somebody else's authority signed.
    pub(crate) fn new(config: rustls::ServerConfig, ca_pem: String, fingerprint: String) -> Self {
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), ca_pem, authority: None, fingerprint }
    }

    /// The certificate of the authority, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// SHA-256 of the server certificate: upper-case hex with colons.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl Authority {
    fn new() -> Result<Self, TlsError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Simulated PVE Cluster CA");
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }
}

/// A running HTTPS server. Dropping it cuts every connection.
#[derive(Debug)]
pub struct Server {
    local_addr: SocketAddr,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What a server can serve.
pub(crate) trait Serves:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
{
}

impl<S> Serves for S where S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send> {}

impl Server {
    pub(crate) fn start<S>(service: S, listener: TcpListener, tls: Tls, habits: Habits) -> Self
    where
        S: Serves + Clone + Send + 'static,
    {
        // A listener that is bound has an address; the fallback is never seen.
        let local_addr = listener.local_addr().unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
        let (stop, stopped) = watch::channel(false);
        let talk = move |stream| talk(service.clone(), stream, tls.acceptor.clone(), habits);
        let accepting = tokio::spawn(accept(talk, listener, stopped));
        Self { local_addr, stop, accepting }
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Stops accepting, cuts the open connections and waits until every task of the server has ended.
    pub async fn shutdown(mut self) {
        // The accepting task may have ended by itself; then there is nobody to tell.
        let _ = self.stop.send(true);
        let _ = (&mut self.accepting).await;
    }
}

async fn accept<F>(talk: impl Fn(TcpStream) -> F, listener: TcpListener, mut stopped: watch::Receiver<bool>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(talk(stream));
                }
            }
        }
    }
    connections.shutdown().await;
}

/// One connection, from the handshake to its end. Errors end it; the client sees that it is closed.
async fn talk<S: Serves + Clone>(service: S, stream: TcpStream, acceptor: TlsAcceptor, habits: Habits) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let peer = shown.map(|shown| PeerCertificate { fingerprint: fingerprint(shown) });
    let answers = Arc::new(AtomicU32::new(0));
    let answer = service_fn(move |request: Request<Incoming>| {
        let (mut service, answers) = (service.clone(), answers.clone());
        let mut request = request.map(Body::new);
        if let Some(peer) = peer.clone() {
            request.extensions_mut().insert(peer);
        }
        if answers.load(Ordering::Relaxed) > 0 {
            request.extensions_mut().insert(Reused);
        }
        async move {
            let Ok(response) = service.call(request).await;
            let count = answers.fetch_add(1, Ordering::Relaxed) + 1;
            close_when_due(response, habits.answers.is_some_and(|most| count >= most))
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(habits.idle).max_buf_size(64 << 10);
    let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
}

fn close_when_due(mut response: Response<Body>, is_due: bool) -> Result<Response<Body>, std::io::Error> {
    if response.extensions().get::<ReplyLost>().is_some() {
        return Err(std::io::ErrorKind::ConnectionAborted.into());
    }
    if is_due {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}
