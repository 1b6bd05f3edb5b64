//! Kubernetes clients for whoever a test wants to be.

use std::path::PathBuf;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::cluster::{Testbed, random_name};
use crate::error::{Error, Result};
use crate::kubeconfig::{self, Credential};

/// Long enough for any test, short enough to be no secret worth keeping.
const TOKEN_SECONDS: i64 = 3_600;

impl Testbed {
    /// A client that may do everything.
    pub async fn admin(&self) -> Result<Client> {
        self.client_from("the administrator", &self.kubeconfig()).await
    }

    /// A client with a certificate for this user, in this group if one is given.
    pub async fn user(&self, user: &str, group: Option<&str>) -> Result<Client> {
        let name = new_identity();
        let identity = self.authority.client(&name, user, group)?;
        let path = kubeconfig::write(self.dir(), &name, self.server(), &Credential::Certificate(&identity))?;
        self.client_from(user, &path).await
    }

    /// A client with a fresh token of this ServiceAccount, which must exist.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<Client> {
        let path = self.service_account_kubeconfig(namespace, name).await?;
        self.client_from(&format!("{namespace}/{name}"), &path).await
    }

    /// A kubeconfig with a fresh token of this ServiceAccount, for a program.
    pub async fn service_account_kubeconfig(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let who = format!("{namespace}/{name}");
        let accounts: Api<ServiceAccount> = Api::namespaced(self.admin().await?, namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..Default::default() }),
            ..Default::default()
        };
        let reply = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .map_err(|source| Error::Client { who, source: source.into() })?;
        let token = reply.status.and_then(|status| status.token).unwrap_or_default();
        kubeconfig::write(self.dir(), &new_identity(), self.server(), &Credential::Token(&token))
    }

    /// A client with a bearer token: a bootstrap token, for one. `who` is named in errors.
    pub async fn token(&self, who: &str, token: &str) -> Result<Client> {
        let path = kubeconfig::write(self.dir(), &new_identity(), self.server(), &Credential::Token(token))?;
        self.client_from(who, &path).await
    }

    /// A client with a certificate that somebody else made, in PEM.
    pub async fn certificate(&self, who: &str, certificate: &str, key: &str) -> Result<Client> {
        let name = new_identity();
        let identity = crate::pki::Identity {
            certificate: self.dir().join(format!("{name}.crt")),
            key: self.dir().join(format!("{name}.key")),
        };
        crate::pki::write_private(&identity.certificate, certificate)?;
        crate::pki::write_private(&identity.key, key)?;
        let path = kubeconfig::write(self.dir(), &name, self.server(), &Credential::Certificate(&identity))?;
        self.client_from(who, &path).await
    }

    async fn client_from(&self, who: &str, kubeconfig: &std::path::Path) -> Result<Client> {
        let fail = |source: Box<dyn std::error::Error + Send + Sync>| Error::Client { who: who.to_owned(), source };
        // Whoever comes first installs it; that somebody else did is what we wanted.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let parsed = Kubeconfig::read_from(kubeconfig).map_err(|error| fail(error.into()))?;
        let mut config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
            .await
            .map_err(|error| fail(error.into()))?;
        // A test wants the server's answer. With its own retries the library would sit on a refused eviction (429).
        config.default_retry = false;
        // The way to loopback leads through no proxy, whatever the environment says.
        config.proxy_url = None;
        Client::try_from(config).map_err(|error| fail(error.into()))
    }
}

/// A file name for one more identity.
fn new_identity() -> String {
    random_name("user-")
}
