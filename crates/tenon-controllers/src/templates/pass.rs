//! One pass over every ProxmoxTemplate: gather, decide, write down, act, report. One that fails, hangs or panics stops no
//! other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ListParams};
use kube::{Client, Resource as _, ResourceExt};
use tenon_api::{ConditionStatus, ProxmoxTemplate, names, template_record};
use tenon_engine::template::TemplateChange;
use tenon_model::{Place, Seconds, TemplateBuild, TemplateStep, VmId, VmIdRange};

use super::one::one;
use super::turns::Turns;
use super::users::Users;
use crate::events::Event;
use crate::panics::caught;
use crate::regions::Regions;
use crate::settled::Version;
use crate::status::{Estate, StatusError, said_ready};

/// One template is looked at for so long; then the others go on, and it has its turn again.
const ONE_WITHIN: Duration = Duration::from_secs(120);

/// The lowest id of a template, as the reference has it.
const FIRST_ID: u32 = 1000;

/// What a pass works with.
pub struct TemplateContext {
    /// The cluster of the objects.
    pub workload: Client,
    /// A client for each Proxmox cluster, by region.
    pub regions: Regions,
    /// The cluster's name in the proof of every VM.
    pub cluster_id: String,
    /// The ids that VMs of nodes are given: templates have lower ones.
    pub node_ids: VmIdRange,
    /// What is remembered, and may be forgotten at any time.
    pub memory: TemplateMemory,
}

/// A host that did not answer in time is left alone for so long, so that it does not hold up every pass.
const HANGING_S: i64 = 60;

/// When each finished template was read last, and which hosts hang.
#[derive(Debug, Default)]
pub struct TemplateMemory {
    read_at: Mutex<BTreeMap<String, Seconds>>,
    hanging: Mutex<BTreeMap<Place, Seconds>>,
}

impl TemplateMemory {
    pub(super) fn read_at(&self, uuid: &str) -> Option<Seconds> {
        self.read_at.lock().unwrap_or_else(PoisonError::into_inner).get(uuid).copied()
    }

    pub(super) fn was_read(&self, uuid: &str, now: Seconds) {
        self.read_at.lock().unwrap_or_else(PoisonError::into_inner).insert(uuid.to_owned(), now);
    }

    /// A host did not answer in time.
    pub(super) fn note_hanging(&self, place: &Place, now: Seconds) {
        self.hanging.lock().unwrap_or_else(PoisonError::into_inner).insert(place.clone(), now);
    }

    /// Whether a host did not answer in time a moment ago.
    pub(super) fn hangs(&self, place: &Place, now: Seconds) -> bool {
        let mut hanging = self.hanging.lock().unwrap_or_else(PoisonError::into_inner);
        hanging.retain(|_, since| now.since(*since) < HANGING_S);
        hanging.contains_key(place)
    }

    /// Forgets templates that are gone.
    fn keep(&self, uuids: &BTreeSet<String>) {
        self.read_at.lock().unwrap_or_else(PoisonError::into_inner).retain(|uuid, _| uuids.contains(uuid));
    }
}

/// What came of a pass.
#[derive(Debug, Default)]
pub struct TemplateReport {
    /// How many objects there are.
    pub templates: usize,
    /// The version of all of them when the pass began.
    pub(super) version: Version,
    /// What each of them said when the pass began: where its VM templates are, and whether they are ready.
    pub(super) said: BTreeMap<String, (Vec<String>, ConditionStatus)>,
    /// Whether every object is as it should be and says so: as long as nothing changes, another pass would find the same.
    pub(super) is_settled: bool,
    /// Whether something is under way, so that the next pass should come soon.
    pub is_busy: bool,
    /// What happened.
    pub(crate) events: Vec<(ObjectReference, Event)>,
    /// Objects that could not be written or read; the others were.
    pub errors: Vec<StatusError>,
    /// Panics, with the object that was worked on.
    pub panics: Vec<(String, String)>,
}

/// What all objects of a pass share.
pub(super) struct Shared {
    pub(super) estate: Estate,
    pub(super) now: Time,
    pub(super) users: Option<Users>,
    /// Builds of every object, by its uid.
    pub(super) builds: BTreeMap<String, Vec<TemplateBuild>>,
    /// Storages that hosts share, as region and name.
    pub(super) shared_storages: BTreeSet<(String, String)>,
    /// Ids that are not free, by region; those given in this pass, too.
    taken: Mutex<BTreeMap<String, BTreeSet<VmId>>>,
    /// Who downloads or imports; those who began in this pass, too.
    turns: Mutex<Turns>,
}

impl Shared {
    /// Now, in seconds.
    pub(super) fn seconds(&self) -> Seconds {
        Seconds(self.now.0.as_second())
    }

    /// Takes a turn for a change, or says what it waits for.
    pub(super) fn take_turn(&self, build: &TemplateBuild, change: TemplateChange) -> Result<(), String> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).take(build, change)
    }

    /// The lowest free id below those of nodes.
    pub(super) fn take_id(&self, context: &TemplateContext, region: &str) -> Option<VmId> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = taken.entry(region.to_owned()).or_default();
        let first = VmId::try_from(FIRST_ID).ok()?;
        let range = VmIdRange::new(first, VmId::MAX).ok()?;
        let id = range.lowest_free(taken).filter(|id| *id < context.node_ids.first())?;
        taken.insert(id);
        Some(id)
    }
}

/// Brings every ProxmoxTemplate one step further.
pub async fn pass(context: &TemplateContext, now: &Time) -> Result<TemplateReport, StatusError> {
    let api: Api<ProxmoxTemplate> = Api::all(context.workload.clone());
    let templates = match api.list(&ListParams::default()).await {
        Ok(list) => list.items,
        // A cluster that never had the kind has none of it.
        Err(kube::Error::Api(refusal)) if refusal.code == 404 => Vec::new(),
        Err(source) => return Err(StatusError::new("list proxmoxtemplates", source)),
    };
    let (version, is_settled) = (Version::of(&templates), templates.iter().all(is_settled));
    let mut report = TemplateReport { templates: templates.len(), version, is_settled, ..TemplateReport::default() };
    report.said = templates.iter().map(|template| (template.name_any(), said(template))).collect();
    if templates.is_empty() {
        return Ok(report);
    }
    let shared = gather(context, &templates, now, &mut report).await;
    let mut works = Vec::new();
    for template in templates {
        let (name, object) = (template.name_any(), template.object_ref(&()));
        let work = tokio::time::timeout(ONE_WITHIN, one(context, &shared, template));
        works.push(async move { (name, object, caught(work).await) }.boxed());
    }
    for (name, object, outcome) in join_all(works).await {
        match outcome {
            Err(panic) => report.panics.push((name, panic)),
            // Proxmox did not answer in time; the others went on.
            Ok(Err(_)) => report.is_busy = true,
            Ok(Ok(done)) => {
                report.is_busy |= done.is_busy;
                report.events.extend(done.events.into_iter().map(|event| (object.clone(), event)));
                report.errors.extend(done.error);
            }
        }
    }
    Ok(report)
}

/// The version of all objects as they are now; nothing if they cannot be listed.
pub(super) async fn version(context: &TemplateContext) -> Option<Version> {
    let api: Api<ProxmoxTemplate> = Api::all(context.workload.clone());
    Some(Version::of(&api.list(&ListParams::default()).await.ok()?.items))
}

fn said(template: &ProxmoxTemplate) -> (Vec<String>, ConditionStatus) {
    let zones = template.status.as_ref().and_then(|status| status.zones.clone()).unwrap_or_default();
    (zones, said_ready(template).status())
}

/// Whether an object wants nothing but what it has: all of it is finished, recorded, and said to be ready.
fn is_settled(template: &ProxmoxTemplate) -> bool {
    let Ok(builds) = recorded(template) else { return false };
    let is_finished =
        |build: &TemplateBuild| build.step == TemplateStep::Ready && !build.retired && build.error.is_none();
    let is_recorded = |zone: &String| {
        let is_its =
            |build: &TemplateBuild| *zone == format!("{}/{}/{}", build.place.region, build.place.host, build.vmid);
        builds.iter().any(is_its)
    };
    let mut zones = template.status.iter().flat_map(|status| status.zones.iter().flatten());
    template.metadata.deletion_timestamp.is_none()
        && said_ready(template).status() == ConditionStatus::True
        && builds.iter().all(is_finished)
        && zones.all(is_recorded)
}

/// What is looked at once for all objects.
async fn gather(
    context: &TemplateContext,
    templates: &[ProxmoxTemplate],
    now: &Time,
    report: &mut TemplateReport,
) -> Shared {
    let estate = context.regions.look().await;
    let builds: BTreeMap<String, Vec<TemplateBuild>> = templates
        .iter()
        .map(|template| (template.uid().unwrap_or_default(), recorded(template).unwrap_or_default()))
        .collect();
    let mut taken: BTreeMap<String, BTreeSet<VmId>> = BTreeMap::new();
    for build in builds.values().flatten() {
        taken.entry(build.place.region.clone()).or_default().insert(build.vmid);
    }
    let mut shared_storages = BTreeSet::new();
    for (region, resources) in estate.regions.iter().filter_map(|(region, view)| Some((region, view.as_ref().ok()?))) {
        taken.entry(region.clone()).or_default().extend(resources.guests.iter().map(|guest| guest.id));
        let shared = resources.storages.iter().filter(|row| row.shared);
        shared_storages.extend(shared.map(|row| (region.clone(), row.storage.clone())));
    }
    context.memory.keep(&builds.values().flatten().map(|build| build.uuid.clone()).collect());
    let needs_users = builds.values().flatten().any(|build| build.retired);
    let users = if needs_users { Some(Users::read(&context.workload).await) } else { None };
    let users = users.and_then(|read| {
        read.map_err(|source| report.errors.push(StatusError::new("list what uses VM templates", source))).ok()
    });
    let turns = Mutex::new(Turns::of(builds.values().flatten(), &estate));
    Shared { estate, now: now.clone(), users, builds, shared_storages, taken: Mutex::new(taken), turns }
}

/// The builds that are written down for an object; `Err` if the record cannot be read.
pub(super) fn recorded(template: &ProxmoxTemplate) -> Result<Vec<TemplateBuild>, template_record::TemplateRecordError> {
    let text = template.annotations().get(names::ANNOTATION_TEMPLATE_BUILDS);
    text.map_or_else(|| Ok(Vec::new()), |text| template_record::read(text))
}
