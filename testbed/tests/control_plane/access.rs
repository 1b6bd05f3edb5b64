//! Clients for whoever a test wants to be, and the audit log that says who asked for what.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;

use crate::support::{assert_refused, eventually, from_json, new_namespace, shared_testbed};

/// Name and groups, as the API server sees this client.
async fn who_am_i(client: &Client) -> anyhow::Result<(String, Vec<String>)> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
    Ok((user.username.unwrap_or_default(), user.groups.unwrap_or_default()))
}

#[tokio::test]
async fn a_user_has_the_name_and_group_of_its_certificate_and_no_rights_of_its_own() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let user = testbed.user("ada", Some("builders")).await?;
    let (name, groups) = who_am_i(&user).await?;
    assert_eq!(name, "ada");
    assert!(groups.contains(&"builders".to_owned()), "{groups:?}");
    assert_refused(Api::<Pod>::all(user).list(&ListParams::default()).await, 403);
    Ok(())
}

#[tokio::test]
async fn a_service_account_is_who_its_token_says() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    new_namespace(&testbed.admin().await?, "accounts").await?;
    let account = testbed.service_account("accounts", "default").await?;
    let (name, _) = who_am_i(&account).await?;
    assert_eq!(name, "system:serviceaccount:accounts:default");
    assert_refused(Api::<Pod>::all(account).list(&ListParams::default()).await, 403);
    Ok(())
}

#[tokio::test]
async fn the_audit_log_says_who_changed_what() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.user("auditor", Some("system:masters")).await?;
    new_namespace(&client, "audited").await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, "audited");
    maps.create(&PostParams::default(), &from_json(json!({ "metadata": { "name": "note" } }))?).await?;

    let mut audit = testbed.audit();
    let event = eventually("the creation is in the audit log", async || {
        Ok(audit.read()?.into_iter().find(|event| {
            let object = event.object_ref.clone().unwrap_or_default();
            event.verb == "create" && object.resource == "configmaps" && object.name == "note"
        }))
    })
    .await?;
    assert_eq!(event.user.username, "auditor");
    assert_eq!(event.object_ref.unwrap_or_default().namespace, "audited");
    assert_eq!(event.response_status.map(|status| status.code), Some(201));
    Ok(())
}
