//! The objects kubeadm gives every cluster so that nodes can join: who may ask for a certificate, and who approves.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::{Result, file};
use crate::wire::{Reply, Wire};

/// RBAC's own roles appear a moment after the API server says it is ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// Name of the binding, the group it is for, the ClusterRole it gives.
const BINDINGS: [(&str, &str, &str); 3] = [
    ("testbed:node-bootstrapper", "system:bootstrappers", "system:node-bootstrapper"),
    (
        "testbed:node-autoapprove-bootstrap",
        "system:bootstrappers",
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
    ),
    (
        "testbed:node-autoapprove-certificate-rotation",
        "system:nodes",
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
    ),
];

/// What the other components ask for first: user, verb, resource.
const FIRST_QUESTIONS: [(&str, &str, &str); 2] =
    [("system:kube-controller-manager", "get", "serviceaccounts"), ("system:kube-scheduler", "list", "pods")];

/// Creates them. `log` is named in the error, because that is where the API server says more.
pub(crate) fn create(wire: &Wire, log: &Path) -> Result<()> {
    for (name, group, role) in BINDINGS {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "subjects": [{ "kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io" }],
            "roleRef": { "kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io" },
        });
        // 409: an earlier try got through and its reply was lost.
        let there = |reply: &Reply| matches!(reply.status, 201 | 409);
        post_until(wire, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding, there)
            .map_err(file("make the first objects; see", log))?;
    }
    Ok(())
}

/// Waits until the API server knows the rights of the other components: asked too early, it refuses them, and the
/// controller manager ends.
pub(crate) fn await_rights(wire: &Wire, log: &Path) -> Result<()> {
    for (user, verb, resource) in FIRST_QUESTIONS {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user,
                "resourceAttributes": { "namespace": "kube-system", "verb": verb, "resource": resource },
            },
        });
        let allowed = |reply: &Reply| {
            let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
            body.pointer("/status/allowed") == Some(&Value::Bool(true))
        };
        post_until(wire, "/apis/authorization.k8s.io/v1/subjectaccessreviews", &review, allowed)
            .map_err(file("see the rights of the components; see", log))?;
    }
    Ok(())
}

fn post_until(wire: &Wire, path: &str, body: &Value, is_enough: impl Fn(&Reply) -> bool) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let problem = match wire.post(path, &body.to_string()) {
            Ok(reply) if is_enough(&reply) => return Ok(()),
            Ok(reply) => io::Error::other(format!("{}: {}", reply.status, reply.body)),
            Err(error) => error,
        };
        if Instant::now() > deadline {
            return Err(problem);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
