//! Which builds of all ProxmoxTemplates are made from which image file: who loads it, who needs it, whose download it is.

use std::collections::BTreeSet;

use tenon_engine::template::PresentImage;
use tenon_model::{HostName, Place, TemplateBuild, TemplateStep};

use crate::status::Estate;

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
    /// Which hosts answer.
    pub(super) estate: &'a Estate,
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

    /// What is known of the file of a build, which is there. That it is ours says who may delete it, and nothing about what
    /// is in it: of that, the last order tells.
    pub(super) fn file(&self, build: &TemplateBuild) -> PresentImage {
        let ordered = self.sharers(build).filter(|other| other.downloaded && other.ordered_at.is_some());
        let last = ordered.max_by_key(|other| other.ordered_at);
        PresentImage {
            is_ours: self.sharers(build).any(|other| other.downloaded && other.step > TemplateStep::Download),
            is_certified: last.is_some_and(|last| last.certified),
            ordered_at: last.and_then(|last| last.ordered_at),
            imported_by: self.imported_by(build),
        }
    }

    /// The VM whose disk is being made from the image of a build.
    pub(super) fn imported_by(&self, build: &TemplateBuild) -> Option<String> {
        let is_importing =
            |other: &&TemplateBuild| other.step == TemplateStep::Create && (other.upid.is_some() || other.attempt == 0);
        let importing = self.sharers(build).find(is_importing)?;
        Some(format!("VM {} on host {}", importing.vmid, importing.place.host))
    }

    /// The host that loads the image of a build, which then need not do so itself. One whose download failed, or whose host
    /// does not answer, holds up nobody; one that is being stopped is waited for.
    pub(super) fn loaded_by(&self, build: &TemplateBuild) -> Option<HostName> {
        let is_loading = |other: &TemplateBuild| {
            other.step == TemplateStep::Download && (other.upid.is_some() || (!other.retired && other.attempt == 0))
        };
        // The one whose task runs goes first, then the one that wrote down that it loads, or else the first by name.
        let rank =
            |build: &TemplateBuild| (build.upid.is_none(), build.ordered_at.is_none(), build.place.clone(), build.vmid);
        self.first_of(build, is_loading, rank)
    }

    /// The host that removes the image of a build, to have it downloaded again.
    pub(super) fn discarded_by(&self, build: &TemplateBuild) -> Option<HostName> {
        let is_discarding =
            |other: &TemplateBuild| other.step == TemplateStep::Discard && (other.upid.is_some() || !other.retired);
        let rank = |build: &TemplateBuild| {
            (build.step != TemplateStep::Discard, build.upid.is_none(), build.place.clone(), build.vmid)
        };
        self.first_of(build, is_discarding, rank)
    }

    /// The host of the first of those who do something with the file, if a build comes after it.
    fn first_of<R: Ord>(
        &self,
        build: &TemplateBuild,
        does: impl Fn(&TemplateBuild) -> bool,
        rank: impl Fn(&TemplateBuild) -> R,
    ) -> Option<HostName> {
        let is_at_work = |other: &&TemplateBuild| does(other) && self.answers(&other.place);
        let first = self.sharers(build).filter(is_at_work).min_by_key(|other| rank(other))?;
        (rank(first) < rank(build)).then(|| first.place.host.clone())
    }

    /// Of a region that shows nothing, nothing is concluded.
    fn answers(&self, place: &Place) -> bool {
        self.estate.is_silent(&place.region) || self.estate.is_online(place)
    }
}
