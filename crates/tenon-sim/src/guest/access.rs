//! How does a guest reach an API server, and as whom?
//!
//! What it needs comes from a kubeconfig on its disk. Making a client of it is a seam: [`TlsConnect`] makes a real one,
//! a simulation may put an API server in memory in its place.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;

/// A server that does not even accept a connection in this time is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where, by whose word, and as whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiAccess {
    /// `https://host:port`.
    pub server: String,
    /// The only authorities that may vouch for the server, in PEM.
    pub ca_pem: String,
    /// As whom.
    pub credential: Credential,
}

/// How a guest proves who it is. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A bearer token.
    Token(String),
    /// A client certificate and its key, in PEM.
    Certificate {
        /// The certificate.
        certificate_pem: String,
        /// Its key.
        key_pem: String,
    },
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token(<redacted>)",
            Self::Certificate { .. } => "Certificate(<redacted>)",
        })
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is no URL.
    #[error("the address of the server is not a URL")]
    Server(#[source] http::uri::InvalidUri),
    /// The authorities are no certificates.
    #[error("cannot read the cluster CA: {0}")]
    Ca(String),
    /// The library refused it.
    #[error("cannot set up the client")]
    Client(#[source] Box<kube::Error>),
    /// Anything else a replacement may run into.
    #[error("{0}")]
    Other(String),
}

/// Makes a client; the seam for an API server that is not reached over TLS.
pub trait Connect: fmt::Debug + Send + Sync {
    /// A client for this access. Nothing is asked of the server yet.
    fn connect(&self, access: &ApiAccess) -> Result<kube::Client, ConnectError>;
}

/// Real TLS, the given CA and nothing else, no proxy, no retries of the library's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsConnect;

impl Connect for TlsConnect {
    fn connect(&self, access: &ApiAccess) -> Result<kube::Client, ConnectError> {
        // Whoever comes first installs it; that somebody else did is what we wanted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = kube::Config::new(access.server.parse().map_err(ConnectError::Server)?);
        config.root_cert = Some(authorities(&access.ca_pem)?);
        config.auth_info = identity(&access.credential)?;
        config.proxy_url = None;
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        kube::Client::try_from(config).map_err(|error| ConnectError::Client(Box::new(error)))
    }
}

fn authorities(pem: &str) -> Result<Vec<Vec<u8>>, ConnectError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let all = all.map_err(|error| ConnectError::Ca(error.to_string()))?;
    if all.is_empty() {
        return Err(ConnectError::Ca("it holds no certificate".into()));
    }
    Ok(all.iter().map(|certificate| certificate.to_vec()).collect())
}

fn identity(credential: &Credential) -> Result<kube::config::AuthInfo, ConnectError> {
    let user = match credential {
        Credential::Token(token) => json!({ "token": token }),
        Credential::Certificate { certificate_pem, key_pem } => json!({
            "client-certificate-data": STANDARD.encode(certificate_pem),
            "client-key-data": STANDARD.encode(key_pem),
        }),
    };
    serde_json::from_value(user).map_err(|error| ConnectError::Other(error.to_string()))
}
