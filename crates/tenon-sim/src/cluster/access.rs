//! Who may do what, when that is asked at all?
//!
//! Not RBAC: administrators may do everything, nodes what nodes do, bootstrappers ask for certificates if a binding lets
//! them (see `review`). Other roles are kept as objects and bind nobody.

use serde_json::{Value, json};

use super::failure::{ApiResult, Failure};
use super::identity::User;
use super::kinds::Kind;
use super::object;
use super::state::State;
use super::target::Target;

impl State {
    /// Refuses what the user may not do.
    pub(crate) fn authorize(&self, user: &User, verb: &str, target: &Target) -> ApiResult<()> {
        let is_admin = user.is_in("system:masters");
        // Without its bindings no machine joins, whatever else is allowed to everybody.
        let is_joining = user.is_bootstrapper() && target.kind.is_signing_request();
        let is_free = !self.config.rbac && !is_joining;
        if is_free || is_admin || self.may_bootstrap(user, verb, target) || self.may_node(user, verb, target) {
            return Ok(());
        }
        Err(refused(user, verb, target))
    }

    fn may_node(&self, user: &User, verb: &str, target: &Target) -> bool {
        let Some(node) = user.name.strip_prefix("system:node:").filter(|_| user.is_in("system:nodes")) else {
            return false;
        };
        let reads = matches!(verb, "get" | "list" | "watch");
        let is_own = target.name.as_deref().is_none_or(|name| name == node);
        match (target.kind.group.as_str(), target.kind.resource.as_str()) {
            ("", "nodes") => reads || (is_own && verb != "delete" && verb != "deletecollection"),
            ("", "pods") => reads || self.is_pod_of(node, target) || (verb == "create" && target.name.is_none()),
            ("coordination.k8s.io", "leases") => target.namespace == "kube-node-lease" && is_own,
            ("storage.k8s.io", "csinodes") => is_own,
            ("certificates.k8s.io", _) => reads || verb == "create",
            ("", "events") | ("events.k8s.io", "events") => matches!(verb, "create" | "patch" | "update"),
            ("", "services" | "secrets" | "configmaps" | "persistentvolumes" | "persistentvolumeclaims")
            | ("storage.k8s.io", "volumeattachments") => reads,
            _ => false,
        }
    }

    /// Refuses a node that another node wants to make: the one thing whose name stands only in the body.
    pub(crate) fn authorize_new(&self, user: &User, kind: &Kind, new: &Value) -> ApiResult<()> {
        let node = user.name.strip_prefix("system:node:").filter(|_| user.is_in("system:nodes"));
        let name = object::name(new);
        match node.filter(|_| self.config.rbac && kind.is("", "nodes")) {
            Some(node) if node != name => {
                let why = format!("node {node:?} is not allowed to modify node {name:?}");
                Err(Failure::forbidden(kind, name, &why))
            }
            _ => Ok(()),
        }
    }

    fn is_pod_of(&self, node: &str, target: &Target) -> bool {
        self.object(target).is_ok_and(|pod: std::sync::Arc<Value>| object::text(&pod, "/spec/nodeName") == node)
    }
}

fn refused(user: &User, verb: &str, target: &Target) -> Failure {
    let kind = &target.kind;
    let resource = target.part.as_ref().map_or(kind.resource.clone(), |part| format!("{}/{part}", kind.resource));
    let scope = if target.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", target.namespace)
    };
    let name = target.name.as_ref().map_or(String::new(), |name| format!(" {name:?}"));
    let told = format!(
        "{}{name} is forbidden: User {:?} cannot {verb} resource {resource:?} in API group {:?} {scope}",
        kind.qualified(),
        user.name,
        kind.group
    );
    let mut details = kind.details(target.name());
    if target.name.is_none() {
        details = json!({ "kind": details["kind"] });
        if !kind.group.is_empty() {
            details["group"] = kind.group.clone().into();
        }
    }
    Failure::new(403, "Forbidden", told).with(details)
}
