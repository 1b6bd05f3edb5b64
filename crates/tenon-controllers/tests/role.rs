//! A token with few privileges, and what it did to an estate, against the table of privileges.

#![expect(clippy::unwrap_used, reason = "an order of the administrator that does not work is a failed test")]

use std::collections::BTreeSet;

use tenon_pve::pve_rights::{AclPlace, Flow, PVE_CALLS, Privileges, Without, unlisted};
use tenon_sim::{Estate, LedgerEntry};
use tower::ServiceExt as _;

/// The token that may do everything.
pub(crate) const ADMIN: (&str, &str) = ("tenon@pve!sim", "11111111-2222-3333-4444-555555555555");

/// The token that has what a role gives it, and nothing else.
pub(crate) const FEW: &str = "few@pve!k8s";

/// A privilege at its place.
pub(crate) type Missing = (AclPlace, &'static str);

/// A call with somebody's token, which must succeed.
pub(crate) async fn call_as(
    estate: &Estate,
    token: (&str, &str),
    (method, path): (&str, &str),
    params: &[(&str, &str)],
) -> serde_json::Value {
    let body = params.iter().map(|(name, value)| format!("{name}={}", value.replace('/', "%2F").replace('=', "%3D")));
    let request = http::Request::builder()
        .method(method)
        .uri(format!("https://pve.example/api2/json{path}"))
        .header("authorization", format!("PVEAPIToken={}={}", token.0, token.1))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(axum::body::Body::from(body.collect::<Vec<_>>().join("&")))
        .unwrap();
    let reply = estate.service().oneshot(request).await.unwrap();
    let status = reply.status();
    let bytes = axum::body::to_bytes(reply.into_body(), usize::MAX).await.unwrap();
    assert!(status.is_success(), "{method} {path}: {status} {}", String::from_utf8_lossy(&bytes));
    serde_json::from_slice(&bytes).unwrap()
}

/// Creates the token with the privileges of a role, each at the path of its place, and returns its secret.
pub(crate) async fn grant(estate: &Estate, role: &Privileges, path: impl Fn(AclPlace) -> String) -> String {
    let admin = async |method, path, params: &[(&str, &str)]| call_as(estate, ADMIN, (method, path), params).await;
    admin("POST", "/access/users", &[("userid", "few@pve")]).await;
    for (number, (place, privileges)) in role.iter().enumerate() {
        let (role, all) = (format!("Role{number}"), Vec::from_iter(privileges.iter().copied()).join(","));
        admin("POST", "/access/roles", &[("roleid", &role), ("privs", &all)]).await;
        admin("PUT", "/access/acl", &[("path", &path(*place)), ("roles", &role), ("users", "few@pve")]).await;
    }
    let made = admin("POST", "/access/users/few@pve/token/k8s", &[("privsep", "0")]).await;
    made["data"]["value"].as_str().unwrap().to_owned()
}

fn requests(estate: &Estate) -> impl Iterator<Item = LedgerEntry> {
    estate.ledger().into_iter().filter(|entry| entry.user == FEW)
}

/// Every request is in the table, for one of these flows, and so is every key of a configuration that was written.
pub(crate) fn follows_the_table(estate: &Estate, flows: &[Flow]) {
    let mut unknown = BTreeSet::new();
    for LedgerEntry { method, path, params, status, reason, .. } in requests(estate) {
        // Who has rights on a pool may not even ask for a VM that is not in it yet, or no more.
        let is_absent = method == "GET" && path.ends_with("/config");
        assert!(status != 403 || is_absent, "{method} {path}: {reason}");
        unknown.extend(unlisted(flows, (&method, &path), params.keys().map(String::as_str)));
    }
    assert!(unknown.is_empty(), "not in pve_rights/table.rs: {unknown:#?}");
}

/// The role without each of these privileges in turn.
pub(crate) fn without_each(role: &Privileges, each: &Privileges) -> Vec<(Privileges, Missing)> {
    let all = each.iter().flat_map(|(place, held)| held.iter().map(|privilege| (*place, *privilege)));
    let fewer = all.map(|(place, privilege)| {
        let mut fewer = role.clone();
        fewer.entry(place).or_default().remove(privilege);
        (fewer, (place, privilege))
    });
    fewer.collect()
}

/// Whether Proxmox leaves something out without it, so that it is never asked about.
pub(crate) fn is_hidden(missing: Missing) -> bool {
    PVE_CALLS.iter().any(|call| call.without == Without::Hidden && call.needs.contains(&missing))
}

/// The request that was refused, if a row of the table names it together with the privilege that is missing.
pub(crate) fn refusal_of(estate: &Estate, missing: Missing) -> Option<String> {
    let denied = requests(estate).filter(|entry| entry.status == 403);
    let mut denied = denied.map(|LedgerEntry { method, path, .. }| (method, path));
    let named = denied
        .find(|(method, path)| PVE_CALLS.iter().any(|call| call.is(method, path) && call.needs.contains(&missing)));
    named.map(|(method, path)| format!("{method} {path}"))
}
