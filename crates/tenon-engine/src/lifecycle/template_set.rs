//! Which VM templates a ProxmoxTemplate should have: which of those that were begun are not wanted any more, and which are
//! missing.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::{HostName, Place, Seconds, TemplateBuild, TemplateStep, VmId};

/// A host, or the hosts that share a storage, that should have a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateTarget {
    /// Where a new one is made.
    pub place: Place,
    /// The storage its image is put on.
    pub image_storage: String,
    /// The storage its disk is put on.
    pub disk_storage: String,
    /// Whether all hosts of the region that have this storage share it.
    pub shared: bool,
}

impl TemplateTarget {
    /// Whether a template is the one of this target.
    pub fn is_met_by(&self, build: &TemplateBuild) -> bool {
        let shares = self.shared
            && build.shared
            && build.place.region == self.place.region
            && build.disk_storage == self.disk_storage;
        build.place == self.place || shares
    }
}

/// What a ProxmoxTemplate should have now.
#[derive(Debug, Clone, Default)]
pub struct WantedTemplates {
    /// Whether it is not to have any more: its object is being deleted.
    pub none: bool,
    /// What they are made from, as one number.
    pub number: String,
    /// The one region it is to be in, if its object names one that is configured. Of a region that is not configured
    /// nothing is concluded.
    pub only_region: Option<String>,
    /// The members of each Proxmox cluster that answers and is quorate.
    pub hosts: BTreeMap<String, BTreeSet<HostName>>,
    /// Hosts that answer and cannot have one: a storage is missing.
    pub unfit: BTreeSet<Place>,
    /// Where one should be.
    pub targets: Vec<TemplateTarget>,
}

/// What is to be done about the set as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arranged {
    /// What was begun, with those retired that are not wanted any more.
    pub builds: Vec<TemplateBuild>,
    /// Targets for which nothing was begun.
    pub missing: Vec<TemplateTarget>,
}

/// A host that is no member of its cluster for this long is not only missing in a listing: it was removed.
const HOST_GONE_S: i64 = 600;

/// Compares what was begun with what is wanted. A template of before serves until the new one of the same host is ready.
pub fn arrange(builds: &[TemplateBuild], wanted: &WantedTemplates, now: Seconds) -> Arranged {
    let retire = |build: &TemplateBuild| TemplateBuild { retired: true, last_progress_at: now, ..build.clone() };
    let builds: Vec<TemplateBuild> = builds.iter().map(|build| with_host(build, wanted, now)).collect();
    let mut arranged = Arranged::default();
    for (index, build) in builds.iter().enumerate() {
        let is_wanted = build.retired || is_wanted(&builds, index, wanted, now);
        arranged.builds.push(if is_wanted { build.clone() } else { retire(build) });
    }
    let is_current = |build: &&TemplateBuild| !build.retired && build.number == wanted.number;
    let is_met =
        |target: &TemplateTarget| arranged.builds.iter().filter(is_current).any(|build| target.is_met_by(build));
    arranged.missing = wanted.targets.iter().filter(|target| !wanted.none && !is_met(target)).cloned().collect();
    arranged
}

/// Whether the host of a build is no member of its cluster for so long that it was removed.
pub fn is_host_gone(build: &TemplateBuild, now: Seconds) -> bool {
    build.host_gone_since.is_some_and(|since| now.since(since) >= HOST_GONE_S)
}

/// The build with what is known of its host by now. One that was retired because its host had left comes back into use with
/// the host, as long as it is there.
fn with_host(build: &TemplateBuild, wanted: &WantedTemplates, now: Seconds) -> TemplateBuild {
    let is_left_out = build.retired && build.host_gone_since.is_none() && !wanted.none;
    let Some(hosts) = wanted.hosts.get(&build.place.region).filter(|_| !is_left_out) else { return build.clone() };
    if !hosts.contains(&build.place.host) {
        return TemplateBuild { host_gone_since: build.host_gone_since.or(Some(now)), ..build.clone() };
    }
    let back = TemplateBuild { host_gone_since: None, ..build.clone() };
    match build.step {
        _ if !build.retired || wanted.none => back,
        TemplateStep::DeleteImage => back,
        TemplateStep::Destroy => TemplateBuild { retired: false, ..back.at(TemplateStep::Ready, now) },
        _ => TemplateBuild { retired: false, last_progress_at: now, ..back },
    }
}

/// Whether a build that is not retired should stay so.
fn is_wanted(builds: &[TemplateBuild], index: usize, wanted: &WantedTemplates, now: Seconds) -> bool {
    let Some(build) = builds.get(index) else { return false };
    let is_elsewhere = wanted.only_region.as_ref().is_some_and(|only| *only != build.place.region);
    // A look that does not show the members of the cluster says nothing about its hosts.
    let is_sure = wanted.hosts.contains_key(&build.place.region);
    if wanted.none || is_elsewhere || (is_sure && is_host_gone(build, now)) {
        return false;
    }
    let others = || builds.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, other)| other);
    let is_current = |other: &&TemplateBuild| !other.retired && other.number == wanted.number;
    if build.number == wanted.number {
        // Two that serve the same: the one that is ready stays, or else the older one.
        return !others().filter(is_current).any(|other| serves_same(build, other) && rank(other) < rank(build));
    }
    if build.step != TemplateStep::Ready {
        return false;
    }
    let mut ready = others().filter(is_current).filter(|other| other.step == TemplateStep::Ready);
    match wanted.targets.iter().find(|target| target.place == build.place || target.is_met_by(build)) {
        Some(target) => !ready.any(|other| target.is_met_by(other)),
        // No new one will be made there. It serves until there is another one anywhere, unless its host is only away.
        None => !(wanted.unfit.contains(&build.place) || build.shared) || ready.next().is_none(),
    }
}

fn serves_same(one: &TemplateBuild, other: &TemplateBuild) -> bool {
    let same_storage =
        one.shared && other.shared && one.place.region == other.place.region && one.disk_storage == other.disk_storage;
    one.place == other.place || same_storage
}

/// The lower, the better.
fn rank(build: &TemplateBuild) -> (bool, Seconds, VmId) {
    (build.step != TemplateStep::Ready, build.started_at, build.vmid)
}
