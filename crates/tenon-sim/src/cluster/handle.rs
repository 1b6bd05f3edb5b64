//! The handle everybody holds: one state, its clock, and the ways to reach it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::config::ClusterConfig;
use super::http::{Caller, ClusterService};
use super::identity::User;
use super::state::State;
use crate::guest::{ApiAccess, Connect, ConnectError, Credential};
use crate::hosts::fingerprint;
use crate::serve::{Habits, Server, Tls, TlsError};

/// A Kubernetes API server in memory. Cheap to clone; all clones are the same cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    start: Instant,
}

impl Cluster {
    /// Makes a cluster with its first namespaces. Inside a runtime it runs on that runtime's clock.
    pub fn new(config: ClusterConfig) -> Result<Self, TlsError> {
        let state = Mutex::new(State::new(config)?);
        Ok(Self { inner: Arc::new(Inner { state, start: Instant::now() }) })
    }

    /// A client in memory that may do everything. Needs a runtime.
    pub fn client(&self) -> kube::Client {
        self.client_of(Caller::User(User::admin()))
    }

    /// A client in memory that calls as somebody.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> kube::Client {
        self.client_of(Caller::User(User::new(user, groups)))
    }

    fn client_of(&self, caller: Caller) -> kube::Client {
        let service = ClusterService::new(self.clone(), caller);
        let service = service.map_request(|request: http::Request<kube::client::Body>| request.map(Body::new));
        kube::Client::new(service, "default")
    }

    /// The API as a service: callers are known by what their requests bring along.
    pub fn service(&self) -> ClusterService {
        ClusterService::new(self.clone(), Caller::Request)
    }

    /// A server certificate this cluster's authority vouches for, on loopback names; it asks clients for theirs.
    pub fn tls(&self) -> Result<Tls, TlsError> {
        self.with(|state| state.authority.server(&mut state.chance))
    }

    /// Serves the API over HTTPS until the server is shut down or dropped.
    pub fn serve(&self, listener: tokio::net::TcpListener, tls: Tls) -> Server {
        Server::start(self.service(), listener, tls, Habits::default())
    }

    /// The certificate of the cluster's authority, in PEM.
    pub fn ca_pem(&self) -> String {
        self.with(|state| state.authority.pem())
    }

    /// An administrator's kubeconfig for a server at this address. JSON, which is YAML as well.
    pub fn kubeconfig(&self, server_url: &str) -> String {
        use base64::Engine as _;
        let (token, authority) = self.with(|state| (state.admin_token.clone(), state.authority.pem()));
        let authority = base64::engine::general_purpose::STANDARD.encode(authority);
        let cluster = json!({ "server": server_url, "certificate-authority-data": authority });
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tenon",
            "clusters": [{ "name": "tenon", "cluster": cluster }],
            "users": [{ "name": "admin", "user": { "token": token } }],
            "contexts": [{ "name": "tenon", "context": { "cluster": "tenon", "user": "admin" } }],
        });
        format!("{config:#}\n")
    }

    /// Creates the bindings with which machines that bring a bootstrap token can join.
    pub fn bind_bootstrappers(&self) {
        self.with(State::bind_bootstrappers);
    }

    /// Time since the cluster was made.
    pub fn elapsed(&self) -> Duration {
        self.inner.start.elapsed()
    }

    /// Looks at or changes the state as it is now.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now = state.now.max(self.inner.start.elapsed());
        act(&mut state)
    }
}

/// Lets guests reach the cluster without a network, by the credentials they would show on one.
impl Connect for Cluster {
    fn connect(&self, access: &ApiAccess) -> Result<kube::Client, ConnectError> {
        let certificates = |pem: &str| {
            let all: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
            all.map_err(|error| ConnectError::Ca(error.to_string()))
        };
        let own = certificates(&self.ca_pem())?;
        if !certificates(&access.ca_pem)?.iter().any(|trusted| own.contains(trusted)) {
            return Err(ConnectError::Ca("it does not vouch for this cluster".into()));
        }
        let caller = match &access.credential {
            Credential::Token(token) => Caller::Token(token.clone()),
            Credential::Certificate { certificate_pem, .. } => {
                let shown = certificates(certificate_pem)?;
                Caller::Certificate(shown.first().map(|shown| fingerprint(shown)).unwrap_or_default())
            }
        };
        Ok(self.client_of(caller))
    }
}
