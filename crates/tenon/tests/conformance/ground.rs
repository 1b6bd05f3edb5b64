//! Where does a behaviour happen: on which server, in whose name, in which namespace?
//!
//! Requests are JSON as it goes over the wire, so that nothing a client library tidies up is hidden from a test.

use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tenon_sim::{Actors, ApiAccess, Cluster, ClusterConfig, Connect as _, Credential};
use testbed::{Testbed, eventually, shared_testbed};

use crate::reply::Reply;
use crate::watching::Watch;

/// Where one behaviour is tried. What is expected never depends on which server it is.
pub(crate) struct Ground {
    pub(crate) client: Client,
    /// A namespace of the behaviour's own; also the name of its objects that have no namespace.
    pub(crate) name: String,
    server: Server,
}

enum Server {
    Embedded(Cluster),
    Real(&'static Testbed),
}

impl Ground {
    /// A fresh cluster in memory, which asks who may do what, as the real one does.
    pub(crate) async fn embedded(behaviour: &str) -> anyhow::Result<Ground> {
        let cluster = Cluster::new(ClusterConfig { rbac: true, ..ClusterConfig::default() })?;
        cluster.bind_bootstrappers();
        let client = cluster.client();
        Ground { client, name: unique(behaviour), server: Server::Embedded(cluster) }.prepared().await
    }

    /// The control plane all behaviours share; `None` where there are no programs for one and none are required.
    pub(crate) async fn real(behaviour: &str) -> anyhow::Result<Option<Ground>> {
        let Some(testbed) = shared_testbed()? else { return Ok(None) };
        let client = testbed.admin().await?;
        Ground { client, name: unique(behaviour), server: Server::Real(testbed) }.prepared().await.map(Some)
    }

    async fn prepared(self) -> anyhow::Result<Ground> {
        self.made("/api/v1/namespaces", json!({ "metadata": { "name": self.name } })).await?;
        Ok(self)
    }

    /// Which server it is, for messages.
    pub(crate) fn server(&self) -> &'static str {
        match self.server {
            Server::Embedded(_) => "embedded",
            Server::Real(_) => "real",
        }
    }

    /// Whoever does in memory what a scheduler and controllers do on the real server. They work until this is dropped.
    pub(crate) fn actors(&self) -> Option<Actors> {
        match self.server {
            Server::Embedded(_) => Some(Actors::start(self.client.clone(), k8s_openapi::jiff::Timestamp::now())),
            Server::Real(_) => None,
        }
    }

    /// The same ground for somebody who brings a token.
    pub(crate) async fn with_token(&self, token: &str) -> anyhow::Result<Ground> {
        let client = match &self.server {
            Server::Embedded(cluster) => cluster.connect(&access(cluster, Credential::Token(token.to_owned())))?,
            Server::Real(testbed) => testbed.token("a token", token).await?,
        };
        Ok(self.for_client(client))
    }

    /// The same ground for somebody who brings a certificate.
    pub(crate) async fn with_certificate(&self, certificate_pem: &str, key_pem: &str) -> anyhow::Result<Ground> {
        let client = match &self.server {
            Server::Embedded(cluster) => {
                let (certificate_pem, key_pem) = (certificate_pem.to_owned(), key_pem.to_owned());
                cluster.connect(&access(cluster, Credential::Certificate { certificate_pem, key_pem }))?
            }
            Server::Real(testbed) => testbed.certificate("a certificate", certificate_pem, key_pem).await?,
        };
        Ok(self.for_client(client))
    }

    fn for_client(&self, client: Client) -> Ground {
        let server = match &self.server {
            Server::Embedded(cluster) => Server::Embedded(cluster.clone()),
            Server::Real(testbed) => Server::Real(testbed),
        };
        Ground { client, name: self.name.clone(), server }
    }

    /// The path of a resource in the behaviour's namespace: `configmaps`, `apps/deployments`.
    pub(crate) fn here(&self, resource: &str) -> String {
        let (root, plural) = split(resource);
        format!("{root}/namespaces/{}/{plural}", self.name)
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Reply> {
        self.send(Method::GET, path, "", None).await
    }

    /// A GET with parameters.
    pub(crate) async fn list(&self, path: &str, query: &[(&str, &str)]) -> anyhow::Result<Reply> {
        self.get(&asked(path, query)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> anyhow::Result<Reply> {
        self.send(Method::POST, path, "application/json", Some(body)).await
    }

    /// A POST that must succeed.
    pub(crate) async fn made(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        self.post(path, body).await?.expect(201)
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> anyhow::Result<Reply> {
        self.send(Method::PUT, path, "application/json", Some(body)).await
    }

    pub(crate) async fn merge(&self, path: &str, body: Value) -> anyhow::Result<Reply> {
        self.send(Method::PATCH, path, "application/merge-patch+json", Some(body)).await
    }

    /// A JSON patch.
    pub(crate) async fn edit(&self, path: &str, body: Value) -> anyhow::Result<Reply> {
        self.send(Method::PATCH, path, "application/json-patch+json", Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str, options: Value) -> anyhow::Result<Reply> {
        let body = (!options.is_null()).then_some(options);
        self.send(Method::DELETE, path, "application/json", body).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        language: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Reply> {
        let mut request = Request::builder().method(method.clone()).uri(path);
        if !language.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, language);
        }
        let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        self.raw(request.body(Body::from(bytes))?).await.with_context(|| format!("{method} {path}"))
    }

    /// A request as it is, and the answer as it is.
    pub(crate) async fn raw(&self, request: Request<Body>) -> anyhow::Result<Reply> {
        let what = format!("{}: {} {}", self.server(), request.method(), request.uri());
        let response = self.client.send(request).await?;
        let code = response.status().as_u16();
        let text = response.into_body().collect_bytes().await?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Reply { what, code, body })
    }

    pub(crate) async fn watch(&self, path: &str, query: &[(&str, &str)]) -> anyhow::Result<Watch> {
        let query: Vec<(&str, &str)> = query.iter().copied().chain([("watch", "true")]).collect();
        Watch::open(&self.client, &asked(path, &query)).await
    }

    /// Waits until an object is gone, and says what it was at last if it stays.
    pub(crate) async fn gone(&self, path: &str) -> anyhow::Result<()> {
        let what = format!("{}: {path} goes", self.server());
        eventually(&what, async || Ok((self.get(path).await?.code == 404).then_some(()))).await
    }
}

fn access(cluster: &Cluster, credential: Credential) -> ApiAccess {
    ApiAccess { server: "https://127.0.0.1:6443".into(), ca_pem: cluster.ca_pem(), credential }
}

/// The path of a resource in all namespaces, or of one that has none: `nodes`, `karpenter.sh/nodepools`.
pub(crate) fn wide(resource: &str) -> String {
    let (root, plural) = split(resource);
    format!("{root}/{plural}")
}

fn split(resource: &str) -> (String, &str) {
    match resource.split_once('/') {
        Some((group, plural)) => (format!("/apis/{group}/v1"), plural),
        None => ("/api/v1".to_owned(), resource),
    }
}

fn asked(path: &str, query: &[(&str, &str)]) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    format!("{path}?{query}")
}

/// A name no other behaviour has, short enough for a label.
fn unique(behaviour: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let words: String = behaviour.replace('_', "-").chars().take(40).collect();
    format!("{}-{}", words.trim_end_matches('-'), COUNT.fetch_add(1, Ordering::Relaxed))
}
