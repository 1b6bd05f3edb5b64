//! Which bootstrap tokens are too old?

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};

use super::board::Board;

/// Removes tokens that have expired.
pub(crate) async fn clean(board: &Board) -> Result<(), kube::Error> {
    for token in board.tokens.iter().filter(|token| is_over(token, board.now)) {
        let api: Api<Secret> = Api::namespaced(board.client.clone(), &token.namespace().unwrap_or_default());
        match api.delete(&token.name_any(), &DeleteParams::default()).await {
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => {}
            outcome => drop(outcome?),
        }
    }
    Ok(())
}

/// Whether a token has expired.
pub(crate) fn is_over(token: &Secret, now: Timestamp) -> bool {
    let text = token.data.as_ref().and_then(|data| String::from_utf8(data.get("expiration")?.0.clone()).ok());
    text.and_then(|text| text.parse::<Timestamp>().ok()).is_some_and(|at| at <= now)
}
