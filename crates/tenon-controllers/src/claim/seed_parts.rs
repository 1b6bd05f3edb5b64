//! What the first-boot data of a claim's VM is rendered from, gathered when the VM is there.

use std::sync::Arc;

use tenon_api::condition_reasons::{ConditionReason, JOIN_DATA_MISSING, METADATA_OPTIONS_NOT_FOUND};
use tenon_api::{NodeClaim, ProxmoxNodeClass};
use tenon_cloudinit::{Bootstrap, SeedFileName};
use tenon_model::Place;
use tenon_pve::{Client, Interface};

use super::bootstrap::NoBootstrap;
use super::outcome::Outcome;
use super::{ClaimError, bootstrap, token};
use crate::context::Context;
use crate::first_boot::Sources;

/// What a seed is rendered from, beside claim, class and size.
pub(crate) struct SeedParts {
    pub(crate) bootstrap: Bootstrap,
    pub(crate) kubernetes_version: String,
    pub(crate) sources: Sources,
    pub(crate) bridges: Arc<Vec<Interface>>,
}

/// Why it cannot be gathered.
pub(crate) enum NoSeedParts {
    /// Something is missing: the reason of the condition, and what it is with the next step.
    Missing(&'static ConditionReason, String),
    /// The claim's token is not there any more.
    NoToken,
    /// The claim was changed since it was read.
    Outdated,
}

/// The host that a VM is on.
pub(crate) struct Site<'a> {
    pub(crate) pve: &'a Client,
    pub(crate) place: &'a Place,
}

/// Gathers.
pub(crate) async fn gather(
    context: &Context,
    claim: &NodeClaim,
    class: &ProxmoxNodeClass,
    site: Site<'_>,
) -> Result<Result<SeedParts, NoSeedParts>, ClaimError> {
    let sources = context.secrets.sources(&class.spec.metadata_options).await;
    let sources =
        match sources.map_err(|source| ClaimError::kube("read the Secrets of the ProxmoxNodeClass", source))? {
            Ok(sources) => sources,
            Err(missing) => return Ok(Err(NoSeedParts::Missing(&METADATA_OPTIONS_NOT_FOUND, missing.0))),
        };
    let bootstrap = match bootstrap::gather(context, claim).await? {
        Ok(bootstrap) => bootstrap,
        Err(NoBootstrap::Outdated) => return Ok(Err(NoSeedParts::Outdated)),
        Err(NoBootstrap::NoToken) => return Ok(Err(NoSeedParts::NoToken)),
        Err(NoBootstrap::Missing(why)) => return Ok(Err(cannot_join(&why))),
    };
    // It was there before the clone. A template of the user's own may know the address itself.
    if bootstrap.api_server.is_empty() && sources.templates.get(SeedFileName::UserData).is_none() {
        return Ok(Err(cannot_join("the address of the API server is not known any more; set --cluster-endpoint")));
    }
    let version = context.workload.apiserver_version().await;
    let version = version.map_err(|source| ClaimError::kube("read the version of the API server", source))?;
    let bridges = context.regions.reads.bridges(site.pve, site.place).await?;
    Ok(Ok(SeedParts { bootstrap, kubernetes_version: version.git_version, sources, bridges }))
}

/// Makes the token of a claim, or says why no node could join: without the right to make one no VM is of use.
pub(crate) async fn make_token(
    context: &Context,
    claim: &NodeClaim,
) -> Result<Result<Outcome, NoSeedParts>, ClaimError> {
    match token::make(context, claim).await {
        Err(error) if error.is_forbidden() => Ok(Err(cannot_join(&format!(
            "{}; grant the controller get, create and delete on Secrets in namespace {}",
            error.full_message(),
            token::NAMESPACE
        )))),
        made => made.map(Ok),
    }
}

fn cannot_join(why: &str) -> NoSeedParts {
    NoSeedParts::Missing(&JOIN_DATA_MISSING, format!("Nodes cannot join: {why}"))
}
