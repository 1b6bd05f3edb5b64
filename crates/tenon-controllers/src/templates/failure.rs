//! What a failed step of a VM template means, as a sentence that names host and storage and says what to do.

use tenon_engine::template::BuildFailure;
use tenon_model::{TemplateBuild, TemplateStep};
use tenon_pve::{Refusal, RefusalKind};

use super::image_book::ImageFile;
use super::work::Work;

/// What Proxmox says of a failed download or import, each with what to do. Tried in order, in lower case.
const HINTS: &[(&str, &str)] = &[
    ("checksum mismatch: got", "correct spec.sourceImage.checksum, or check that the URL has the image you expect"),
    (
        "failed to verify file",
        "the file is no disk image of the format its name says; correct spec.sourceImage.url or imageName",
    ),
    ("unable to resolve host", "check spec.sourceImage.url, and DNS on the host"),
    ("exit code 8", "the server does not have the file or refuses it; check spec.sourceImage.url"),
    (
        "exit code 5",
        "the certificate of the server is not trusted by the host; install its CA there, or set spec.sourceImage.insecureSkipTLSVerify together with a checksum",
    ),
    (
        "certificate",
        "the certificate of the server is not trusted by the host; install its CA there, or set spec.sourceImage.insecureSkipTLSVerify together with a checksum",
    ),
    ("connection refused", "check spec.sourceImage.url and the network of the host"),
    ("exit code 4", "check spec.sourceImage.url and the network of the host"),
    ("still in use by linked clone", "remove the linked clones first"),
];

/// What came of a task of a build.
pub(super) fn of_task(work: &Work<'_>, build: &TemplateBuild, refusal: &Refusal) -> BuildFailure {
    let words = sentence(work, build, refusal);
    let says = |text: &str| refusal.words.to_lowercase().contains(text);
    match (build.step, &refusal.kind) {
        (TemplateStep::Download, RefusalKind::AlreadyExists) => {
            let file = ImageFile::of(build).volume();
            let host = &build.place.host;
            BuildFailure::ImageNameTaken(format!(
                "image {file} on host {host} exists already and has another checksum; delete the file, or correct \
                 spec.sourceImage.checksum"
            ))
        }
        (TemplateStep::Create, RefusalKind::AlreadyExists) => BuildFailure::IdTaken,
        (TemplateStep::Create, _)
            if says(&build.image_name.to_lowercase()) && (says("failed to stat") || says("does not exist")) =>
        {
            BuildFailure::ImageMissing(words)
        }
        _ => BuildFailure::Other(words),
    }
}

/// The refusal of a build's step with its object, its cause and the next step.
pub(super) fn sentence(work: &Work<'_>, build: &TemplateBuild, refusal: &Refusal) -> String {
    let TemplateBuild { vmid, disk_storage, image_storage, .. } = build;
    let host = &build.place.host;
    let (action, storage) = match build.step {
        TemplateStep::Download => {
            let url = &work.spec().source_image.url;
            (format!("cannot download {url} to storage {image_storage} on host {host}"), image_storage)
        }
        TemplateStep::Create => {
            (format!("cannot create VM {vmid} on host {host} with its disk on storage {disk_storage}"), disk_storage)
        }
        TemplateStep::Configure | TemplateStep::Ready => {
            (format!("cannot configure VM {vmid} on host {host}"), disk_storage)
        }
        TemplateStep::Convert => (format!("cannot convert VM {vmid} on host {host} to a template"), disk_storage),
        TemplateStep::Destroy => (format!("cannot destroy VM {vmid} on host {host}"), disk_storage),
        TemplateStep::Discard | TemplateStep::DeleteImage => {
            (format!("cannot delete image {} on host {host}", ImageFile::of(build).volume()), image_storage)
        }
    };
    let words = refusal.to_string();
    let lower = words.to_lowercase();
    let next = match &refusal.kind {
        RefusalKind::NoSpace => format!("make room on storage {storage}"),
        RefusalKind::Denied { .. } => "give the API token the privilege".to_owned(),
        RefusalKind::Protected => format!("on host {host} run: qm set {vmid} --protection 0"),
        _ => HINTS.iter().find(|(sign, _)| lower.contains(sign)).map_or("retrying", |(_, hint)| hint).to_owned(),
    };
    format!("{action}: {words}; {next}")
}
