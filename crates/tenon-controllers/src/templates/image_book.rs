//! Which builds of all ProxmoxTemplates are made from which image file: who loads it, who needs it, whose download it is.

use std::collections::BTreeSet;

use tenon_model::{HostName, TemplateBuild, TemplateStep};

/// An image on a storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageFile<'a> {
    region: &'a str,
    storage: &'a str,
    name: &'a str,
}

impl ImageFile<'_> {
    pub(super) fn of(build: &TemplateBuild) -> ImageFile<'_> {
        ImageFile { region: &build.place.region, storage: &build.image_storage, name: &build.image_name }
    }

    /// As Proxmox names it.
    pub(super) fn volume(&self) -> String {
        format!("{}:import/{}", self.storage, self.name)
    }
}

/// Builds that may be made from the same image.
pub(super) struct ImageBook<'a> {
    /// Those of the ProxmoxTemplate that is worked on.
    pub(super) own: &'a [TemplateBuild],
    /// Those of every other one.
    pub(super) others: &'a [TemplateBuild],
    /// Storages that hosts share, as region and name.
    pub(super) shared: &'a BTreeSet<(String, String)>,
}

impl ImageBook<'_> {
    /// Other builds from the very same file.
    fn sharers<'b>(&'b self, build: &'b TemplateBuild) -> impl Iterator<Item = &'b TemplateBuild> {
        let key = (build.place.region.clone(), build.image_storage.clone());
        let is_shared = self.shared.contains(&key);
        let is_same = move |other: &&TemplateBuild| {
            ImageFile::of(other) == ImageFile::of(build) && (is_shared || other.place.host == build.place.host)
        };
        let is_other = move |other: &&TemplateBuild| other.uuid != build.uuid;
        self.own.iter().chain(self.others).filter(is_same).filter(is_other)
    }

    /// Whether another build that is not at its end is made from the image of one.
    pub(super) fn is_needed(&self, build: &TemplateBuild) -> bool {
        self.sharers(build).any(|other| other.step < TemplateStep::DeleteImage)
    }

    /// Whether the image is a download of ours, whoever asked for it.
    pub(super) fn is_ours(&self, build: &TemplateBuild) -> bool {
        self.sharers(build).any(|other| other.downloaded && other.step != TemplateStep::Download)
    }

    /// The host that loads the image of a build, which then need not do so itself. One whose download failed holds up
    /// nobody.
    pub(super) fn loaded_by(&self, build: &TemplateBuild) -> Option<HostName> {
        let is_loading = |other: &TemplateBuild| {
            other.step == TemplateStep::Download && !other.retired && (other.attempt == 0 || other.upid.is_some())
        };
        let mut loading: Vec<&TemplateBuild> = self.sharers(build).filter(|other| is_loading(other)).collect();
        // The one that wrote down that it loads goes first, or else the first by name.
        loading.sort_by_key(|other| (!other.downloaded, &other.place, other.vmid));
        let first = loading.first()?;
        let is_first = (!first.downloaded, &first.place, first.vmid) < (!build.downloaded, &build.place, build.vmid);
        is_first.then(|| first.place.host.clone())
    }
}
