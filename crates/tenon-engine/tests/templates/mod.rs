//! Decisions about VM templates of a ProxmoxTemplate.

#![expect(clippy::unwrap_used, reason = "a value of the test's own that cannot be read is a failed test")]

mod images;
mod set;
mod steps;

use tenon_model::{Place, Seconds, TemplateBuild, TemplateStep};

pub(crate) fn build(host: &str, vmid: u32) -> TemplateBuild {
    TemplateBuild {
        place: Place { region: "lab".to_owned(), host: host.parse().unwrap() },
        vmid: vmid.try_into().unwrap(),
        number: "1".to_owned(),
        image_storage: "local".to_owned(),
        image_name: "debian-1.qcow2".to_owned(),
        disk_storage: "local".to_owned(),
        shared: false,
        step: TemplateStep::Ready,
        attempt: 0,
        upid: None,
        uuid: format!("uuid-{vmid}"),
        in_place: Some("a".to_owned()),
        started_at: Seconds(1_000),
        last_progress_at: Seconds(1_000),
        downloaded: false,
        ordered_at: None,
        certified: false,
        adopted: false,
        retired: false,
        host_gone_since: None,
        pool: None,
        clones: None,
        error: None,
        progress: None,
    }
}
