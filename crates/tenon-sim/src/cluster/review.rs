//! May somebody do something? Access reviews, and the few roles whose bindings count here.
//!
//! What bootstrap tokens ask for certificates is always held to their bindings, as on a real server: without them no machine
//! joins. Everything else is judged by `access`.

use serde_json::{Value, json};

use super::failure::{ApiResult, Failure};
use super::identity::User;
use super::object::{self, list, text};
use super::state::State;
use super::target::Target;

/// Where a review is asked for. Nothing is stored there.
pub(crate) const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Lets its holder create and read requests for certificates.
const BOOTSTRAPPER: &str = "system:node-bootstrapper";
/// Has the first certificate of a node approved.
const NODE_CLIENT: &str = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";
/// Has later certificates of a node approved.
const SELF_NODE_CLIENT: &str = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient";

/// The bindings every cluster needs before machines can join with a token: name, group, role.
const USUAL: [(&str, &str, &str); 3] = [
    ("sim:node-bootstrapper", "system:bootstrappers", BOOTSTRAPPER),
    ("sim:node-autoapprove-bootstrap", "system:bootstrappers", NODE_CLIENT),
    ("sim:node-autoapprove-certificate-rotation", "system:nodes", SELF_NODE_CLIENT),
];

impl State {
    /// Answers a SubjectAccessReview.
    pub(crate) fn review(&self, asker: &User, asked: &Value) -> ApiResult<Value> {
        if self.config.rbac && !asker.is_in("system:masters") {
            let told = format!(
                "subjectaccessreviews.authorization.k8s.io is forbidden: User {:?} cannot create resource \
                 \"subjectaccessreviews\" in API group \"authorization.k8s.io\" at the cluster scope",
                asker.name
            );
            let details = json!({ "group": "authorization.k8s.io", "kind": "subjectaccessreviews" });
            return Err(Failure::new(403, "Forbidden", told).with(details));
        }
        let user = user(asked);
        let allowed = self.is_allowed(&user, &asked["spec"]["resourceAttributes"]);
        let mut answer = asked.clone();
        object::set(&mut answer, "apiVersion", Some("authorization.k8s.io/v1".into()));
        object::set(&mut answer, "kind", Some("SubjectAccessReview".into()));
        object::default(&mut answer, "metadata", json!({}));
        object::set(&mut answer, "status", Some(json!({ "allowed": allowed })));
        Ok(answer)
    }

    fn is_allowed(&self, user: &User, wanted: &Value) -> bool {
        let word = |key: &str| text(wanted, &format!("/{key}")).to_owned();
        let given = |key: &str| Some(word(key)).filter(|word| !word.is_empty());
        let Some(kind) = self.kinds.find(&word("group"), "v1", &word("resource")) else {
            return user.is_in("system:masters");
        };
        let target = Target { kind, namespace: word("namespace"), name: given("name"), part: given("subresource") };
        self.authorize(user, &word("verb"), &target).is_ok()
    }

    /// Whether a bootstrap token may do this, by the bindings of its groups.
    pub(crate) fn may_bootstrap(&self, user: &User, verb: &str, target: &Target) -> bool {
        if !target.kind.is_signing_request() {
            return false;
        }
        match target.part.as_deref() {
            None => matches!(verb, "create" | "get" | "list" | "watch") && self.has_role(user, BOOTSTRAPPER),
            Some("nodeclient") => verb == "create" && self.has_role(user, NODE_CLIENT),
            Some("selfnodeclient") => verb == "create" && self.has_role(user, SELF_NODE_CLIENT),
            Some(_) => false,
        }
    }

    /// Whether whoever made a request for a node's certificate gets it without anybody's approval.
    pub(crate) fn is_approved_by_itself(&self, request: &Value) -> bool {
        let groups = list(request, "/spec/groups").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let user = User { name: text(request, "/spec/username").to_owned(), groups };
        // Whoever is no bootstrapper is a node that renews, or an administrator.
        !user.is_bootstrapper() || self.has_role(&user, NODE_CLIENT)
    }

    fn has_role(&self, user: &User, role: &str) -> bool {
        let shelf = self.built_in("rbac.authorization.k8s.io", "clusterrolebindings").shelf();
        self.store.objects(&shelf).any(|(_, binding)| {
            text(binding, "/roleRef/name") == role
                && list(binding, "/subjects").iter().any(|subject| is_subject(user, subject))
        })
    }

    /// A new binding may let requests through that waited for it.
    pub(crate) fn answer_pending_requests(&mut self) {
        let shelf = self.built_in("certificates.k8s.io", "certificatesigningrequests").shelf();
        let pending: Vec<_> = self.store.objects(&shelf).map(|(_, request)| request.clone()).collect();
        pending.iter().for_each(|request| self.answer_request(request));
    }

    /// Creates the usual bindings.
    pub(crate) fn bind_bootstrappers(&mut self) {
        for (name, group, role) in USUAL {
            let kind = self.built_in("rbac.authorization.k8s.io", "clusterrolebindings");
            let target = Target { kind, namespace: String::new(), name: None, part: None };
            let api = "rbac.authorization.k8s.io";
            let binding = json!({
                "metadata": { "name": name },
                "subjects": [{ "kind": "Group", "name": group, "apiGroup": api }],
                "roleRef": { "kind": "ClusterRole", "name": role, "apiGroup": api },
            });
            // One that is there already is as good.
            let _ = self.create(&target, binding);
        }
    }
}

fn is_subject(user: &User, subject: &Value) -> bool {
    let name = text(subject, "/name");
    match text(subject, "/kind") {
        "Group" => user.is_in(name),
        "User" => user.name == name,
        _ => false,
    }
}

fn user(asked: &Value) -> User {
    let groups = list(asked, "/spec/groups").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    User { name: text(asked, "/spec/user").to_owned(), groups }
}
