//! One look at everything, and a write for every status that changed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_api::condition_reasons;
use tenon_api::event_reasons::{EVENT_REASONS, EventReason};
use tenon_api::plan_options::FeatureGates;
use tenon_api::{
    Condition, ConditionSet, ConditionStatus, InstanceTemplateKind, InstanceTemplateRef, NodeClaim, ProxmoxNodeClass,
    ProxmoxTemplate, ProxmoxUnmanagedTemplate, ResourceMap, Statement, Subject,
};

use super::class::{CLASS_CONDITIONS, METADATA_READY, ObservedTemplate, TEMPLATE_READY, judge_class};
use super::estate::Estate;
use super::pool::ObservedClass;
use super::pool_pass::judge_pools;
use super::staleness::{self, LastListings};
use super::template::{READY, judge_template, said_ready, with_silent};
use super::{Verdict, class_finalizer, class_first_boot, template_reach};
use crate::claim::ClaimError;
use crate::claim_list::list_claims;
use crate::context::is_ours;
use crate::events::Event;
use crate::first_boot::{Inspection, NodeSecrets};
use crate::join::{JoinChecks, JoinLook, JoinUse};
use crate::kube_error;
use crate::regions::Regions;
use crate::registration_book::RegistrationBook;

/// What a pass works with.
pub struct StatusContext {
    /// The cluster whose pods need nodes.
    pub workload: Client,
    /// Where the Secrets with first-boot data are.
    pub secrets: NodeSecrets,
    /// A client for each Proxmox cluster, by region.
    pub regions: Regions,
    /// What is switched on.
    pub gates: FeatureGates,
    /// What new nodes need to join.
    pub join: JoinChecks,
    /// How the last nodes of each pool ended.
    pub registrations: RegistrationBook,
}

/// Why a pass did not finish. What was written stays true.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct StatusError {
    pub(super) action: String,
    #[source]
    pub(super) source: Box<kube::Error>,
}

impl StatusError {
    pub(crate) fn new(action: impl Into<String>, source: kube::Error) -> StatusError {
        StatusError { action: action.into(), source: Box::new(source) }
    }

    fn is_not_found(&self) -> bool {
        matches!(self.source.as_ref(), kube::Error::Api(refusal) if refusal.code == 404)
    }

    /// The error with its cause, in one line.
    pub(crate) fn full_message(&self) -> String {
        format!("{self}: {}", kube_error::message(&self.source))
    }
}

/// What a pass wrote, and what the owners of the objects should hear.
#[derive(Debug, Default)]
pub struct StatusReport {
    /// How many objects were written.
    pub written: usize,
    /// What is new about objects that do not work.
    pub(crate) events: Vec<(ObjectReference, Event)>,
    /// Whether each region answered, or why not.
    pub(crate) regions: BTreeMap<String, Result<(), String>>,
    /// Whether a class waits for a Secret to be created or corrected, which nobody tells us of.
    pub(crate) awaits_secret: bool,
    /// Whether somebody else wrote an object just before: it is judged again soon.
    pub(crate) is_outdated: bool,
    /// Whether something does not hold. What mends that may be told by nobody.
    pub(crate) has_trouble: bool,
    /// Objects that could not be written; the others were.
    pub errors: Vec<StatusError>,
}

/// Judges every template, then every class by its template, then every pool by its class.
pub async fn pass(context: &StatusContext, now: &Time) -> Result<StatusReport, StatusError> {
    // What is written for everybody to read is judged by what is true now.
    let estate = context.regions.look_now().await;
    let regions = estate
        .regions
        .iter()
        .map(|(region, view)| (region.clone(), view.as_ref().map(drop).map_err(ToString::to_string)))
        .collect();
    let mut report = StatusReport { regions, ..StatusReport::default() };
    let mut templates = judge_templates(context, &estate, now, &mut report).await?;
    templates.extend(managed_templates(context, &estate).await?);
    let found = FoundTemplates { templates, estate };
    // Before the classes are listed: a claim that is missing here is younger than its class's finalizer may be.
    let class_of = |claim: NodeClaim| is_ours(&claim).then_some(claim.spec.node_class_ref.name);
    let used_classes = list_claims(&context.workload, class_of)
        .await
        .map_err(|source| StatusError { action: "list nodeclaims".to_owned(), source: Box::new(source) })?;
    let failed = |error| match error {
        ClaimError::Kube { action, source } => StatusError { action, source },
        // Nothing is asked of Proxmox here.
        ClaimError::Pve(error) => {
            let source = Box::new(kube::Error::Service(Box::new(error)));
            StatusError { action: "check what nodes join with".to_owned(), source }
        }
    };
    let join = report.keep(context.join.look(now.0).await.map_err(failed));
    let look = Look { used_classes, now: now.clone(), join };
    let ready = judge_classes(context, &found, &look, &mut report).await?;
    judge_pools(context, &ready, &look, &mut report).await?;
    Ok(report)
}

/// What is looked at once for classes and pools.
pub(super) struct Look {
    /// The class of each NodeClaim of ours.
    used_classes: Vec<String>,
    pub(super) now: Time,
    /// What new nodes need to join, if that could be read.
    join: Option<JoinLook>,
}

/// A class as its pools see it, and which generation that is of.
pub(super) struct FoundClass {
    pub(super) seen: ObservedClass,
    pub(super) generation: i64,
}

/// A template object: where its VM templates were found, and its condition.
struct FoundTemplate {
    zones: Vec<String>,
    reach: Vec<String>,
    ready: Verdict,
}

/// Two kinds of objects may have the same name.
type TemplateName = (InstanceTemplateKind, String);

/// Every template object by kind and name, and the hosts they are on.
struct FoundTemplates {
    templates: BTreeMap<TemplateName, FoundTemplate>,
    estate: Estate,
}

async fn judge_templates(
    context: &StatusContext,
    estate: &Estate,
    now: &Time,
    report: &mut StatusReport,
) -> Result<BTreeMap<TemplateName, FoundTemplate>, StatusError> {
    let templates = Writer::<ProxmoxUnmanagedTemplate>::list(context).await?;
    let mut all = BTreeMap::new();
    for template in &templates.objects {
        let verdict = judge_template(&template.spec, estate);
        let status = template.status.clone().unwrap_or_default();
        let before = status.zones.unwrap_or_default();
        let region = template.spec.region.as_deref();
        let found = verdict.zones.map_or_else(|| before.clone(), |zones| with_silent(zones, &before, estate, region));
        let said = [(READY, &verdict.ready)];
        let conditions = stated(&[READY], status.conditions.as_deref(), &subject(&template.metadata, now), &said);
        let status = json!({ "conditions": conditions, "zones": found, "resources": counted(&found) });
        report.add(template, templates.write(template, &status).await, &said);
        let reach = template_reach::reach(&context.regions, estate, &found).await;
        let name = (InstanceTemplateKind::ProxmoxUnmanagedTemplate, template.name_any());
        all.insert(name, FoundTemplate { zones: found, reach, ready: verdict.ready });
    }
    Ok(all)
}

/// Templates that are made from images, as the loop that makes them says. They are written there.
async fn managed_templates(
    context: &StatusContext,
    estate: &Estate,
) -> Result<BTreeMap<TemplateName, FoundTemplate>, StatusError> {
    let templates = match Writer::<ProxmoxTemplate>::list(context).await {
        // A cluster that never had the kind has none of it.
        Err(error) if error.is_not_found() => return Ok(BTreeMap::new()),
        listed => listed?.objects,
    };
    let mut all = BTreeMap::new();
    for template in &templates {
        let zones = template.status.as_ref().and_then(|status| status.zones.clone()).unwrap_or_default();
        let reach = template_reach::reach(&context.regions, estate, &zones).await;
        let ready = said_ready(template);
        all.insert((InstanceTemplateKind::ProxmoxTemplate, template.name_any()), FoundTemplate { zones, reach, ready });
    }
    Ok(all)
}

async fn judge_classes(
    context: &StatusContext,
    found: &FoundTemplates,
    look: &Look,
    report: &mut StatusReport,
) -> Result<BTreeMap<String, FoundClass>, StatusError> {
    let classes = Writer::<ProxmoxNodeClass>::list(context).await?;
    let mut all = BTreeMap::new();
    let listed = LastListings::new(context.regions.ages(), &look.now);
    for class in &classes.objects {
        let claims = class_finalizer::claims_of(class, &look.used_classes);
        let failed = |source| StatusError {
            action: format!("set the finalizer of ProxmoxNodeClass {}", class.name_any()),
            source: Box::new(source),
        };
        let kept = class_finalizer::keep(&context.workload, class, claims).await.map_err(failed);
        // A finalizer that cannot be written does not make a class unusable.
        let Some(class) = &report.keep(kept).unwrap_or_else(|| Some(class.clone())) else { continue };
        let in_use = class_finalizer::still_in_use(class, claims);
        report.events.extend(in_use.map(|event| (class.object_ref(&()), event)));
        let InstanceTemplateRef { kind, name } = &class.spec.instance_template_ref;
        let template = found.templates.get(&(*kind, name.clone()));
        let template = template.map(|FoundTemplate { zones, reach, ready }| ObservedTemplate { zones, reach, ready });
        let inspected = report.keep(class_first_boot::inspect(context, class, template).await);
        if let Some(Inspection::Fine(used)) = &inspected {
            context.join.note_use(class, *used);
        }
        let unasked = look.join.as_ref().and_then(JoinLook::unasked).filter(|_| needs_token(inspected.as_ref()));
        report.events.extend(unasked.map(|why| (class.object_ref(&()), class_first_boot::unasked(class, why))));
        let first_boot = class_first_boot::judged(class, inspected, look.join.as_ref());
        report.awaits_secret |= first_boot.is_err() && class_first_boot::was_ready_lately(class, &look.now);
        let verdict = judge_class(&class.spec, template, &found.estate, &first_boot);
        let present = class.status.as_ref().and_then(|status| status.conditions.as_deref());
        let template = staleness::noted(verdict.template, &verdict.selected_zones, &found.estate, &listed);
        let said = [(TEMPLATE_READY, &template), (METADATA_READY, &verdict.metadata)];
        let conditions = stated(CLASS_CONDITIONS, present, &subject(&class.metadata, &look.now), &said);
        let zones = &verdict.selected_zones;
        let status = json!({ "conditions": conditions, "selectedZones": zones, "resources": counted(zones) });
        report.add(class, classes.write(class, &status).await, &said);
        let seen = seen(class, &[&template, &verdict.metadata]);
        let generation = class.metadata.generation.unwrap_or_default();
        all.insert(class.name_any(), FoundClass { seen, generation });
    }
    Ok(all)
}

fn needs_token(inspected: Option<&Inspection>) -> bool {
    matches!(inspected, Some(Inspection::Fine(JoinUse { token: true, .. })))
}

impl StatusReport {
    /// Whether everything holds, says so already, and is waited for by nobody: as long as nothing changes, another pass would
    /// find the same.
    pub fn is_settled(&self) -> bool {
        let is_quiet = self.written == 0 && self.events.is_empty() && self.errors.is_empty();
        is_quiet && !(self.has_trouble || self.awaits_secret || self.is_outdated)
    }

    /// What came of one object. One that failed does not keep the others.
    fn keep<T>(&mut self, outcome: Result<T, StatusError>) -> Option<T> {
        outcome.map_err(|error| self.errors.push(error)).ok()
    }

    /// Something was written; what does not hold is told once, when it is new.
    pub(super) fn add<K: Resource<DynamicType = ()>>(
        &mut self,
        object: &K,
        written: Result<StatusWrite, StatusError>,
        said: &[(&'static str, &Verdict)],
    ) {
        self.has_trouble |= said.iter().any(|(_, verdict)| verdict.status() != ConditionStatus::True);
        match self.keep(written) {
            Some(StatusWrite::Done) => self.written += 1,
            Some(StatusWrite::Outdated) => return self.is_outdated = true,
            Some(StatusWrite::Unchanged) | None => return,
        }
        for (type_, verdict) in said.iter().filter(|(_, verdict)| verdict.status() != ConditionStatus::True) {
            let Some(reason) = event_reason(type_) else { continue };
            let note = format!("{type_} is {:?} ({}): {}", verdict.status(), verdict.reason(), verdict.message());
            self.events.push((object.object_ref(&()), Event::new(reason, note)));
        }
    }
}

/// The class as its pools see it: the first of its parts that does not hold, if one does not.
fn seen(class: &ProxmoxNodeClass, parts: &[&Verdict]) -> ObservedClass {
    if class.metadata.deletion_timestamp.is_some() {
        return ObservedClass::Terminating;
    }
    let trouble = parts.iter().find(|part| part.status() != ConditionStatus::True);
    ObservedClass::Present(trouble.map_or_else(|| Verdict::holds(&condition_reasons::READY), |part| (*part).clone()))
}

pub(crate) fn subject(meta: &ObjectMeta, now: &Time) -> Subject {
    Subject {
        generation: meta.generation.unwrap_or_default(),
        created: meta.creation_timestamp.clone().unwrap_or_else(|| now.clone()),
        deleting: meta.deletion_timestamp.is_some(),
        now: now.clone(),
    }
}

pub(crate) fn stated(
    dependents: &'static [&'static str],
    present: Option<&[Condition]>,
    subject: &Subject,
    said: &[(&str, &Verdict)],
) -> Vec<Condition> {
    let mut set = ConditionSet::new(dependents, present.unwrap_or_default(), subject);
    for (type_, verdict) in said {
        let Verdict { status, reason, message } = verdict;
        debug_assert!(is_in_table(type_, verdict), "{type_}: {verdict:?} is not in the table of reasons");
        set.set(&Statement { type_, status: *status, reason, message }, subject);
    }
    set.into_conditions()
}

/// The reason of the event that says that a condition does not hold.
fn event_reason(condition: &str) -> Option<&'static EventReason> {
    EVENT_REASONS.iter().copied().find(|reason| reason.name() == condition)
}

/// Whether the table of reasons has what is said of a condition.
fn is_in_table(type_: &str, verdict: &Verdict) -> bool {
    let row = condition_reasons::condition_reason(verdict.reason);
    let is_use = |used: &(&str, ConditionStatus)| *used == (type_, verdict.status);
    row.map_or(verdict.reason == type_, |row| row.uses().iter().any(is_use))
}

pub(crate) fn counted(zones: &[String]) -> ResourceMap {
    let count = i32::try_from(zones.len()).unwrap_or(i32::MAX);
    ResourceMap::from([("zones".to_owned(), IntOrString::String(count.to_string()))])
}

/// What came of writing a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusWrite {
    /// It said the same before.
    Unchanged,
    /// It says so now.
    Done,
    /// Somebody was faster, or the object is gone.
    Outdated,
}

/// Objects of one kind, and the right to write their status.
pub(super) struct Writer<K> {
    api: Api<K>,
    pub(super) objects: Vec<K>,
}

impl<K> Writer<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    pub(super) async fn list(context: &StatusContext) -> Result<Writer<K>, StatusError> {
        let api: Api<K> = Api::all(context.workload.clone());
        let action = || format!("list {}", K::plural(&()));
        let list = api
            .list(&ListParams::default())
            .await
            .map_err(|source| StatusError { action: action(), source: Box::new(source) })?;
        Ok(Writer { api, objects: list.items })
    }

    /// Writes a status if it says anything new; a writer who was faster is left to the next pass.
    pub(super) async fn write(&self, object: &K, status: &Value) -> Result<StatusWrite, StatusError> {
        let present = serde_json::to_value(object).unwrap_or_default();
        let same =
            status.as_object().into_iter().flatten().all(|(key, value)| present["status"].get(key) == Some(value));
        if same {
            return Ok(StatusWrite::Unchanged);
        }
        let version = object.meta().resource_version.clone();
        let patch = json!({ "metadata": { "resourceVersion": version }, "status": status });
        let name = object.name_any();
        match self.api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => Ok(StatusWrite::Done),
            Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => Ok(StatusWrite::Outdated),
            Err(source) => Err(StatusError {
                action: format!("write the status of {} {name}", K::kind(&())),
                source: Box::new(source),
            }),
        }
    }
}
