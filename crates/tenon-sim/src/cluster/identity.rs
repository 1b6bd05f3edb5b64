//! Who calls?
//!
//! In memory a client brings its user along. Over the network it is known by a bearer token or by a certificate this
//! cluster has issued. Nobody else is let in: there is no anonymous user here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};
use serde_json::Value;

use super::failure::{ApiResult, Failure};
use super::object;
use super::state::State;
use crate::serve::PeerCertificate;

/// A user and the groups it is in.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct User {
    /// As in `system:node:worker-1`.
    pub name: String,
    /// As in `system:nodes`.
    pub groups: Vec<String>,
}

impl User {
    /// Whoever may do everything.
    pub fn admin() -> Self {
        Self { name: "kubernetes-admin".into(), groups: vec!["system:masters".into(), AUTHENTICATED.into()] }
    }

    /// A user by name and groups; everybody known is authenticated besides.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned());
        Self { name: name.into(), groups: groups.chain([AUTHENTICATED.into()]).collect() }
    }

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether it came with a bootstrap token.
    pub(crate) fn is_bootstrapper(&self) -> bool {
        self.is_in("system:bootstrappers") && !self.is_in("system:masters")
    }
}

const AUTHENTICATED: &str = "system:authenticated";

impl State {
    /// Who brings these credentials.
    pub(crate) fn authenticate(&self, headers: &HeaderMap, peer: Option<&PeerCertificate>) -> ApiResult<User> {
        if let Some(user) = peer.and_then(|peer| self.issued.get(&peer.fingerprint)) {
            return Ok(user.clone());
        }
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = bearer.and_then(|value| value.strip_prefix("Bearer "));
        token.and_then(|token| self.user_of_token(token)).ok_or_else(Failure::unauthorized)
    }

    fn user_of_token(&self, token: &str) -> Option<User> {
        if token == self.admin_token {
            return Some(User::admin());
        }
        let (id, secret) = token.split_once('.')?;
        let target = self.target("", "secrets", ("kube-system", &format!("bootstrap-token-{id}")));
        let found = self.object(&target).ok()?;
        let data = |key: &str| {
            let bytes = STANDARD.decode(object::text(&found, &format!("/data/{key}"))).ok()?;
            String::from_utf8(bytes).ok()
        };
        let is_expired = data("expiration").is_some_and(|at| !self.is_ahead(&at));
        let is_meant = object::text(&found, "/type") == "bootstrap.kubernetes.io/token"
            && data("token-id").as_deref() == Some(id)
            && data("usage-bootstrap-authentication").as_deref() == Some("true");
        if !is_meant || is_expired || data("token-secret").as_deref() != Some(secret) || object::is_deleting(&found) {
            return None;
        }
        let extra = data("auth-extra-groups").unwrap_or_default();
        let extra = extra.split(',').map(str::trim).filter(|group| !group.is_empty());
        let groups: Vec<&str> = ["system:bootstrappers"].into_iter().chain(extra).collect();
        Some(User::new(&format!("system:bootstrap:{id}"), &groups))
    }

    /// Whether a time of day is still to come. One that cannot be read is not.
    fn is_ahead(&self, time: &str) -> bool {
        time.parse::<jiff::Timestamp>().is_ok_and(|time| time > self.time())
    }
}

/// Who a certificate's subject is.
pub(crate) fn user_of_subject(common_name: &str, organizations: &[String]) -> User {
    let groups: Vec<&str> = organizations.iter().map(String::as_str).collect();
    User::new(common_name, &groups)
}

/// What a signing request says of who asks.
pub(crate) fn stamp_requestor(request: &mut Value, user: &User) {
    object::with_part(request, "spec", |spec| {
        object::set(spec, "username", Some(user.name.clone().into()));
        object::set(spec, "groups", Some(user.groups.clone().into()));
    });
}
