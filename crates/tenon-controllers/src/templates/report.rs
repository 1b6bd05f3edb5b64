//! What a ProxmoxTemplate says of its VM templates: conditions, places, and an event for everything that happened.

use std::collections::BTreeSet;

use serde_json::json;
use tenon_api::condition_reasons::{
    NODE_TEMPLATE_CLASS_RESOLUTION_ERROR, REGION_UNREACHABLE, TEMPLATE_BUILD_FAILED, TEMPLATE_READY,
    TEMPLATE_VALIDATION, TEMPLATES_NOT_FOUND,
};
use tenon_api::template_image::image_id;
use tenon_api::{ConditionStatus, event_reasons};
use tenon_engine::template::TemplateChange;
use tenon_model::{TemplateBuild, TemplateStep};

use super::act::Acted;
use super::image_book::ImageFile;
use super::one::{Run, Stop};
use super::targets::Targets;
use super::work::Work;
use crate::events::Event;
use crate::status::{StatusError, Verdict, counted, stated, subject};
use crate::writes::{self, Written};

/// Sentences in a message: a large estate has a host for each, and nobody reads more.
const TOLD: usize = 8;

/// What makes a template ready.
const DEPENDENTS: &[&str] = &[TEMPLATE_READY.name()];

/// Where a template stands.
pub(super) enum Standing<'a> {
    /// Its record cannot be read.
    Unreadable(String),
    /// No template can be made from its spec.
    Invalid(String),
    /// It is worked on.
    At {
        /// Where templates should be, and what is in the way.
        targets: &'a Targets,
        /// Templates of another controller of which nothing is known yet.
        undecided: &'a [String],
    },
}

/// Writes the status, if it says anything new.
pub(super) async fn write(run: &mut Run<'_>, standing: Standing<'_>) -> Result<(), Stop> {
    let mut zones: BTreeSet<String> =
        run.builds.iter().filter(|build| serves(build)).map(TemplateBuild::zone).collect();
    if let Standing::At { undecided, .. } = &standing {
        zones.extend(undecided.iter().filter(|_| !run.work.is_going()).cloned());
    }
    let zones: Vec<String> = zones.into_iter().collect();
    let verdict = verdict(run, &standing, &zones);
    let template = run.work.template();
    let present = template.status.as_ref();
    if matches!(standing, Standing::Unreadable(_)) {
        // What it has is not known; what was said of it stays.
        return say(run, json!({}), &verdict).await;
    }
    let image = image_id(&run.work.spec().source_image)
        .ok()
        .filter(|_| !run.builds.is_empty())
        .or_else(|| present.and_then(|status| status.image_id.clone()));
    let status = json!({ "zones": zones, "resources": counted(&zones), "imageID": image });
    say(run, status, &verdict).await
}

fn serves(build: &TemplateBuild) -> bool {
    build.step == TemplateStep::Ready && !build.retired
}

async fn say(run: &mut Run<'_>, mut status: serde_json::Value, verdict: &Verdict) -> Result<(), Stop> {
    let template = run.work.template();
    let present = template.status.as_ref().and_then(|status| status.conditions.as_deref());
    let subject = subject(&template.metadata, &run.shared.now);
    status["conditions"] = json!(stated(DEPENDENTS, present, &subject, &[(TEMPLATE_READY.name(), verdict)]));
    let written = serde_json::to_value(&template.status).unwrap_or_default();
    let is_same = |(key, value): (&String, &serde_json::Value)| {
        written.get(key) == Some(value) || (value.is_null() && written.get(key).is_none())
    };
    if status.as_object().into_iter().flatten().all(is_same) {
        return Ok(());
    }
    match writes::merge_status(&run.context.workload, template, &status).await {
        Ok(Written::Done(template)) => run.work.replace(*template),
        Ok(Written::Outdated) => return Err(Stop::Outdated),
        Err(source) => {
            let action = format!("write the status of ProxmoxTemplate {}", run.work.name());
            return Err(Stop::Failed(StatusError::new(action, source)));
        }
    }
    if verdict.status() == ConditionStatus::False && !run.work.is_going() {
        let note = format!("{} is False ({}): {}", TEMPLATE_READY.name(), verdict.reason(), verdict.message());
        run.events.push(Event::new(&event_reasons::TEMPLATE_READY, note));
    }
    Ok(())
}

fn verdict(run: &Run<'_>, standing: &Standing<'_>, zones: &[String]) -> Verdict {
    let targets = match standing {
        Standing::Unreadable(why) => return Verdict::fails(&NODE_TEMPLATE_CLASS_RESOLUTION_ERROR, why.clone()),
        Standing::Invalid(why) => return Verdict::fails(&TEMPLATE_VALIDATION, why.clone()),
        Standing::At { targets, .. } => targets,
    };
    let mut told: Vec<String> = run.builds.iter().filter_map(story).collect();
    if run.work.is_going() {
        told.extend(run.notes.iter().cloned());
        let message = format!("the ProxmoxTemplate is being deleted: {}", joined(&told));
        return Verdict::fails(&NODE_TEMPLATE_CLASS_RESOLUTION_ERROR, message);
    }
    told.extend(run.notes.iter().cloned());
    told.extend(targets.obstacles.iter().cloned());
    let message = joined(&told);
    if !zones.is_empty() {
        return Verdict::holds(&TEMPLATE_READY).with_message(message);
    }
    let mut wanted = run.builds.iter().filter(|build| !build.retired);
    match wanted.next() {
        Some(first) if first.attempt > 0 && wanted.all(|build| build.attempt > 0) => {
            Verdict::fails(&TEMPLATE_BUILD_FAILED, message)
        }
        Some(_) => Verdict::unknown(&NODE_TEMPLATE_CLASS_RESOLUTION_ERROR, message),
        None if targets.is_blind => Verdict::unknown(&REGION_UNREACHABLE, message),
        None => Verdict::fails(&TEMPLATES_NOT_FOUND, message),
    }
}

fn joined(told: &[String]) -> String {
    let more = told.len().saturating_sub(TOLD);
    let first = told.iter().take(TOLD).cloned().collect::<Vec<_>>().join("; ");
    if more > 0 { format!("{first}; and {more} more") } else { first }
}

/// Where a build stands, for people; nothing of one that serves and has no trouble.
fn story(build: &TemplateBuild) -> Option<String> {
    let (host, vmid) = (&build.place.host, build.vmid);
    if build.host_gone_since.is_some() {
        let region = &build.place.region;
        return Some(format!(
            "host {host} of VM template {vmid} is not a member of the Proxmox cluster of region {region}"
        ));
    }
    if let Some(error) = &build.error {
        return Some(error.clone());
    }
    Some(match build.step {
        TemplateStep::Ready if !build.retired => return None,
        TemplateStep::Discard if !build.retired => {
            format!("image {} on host {host} is being replaced", ImageFile::of(build).volume())
        }
        TemplateStep::Download if !build.retired => {
            let progress = build.progress.map(|percent| format!(" ({percent} %)")).unwrap_or_default();
            format!("host {host} downloads the image to storage {}{progress}", build.image_storage)
        }
        TemplateStep::Create if !build.retired => format!("VM {vmid} is being created on host {host}"),
        TemplateStep::Configure if !build.retired => format!("VM {vmid} on host {host} is being configured"),
        TemplateStep::Convert if !build.retired => format!("VM {vmid} on host {host} is being converted to a template"),
        TemplateStep::DeleteImage => format!("image {} on host {host} is being deleted", ImageFile::of(build).volume()),
        _ => format!("VM template {vmid} on host {host} is being deleted"),
    })
}

/// The event of a change that was made or refused.
pub(super) fn acted(work: &Work<'_>, build: &TemplateBuild, change: TemplateChange, acted: &Acted) -> Option<Event> {
    let (host, vmid) = (&build.place.host, build.vmid);
    match (change, acted) {
        (TemplateChange::Download, Acted::Begun(_)) => {
            let (url, storage) = (&work.spec().source_image.url, &build.image_storage);
            let note = format!("Downloading {url} to storage {storage} on host {host}");
            Some(Event::new(&event_reasons::IMAGE_DOWNLOADING, note))
        }
        (TemplateChange::Configure, Acted::Done(keys)) if build.step == TemplateStep::Ready && !keys.is_empty() => {
            let note = format!("Updated VM template {vmid} on host {host}: {keys}");
            Some(Event::new(&event_reasons::TEMPLATE_UPDATED, note))
        }
        (_, Acted::Failed(why)) => Some(Event::new(&event_reasons::TEMPLATE_BUILD_FAILED, why.clone())),
        _ => None,
    }
}

/// The event of a build of which nothing is left.
pub(super) fn gone(build: &TemplateBuild) -> Option<Event> {
    let (vmid, host) = (build.vmid, &build.place.host);
    if build.host_gone_since.is_some() {
        let note = format!(
            "VM template {vmid} was not deleted, because host {host} left the Proxmox cluster; if the host still has its disks \
             and image, delete them yourself"
        );
        return Some(Event::new(&event_reasons::TEMPLATE_LEFT_ALONE, note));
    }
    let image = if build.downloaded { " and its image, unless another template is made from it" } else { "" };
    let note = format!("Deleted VM template {vmid} on host {host}{image}");
    Some(Event::new(&event_reasons::TEMPLATE_DELETED, note))
}

/// What happened between two records.
pub(super) fn transitions(before: &[TemplateBuild], after: &[TemplateBuild]) -> Vec<Event> {
    let known = |build: &TemplateBuild| before.iter().find(|old| old.uuid == build.uuid);
    after.iter().filter_map(|build| transition(known(build)?, build)).collect()
}

fn transition(before: &TemplateBuild, after: &TemplateBuild) -> Option<Event> {
    let (host, vmid) = (&after.place.host, after.vmid);
    if after.step == TemplateStep::Ready && before.step != TemplateStep::Ready {
        let note = format!("Created VM template {vmid} on host {host} (Hash: {})", after.number);
        return Some(Event::new(&event_reasons::TEMPLATE_CREATED, note));
    }
    if before.step == TemplateStep::Download && after.step == TemplateStep::Create && before.upid.is_some() {
        let note = format!("Downloaded image {} on host {host}", ImageFile::of(after).volume());
        return Some(Event::new(&event_reasons::IMAGE_DOWNLOADED, note));
    }
    if before.step == TemplateStep::Download && after.step == TemplateStep::Discard {
        let note = format!(
            "Image {} on host {host} is not what spec.sourceImage asks for; downloading the image again",
            ImageFile::of(after).volume()
        );
        return Some(Event::new(&event_reasons::IMAGE_REPLACED, note));
    }
    let why = after.error.as_ref().filter(|why| before.error.as_ref() != Some(why))?;
    if after.attempt > before.attempt {
        return Some(Event::new(&event_reasons::TEMPLATE_BUILD_FAILED, why.clone()));
    }
    if after.step == TemplateStep::Destroy && after.clones.is_some_and(|count| count > 0) {
        return Some(Event::new(&event_reasons::TEMPLATE_IN_USE, why.clone()));
    }
    None
}
