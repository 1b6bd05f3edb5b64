//! Which Kubernetes cluster is meant, and clients of it. Nothing is asked of the server here.
//!
//! What kube says of a file it cannot read may quote the file, and a kubeconfig is full of secrets: its words are taken
//! without the quote.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use http::HeaderValue;
use http::header::USER_AGENT;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tenon_controllers::KubeMeter;
use tenon_controllers::election::Fence;

use super::connections::{self, KubeService};

/// The time a request has where nobody says otherwise.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// How to reach one cluster, and the flag that says so.
#[derive(Clone)]
pub(crate) struct Cluster {
    config: Config,
    flag: &'static str,
    request_timeout: Duration,
}

impl Cluster {
    /// A client that changes nothing while the fence is closed.
    pub(crate) fn fenced(&self, fence: &Fence) -> anyhow::Result<Client> {
        Ok(self.builder()?.with_layer(fence).build())
    }

    /// The same, whose requests are counted. What the fence keeps back is no request.
    pub(crate) fn metered(&self, fence: &Fence, meter: &KubeMeter) -> anyhow::Result<Client> {
        Ok(self.builder()?.with_layer(meter).with_layer(fence).build())
    }

    /// A client with connections of its own that no fence guards: the election's, which has less time.
    pub(crate) fn unfenced(&self, request_timeout: Duration) -> anyhow::Result<Client> {
        Ok(self.clone().within(request_timeout.min(self.request_timeout)).builder()?.build())
    }

    /// The same, whose requests have this much time.
    pub(crate) fn within(self, request_timeout: Duration) -> Cluster {
        Cluster { request_timeout, ..self }
    }

    fn builder(&self) -> anyhow::Result<ClientBuilder<KubeService>> {
        connections::builder(&self.config, self.request_timeout)
            .with_context(|| format!("cannot create a Kubernetes client from the kubeconfig given with {}", self.flag))
    }
}

/// The cluster that the given files name, or the one around us; `flag` is where the files were given, and `identity` is
/// how the audit log tells this process from another.
pub(crate) async fn cluster(files: Option<&OsStr>, flag: &'static str, identity: &str) -> anyhow::Result<Cluster> {
    // As with kubectl there may be several, joined by colons.
    let files = files.map(|files| env::split_paths(files).filter(|path| !path.as_os_str().is_empty()).collect());
    let files: Vec<PathBuf> = files.unwrap_or_default();
    let mut config = if files.is_empty() { around(flag).await? } else { named(&files, flag).await? };
    if config.proxy_url.is_some() {
        bail!(
            "connecting to Kubernetes through a proxy is not supported; remove proxy-url from the kubeconfig, or unset HTTPS_PROXY"
        );
    }
    let agent = format!("tenon/{} ({identity})", env!("CARGO_PKG_VERSION"));
    let agent = HeaderValue::from_str(&agent).with_context(|| format!("cannot use `{agent}` as the user agent"))?;
    config.headers.push((USER_AGENT, agent));
    // The TLS provider needs no installing: ring is the only one in the build, so rustls takes it.
    Ok(Cluster { config, flag, request_timeout: REQUEST_TIMEOUT })
}

async fn named(files: &[PathBuf], flag: &str) -> anyhow::Result<Config> {
    let fail = |path: &Path, error: &KubeconfigError| {
        anyhow!("cannot use kubeconfig {}: {}; check the path given with {flag}", path.display(), words(error))
    };
    let mut all = Kubeconfig::default();
    for path in files {
        let one = Kubeconfig::read_from(path).map_err(|error| fail(path, &error))?;
        all = all.merge(one).map_err(|error| fail(path, &error))?;
    }
    let first = files.first().map_or(Path::new(""), PathBuf::as_path);
    Config::from_custom_kubeconfig(all, &KubeConfigOptions::default()).await.map_err(|error| fail(first, &error))
}

/// The cluster this process runs in; outside of any, the one a person's kubectl would speak to.
async fn around(flag: &str) -> anyhow::Result<Config> {
    let inside = match Config::incluster() {
        Ok(config) => return Ok(config),
        Err(error) => error,
    };
    Config::from_kubeconfig(&KubeConfigOptions::default()).await.map_err(|outside| {
        let outside = match &outside {
            KubeconfigError::ReadConfig(cause, path) => format!("{}: {cause}", path.display()),
            other => words(other),
        };
        anyhow!("cannot find a Kubernetes cluster: not running in a cluster ({inside}), and no kubeconfig ({outside}); give a kubeconfig with {flag}")
    })
}

/// What kube says, on one line and without the lines of the file.
fn words(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(cause, _) => cause.to_string(),
        KubeconfigError::Parse(cause) => cause.without_snippet().to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        words(&Kubeconfig::from_yaml(text).unwrap_err())
    }

    #[test]
    fn a_kubeconfig_that_cannot_be_read_is_not_quoted() {
        for text in ["users:\n- user: {token: s3cret\n", "users:\n- user:\n    token: s3cret\n    token: [s3cret]\n"] {
            let said = fault(text);
            assert!(!said.contains("s3cret") && !said.contains('\n') && said.contains("line"), "{said}");
        }
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_is_named_with_its_flag() {
        let said = cluster(Some(OsStr::new(":/nowhere/a:")), "--home-kubeconfig", "x").await.err().unwrap().to_string();
        assert!(said.starts_with("cannot use kubeconfig /nowhere/a: No such file"), "{said}");
        assert!(said.ends_with("check the path given with --home-kubeconfig"), "{said}");
    }
}
