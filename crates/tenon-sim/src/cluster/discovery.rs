//! What can be asked for at all?

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::failure::{ApiResult, Failure};
use super::kinds::{Kind, Kinds};

/// In the order custom resources tell them.
const CUSTOM_VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The version this server behaves like.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "", "buildDate": "",
        "goVersion": "", "compiler": "", "platform": "linux/amd64", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
    })
}

/// Whatever is no object: groups, versions and their resources.
pub(crate) fn answer(kinds: &Kinds, path: &str) -> ApiResult<Value> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        [] => Ok(
            json!({ "paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"] }),
        ),
        ["version"] => Ok(version()),
        ["api"] => Ok(json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })),
        ["api", version] => resources(kinds, "", version),
        ["apis"] => {
            let groups: Vec<Value> = groups(kinds).iter().map(|(name, versions)| group(name, versions)).collect();
            Ok(json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
        }
        ["apis", name] => {
            let versions = groups(kinds).remove(*name).ok_or_else(Failure::page_not_found)?;
            let mut found = group(name, &versions);
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            Ok(found)
        }
        ["apis", group, version] => resources(kinds, group, version),
        ["openapi", "v3"] => Ok(json!({ "paths": documents(kinds) })),
        ["openapi", "v3", "api", version] => document(kinds, "", version),
        ["openapi", "v3", "apis", group, version] => document(kinds, group, version),
        _ => Err(Failure::page_not_found()),
    }
}

/// The groups with their versions, the best first; the group without a name is not among them.
fn groups(kinds: &Kinds) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in kinds.all().filter(|kind| !kind.group.is_empty()) {
        let versions = groups.entry(kind.group.clone()).or_default();
        if !versions.contains(&kind.version) {
            versions.push(kind.version.clone());
        }
    }
    // `v1` before `v1beta1` before `v1alpha1`: what is stable has the shortest name.
    groups
        .values_mut()
        .for_each(|versions| versions.sort_by_key(|version| (version.len(), std::cmp::Reverse(version.clone()))));
    groups
}

fn group(name: &str, versions: &[String]) -> Value {
    let spelled = |version: &String| json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    let versions: Vec<Value> = versions.iter().map(spelled).collect();
    json!({ "name": name, "versions": versions, "preferredVersion": versions.first() })
}

fn served<'a>(kinds: &'a Kinds, group: &str, version: &str) -> ApiResult<Vec<&'a Kind>> {
    let here = |kind: &&Kind| kind.group == group && kind.version == version;
    let found: Vec<&Kind> = kinds.all().map(|kind| &**kind).filter(here).collect();
    if found.is_empty() { Err(Failure::page_not_found()) } else { Ok(found) }
}

fn resources(kinds: &Kinds, group: &str, version: &str) -> ApiResult<Value> {
    let found = served(kinds, group, version)?;
    let api_version = found.first().map(|kind| kind.api_version());
    let resources: Vec<Value> = found.into_iter().flat_map(rows).collect();
    Ok(json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources }))
}

fn rows(kind: &Kind) -> Vec<Value> {
    let mut whole = json!({
        "name": kind.resource, "singularName": kind.singular, "namespaced": kind.is_namespaced, "kind": kind.kind,
        "verbs": if kind.custom.is_some() { CUSTOM_VERBS } else { VERBS },
    });
    if !kind.short_names.is_empty() {
        whole["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        whole["categories"] = json!(kind.categories);
    }
    let part = |part: &str, verbs: &[&str]| {
        json!({
            "name": format!("{}/{part}", kind.resource), "singularName": "", "namespaced": kind.is_namespaced,
            "kind": kind.kind, "verbs": verbs,
        })
    };
    let change = ["get", "patch", "update"];
    let mut rows = vec![whole];
    if kind.is_pod() {
        let binding = json!({ "kind": "Binding" });
        let eviction = json!({ "group": "policy", "version": "v1", "kind": "Eviction" });
        rows.extend([(part("binding", &["create"]), binding), (part("eviction", &["create"]), eviction)].map(merged));
    }
    if kind.is_signing_request() {
        rows.push(part("approval", &change));
    }
    if kind.has_status {
        rows.push(part("status", &change));
    }
    if kind.scale.is_some() {
        let scale = json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" });
        rows.push(merged((part("scale", &change), scale)));
    }
    rows
}

fn merged((mut row, extra): (Value, Value)) -> Value {
    json_patch::merge(&mut row, &extra);
    row
}

fn documents(kinds: &Kinds) -> BTreeMap<String, Value> {
    let place = |kind: &Kind| {
        let root = if kind.group.is_empty() { "api" } else { "apis" };
        format!("{root}/{}", kind.api_version())
    };
    let all = kinds.all().map(|kind| place(kind));
    all.map(|place| (place.clone(), json!({ "serverRelativeURL": format!("/openapi/v3/{place}") }))).collect()
}

/// Just enough for clients to learn that the server checks fields itself.
fn document(kinds: &Kinds, group: &str, version: &str) -> ApiResult<Value> {
    let mut paths = BTreeMap::new();
    for kind in served(kinds, group, version)? {
        let gvk = json!({ "group": kind.group, "version": kind.version, "kind": kind.kind });
        let parameter = json!({ "name": "fieldValidation", "in": "query", "schema": { "type": "string" } });
        let patch = json!({
            "parameters": [parameter], "responses": {}, "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": gvk,
        });
        let root = if group.is_empty() { "/api" } else { "/apis" };
        let inside = if kind.is_namespaced { "/namespaces/{namespace}" } else { "" };
        paths.insert(
            format!("{root}/{}{inside}/{}/{{name}}", kind.api_version(), kind.resource),
            json!({ "patch": patch }),
        );
    }
    let info = json!({ "title": "Kubernetes", "version": "v1.36.3" });
    Ok(json!({ "openapi": "3.0.0", "info": info, "paths": paths, "components": { "schemas": {} } }))
}
