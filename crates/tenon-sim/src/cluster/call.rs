//! Which verb is meant, and may it be done?

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::delete::DeleteOptions;
use super::failure::{ApiResult, Failure};
use super::handle::Cluster;
use super::http::read_object;
use super::identity::{User, stamp_requestor};
use super::list::{self, List, view};
use super::patch::Patch;
use super::query::Query;
use super::review::REVIEWS;
use super::state::State;
use super::target::Target;
use super::{discovery, table, watch};

/// A request whose body has arrived.
#[derive(Debug)]
pub(crate) struct ApiCall {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) content_type: String,
    pub(crate) as_table: bool,
    pub(crate) bytes: Bytes,
}

/// What goes back.
pub(crate) enum Answer {
    Json(u16, Value),
    Bytes(Vec<u8>),
    Stream(Body),
    Text(&'static str),
}

/// Parts of objects that a real server has and this one has not.
const ABSENT: [&str; 10] = [
    "attach",
    "binding",
    "ephemeralcontainers",
    "eviction",
    "exec",
    "finalize",
    "log",
    "portforward",
    "proxy",
    "token",
];

pub(crate) fn answer(cluster: &Cluster, user: &User, asked: &ApiCall) -> ApiResult<Answer> {
    if asked.path == REVIEWS {
        if asked.method != Method::POST {
            return Err(Failure::method());
        }
        let review = read_object("SubjectAccessReview", asked)?;
        return Ok(Answer::Json(201, cluster.with(|state| state.review(user, &review))?));
    }
    let Some(target) = cluster.with(|state| Target::find(&state.kinds, &asked.path))? else {
        if asked.method != Method::GET {
            return Err(Failure::page_not_found());
        }
        return cluster.with(|state| Ok(Answer::Json(200, discovery::answer(&state.kinds, &asked.path)?)));
    };
    let verb = verb(asked, &target)?;
    cluster.with(|state| state.authorize(user, verb, &target))?;
    if !asked.query.text("dryRun").is_empty() {
        return Err(Failure::not_implemented(verb, &format!("{} as a dry run", target.spelled())));
    }
    if verb == "watch" {
        return Ok(Answer::Stream(watch::body(cluster, &target, &asked.query, asked.as_table)?));
    }
    cluster.with(|state| match target.part.as_deref() {
        None if verb == "create" => create(state, user, &target, asked),
        None => whole(state, verb, &target, asked),
        Some("scale") if target.kind.scale.is_some() => scale(state, verb, &target, asked),
        Some("status") if target.kind.has_status => part(state, verb, &target, asked),
        Some("approval") if target.kind.is_signing_request() => part(state, verb, &target, asked),
        Some("binding") if target.kind.is_pod() && verb == "create" => {
            Ok(Answer::Json(201, state.bind(&target, &read_object("Binding", asked)?)?))
        }
        Some("eviction") if target.kind.is_pod() && verb == "create" => {
            Ok(Answer::Json(201, state.evict(&target, &read_object("Eviction", asked)?)?))
        }
        Some(part) if target.kind.custom.is_none() && ABSENT.contains(&part) => {
            Err(Failure::not_implemented(verb, &target.spelled()))
        }
        Some(_) if target.kind.custom.is_some() => Err(Failure::not_found(&target.kind, target.name())),
        Some(_) => Err(Failure::no_resource()),
    })
}

fn verb(asked: &ApiCall, target: &Target) -> ApiResult<&'static str> {
    let has_name = target.name.is_some();
    Ok(match asked.method.as_str() {
        "GET" if has_name => "get",
        "GET" if asked.query.is_on("watch") => "watch",
        "GET" => "list",
        "POST" if !has_name || target.part.is_some() => "create",
        "PUT" if has_name => "update",
        "PATCH" if has_name => "patch",
        "DELETE" if has_name && target.part.is_none() => "delete",
        "DELETE" if !has_name => "deletecollection",
        _ => return Err(Failure::method()),
    })
}

fn create(state: &mut State, user: &User, target: &Target, asked: &ApiCall) -> ApiResult<Answer> {
    let kind = &target.kind;
    let mut new = read_object(&kind.kind, asked)?;
    if kind.is_namespaced && target.namespace.is_empty() {
        return Err(Failure::method());
    }
    state.authorize_new(user, kind, &new)?;
    if kind.is_signing_request() {
        stamp_requestor(&mut new, user);
    }
    let made = state.create(target, new)?;
    Ok(Answer::Json(201, (*view(kind, &made)).clone()))
}

/// What is done with whole objects that are there.
fn whole(state: &mut State, verb: &str, target: &Target, asked: &ApiCall) -> ApiResult<Answer> {
    let kind = &target.kind;
    match verb {
        "get" => {
            let found = state.object(target)?;
            Ok(shown(state, target, asked, &found))
        }
        "list" => {
            let list = state.list(target, &asked.query)?;
            Ok(listed(state, target, asked, &list))
        }
        "update" | "patch" => part(state, verb, target, asked),
        "delete" => {
            let options = delete_options(asked)?;
            Ok(Answer::Json(200, state.delete(target, &options)?))
        }
        _ if kind.is_namespaced && target.namespace.is_empty() => Err(Failure::method()),
        _ => {
            let (selector, options) = (asked.query.selector(kind)?, delete_options(asked)?);
            let items = state.delete_all(target, &selector, &options);
            let mut metadata = serde_json::json!({ "resourceVersion": state.store.version().to_string() });
            if kind.custom.is_some() {
                metadata["continue"] = "".into();
            }
            Ok(Answer::Bytes(list::render(kind, &List { metadata, items })))
        }
    }
}

/// Changes of a whole object, or of the part the target names.
fn part(state: &mut State, verb: &str, target: &Target, asked: &ApiCall) -> ApiResult<Answer> {
    let changed = match verb {
        "get" => state.object(target)?,
        "update" => state.put(target, read_object(&target.kind.kind, asked)?)?,
        "patch" => state.patch(target, &read_patch(asked)?)?,
        _ => return Err(Failure::method()),
    };
    Ok(shown(state, target, asked, &changed))
}

fn scale(state: &mut State, verb: &str, target: &Target, asked: &ApiCall) -> ApiResult<Answer> {
    let scale = match verb {
        "get" => state.scale(target)?,
        "update" => state.put_scale(target, &read_object("Scale", asked)?)?,
        "patch" => state.patch_scale(target, &read_patch(asked)?)?,
        _ => return Err(Failure::method()),
    };
    Ok(Answer::Json(200, scale))
}

fn shown(state: &State, target: &Target, asked: &ApiCall, found: &Arc<Value>) -> Answer {
    let found = view(&target.kind, found);
    if asked.as_table {
        return Answer::Json(200, table::render(&target.kind, &[found], state.time()));
    }
    Answer::Json(200, (*found).clone())
}

fn listed(state: &State, target: &Target, asked: &ApiCall, list: &List) -> Answer {
    if asked.as_table {
        let mut rows = table::render(&target.kind, &list.items, state.time());
        rows["metadata"] = list.metadata.clone();
        return Answer::Json(200, rows);
    }
    Answer::Bytes(list::render(&target.kind, list))
}

fn read_patch(asked: &ApiCall) -> ApiResult<Patch> {
    // Whether the language is known comes before whether the words are.
    let is_json = asked.content_type.ends_with("+json");
    let body = if is_json { serde_json::from_slice(&asked.bytes) } else { Ok(Value::Null) };
    let body = body.map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
    Ok(Patch { language: asked.content_type.clone(), body })
}

fn delete_options(asked: &ApiCall) -> ApiResult<DeleteOptions> {
    let body = if asked.bytes.is_empty() { None } else { Some(read_object("DeleteOptions", asked)?) };
    Ok(DeleteOptions::read(body.as_ref(), |key| asked.query.given(key)))
}
