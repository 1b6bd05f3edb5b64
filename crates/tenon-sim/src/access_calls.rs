//! The calls under `/access`: tickets, users, tokens, roles, lists.

use serde_json::{Map, Value, json};

use crate::access::{AclEntry, Role, Token, User};
use crate::auth;
use crate::params::Call;
use crate::rights::{forbidden, require};
use crate::schema::words;
use crate::state::State;
use crate::wire::{Answer, Refusal, Reply, Shape};

/// Paths `GET /access/permissions` always looks at.
const COMMON_PATHS: &[&str] =
    &["/", "/access", "/access/groups", "/mapping", "/nodes", "/pool", "/sdn", "/storage", "/vms"];

pub(crate) fn ticket(state: &mut State, call: &Call) -> Answer {
    let (name, password) = (call.word("username"), call.word("password"));
    let user = match call.text("realm") {
        Some(realm) if !name.contains('@') => format!("{name}@{realm}"),
        _ => name.to_string(),
    };
    let known = state.access.users.get(&user).filter(|user| user.enabled).and_then(|user| user.password.as_deref());
    // A ticket is as good as the password it came from, so that it can be renewed.
    let renewed = auth::issue(state, &user).0 == password;
    if known != Some(password) && !(renewed && known.is_some()) {
        let refusal = Refusal::new(401, "authentication failure", Shape::Json);
        return Err(refusal.after(state.config.pace.unauthorized).into());
    }
    let (ticket, csrf) = auth::issue(state, &user);
    let mut data =
        json!({ "username": user, "ticket": ticket, "CSRFPreventionToken": csrf, "cap": capabilities(state, &user) });
    if state.hosts.len() > 1 {
        data["clustername"] = state.config.cluster_name.as_str().into();
    }
    Ok(Reply::data(data))
}

/// Which privileges matter in which part of the web interface.
const AREAS: &[(&str, &str, &[&str])] = &[
    ("access", "/access", &["User.", "Group.", "Permissions.Modify"]),
    ("dc", "/", &["Sys.Audit", "Sys.Modify", "SDN."]),
    ("mapping", "/mapping", &["Mapping.", "Permissions.Modify"]),
    ("nodes", "/nodes", &["Sys.", "Permissions.Modify"]),
    ("sdn", "/sdn", &["SDN.", "Permissions.Modify"]),
    ("storage", "/storage", &["Datastore.", "Permissions.Modify"]),
    ("vms", "/vms", &["VM.", "Permissions.Modify"]),
];

/// What the web interface would show to this user.
fn capabilities(state: &State, user: &str) -> Value {
    let area = |(name, path, wanted): &(&str, &str, &[&str])| {
        let held = state.privileges(user, path).into_keys().filter(|p| wanted.iter().any(|w| p.starts_with(w)));
        (name.to_string(), held.map(|p| (p, Value::from(1))).collect::<Map<_, _>>().into())
    };
    AREAS.iter().map(area).collect::<Map<_, _>>().into()
}

pub(crate) fn permissions(state: &mut State, call: &Call) -> Answer {
    let who = call.text("userid").unwrap_or(&call.user);
    if who != call.user {
        require(state, &call.user, "/access", "Sys.Audit")?;
    }
    let paths: Vec<String> = match call.text("path") {
        Some(path) => vec![path.to_string()],
        None => {
            let listed = state.access.acl.iter().map(|entry| entry.path.clone());
            let mut paths: Vec<String> = COMMON_PATHS.iter().map(ToString::to_string).chain(listed).collect();
            paths.sort();
            paths.dedup();
            paths
        }
    };
    let mut data = Map::new();
    for path in paths {
        let held = state.privileges(who, &path);
        if !held.is_empty() || call.text("path").is_some() {
            let shown: Map<String, Value> = held.into_iter().map(|(p, below)| (p, u8::from(below).into())).collect();
            data.insert(path, shown.into());
        }
    }
    Ok(Reply::data(data.into()))
}

pub(crate) fn acl(state: &mut State, call: &Call) -> Answer {
    let everything = state.may_any(&call.user, "/access", &["Sys.Audit", "Permissions.Modify"]);
    let shown = |entry: &&AclEntry| everything || state.may(&call.user, &entry.path, "Permissions.Modify");
    let row = |entry: &AclEntry| {
        let kind = if entry.subject.contains('!') { "token" } else { "user" };
        json!({ "path": entry.path, "roleid": entry.role, "type": kind, "ugid": entry.subject, "propagate": u8::from(entry.propagates) })
    };
    let rows: Vec<Value> = state.access.acl.iter().filter(shown).map(row).collect();
    Ok(Reply::data(rows.into()))
}

pub(crate) fn update_acl(state: &mut State, call: &Call) -> Answer {
    let failed = |text: String| Refusal::failed(format!("ACL update failed: {text}"));
    let propagates = call.text("propagate") != Some("0");
    for role in words(call.word("roles")) {
        if !state.access.roles.contains_key(role) {
            return Err(failed(format!("role '{role}' does not exist")).into());
        }
        for subject in words(call.word("users")).chain(words(call.word("tokens"))) {
            let known = if subject.contains('!') {
                state.access.token(subject).is_some()
            } else {
                state.access.users.contains_key(subject)
            };
            if !known {
                let kind = if subject.contains('!') { "token" } else { "user" };
                return Err(failed(format!("no such {kind} '{subject}'")).into());
            }
            let (path, role, subject) = (call.word("path").to_string(), role.to_string(), subject.to_string());
            let entry = AclEntry { path, role, subject, propagates };
            state.access.acl.retain(|e| (&e.path, &e.role, &e.subject) != (&entry.path, &entry.role, &entry.subject));
            if !call.flag("delete") {
                state.access.acl.push(entry);
            }
        }
    }
    Ok(Reply::null())
}

pub(crate) fn roles(state: &mut State, _: &Call) -> Answer {
    let row = |(name, role): (&String, &Role)| {
        let privileges: Vec<&str> = role.privileges.iter().map(String::as_str).collect();
        json!({ "roleid": name, "special": u8::from(role.special), "privs": privileges.join(",") })
    };
    let mut rows: Vec<Value> = state.access.roles.iter().map(row).collect();
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

pub(crate) fn role(state: &mut State, call: &Call) -> Answer {
    let name = call.word("roleid");
    let role = state.access.roles.get(name).ok_or_else(|| Refusal::failed(format!("role '{name}' does not exist")))?;
    let shown: Map<String, Value> = role.privileges.iter().map(|p| (p.clone(), 1.into())).collect();
    Ok(Reply::data(shown.into()))
}

pub(crate) fn add_role(state: &mut State, call: &Call) -> Answer {
    let name = call.word("roleid");
    if state.access.roles.contains_key(name) {
        return Err(Refusal::failed(format!("create role failed: role '{name}' already exists")).into());
    }
    let privileges = words(call.word("privs")).map(str::to_owned).collect();
    state.access.roles.insert(name.into(), Role { special: false, privileges });
    Ok(Reply::null())
}

pub(crate) fn remove_role(state: &mut State, call: &Call) -> Answer {
    let name = call.word("roleid");
    match state.access.roles.get(name) {
        None => Err(Refusal::failed(format!("delete role failed: role '{name}' does not exist")).into()),
        Some(role) if role.special => {
            Err(Refusal::failed(format!("auto-generated role '{name}' cannot be deleted")).into())
        }
        Some(_) => {
            state.access.roles.remove(name);
            state.access.acl.retain(|entry| entry.role != name);
            Ok(Reply::null())
        }
    }
}

fn user_row(id: &str, user: &User) -> Value {
    let mut row = json!({ "userid": id, "enable": u8::from(user.enabled), "expire": 0 });
    if let Some(comment) = &user.comment {
        row["comment"] = comment.as_str().into();
    }
    row["realm-type"] = id.rsplit('@').next().unwrap_or("").into();
    row
}

pub(crate) fn users(state: &mut State, call: &Call) -> Answer {
    let everybody = state.may_any(&call.user, "/access/groups", &["User.Modify", "Sys.Audit"]);
    let own = call.user.split('!').next().unwrap_or("");
    let shown = state.access.users.iter().filter(|(id, _)| everybody || *id == own);
    let mut rows: Vec<Value> = shown.map(|(id, user)| user_row(id, user)).collect();
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

fn known_user<'a>(state: &'a mut State, id: &str) -> Result<&'a mut User, Refusal> {
    state.access.users.get_mut(id).ok_or_else(|| Refusal::failed(format!("no such user ('{id}')")))
}

pub(crate) fn user(state: &mut State, call: &Call) -> Answer {
    let user = known_user(state, call.word("userid"))?;
    let mut row = user_row(call.word("userid"), user);
    let tokens: Map<String, Value> = user.tokens.iter().map(|(name, token)| (name.clone(), info(token))).collect();
    row["tokens"] = tokens.into();
    row["groups"] = json!([]);
    Ok(Reply::data(row))
}

pub(crate) fn add_user(state: &mut State, call: &Call) -> Answer {
    let id = call.word("userid");
    if state.access.users.contains_key(id) {
        return Err(Refusal::failed(format!("create user failed: user '{id}' already exists")).into());
    }
    let (password, comment) = (call.text("password").map(str::to_owned), call.text("comment").map(str::to_owned));
    let user = User { password, comment, enabled: call.text("enable") != Some("0"), ..User::default() };
    state.access.users.insert(id.into(), user);
    Ok(Reply::null())
}

pub(crate) fn remove_user(state: &mut State, call: &Call) -> Answer {
    let id = call.word("userid").to_string();
    known_user(state, &id)?;
    state.access.users.remove(&id);
    state.access.acl.retain(|entry| entry.subject.split('!').next() != Some(id.as_str()));
    Ok(Reply::null())
}

fn info(token: &Token) -> Value {
    let mut info = json!({ "privsep": u8::from(token.separated), "expire": token.expires.unwrap_or(0) });
    if let Some(comment) = &token.comment {
        info["comment"] = comment.as_str().into();
    }
    info
}

pub(crate) fn tokens(state: &mut State, call: &Call) -> Answer {
    let user = known_user(state, call.word("userid"))?;
    let row = |(name, token): (&String, &Token)| {
        let mut row = info(token);
        row["tokenid"] = name.as_str().into();
        row
    };
    let rows: Vec<Value> = user.tokens.iter().map(row).collect();
    Ok(Reply::data(rows.into()))
}

pub(crate) fn token(state: &mut State, call: &Call) -> Answer {
    let (id, name) = (call.word("userid").to_string(), call.word("tokenid"));
    let user = known_user(state, &id)?;
    let token = user.tokens.get(name);
    let token = token.ok_or_else(|| Refusal::failed(format!("no such token '{name}' for user '{id}'")))?;
    Ok(Reply::data(info(token)))
}

/// The secret is told here and never again.
pub(crate) fn add_token(state: &mut State, call: &Call) -> Answer {
    let (id, name) = (call.word("userid").to_string(), call.word("tokenid").to_string());
    let secret = state.chance.uuid();
    let user = known_user(state, &id)?;
    if user.tokens.contains_key(&name) {
        return Err(Refusal::invalid_field("tokenid", "Token already exists.").into());
    }
    let comment = call.text("comment").map(str::to_owned);
    let expires = call.int("expire").and_then(|at| u64::try_from(at).ok()).filter(|at| *at != 0);
    let token = Token { secret: secret.clone(), separated: call.text("privsep") != Some("0"), expires, comment };
    // What the caller gave comes back as it was given: as text.
    let mut shown = json!({ "privsep": if token.separated { "1" } else { "0" } });
    for name in ["comment", "expire"] {
        if let Some(text) = call.text(name) {
            shown[name] = text.into();
        }
    }
    user.tokens.insert(name.clone(), token);
    Ok(Reply::data(json!({ "full-tokenid": format!("{id}!{name}"), "info": shown, "value": secret })))
}

pub(crate) fn remove_token(state: &mut State, call: &Call) -> Answer {
    let (id, name) = (call.word("userid").to_string(), call.word("tokenid"));
    if known_user(state, &id)?.tokens.remove(name).is_none() {
        return Err(forbidden(Some(&format!("no such token '{name}' for user '{id}'"))).into());
    }
    let full = format!("{id}!{name}");
    state.access.acl.retain(|entry| entry.subject != full);
    Ok(Reply::null())
}
