//! What did a controller ask of the API server? Nothing that was refused, nothing outside the table of rights; and which rights it
//! used is written down for the end of a whole run, which names those that nothing used.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use tenon_controllers::kube_rights::{KUBE_RIGHTS, KubeRight, RightPlace};
use testbed::{AuditEvent, AuditObject, Testbed, coverage};

use crate::rights::{ACCOUNT, RELEASE, user};

/// What every Secret with a bootstrap token is called.
const TOKENS: &str = "bootstrap-token-";

/// Checks what the controllers of the chart's account asked.
pub(crate) fn keeps_to_the_table(testbed: &Testbed) -> anyhow::Result<()> {
    keeps_to_the_table_as(testbed, ACCOUNT)
}

/// The same for another ServiceAccount.
pub(crate) fn keeps_to_the_table_as(testbed: &Testbed, account: &str) -> anyhow::Result<()> {
    let events: Vec<AuditEvent> =
        testbed.audit().read()?.into_iter().filter(|event| event.user.username == user(account)).collect();
    let refused: BTreeSet<String> = events.iter().filter(|event| code(event) == Some(403)).map(described).collect();
    ensure!(refused.is_empty(), "the roles of the chart do not allow: {refused:#?}");
    let unlisted: BTreeSet<String> = events.iter().filter(|event| used(event).is_empty()).filter_map(outside).collect();
    ensure!(unlisted.is_empty(), "not in kube_rights.rs, and allowed: {unlisted:#?}");
    if events.is_empty() {
        // Without Helm, the controller runs as an administrator.
        return Ok(());
    }
    let used = events.iter().flat_map(used).collect();
    coverage::record(&all(), &used).context("cannot write down which rights were used")
}

/// A request about an object. What is no object, as the version, everybody may read.
fn outside(event: &AuditEvent) -> Option<String> {
    event.object_ref.as_ref().map(|_| described(event))
}

/// Every right of the table, each verb by itself.
fn all() -> BTreeSet<String> {
    KUBE_RIGHTS.iter().flat_map(|right| right.verbs.iter().map(|verb| named(right, verb))).collect()
}

/// The rights that allow a request.
fn used(event: &AuditEvent) -> BTreeSet<String> {
    let Some(object) = &event.object_ref else { return BTreeSet::new() };
    let allows = |right: &&KubeRight| right.verbs.contains(&event.verb.as_str()) && is_about(right, object);
    let mut used: BTreeSet<String> = KUBE_RIGHTS.iter().filter(allows).map(|right| named(right, &event.verb)).collect();
    // Who changes an approval is asked for this right by the API server itself, which writes no line about it.
    if object.subresource == "approval" && code(event) == Some(200) {
        let signers = KUBE_RIGHTS.iter().filter(|right| right.resource == "signers");
        used.extend(signers.map(|right| named(right, "approve")));
    }
    used
}

fn is_about(right: &KubeRight, object: &AuditObject) -> bool {
    let AuditObject { resource, subresource, name, namespace, api_group } = object;
    let resource = if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
    let place = match right.place {
        RightPlace::Cluster => None,
        RightPlace::Own | RightPlace::FirstBootSecrets => Some(RELEASE),
        RightPlace::Namespace(namespace) => Some(namespace),
    };
    // Both kinds of Secrets are in one namespace here; a list or a create names none.
    let is_kind = match right.place {
        RightPlace::FirstBootSecrets => !name.starts_with(TOKENS),
        _ if resource == "secrets" => name.is_empty() || name.starts_with(TOKENS),
        _ => true,
    };
    right.group == api_group
        && right.resource == resource
        && place.is_none_or(|place| place == namespace)
        && (right.names.is_empty() || right.names.contains(&name.as_str()))
        && is_kind
}

/// A right, with the row it is in.
fn named(right: &KubeRight, verb: &str) -> String {
    let group = if right.group.is_empty() { "core" } else { right.group };
    format!("{verb} {} of group {group} ({:?}): {}", right.resource, right.place, right.why)
}

fn code(event: &AuditEvent) -> Option<u16> {
    event.response_status.as_ref().map(|status| status.code)
}

fn described(event: &AuditEvent) -> String {
    let Some(object) = &event.object_ref else { return format!("{} {}", event.verb, event.request_uri) };
    let resource = [&object.resource, &object.subresource].map(String::as_str).join("/");
    let (resource, group) = (resource.trim_end_matches('/'), &object.api_group);
    format!("{} {resource} `{}` of group \"{group}\" in namespace \"{}\"", event.verb, object.name, object.namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event((verb, group, resource): (&str, &str, &str), (namespace, name): (&str, &str)) -> AuditEvent {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        serde_json::from_value(serde_json::json!({
            "verb": verb, "requestURI": "/", "user": { "username": "u" }, "responseStatus": { "code": 200 },
            "objectRef": {
                "resource": resource, "subresource": subresource, "apiGroup": group, "namespace": namespace, "name": name,
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_request_uses_the_right_of_its_verb_object_and_place_only() {
        let rows: &[(AuditEvent, &[&str])] = &[
            (event(("patch", "", "nodes"), ("", "a")), &["patch nodes of group core (Cluster)"]),
            (event(("update", "", "nodes"), ("", "a")), &[]),
            (event(("list", "policy", "pods"), ("", "")), &[]),
            (event(("create", "", "pods/eviction"), ("web", "p")), &["create pods/eviction of group core (Cluster)"]),
            (
                event(("get", "", "configmaps"), ("kube-public", "cluster-info")),
                &["get configmaps of group core (Namesp"],
            ),
            (event(("get", "", "configmaps"), ("kube-public", "other")), &[]),
            (event(("get", "", "configmaps"), ("web", "kube-root-ca.crt")), &[]),
            (
                event(("get", "", "secrets"), ("kube-system", "values")),
                &["get secrets of group core (FirstBootSecrets)"],
            ),
            (
                event(("get", "", "secrets"), ("kube-system", "bootstrap-token-a")),
                &["get secrets of group core (Namespace("],
            ),
        ];
        for (event, wanted) in rows {
            let used = used(event);
            assert_eq!(used.len(), wanted.len(), "{event:?}: {used:?}");
            assert!(used.iter().zip(*wanted).all(|(used, wanted)| used.starts_with(wanted)), "{used:?}");
        }
    }

    #[test]
    fn an_approval_uses_the_right_on_signers_too() {
        let approval = event(("update", "certificates.k8s.io", "certificatesigningrequests/approval"), ("", "csr-1"));
        assert!(used(&approval).iter().any(|right| right.starts_with("approve signers")), "{:?}", used(&approval));
        assert!(all().iter().filter(|right| right.starts_with("approve signers")).count() == 1);
    }
}
