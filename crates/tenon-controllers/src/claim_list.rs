//! All NodeClaims as the API server has them now, for what must not be decided on a store that is a moment behind.
//!
//! They are read page by page, so that a look at thousands of claims never holds all that was sent at once.

use kube::Client;
use kube::api::{Api, ListParams};
use tenon_api::{ListedClaim, NodeClaim};

/// Claims that are read at once.
const PAGE: u32 = 250;

/// What `keep` makes of each claim. All pages show the same moment; where the API server has forgotten it, the look fails as
/// any other request does.
pub(crate) async fn list_claims<T>(
    workload: &Client,
    mut keep: impl FnMut(NodeClaim) -> Option<T>,
) -> Result<Vec<T>, kube::Error> {
    let api: Api<ListedClaim> = Api::all(workload.clone());
    let (mut kept, mut params) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = api.list(&params).await?;
        kept.extend(page.items.into_iter().filter_map(|claim| keep(claim.into())));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(kept),
        }
    }
}
