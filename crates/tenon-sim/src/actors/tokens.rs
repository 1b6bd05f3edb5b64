//! Which bootstrap tokens are too old?

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};

use super::board::Board;

/// Removes tokens that have expired.
pub(crate) async fn clean(board: &Board) -> Result<(), kube::Error> {
    let expires = |secret: &Secret| {
        let text = String::from_utf8(secret.data.as_ref()?.get("expiration")?.0.clone()).ok()?;
        text.parse::<Timestamp>().ok()
    };
    for token in board.tokens.iter().filter(|token| expires(token).is_some_and(|at| at <= board.now)) {
        let api: Api<Secret> = Api::namespaced(board.client.clone(), &token.namespace().unwrap_or_default());
        match api.delete(&token.name_any(), &DeleteParams::default()).await {
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => {}
            outcome => drop(outcome?),
        }
    }
    Ok(())
}
