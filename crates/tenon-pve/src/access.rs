//! What we may do: the rights Proxmox sees in our token.

use std::collections::BTreeMap;

use http::Method;
use serde_json::Value;

use crate::client::{Call, Client, Form};
use crate::error::{Error, Result};
use crate::reply::{is_true, plain};

/// Privileges by path, with whether they reach below the path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    paths: BTreeMap<String, BTreeMap<String, bool>>,
}

impl Permissions {
    /// Whether a privilege is held on a path: set on it, or on one above it and reaching down. Rights that a pool gives
    /// its VMs stand at the VMs' paths, not at the pool's.
    pub fn allow(&self, path: &str, privilege: &str) -> bool {
        let held = |at: &str| self.paths.get(at).and_then(|held| held.get(privilege)).copied();
        if held(path).is_some() {
            return true;
        }
        let above = path.match_indices('/').map(|(end, _)| if end == 0 { "/" } else { &path[..end] });
        above.filter(|at| *at != path).any(|at| held(at) == Some(true))
    }

    /// Every path with its privileges, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &BTreeMap<String, bool>)> {
        self.paths.iter().map(|(path, held)| (path.as_str(), held))
    }
}

/// A privilege on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) path: String,
    pub(crate) privilege: &'static str,
}

impl Client {
    /// A refusal that does not say what is missing, with the first of these rights that the token lacks. If it has them all,
    /// or cannot be asked, the refusal stays as it is.
    pub(crate) async fn naming_missing(&self, error: Error, needed: &[Right]) -> Error {
        let Ok(held) = self.permissions(None).await else { return error };
        match needed.iter().find(|right| !held.allow(&right.path, right.privilege)) {
            None => error,
            Some(Right { path, privilege }) => error.refused_for(path, privilege),
        }
    }

    /// Our own rights, on all paths or on one. Any token may ask this.
    pub async fn permissions(&self, path: Option<&str>) -> Result<Permissions> {
        let form = Form::default().with_some("path", path);
        let action = "read the permissions of the API token".to_owned();
        let call = Call { action, method: Method::GET, path: "/access/permissions".to_owned(), params: form.params() };
        let wire: BTreeMap<String, BTreeMap<String, Value>> = self.read(call).await?;
        let reaches = |value: &Value| is_true(&plain(value)).unwrap_or_default();
        let held = |rights: BTreeMap<String, Value>| {
            rights.into_iter().map(|(name, value)| (name, reaches(&value))).collect::<BTreeMap<_, _>>()
        };
        Ok(Permissions { paths: wire.into_iter().map(|(path, rights)| (path, held(rights))).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_reaches_down_only_if_it_says_so() {
        let right = |name: &str, reaches| BTreeMap::from([(name.to_owned(), reaches)]);
        let permissions = Permissions {
            paths: BTreeMap::from([
                ("/".to_owned(), right("Sys.Audit", true)),
                ("/vms".to_owned(), right("VM.Audit", false)),
                ("/storage/a".to_owned(), right("Datastore.Audit", true)),
            ]),
        };
        assert!(permissions.allow("/nodes/pve1", "Sys.Audit") && permissions.allow("/", "Sys.Audit"));
        assert!(permissions.allow("/vms", "VM.Audit") && !permissions.allow("/vms/100", "VM.Audit"));
        assert!(permissions.allow("/storage/a", "Datastore.Audit"));
        assert!(
            !permissions.allow("/storage/ab", "Datastore.Audit") && !permissions.allow("/storage", "Datastore.Audit")
        );
    }
}
