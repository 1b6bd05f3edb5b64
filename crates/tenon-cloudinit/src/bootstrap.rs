//! With what does a kubelet introduce itself to its cluster for the first time?

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::Error;
use crate::yaml::to_yaml;

/// What a kubelet needs to ask for its own certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bootstrap {
    /// Where the guest reaches the API server, starting with `https://`.
    pub api_server: String,
    /// The cluster's root certificates, as PEM.
    pub ca_pem: String,
    /// What the first request is signed in with.
    pub token: BootstrapToken,
}

/// A bootstrap token, `id.secret`. `Debug` shows the id only; whoever needs the secret says so with `expose`.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken(String);

impl BootstrapToken {
    /// The whole token, secret included.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The public half, which also names the Secret in the cluster.
    pub fn id(&self) -> &str {
        self.0.split('.').next().unwrap_or_default()
    }
}

impl FromStr for BootstrapToken {
    type Err = Error;

    fn from_str(text: &str) -> Result<BootstrapToken, Error> {
        let fits = |part: &str, length| {
            part.len() == length && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        match text.split_once('.') {
            Some((id, secret)) if fits(id, 6) && fits(secret, 16) => Ok(BootstrapToken(text.to_owned())),
            _ => Err(Error::Token),
        }
    }
}

impl fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.<redacted>", self.id())
    }
}

impl Bootstrap {
    /// Refuses what no kubelet could join with.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let host = self.api_server.strip_prefix("https://").unwrap_or_default();
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(Error::ApiServer { url: self.api_server.clone() });
        }
        let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
        let body = self.ca_pem.split_once(begin).map(|(_, rest)| rest);
        if body.is_some_and(|rest| rest.contains(end)) { Ok(()) } else { Err(Error::ClusterCa) }
    }

    /// The kubeconfig for the first request. The certificate lies inside, so that the file stands alone; the kubelet
    /// carries it over into the kubeconfig that it writes once it has its own certificate.
    pub(crate) fn kubeconfig(&self) -> Result<String, Error> {
        let cluster =
            Cluster { server: &self.api_server, certificate_authority_data: STANDARD.encode(self.ca_pem.as_bytes()) };
        let context = Context { cluster: CLUSTER, user: USER };
        let config = KubeConfig {
            api_version: "v1",
            kind: "Config",
            clusters: [NamedCluster { name: CLUSTER, cluster }],
            users: [NamedUser { name: USER, user: User { token: self.token.expose() } }],
            contexts: [NamedContext { name: CONTEXT, context }],
            current_context: CONTEXT,
        };
        to_yaml("the bootstrap kubeconfig", &config)
    }
}

/// Names inside the file only; nothing outside refers to them.
const CLUSTER: &str = "cluster";
const USER: &str = "kubelet-bootstrap";
const CONTEXT: &str = "kubelet-bootstrap@cluster";

#[derive(Serialize)]
struct KubeConfig<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'a str,
    kind: &'a str,
    clusters: [NamedCluster<'a>; 1],
    users: [NamedUser<'a>; 1],
    contexts: [NamedContext<'a>; 1],
    #[serde(rename = "current-context")]
    current_context: &'a str,
}

#[derive(Serialize)]
struct NamedCluster<'a> {
    name: &'a str,
    cluster: Cluster<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster<'a> {
    server: &'a str,
    certificate_authority_data: String,
}

#[derive(Serialize)]
struct NamedUser<'a> {
    name: &'a str,
    user: User<'a>,
}

#[derive(Serialize)]
struct User<'a> {
    token: &'a str,
}

#[derive(Serialize)]
struct NamedContext<'a> {
    name: &'a str,
    context: Context<'a>,
}

#[derive(Serialize)]
struct Context<'a> {
    cluster: &'a str,
    user: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_six_a_dot_and_sixteen() {
        let token: BootstrapToken = "abc123.0123456789abcdef".parse().unwrap();
        assert_eq!(token.id(), "abc123");
        for wrong in ["", "abc123", "abc123.", "ABC123.0123456789abcdef", "abc123.0123456789abcde\n"] {
            assert!(matches!(wrong.parse::<BootstrapToken>(), Err(Error::Token)), "{wrong:?}");
        }
    }

    #[test]
    fn debug_output_holds_no_secret() {
        let token: BootstrapToken = "abc123.0123456789abcdef".parse().unwrap();
        assert_eq!(format!("{token:?}"), "abc123.<redacted>");
    }
}
