//! Bootstrap tokens over time: those that are still needed are extended, and those that nobody needs are deleted.
//!
//! Only Secrets with our label are looked at. What is deleted is judged by what the API server says now: a claim may have been
//! removed while no controller ran.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use tenon_api::{NodeClaim, condition_reasons, names};

use crate::claim::{TOKEN_NAMESPACE, TOKEN_TYPE, is_true, token_expiration, token_expires};
use crate::claim_list::list_claims;
use crate::context::Context;
use crate::kube_error;
use crate::metrics::{Loop, Removed};
use crate::moments::after;
use crate::stop::Stop;
use crate::writes;

/// How often tokens are looked through.
const EVERY: Duration = Duration::from_secs(60);

/// A token without a claim is left alone for so long after it was made.
const GRACE: SignedDuration = SignedDuration::from_mins(2);

/// Looks until stopped.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let mut reported = None;
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(EVERY) => {}
            () = stop.wait() => return,
        }
        let error = pass(&context).await.err();
        if let Some(error) = &error {
            context.metrics.errors.get_or_create(&Loop { controller: "bootstraptoken" }).inc();
            if reported.as_ref() != Some(error) {
                tracing::warn!(error, "cannot clean up bootstrap tokens; retrying");
            }
        }
        reported = error;
    }
}

/// One look at every token. What could not be done, the first of it.
async fn pass(context: &Context) -> Result<(), String> {
    let told = |what: &str, error: &kube::Error| format!("cannot {what}: {}", kube_error::message(error));
    let secrets: Api<Secret> = Api::namespaced(context.workload.clone(), TOKEN_NAMESPACE);
    let ours = ListParams::default().labels(&format!("{}=true", names::LABEL_BOOTSTRAP_TOKEN));
    let list = secrets.list(&ours).await;
    let list = list.map_err(|error| told(&format!("list Secrets in namespace {TOKEN_NAMESPACE}"), &error))?;
    let tokens: Vec<Secret> =
        list.items.into_iter().filter(|secret| secret.type_.as_deref() == Some(TOKEN_TYPE)).collect();
    if tokens.is_empty() {
        return Ok(());
    }
    // After the tokens: a claim is there before its token is.
    let claims = list_claims(&context.workload, |claim| Some((claim.uid()?, claim))).await;
    let claims: BTreeMap<String, NodeClaim> =
        claims.map_err(|error| told("list NodeClaims", &error))?.into_iter().collect();
    let (now, ttl) = (context.clock.now(), ttl(context));
    let mut failed = None;
    for secret in &tokens {
        let claim = secret.annotations().get(names::ANNOTATION_CLAIM_UID).and_then(|uid| claims.get(uid));
        let name = secret.name_any();
        let done = match fate(&Token::of(secret, claim), now, ttl) {
            Fate::Keep => continue,
            Fate::Extend => extend(&secrets, secret, &token_expiration(now, ttl)).await,
            Fate::Delete(why) => {
                let deleted = writes::delete(&secrets, secret).await;
                deleted.inspect(|()| {
                    context.metrics.orphans_removed.get_or_create(&Removed { kind: "bootstrap_token" }).inc();
                    tracing::info!(secret = name, reason = why, "deleted bootstrap token");
                })
            }
        };
        failed = failed.or(done.err().map(|error| told(&format!("update or delete Secret {name}"), &error)));
    }
    failed.map_or(Ok(()), Err)
}

fn ttl(context: &Context) -> SignedDuration {
    SignedDuration::try_from(context.settings.bootstrap_token_ttl).unwrap_or(SignedDuration::MAX)
}

/// Only if nobody wrote in between; one that is gone is as good.
async fn extend(secrets: &Api<Secret>, secret: &Secret, expiration: &str) -> Result<(), kube::Error> {
    let metadata = json!({ "uid": secret.uid(), "resourceVersion": secret.resource_version() });
    let patch = json!({ "metadata": metadata, "stringData": { "expiration": expiration } });
    match secrets.patch(&secret.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Err(error) if writes::is_outdated(&error) => Ok(()),
        done => done.map(drop),
    }
}

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    owner: Owner,
    created: Option<Timestamp>,
    expires: Option<Timestamp>,
}

/// Whose token it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Another controller's, which uses the same label.
    Other,
    /// A claim's that is not there.
    Gone,
    /// A claim's whose node may still join.
    Waiting,
    /// A claim's whose node has registered.
    Registered,
    /// A claim's that is being deleted, and its token with it.
    Deleting,
}

impl Token {
    fn of(secret: &Secret, claim: Option<&NodeClaim>) -> Token {
        let owner = match claim {
            _ if !secret.annotations().contains_key(names::ANNOTATION_CLAIM_UID) => Owner::Other,
            None => Owner::Gone,
            Some(claim) if claim.metadata.deletion_timestamp.is_some() => Owner::Deleting,
            Some(claim) if is_true(claim, &condition_reasons::REGISTERED) => Owner::Registered,
            Some(_) => Owner::Waiting,
        };
        Token { owner, created: secret.creation_timestamp().map(|time| time.0), expires: token_expires(secret) }
    }
}

/// What becomes of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Extend,
    Delete(&'static str),
}

fn fate(token: &Token, now: Timestamp, ttl: SignedDuration) -> Fate {
    let is_expired = token.expires.is_some_and(|expires| expires <= now);
    match token.owner {
        Owner::Other if is_expired => Fate::Delete("it has expired"),
        Owner::Other | Owner::Deleting => Fate::Keep,
        Owner::Gone if token.created.is_none_or(|created| after(created, GRACE) <= now) => {
            Fate::Delete("its NodeClaim no longer exists")
        }
        Owner::Gone => Fate::Keep,
        Owner::Registered => Fate::Delete("its Node has registered"),
        Owner::Waiting if token.expires.is_some_and(|expires| expires < after(now, ttl / 2)) => Fate::Extend,
        Owner::Waiting => Fate::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: SignedDuration = SignedDuration::from_hours(1);

    /// What becomes of a token of this age, in minutes, that expires so many minutes from now.
    fn fate_of(owner: Owner, age_min: i64, expires_min: i64) -> Fate {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1000);
        let at = |minutes| Some(now + SignedDuration::from_mins(minutes));
        fate(&Token { owner, created: at(-age_min), expires: at(expires_min) }, now, TTL)
    }

    #[test]
    fn a_token_that_is_still_needed_is_extended_before_and_after_it_expires() {
        assert_eq!(fate_of(Owner::Waiting, 10, 50), Fate::Keep);
        assert_eq!(fate_of(Owner::Waiting, 31, 29), Fate::Extend);
        assert_eq!(fate_of(Owner::Waiting, 90, -30), Fate::Extend);
    }

    #[test]
    fn a_token_whose_claim_is_gone_is_deleted_after_a_while() {
        assert_eq!(fate_of(Owner::Gone, 1, 59), Fate::Keep);
        assert_eq!(fate_of(Owner::Gone, 2, 58), Fate::Delete("its NodeClaim no longer exists"));
    }

    #[test]
    fn a_token_whose_node_has_registered_is_deleted_and_one_that_is_being_deleted_is_left_to_that() {
        assert_eq!(fate_of(Owner::Registered, 1, 59), Fate::Delete("its Node has registered"));
        assert_eq!(fate_of(Owner::Deleting, 90, -30), Fate::Keep);
    }

    #[test]
    fn another_controllers_token_is_deleted_only_when_it_has_expired() {
        assert_eq!(fate_of(Owner::Other, 600, 1), Fate::Keep);
        assert_eq!(fate_of(Owner::Other, 600, 0), Fate::Delete("it has expired"));
    }
}
