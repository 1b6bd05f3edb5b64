//! Bootstrap tokens that somebody broke, or that may not be made.

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Api, ListParams};
use serde_json::json;
use tenon_api::condition_reasons::JOIN_DATA_MISSING;

use super::seed_parts::{NoSeedParts, make_token};
use super::test_stage::ClaimStage;
use super::token;

async fn stage() -> ClaimStage {
    let stage = ClaimStage::new().await;
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    if namespaces.get_opt(token::NAMESPACE).await.unwrap().is_none() {
        stage.create(namespaces, json!({ "metadata": { "name": token::NAMESPACE } })).await;
    }
    stage.add_claim("n", json!({})).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn a_token_that_somebody_broke_before_a_vm_saw_it_is_made_again() {
    let stage = stage().await;
    assert!(token::make(&stage.context, &stage.claim("n").await).await.is_ok());
    let secrets: Api<Secret> = Api::namespaced(stage.client.clone(), token::NAMESPACE);
    let name = token::secret_name(token::recorded(&stage.claim("n").await).unwrap());
    stage.patch(secrets.clone(), &name, json!({ "stringData": { "token-secret": "short" } })).await;
    assert!(token::read(&stage.client, &stage.claim("n").await).await.unwrap().is_none());
    for _ in 0..2 {
        assert!(token::make(&stage.context, &stage.claim("n").await).await.is_ok());
    }
    assert!(token::read(&stage.client, &stage.claim("n").await).await.unwrap().is_some());
    assert_eq!(secrets.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_make_tokens_a_launch_says_which_right_is_missing() {
    let mut stage = stage().await;
    stage.forbid(|method, path| method == "POST" && path.ends_with("/secrets"));
    let made = make_token(&stage.context, &stage.claim("n").await).await.unwrap();
    let Err(NoSeedParts::Missing(reason, why)) = made else { panic!("it was made") };
    assert!(std::ptr::eq(reason, &JOIN_DATA_MISSING));
    assert!(why.starts_with("Nodes cannot join: cannot create a bootstrap token: forbidden"), "{why}");
    assert!(why.ends_with("grant the controller get, create and delete on Secrets in namespace kube-system"), "{why}");
}
