//! A build that is begun: under which id, with what is chosen before anything is asked of Proxmox.

use tenon_api::event_reasons;
use tenon_api::template_image::{TemplateIdentity, image_id, template_uuid};
use tenon_engine::TemplateTarget;
use tenon_model::{TemplateBuild, TemplateStep};

use super::one::Run;
use crate::events::Event;

impl Run<'_> {
    /// A new build for a host; nothing if no id is free.
    pub(super) fn begin(&mut self, target: &TemplateTarget, number: &str) -> Option<TemplateBuild> {
        let Some(vmid) = self.shared.take_id(self.context, &target.place.region) else {
            let last = self.context.node_ids.first();
            self.notes.push(format!("region {} has no free VM ID from 1000 to below {last}", target.place.region));
            return None;
        };
        let now = self.now();
        let uid = self.work.uid();
        let identity = TemplateIdentity { cluster: self.work.cluster(), template: &uid, vmid, started_at: now };
        Some(TemplateBuild {
            place: target.place.clone(),
            vmid,
            number: number.to_owned(),
            image_storage: target.image_storage.clone(),
            image_name: image_id(&self.work.spec().source_image).unwrap_or_default(),
            disk_storage: target.disk_storage.clone(),
            shared: target.shared,
            step: TemplateStep::Download,
            attempt: 0,
            upid: None,
            uuid: template_uuid(&identity),
            in_place: Some(self.work.in_place.clone()),
            started_at: now,
            last_progress_at: now,
            downloaded: false,
            ordered_at: None,
            certified: false,
            adopted: false,
            retired: false,
            host_gone_since: None,
            pool: self.work.spec().resource_pool.clone(),
            clones: None,
            error: None,
            progress: None,
        })
    }

    /// The build under another id, and what is left under the old one.
    pub(super) fn moved(&mut self, build: &TemplateBuild, why: &str, leftover: Option<String>) -> Vec<TemplateBuild> {
        let now = self.now();
        let target = TemplateTarget {
            place: build.place.clone(),
            image_storage: build.image_storage.clone(),
            disk_storage: build.disk_storage.clone(),
            shared: build.shared,
        };
        let new = self.begin(&target, &build.number).map(|new| TemplateBuild {
            downloaded: build.downloaded,
            ordered_at: build.ordered_at,
            certified: build.certified,
            image_name: build.image_name.clone(),
            ..new
        });
        let reason =
            if leftover.is_some() { &event_reasons::INCOMPLETE_TEMPLATE } else { &event_reasons::TEMPLATE_REPLACED };
        let next = new.as_ref().map_or_else(String::new, |new| format!("; creating VM template {} instead", new.vmid));
        let note = format!(
            "{why} on host {}{next}{}",
            build.place.host,
            leftover.as_ref().map(|words| format!(". {words}")).unwrap_or_default()
        );
        self.events.push(Event::new(reason, note));
        let left = leftover.map(|words| TemplateBuild {
            retired: true,
            error: Some(words),
            ..build.at(TemplateStep::Destroy, now)
        });
        // Without an id to go to it stays where it is, and fails.
        let stays = new.is_none().then(|| build.failed(format!("{why}, and no other VM ID is free"), now));
        left.into_iter().chain(new).chain(stays).collect()
    }
}
