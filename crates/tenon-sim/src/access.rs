//! Who is known here and what each may do: users, tokens, roles, access control lists.
//!
//! The calls under `/access` are in `access_calls`; which right a call needs is in `rights`.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::{EstateConfig, TokenSpec};
use crate::roles::{all_privileges, special_roles};
use crate::state::State;

/// Privileges on a path; the value says whether they hold below it, too.
pub(crate) type Privileges = BTreeMap<String, bool>;

#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) password: Option<String>,
    pub(crate) comment: Option<String>,
    pub(crate) enabled: bool,
    pub(crate) tokens: BTreeMap<String, Token>,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) secret: String,
    /// A separated token has only what both it and its user have.
    pub(crate) separated: bool,
    pub(crate) expires: Option<u64>,
    pub(crate) comment: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AclEntry {
    pub(crate) path: String,
    pub(crate) role: String,
    /// A user or a token.
    pub(crate) subject: String,
    pub(crate) propagates: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Role {
    pub(crate) special: bool,
    pub(crate) privileges: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Access {
    pub(crate) users: BTreeMap<String, User>,
    pub(crate) roles: BTreeMap<String, Role>,
    pub(crate) acl: Vec<AclEntry>,
}

impl Access {
    pub(crate) fn new(config: &EstateConfig) -> Self {
        let EstateConfig { users, tokens, version, .. } = config;
        let role = |(name, privileges): (&str, Vec<&str>)| {
            let privileges = privileges.into_iter().map(str::to_owned).collect();
            (name.to_string(), Role { special: true, privileges })
        };
        let roles = special_roles(*version).into_iter().map(role).collect();
        let mut access = Self { users: BTreeMap::new(), roles, acl: Vec::new() };
        access.users.insert("root@pam".into(), User { enabled: true, ..User::default() });
        for user in users {
            access.user(&user.id).password = Some(user.password.clone());
        }
        for token in tokens {
            access.add_token(token.clone());
        }
        access
    }

    fn user(&mut self, id: &str) -> &mut User {
        self.users.entry(id.into()).or_insert_with(|| User { enabled: true, ..User::default() })
    }

    /// A token of a user who may do everything.
    pub(crate) fn add_token(&mut self, spec: TokenSpec) {
        let (user, name) = spec.id.split_once('!').unwrap_or((&spec.id, ""));
        let token = Token { secret: spec.secret, separated: false, expires: spec.expires, comment: None };
        self.user(user).tokens.insert(name.into(), token);
        if user != "root@pam" {
            let (path, role, subject) = ("/".into(), "Administrator".into(), user.to_string());
            let entry = AclEntry { path, role, subject, propagates: true };
            if !self.acl.contains(&entry) {
                self.acl.push(entry);
            }
        }
    }

    pub(crate) fn remove_token(&mut self, id: &str) {
        if let Some((user, name)) = id.split_once('!') {
            self.user(user).tokens.remove(name);
        }
    }

    pub(crate) fn token(&self, id: &str) -> Option<&Token> {
        let (user, name) = id.split_once('!')?;
        self.users.get(user).filter(|user| user.enabled)?.tokens.get(name)
    }

    /// The roles a subject has on a path: the deepest level that says something counts.
    fn roles_on(&self, subject: &str, path: &str) -> BTreeMap<&str, bool> {
        let mut roles = BTreeMap::new();
        for level in levels(path) {
            let here = self.acl.iter().filter(|e| e.subject == subject && e.path == level);
            let here: BTreeMap<&str, bool> =
                here.filter(|e| e.propagates || level == path).map(|e| (e.role.as_str(), e.propagates)).collect();
            if !here.is_empty() {
                roles = here;
            }
        }
        roles
    }

    fn granted(&self, subject: &str, path: &str) -> Privileges {
        let mut granted = Privileges::new();
        for (role, propagates) in self.roles_on(subject, path) {
            for privilege in self.roles.get(role).iter().flat_map(|role| &role.privileges) {
                let held = granted.entry(privilege.clone()).or_insert(propagates);
                *held = *held || propagates;
            }
        }
        granted
    }

    fn is_denied(&self, subject: &str, path: &str) -> bool {
        self.roles_on(subject, path).contains_key("NoAccess")
    }
}

/// `/`, `/vms`, `/vms/100` of `/vms/100`.
fn levels(path: &str) -> Vec<String> {
    let mut levels = vec!["/".to_string()];
    let mut at = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        at = format!("{at}/{part}");
        levels.push(at.clone());
    }
    levels
}

impl State {
    /// What a user or token may do on a path. Guests and storages take the rights of their pool as well.
    pub(crate) fn privileges(&self, who: &str, path: &str) -> Privileges {
        if who == "root@pam" {
            return all_privileges(self.config.version).map(|privilege| (privilege.to_string(), true)).collect();
        }
        let Some((user, _)) = who.split_once('!') else { return self.with_pool(who, path) };
        let of_user = self.privileges(user, path);
        if self.access.token(who).is_none_or(|token| !token.separated) {
            return of_user;
        }
        let own = self.with_pool(who, path);
        let both = own.into_iter().filter_map(|(name, own)| Some((of_user.get(&name)?, name, own)));
        both.map(|(user, name, own)| (name, own && *user)).collect()
    }

    fn with_pool(&self, who: &str, path: &str) -> Privileges {
        let mut granted = self.access.granted(who, path);
        let pool = match path.strip_prefix("/vms/").and_then(|id| id.parse().ok()) {
            Some(vmid) => self.pool_of(vmid),
            None => path.strip_prefix("/storage/").and_then(|id| self.pool_of_storage(id)),
        };
        if let Some(pool) = pool.filter(|_| !self.access.is_denied(who, path)) {
            for (name, propagates) in self.access.granted(who, &format!("/pool/{pool}")) {
                granted.entry(name).or_insert(propagates);
            }
        }
        granted
    }

    pub(crate) fn may(&self, who: &str, path: &str, privilege: &str) -> bool {
        who == "root@pam" || self.privileges(who, path).contains_key(privilege)
    }

    pub(crate) fn may_any(&self, who: &str, path: &str, privileges: &[&str]) -> bool {
        let held = self.privileges(who, path);
        privileges.iter().any(|privilege| held.contains_key(*privilege))
    }
}
