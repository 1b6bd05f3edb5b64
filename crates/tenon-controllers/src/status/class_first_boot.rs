//! Whether a ProxmoxNodeClass can give its VMs first-boot data, and since when it cannot.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use tenon_api::condition_reasons::{
    BOOTSTRAP_BINDINGS_MISSING, ConditionReason, JOIN_DATA_MISSING, METADATA_OPTIONS_INVALID,
    METADATA_OPTIONS_NOT_FOUND,
};
use tenon_api::{Condition, ProxmoxNodeClass, event_reasons};

use super::class::{METADATA_READY, ObservedTemplate};
use super::pass::{StatusContext, StatusError};
use crate::events::Event;
use crate::first_boot::{self, Inspection, NoFirstBoot};
use crate::join::{JoinLook, JoinUse};

/// For this long after a class became unready its Secrets are looked at more often.
const MENDING_S: i64 = 15 * 60;

/// That something cannot be checked is repeated only after this long.
const SAID_AGAIN: SignedDuration = SignedDuration::from_hours(24);

/// The verdict on the first-boot data of a class, and on whether nodes could join with it. What could not be looked at stays
/// as it was.
pub(super) fn judged(
    class: &ProxmoxNodeClass,
    inspected: Option<Inspection>,
    join: Option<&JoinLook>,
) -> Result<(), NoFirstBoot> {
    match (inspected, join) {
        (Some(Inspection::Faulty(why)), _) => Err(why),
        (Some(Inspection::Fine(used)), Some(join)) => join.judge(used),
        (Some(Inspection::Fine(JoinUse::NONE)), None) => Ok(()),
        (Some(Inspection::Fine(_)), None) => previous(class, &[&JOIN_DATA_MISSING, &BOOTSTRAP_BINDINGS_MISSING]),
        // The Secrets are there and their text is right; only a trial could tell more.
        (Some(Inspection::Unknown), _) => {
            previous(class, &[&METADATA_OPTIONS_INVALID, &JOIN_DATA_MISSING, &BOOTSTRAP_BINDINGS_MISSING])
        }
        (None, _) => previous(class, PREVIOUS),
    }
}

/// Every reason that stays while nothing can be looked at.
const PREVIOUS: &[&ConditionReason] =
    &[&METADATA_OPTIONS_NOT_FOUND, &METADATA_OPTIONS_INVALID, &JOIN_DATA_MISSING, &BOOTSTRAP_BINDINGS_MISSING];

/// What is said once about a class whose nodes join with a token, where it cannot be asked what a token may do.
pub(super) fn unasked(class: &ProxmoxNodeClass, why: &str) -> Event {
    let note = format!(
        "Cannot check whether nodes of ProxmoxNodeClass {} may join: {why}; grant the controller create on \
         subjectaccessreviews of authorization.k8s.io",
        class.name_any()
    );
    Event::new(&event_reasons::ACCESS_REVIEW_FAILED, note).repeat_after(SAID_AGAIN)
}

/// What a class said of its first-boot data before, if it was for one of these reasons.
fn previous(class: &ProxmoxNodeClass, known: &[&'static ConditionReason]) -> Result<(), NoFirstBoot> {
    let said = metadata_condition(class);
    let reason = said.and_then(|said| known.iter().copied().find(|reason| reason.name() == said.reason));
    match said.zip(reason) {
        Some((said, reason)) => Err(NoFirstBoot { reason, message: said.message.clone() }),
        None => Ok(()),
    }
}

/// Whether somebody may be mending a Secret right now. One that stays broken is looked at as often as everything else.
pub(super) fn was_ready_lately(class: &ProxmoxNodeClass, now: &Time) -> bool {
    let since = metadata_condition(class).map(|said| said.last_transition_time.0.as_second());
    since.is_none_or(|since| now.0.as_second() - since < MENDING_S)
}

fn metadata_condition(class: &ProxmoxNodeClass) -> Option<&Condition> {
    let conditions = class.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == METADATA_READY)
}

/// Whether VMs of a class can be given first-boot data.
pub(super) async fn inspect(
    context: &StatusContext,
    class: &ProxmoxNodeClass,
    template: Option<ObservedTemplate<'_>>,
) -> Result<Inspection, StatusError> {
    let in_region = |zone: &&String| {
        let region = zone.split('/').next();
        class.spec.region.as_deref().is_none_or(|wanted| Some(wanted) == region)
    };
    let zones = template.map(|template| template.zones).unwrap_or_default();
    let zones: Vec<String> = zones.iter().filter(in_region).cloned().collect();
    let failed = |source| StatusError {
        action: format!("read the Secrets of ProxmoxNodeClass {}", class.name_any()),
        source: Box::new(source),
    };
    let subject = first_boot::Subject { class, launch: None };
    first_boot::inspect(&context.secrets, &context.regions, &subject, &zones).await.map_err(failed)
}
