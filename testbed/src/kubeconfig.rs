//! Writes kubeconfig files that kubectl, the components and our clients read alike.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::Result;
use crate::pki::{Identity, write_private};

/// How a kubeconfig's bearer proves who it is.
pub(crate) enum Credential<'a> {
    /// With a client certificate.
    Certificate(&'a Identity),
    /// With a bearer token.
    #[cfg(feature = "client")]
    Token(&'a str),
}

/// Writes `<name>.kubeconfig` into `dir`, beside the authority's certificate it refers to, and returns its path.
pub(crate) fn write(dir: &Path, name: &str, server: &str, credential: &Credential<'_>) -> Result<PathBuf> {
    let user = match credential {
        Credential::Certificate(identity) => json!({
            "client-certificate": identity.certificate,
            "client-key": identity.key,
        }),
        #[cfg(feature = "client")]
        Credential::Token(token) => json!({ "token": token }),
    };
    let path = dir.join(format!("{name}.kubeconfig"));
    // JSON is YAML, and needs no writer of its own.
    let text = format!("{:#}\n", document(server, &dir.join("ca.crt"), &user));
    write_private(&path, &text)?;
    Ok(path)
}

fn document(server: &str, authority: &Path, user: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "testbed",
            "cluster": { "server": server, "certificate-authority": authority },
        }],
        "users": [{ "name": "user", "user": user }],
        "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": "user" } }],
        "current-context": "testbed",
    })
}
