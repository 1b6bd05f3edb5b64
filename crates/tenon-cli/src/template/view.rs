//! What is shown of a template object: one row for each VM template, made from what Kubernetes has. Nothing here reads.

use std::collections::BTreeMap;

use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use tenon_api::hash_template::{self, TemplateStanding};
use tenon_api::{Condition, ConditionStatus, ProxmoxTemplate, ProxmoxUnmanagedTemplate, names, template_record};
use tenon_model::{LaunchRecord, Place, TemplateBuild, TemplateStep};

/// A template object, with its VM templates.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    pub(super) kind: String,
    pub(super) name: String,
    /// Condition `Ready`, once the controller has looked.
    pub(super) ready: Option<Ready>,
    /// Version of the VM templates that are wanted now; only of a ProxmoxTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) image: Option<String>,
    pub(super) deleting: bool,
    pub(super) templates: Vec<Row>,
    /// Why the list of VM templates may be incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ready {
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

/// One VM template.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) region: String,
    pub(super) host: String,
    pub(super) vmid: u32,
    /// Whether new VMs of its host are cloned from it.
    pub(super) in_use: bool,
    /// What it is made from, as one number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// Whether that is the wanted version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) current: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<&'static str>,
    /// Percentage of the download.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) progress: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disk_storage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) image_storage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) image_name: Option<String>,
    pub(super) shared: bool,
    pub(super) adopted: bool,
    pub(super) retired: bool,
    /// NodeClaims whose VM was cloned from it.
    pub(super) node_claims: Vec<String>,
    /// Linked clones, as the controller counted them last; of one that is to go, NodeClaims that are being launched and
    /// classes that select it, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clones: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// Names of NodeClaims, by what they were cloned from.
#[derive(Debug, Default)]
pub(super) struct Clones {
    /// By the region and id of the VM template.
    launched: BTreeMap<(String, u32), Vec<String>>,
    /// Those whose VM another controller had cloned: of what, only the version is known.
    adopted: Vec<Adopted>,
}

/// A NodeClaim that was adopted.
#[derive(Debug)]
struct Adopted {
    claim: String,
    place: Place,
    version: String,
}

impl Clones {
    /// Adds a NodeClaim with its launch record and the version in its status.
    pub(super) fn add(&mut self, claim: String, record: LaunchRecord, version: Option<String>) {
        // A VM is no clone of itself: so the record of an adopted one says that its template is not known.
        if record.template != record.vmid {
            self.launched.entry((record.place.region, record.template.get())).or_default().push(claim);
        } else if let Some(version) = version {
            self.adopted.push(Adopted { claim, place: record.place, version });
        }
    }

    fn of(&self, region: &str, vmid: u32) -> Vec<String> {
        let mut names = self.launched.get(&(region.to_owned(), vmid)).cloned().unwrap_or_default();
        names.sort();
        names
    }

    /// Those of a VM template that Tenon keeps, with the adopted ones that have its version and were made on its host.
    fn of_build(&self, build: &TemplateBuild) -> Vec<String> {
        let Place { region, host } = &build.place;
        let is_from = |adopted: &&Adopted| {
            let is_here = adopted.place.host == *host || build.shared;
            adopted.version == build.number && adopted.place.region == *region && is_here
        };
        let mut names = self.of(region, build.vmid.get());
        names.extend(self.adopted.iter().filter(is_from).map(|adopted| adopted.claim.clone()));
        names.sort();
        names
    }
}

/// A template that Tenon builds.
pub(super) fn managed(template: &ProxmoxTemplate, clones: &Clones) -> Shown {
    let annotations = template.annotations();
    let builds = annotations.get(names::ANNOTATION_TEMPLATE_BUILDS).map(|text| template_record::read(text));
    let (builds, error) = match builds.transpose() {
        Ok(builds) => (builds.unwrap_or_default(), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let status = template.status.as_ref();
    let zones = status.and_then(|status| status.zones.clone()).unwrap_or_default();
    let version = match hash_template::judge(annotations, &template.spec) {
        TemplateStanding::Outdated { number, .. } => Some(number),
        _ => annotations.get(names::ANNOTATION_TEMPLATE_HASH).cloned(),
    };
    let mut rows: Vec<Row> = builds.iter().map(|build| build_row(build, version.as_deref(), &zones, clones)).collect();
    // What another controller built is in the status alone until it is adopted.
    let is_known = |row: &Row| builds.iter().any(|build| zone(row) == build.zone());
    rows.extend(found_rows(&zones, clones).into_iter().filter(|row| !is_known(row)));
    sort(&mut rows);
    Shown {
        version,
        image: status.and_then(|status| status.image_id.clone()),
        templates: rows,
        error,
        ..base(template, status.and_then(|status| status.conditions.as_deref()))
    }
}

/// A template that people prepare.
pub(super) fn unmanaged(template: &ProxmoxUnmanagedTemplate, clones: &Clones) -> Shown {
    let status = template.status.as_ref();
    let zones = status.and_then(|status| status.zones.clone()).unwrap_or_default();
    let mut rows = found_rows(&zones, clones);
    sort(&mut rows);
    Shown { templates: rows, ..base(template, status.and_then(|status| status.conditions.as_deref())) }
}

fn base<K: Resource<DynamicType = ()>>(object: &K, conditions: Option<&[Condition]>) -> Shown {
    let ready = conditions.unwrap_or_default().iter().find(|condition| condition.type_ == "Ready");
    Shown {
        kind: K::kind(&()).into_owned(),
        name: object.name_any(),
        ready: ready.map(|ready| Ready {
            status: match ready.status {
                ConditionStatus::True => "True",
                ConditionStatus::False => "False",
                ConditionStatus::Unknown => "Unknown",
            },
            reason: ready.reason.clone(),
            message: message(conditions.unwrap_or_default(), ready),
        }),
        version: None,
        image: None,
        deleting: object.meta().deletion_timestamp.is_some(),
        templates: Vec::new(),
        error: None,
    }
}

/// The condition behind `Ready` says more.
fn message(conditions: &[Condition], ready: &Condition) -> String {
    let behind = conditions.iter().find(|condition| condition.type_ != "Ready" && !condition.message.is_empty());
    behind.unwrap_or(ready).message.clone()
}

fn build_row(build: &TemplateBuild, version: Option<&str>, zones: &[String], clones: &Clones) -> Row {
    let (region, vmid) = (build.place.region.clone(), build.vmid.get());
    Row {
        node_claims: clones.of_build(build),
        region,
        host: build.place.host.to_string(),
        vmid,
        in_use: build.step == TemplateStep::Ready && zones.contains(&build.zone()),
        version: Some(build.number.clone()),
        current: version.map(|version| version == build.number && !build.retired),
        step: Some(build.step.as_str()),
        progress: build.progress,
        disk_storage: Some(build.disk_storage.clone()),
        image_storage: Some(build.image_storage.clone()),
        image_name: Some(build.image_name.clone()),
        shared: build.shared,
        adopted: build.adopted,
        retired: build.retired,
        clones: build.clones,
        attempt: (build.attempt > 0).then_some(build.attempt),
        error: build.error.clone(),
    }
}

/// VM templates that were found. Of several on a host the one with the lowest id is cloned.
fn found_rows(zones: &[String], clones: &Clones) -> Vec<Row> {
    let read = |zone: &String| {
        let mut parts = zone.splitn(3, '/');
        let (region, host) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let vmid = parts.next()?.parse().ok()?;
        Some(Row { node_claims: clones.of(&region, vmid), region, host, vmid, ..Row::default() })
    };
    let mut rows: Vec<Row> = zones.iter().filter_map(read).collect();
    let lowest = |row: &Row| {
        let here =
            zones.iter().filter_map(read).filter(|other| (&other.region, &other.host) == (&row.region, &row.host));
        here.map(|other| other.vmid).min()
    };
    let in_use: Vec<bool> = rows.iter().map(|row| lowest(row) == Some(row.vmid)).collect();
    rows.iter_mut().zip(in_use).for_each(|(row, in_use)| row.in_use = in_use);
    rows
}

fn zone(row: &Row) -> String {
    format!("{}/{}/{}", row.region, row.host, row.vmid)
}

fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| (&a.region, &a.host, a.vmid).cmp(&(&b.region, &b.host, b.vmid)));
}
