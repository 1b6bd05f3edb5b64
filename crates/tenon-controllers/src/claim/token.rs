//! The bootstrap token a VM joins with: created for one claim, found again after a crash, deleted when it is not needed.
//!
//! Its id follows from the claim's uid, so it is known before it is made; its secret stands only in its Secret. It is made
//! before the VM is, and deleted when the node has registered or the claim ends. A launch that is begun again under another VM
//! id keeps it: no VM has seen it by then. `token_sweep` extends those that are still needed and deletes what is left over.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use sha2::{Digest, Sha256};
use tenon_api::{NodeClaim, names};
use tenon_cloudinit::BootstrapToken;

use super::ClaimError;
use super::outcome::Outcome;
use crate::context::Context;
use crate::moments::after;
use crate::writes::{self, Written};

/// Where Kubernetes looks for bootstrap tokens.
pub(crate) const NAMESPACE: &str = "kube-system";

/// What Kubernetes knows a token by.
pub(crate) const TYPE: &str = "bootstrap.kubernetes.io/token";

/// Letters of a token.
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Two claims may come to the same id; then the next is tried. Four in a row do not happen.
const IDS: u8 = 4;

/// The id written into the claim.
pub(crate) fn recorded(claim: &NodeClaim) -> Option<&str> {
    claim.annotations().get(names::ANNOTATION_BOOTSTRAP_TOKEN).map(String::as_str)
}

/// Makes the claim's token, or finds the one an earlier pass made, and writes its id into the claim.
pub(crate) async fn make(context: &Context, claim: &NodeClaim) -> Result<Outcome, ClaimError> {
    let told = |source| ClaimError::kube("create a bootstrap token", source);
    let secrets: Api<Secret> = Api::namespaced(context.workload.clone(), NAMESPACE);
    for id in ids(claim) {
        match secrets.get_opt(&secret_name(&id)).await.map_err(told)? {
            Some(secret) if is_of(&secret, claim) && parsed(&secret).is_some() => {
                return record(context, claim, &id).await;
            }
            // Somebody broke it, and no VM has seen it: it is made again.
            Some(secret) if is_of(&secret, claim) => {
                writes::delete(&secrets, &secret).await.map_err(told)?;
                return Ok(Outcome::again());
            }
            Some(_) => {}
            None => {
                match secrets.create(&PostParams::default(), &secret(context, claim, &id)?).await {
                    Ok(_) => return record(context, claim, &id).await,
                    // Somebody was faster: whose it is, the next pass sees.
                    Err(error) if writes::is_outdated(&error) => return Ok(Outcome::again()),
                    Err(error) => return Err(told(error)),
                }
            }
        }
    }
    Err(told(kube::Error::Service("every token id is in use".into())))
}

/// The token of a claim; `None` if it is gone.
pub async fn read(client: &Client, claim: &NodeClaim) -> Result<Option<BootstrapToken>, ClaimError> {
    Ok(secret_of(client, claim).await?.as_ref().and_then(parsed))
}

/// A claim's token as it is found.
pub(super) struct FoundToken {
    /// The name of its Secret.
    pub(super) secret: String,
    /// The token; nothing if it is gone.
    pub(super) token: Option<BootstrapToken>,
    pub(super) expires: Option<Timestamp>,
}

/// Looks at the token of a claim.
pub(super) async fn find(context: &Context, claim: &NodeClaim) -> Result<FoundToken, ClaimError> {
    let secret = secret_of(&context.workload, claim).await?;
    Ok(FoundToken {
        secret: secret_name(recorded(claim).unwrap_or_default()),
        token: secret.as_ref().and_then(parsed),
        expires: secret.as_ref().and_then(expires),
    })
}

async fn secret_of(client: &Client, claim: &NodeClaim) -> Result<Option<Secret>, ClaimError> {
    let Some(id) = recorded(claim) else { return Ok(None) };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let secret = secrets.get_opt(&secret_name(id)).await;
    let secret = secret.map_err(|source| ClaimError::kube("read the bootstrap token", source))?;
    Ok(secret.filter(|secret| is_of(secret, claim)))
}

fn text<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    std::str::from_utf8(&secret.data.as_ref()?.get(key)?.0).ok()
}

fn parsed(secret: &Secret) -> Option<BootstrapToken> {
    format!("{}.{}", text(secret, "token-id")?, text(secret, "token-secret")?).parse().ok()
}

/// When the token in a Secret expires, if that can be read.
pub(crate) fn expires(secret: &Secret) -> Option<Timestamp> {
    text(secret, "expiration")?.parse().ok()
}

/// Deletes the claim's token, if there is one.
pub(crate) async fn delete(context: &Context, claim: &NodeClaim) -> Result<(), ClaimError> {
    let told = |source| ClaimError::kube("delete the bootstrap token", source);
    let secrets: Api<Secret> = Api::namespaced(context.workload.clone(), NAMESPACE);
    // Without a recorded id a token may still have been made by a pass that died before it wrote that down.
    let candidates = recorded(claim).map_or_else(|| ids(claim).collect(), |id| vec![id.to_owned()]);
    for id in candidates {
        let secret = secrets.get_opt(&secret_name(&id)).await.map_err(told)?;
        if let Some(secret) = secret.filter(|secret| is_of(secret, claim)) {
            writes::delete(&secrets, &secret).await.map_err(told)?;
        }
    }
    Ok(())
}

async fn record(context: &Context, claim: &NodeClaim, id: &str) -> Result<Outcome, ClaimError> {
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_BOOTSTRAP_TOKEN: id } } });
    let written = writes::merge(&context.workload, claim, patch).await;
    Ok(match written.map_err(|source| ClaimError::kube("annotate the NodeClaim with its token id", source))? {
        Written::Done(claim) => Outcome { claim: Some(claim), ..Outcome::again() },
        Written::Outdated => Outcome::outdated(),
    })
}

fn ids(claim: &NodeClaim) -> impl Iterator<Item = String> {
    let uid = claim.uid().unwrap_or_default();
    (0..IDS).map(move |number| letters(Sha256::digest(format!("{uid}/{number}")).iter().take(6)))
}

fn letters<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    bytes.filter_map(|byte| LETTERS.get(usize::from(*byte) % LETTERS.len())).map(|letter| char::from(*letter)).collect()
}

/// The name of a token's Secret.
pub(crate) fn secret_name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

/// Ours name the claim. Those of the Go provider do not, so there the id that it wrote into the claim decides.
fn is_of(secret: &Secret, claim: &NodeClaim) -> bool {
    let owner = secret.annotations().get(names::ANNOTATION_CLAIM_UID);
    let is_recorded = || recorded(claim).is_some_and(|id| secret.name_any() == secret_name(id));
    let is_labelled = secret.labels().contains_key(names::LABEL_BOOTSTRAP_TOKEN);
    match owner {
        Some(uid) => claim.uid().as_ref() == Some(uid),
        None => is_labelled && is_recorded(),
    }
}

/// When a token that is given so long expires, as Kubernetes reads it.
pub(crate) fn expiration(now: Timestamp, ttl: SignedDuration) -> String {
    after(now, ttl).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn secret(context: &Context, claim: &NodeClaim, id: &str) -> Result<Secret, ClaimError> {
    let mut random = [0_u8; 64];
    let unlucky = |error: getrandom::Error| {
        ClaimError::kube("generate a token secret", kube::Error::Service(error.to_string().into()))
    };
    getrandom::fill(&mut random).map_err(unlucky)?;
    // Bytes that would make the first letters likelier than the last are thrown away.
    let even: Vec<u8> = random.into_iter().filter(|byte| *byte < 252).take(16).collect();
    let ttl = SignedDuration::try_from(context.settings.bootstrap_token_ttl).unwrap_or(SignedDuration::MAX);
    let secret = json!({
        "metadata": {
            "name": secret_name(id),
            "labels": { names::LABEL_BOOTSTRAP_TOKEN: "true" },
            "annotations": { names::ANNOTATION_CLAIM_UID: claim.uid() },
        },
        "type": TYPE,
        "stringData": {
            "token-id": id,
            "token-secret": letters(even.iter()),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": names::BOOTSTRAP_GROUP,
            "description": "Karpenter Proxmox Bootstrap Token",
            "expiration": expiration(context.clock.now(), ttl),
        },
    });
    serde_json::from_value(secret)
        .map_err(|error| ClaimError::kube("build the token Secret", kube::Error::SerdeError(error)))
}
