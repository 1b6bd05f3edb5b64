//! May whoever brings a bootstrap token ask for a certificate, and is it approved? Asked as a controller asks it.

use serde_json::{Value, json};
use testbed::eventually;

use crate::ground::Ground;
use crate::reply::text;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const RBAC: &str = "rbac.authorization.k8s.io";
const BOOTSTRAPPER: &str = "system:node-bootstrapper";
const NODE_CLIENT: &str = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";

/// May a member of the behaviour's own group create this?
fn review(ground: &Ground, subresource: &str) -> Value {
    let attributes = json!({
        "verb": "create", "group": "certificates.k8s.io", "resource": "certificatesigningrequests",
        "subresource": subresource,
    });
    let spec = json!({ "user": "system:bootstrap:review", "groups": [ground.name], "resourceAttributes": attributes });
    json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec })
}

async fn is_allowed(ground: &Ground, subresource: &str) -> anyhow::Result<bool> {
    let told = ground.post(REVIEWS, review(ground, subresource)).await?.expect(201)?;
    assert_eq!(text(&told, "/spec/user"), "system:bootstrap:review", "the question comes back: {told:#}");
    Ok(told["status"]["allowed"] == true)
}

async fn bind(ground: &Ground, role: &str) -> anyhow::Result<()> {
    let name = format!("{}-{}", ground.name, role.rsplit(':').next().unwrap_or_default());
    let binding = json!({
        "metadata": { "name": name },
        "subjects": [{ "kind": "Group", "name": ground.name, "apiGroup": RBAC }],
        "roleRef": { "kind": "ClusterRole", "name": role, "apiGroup": RBAC },
    });
    ground.made(&format!("/apis/{RBAC}/v1/clusterrolebindings"), binding).await?;
    Ok(())
}

pub(crate) async fn a_group_without_a_binding_may_not_request_certificates(ground: &Ground) -> anyhow::Result<()> {
    assert!(!is_allowed(ground, "").await? && !is_allowed(ground, "nodeclient").await?);
    Ok(())
}

pub(crate) async fn a_binding_lets_a_group_request_certificates(ground: &Ground) -> anyhow::Result<()> {
    bind(ground, BOOTSTRAPPER).await?;
    eventually("the binding counts", async || Ok(is_allowed(ground, "").await?.then_some(()))).await?;
    assert!(!is_allowed(ground, "nodeclient").await?);
    bind(ground, NODE_CLIENT).await?;
    eventually("the other binding counts", async || Ok(is_allowed(ground, "nodeclient").await?.then_some(()))).await
}

pub(crate) async fn a_binding_that_is_deleted_lets_nobody(ground: &Ground) -> anyhow::Result<()> {
    bind(ground, BOOTSTRAPPER).await?;
    eventually("the binding counts", async || Ok(is_allowed(ground, "").await?.then_some(()))).await?;
    let path = format!("/apis/{RBAC}/v1/clusterrolebindings/{}-node-bootstrapper", ground.name);
    ground.delete(&path, json!(null)).await?.expect(200)?;
    eventually("the binding is forgotten", async || Ok((!is_allowed(ground, "").await?).then_some(()))).await
}

pub(crate) async fn an_administrator_may_do_everything(ground: &Ground) -> anyhow::Result<()> {
    let mut asked = review(ground, "nodeclient");
    asked["spec"]["groups"] = json!(["system:masters"]);
    assert_eq!(ground.post(REVIEWS, asked).await?.expect(201)?["status"]["allowed"], true);
    Ok(())
}

pub(crate) async fn reviews_are_not_listed(ground: &Ground) -> anyhow::Result<()> {
    ground.get(REVIEWS).await?.refused(405, "MethodNotAllowed")?;
    Ok(())
}
