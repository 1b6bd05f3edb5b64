//! How the image of a VM template comes onto its storage, and what becomes of a file that is there and is not what is asked for.
//!
//! The name of the file says where it came from and nothing about what is in it: with a checksum, a file counts only after
//! Proxmox compared it for this very build. Disks of VMs are copies, so a file of ours may be replaced when nothing reads it.

use tenon_model::{Seconds, TemplateBuild, TemplateStep};

use super::template::{BuildOrder, TemplateChange, TemplateDecision, waiting};
use super::template_sight::{BuildFailure, BuildSight, ObservedImage, PresentImage, TemplateTask};

/// Gets the image, or compares the one that is there.
pub(crate) fn download_step(build: &TemplateBuild, sight: &BuildSight, order: &BuildOrder<'_>) -> TemplateDecision {
    let now = order.now;
    match (&sight.task, &sight.image) {
        // The order of this very build: Proxmox compared the file with what was asked for.
        (TemplateTask::Done, image) => got(build, image, now),
        (TemplateTask::Failed(BuildFailure::ImageNameTaken(_)), ObservedImage::Present(file)) if file.is_ours => {
            replace(build, file, now)
        }
        (TemplateTask::Failed(failure @ BuildFailure::ImageNameTaken(_)), _) => {
            let failed = build.failed(failure.words().to_owned(), now);
            TemplateBuild { downloaded: false, ordered_at: None, ..failed }.into()
        }
        (TemplateTask::Failed(failure), _) => build.failed(failure.words().to_owned(), now).into(),
        (TemplateTask::Lost, ObservedImage::Absent) => build.failed(interrupted(build, sight), now).into(),
        (_, ObservedImage::Unknown(why)) => build.failed(why.clone(), now).into(),
        (_, ObservedImage::LoadedBy(host)) => {
            waiting(build, format!("host {host} downloads the image to the same storage"))
        }
        (_, ObservedImage::Present(_)) if order.has_checksum => TemplateDecision::Perform(TemplateChange::Download),
        (_, ObservedImage::Present(file)) if is_less_than_asked(build, file, order) => replace(build, file, now),
        // What came of our own order shows on the storage: Proxmox gives a file its name only when it is whole.
        (_, image @ ObservedImage::Present(_)) => got(build, image, now),
        // That the file will be ours is written down before it can be there.
        (_, ObservedImage::Absent) if build.ordered_at.is_none() => TemplateBuild {
            downloaded: true,
            ordered_at: Some(now),
            certified: order.certifies,
            upid: None,
            last_progress_at: now,
            ..build.clone()
        }
        .into(),
        _ => TemplateDecision::Perform(TemplateChange::Download),
    }
}

/// The image of the build is there. One that another build downloaded is ours all the same.
fn got(build: &TemplateBuild, image: &ObservedImage, now: Seconds) -> TemplateDecision {
    let is_ours = matches!(image, ObservedImage::Present(file) if file.is_ours);
    TemplateBuild { downloaded: build.downloaded || is_ours, ..build.advanced(now) }.into()
}

/// Whether another build had the file downloaded without the check of the certificate that this one asks for.
fn is_less_than_asked(build: &TemplateBuild, file: &PresentImage, order: &BuildOrder<'_>) -> bool {
    order.certifies && file.is_ours && !file.is_certified && build.ordered_at.is_none()
}

/// The file is ours and not what is asked for: it goes, unless it is being read.
fn replace(build: &TemplateBuild, file: &PresentImage, now: Seconds) -> TemplateDecision {
    match &file.imported_by {
        Some(vm) => waiting(build, being_read(build, vm)),
        None => build.at(TemplateStep::Discard, now).into(),
    }
}

fn being_read(build: &TemplateBuild, vm: &str) -> String {
    let TemplateBuild { image_name, image_storage, .. } = build;
    format!(
        "image {image_name} on storage {image_storage} is not what spec.sourceImage asks for; it is downloaded again when {vm}, \
         whose disk is being made from it, is ready"
    )
}

/// Removes a file of ours that is not what is asked for.
pub(crate) fn discard_step(build: &TemplateBuild, sight: &BuildSight, now: Seconds) -> TemplateDecision {
    let again =
        || TemplateBuild { downloaded: false, ordered_at: None, certified: false, ..build.advanced(now) }.into();
    match (&sight.task, &sight.image) {
        (TemplateTask::Done, _) | (_, ObservedImage::Absent) => again(),
        (TemplateTask::Failed(failure), _) => build.failed(failure.words().to_owned(), now).into(),
        (_, ObservedImage::Unknown(why)) => build.failed(why.clone(), now).into(),
        // It is another file by now, or whose it is cannot be said any more: it is judged anew.
        (_, ObservedImage::Present(file))
            if !file.is_ours || file.ordered_at.is_some_and(|at| at >= build.last_progress_at) =>
        {
            again()
        }
        (_, ObservedImage::Present(PresentImage { imported_by: Some(vm), .. })) => {
            waiting(build, being_read(build, vm))
        }
        (_, ObservedImage::Present(_)) => TemplateDecision::Perform(TemplateChange::DeleteImage),
        (_, ObservedImage::Unseen | ObservedImage::LoadedBy(_)) => TemplateDecision::Wait,
    }
}

/// What is told of a download whose worker died.
fn interrupted(build: &TemplateBuild, sight: &BuildSight) -> String {
    let host = &build.place.host;
    let told = format!("the download of image {} on host {host} was interrupted", build.image_name);
    match &sight.leftover {
        Some(path) => format!(
            "{told}; the incomplete file cannot be removed with an API token: on host {host} run: rm -f {path}. Retrying"
        ),
        None => format!("{told}; retrying"),
    }
}
