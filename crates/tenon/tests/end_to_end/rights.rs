//! With which rights does the controller of a scenario run? Those of the chart's roles, and nothing more: a call that is not in the
//! table of rights is refused, and what was refused fails the scenario (`rights_audit`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tenon_controllers::kube_rights::{KUBE_RIGHTS, Needed, RightPlace};
use testbed::proof::with_programs;
use testbed::{Program, Testbed, eventually, own_testbed};

/// The namespace of the release: where the controller looks for its ConfigMaps unless it is told otherwise.
pub(crate) const RELEASE: &str = "kube-system";

/// The ServiceAccount of the chart.
pub(crate) const ACCOUNT: &str = "tenon";

/// Gives the chart's ServiceAccount the chart's rights, and returns a kubeconfig for it; `None` where Helm is not there.
pub(crate) async fn grant(testbed: &Testbed, csr_approver: &'static str) -> anyhow::Result<Option<PathBuf>> {
    let Some(roles) = roles(csr_approver)? else { return Ok(None) };
    let admin = testbed.admin().await?;
    for document in roles.split("\n---\n").filter(|document| document.contains("kind:")) {
        apply(&admin, document).await?;
    }
    for (verb, resource, namespace) in KNOWN {
        eventually("the roles are known", async || Ok(may(&admin, (verb, resource, namespace)).await?.then_some(())))
            .await?;
    }
    Ok(Some(testbed.service_account_kubeconfig(RELEASE, ACCOUNT).await?))
}

/// What the chart renders for the controller's rights. Each text is rendered once for all scenarios.
fn roles(csr_approver: &'static str) -> anyhow::Result<Option<String>> {
    static RENDERED: Mutex<BTreeMap<&str, String>> = Mutex::new(BTreeMap::new());
    let Some(found) = with_programs(&[Program::Helm])? else { return Ok(None) };
    let mut rendered = RENDERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = rendered.get(csr_approver) {
        return Ok(Some(text.clone()));
    }
    let chart = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../charts/tenon");
    let output = Command::new(&found.first().context("no program")?.path)
        .args(["template", ACCOUNT, "--namespace", RELEASE, "--set-string"])
        .arg(format!("csrApprover={csr_approver}"))
        .args(["--show-only", "templates/roles.yaml", "--show-only", "templates/serviceaccount.yaml"])
        .arg(chart)
        .output()?;
    ensure!(output.status.success(), "helm: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    rendered.insert(csr_approver, text.clone());
    Ok(Some(text))
}

/// One right of every role: once the API server knows them it knows all.
const KNOWN: [(&str, &str, &str); 4] = [
    ("watch", "pods", ""),
    ("create", "configmaps", RELEASE),
    ("list", "secrets", RELEASE),
    ("get", "configmaps", "kube-public"),
];

/// Whether the account may do this, as the API server says to somebody else: its own question would be in the audit log.
async fn may(admin: &Client, (verb, resource, namespace): (&str, &str, &str)) -> anyhow::Result<bool> {
    let name = (namespace == "kube-public").then_some("cluster-info");
    let review: SubjectAccessReview = serde_json::from_value(json!({ "metadata": {}, "spec": {
        "user": user(ACCOUNT),
        "resourceAttributes": { "verb": verb, "resource": resource, "namespace": namespace, "name": name.unwrap_or_default() },
    }}))?;
    let reviews: Api<SubjectAccessReview> = Api::all(admin.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

pub(crate) fn user(account: &str) -> String {
    format!("system:serviceaccount:{RELEASE}:{account}")
}

async fn apply(admin: &Client, document: &str) -> anyhow::Result<()> {
    let object: DynamicObject = serde_saphyr::from_str(document)?;
    let types = object.types.as_ref().context("no kind")?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(types)?);
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(admin.clone(), namespace, &resource),
        None => Api::all_with(admin.clone(), &resource),
    };
    let name = object.metadata.name.clone().context("no name")?;
    api.patch(&name, &PatchParams::apply("tests").force(), &Patch::Apply(&object)).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_roles_of_the_chart_grant_what_the_table_says_and_nothing_else() -> anyhow::Result<()> {
    let Some(testbed) = own_testbed()? else { return Ok(()) };
    if grant(&testbed, "false").await?.is_none() {
        return Ok(());
    }
    let admin = testbed.admin().await?;
    let role = Api::<ClusterRole>::all(admin).get(ACCOUNT).await?;
    let granted = role.rules.unwrap_or_default();
    let wanted = KUBE_RIGHTS.iter().filter(|row| row.place == RightPlace::Cluster && row.needed == Needed::Always);
    let wanted: Vec<_> = wanted.collect();
    ensure!(granted.len() == wanted.len(), "{} rules for {} rights", granted.len(), wanted.len());
    for (rule, row) in granted.iter().zip(wanted) {
        assert_eq!(rule.verbs, row.verbs, "{row:?}");
        assert_eq!(rule.resources.as_deref(), Some([row.resource.to_owned()].as_slice()), "{row:?}");
        assert_eq!(rule.api_groups.as_deref(), Some([row.group.to_owned()].as_slice()), "{row:?}");
    }
    let me = testbed.service_account(RELEASE, ACCOUNT).await?;
    let secrets: Api<Secret> = Api::all(me);
    let refusal = secrets.list(&ListParams::default()).await;
    ensure!(
        matches!(&refusal, Err(kube::Error::Api(status)) if status.code == 403),
        "Secrets of the cluster are listed"
    );
    Ok(())
}
