//! One look at everything, and a write for every status that changed.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenon_api::{
    Condition, ConditionSet, ConditionStatus, NodePool, ProxmoxNodeClass, ProxmoxUnmanagedTemplate, ResourceMap,
    Statement, Subject,
};

use super::Verdict;
use super::class::{METADATA_READY, TEMPLATE_READY, judge_class};
use super::estate::Estate;
use super::pool::{CLASS_READY, ClassSeen, VALIDATION, judge_pool};
use super::template::{READY, judge_template};

/// What a pass works with.
pub struct StatusContext {
    /// The cluster whose pods need nodes.
    pub workload: Client,
    /// A client for each Proxmox cluster, by region.
    pub regions: BTreeMap<String, tenon_pve::Client>,
}

/// Why a pass did not finish. What was written stays true.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct StatusError {
    action: String,
    #[source]
    source: Box<kube::Error>,
}

/// Judges every template, then every class by its template, then every pool by its class. Returns how many were written.
pub async fn pass(context: &StatusContext, now: &Time) -> Result<usize, StatusError> {
    let estate = Estate::look(&context.regions).await;
    let templates = Writer::<ProxmoxUnmanagedTemplate>::list(context).await?;
    let (mut zones, mut written) = (BTreeMap::new(), 0);
    for template in &templates.objects {
        let verdict = judge_template(&template.spec, &estate);
        let status = template.status.clone().unwrap_or_default();
        let found = verdict.zones.or(status.zones).unwrap_or_default();
        let conditions = stated(
            &[READY],
            status.conditions.as_deref(),
            &subject(&template.metadata, now),
            &[(READY, &verdict.ready)],
        );
        zones.insert(template.name_any(), found.clone());
        written += templates
            .write(template, &json!({ "conditions": conditions, "zones": found, "resources": counted(&found) }))
            .await?;
    }
    let classes = Writer::<ProxmoxNodeClass>::list(context).await?;
    let mut ready = BTreeMap::new();
    for class in &classes.objects {
        let found = zones.get(&class.spec.instance_template_ref.name).map(Vec::as_slice);
        let verdict = judge_class(&class.spec, found, &estate);
        let present = class.status.as_ref().and_then(|status| status.conditions.as_deref());
        let said = [(TEMPLATE_READY, &verdict.template), (METADATA_READY, &verdict.metadata)];
        let conditions = stated(&[TEMPLATE_READY, METADATA_READY], present, &subject(&class.metadata, now), &said);
        ready.insert(class.name_any(), seen(class, &[&verdict.template, &verdict.metadata]));
        let status = json!({
            "conditions": conditions, "selectedZones": verdict.selected_zones, "resources": counted(&verdict.selected_zones),
        });
        written += classes.write(class, &status).await?;
    }
    let pools = Writer::<NodePool>::list(context).await?;
    for pool in &pools.objects {
        let class = ready.get(&pool.spec.template.spec.node_class_ref.name).unwrap_or(&ClassSeen::Missing);
        let verdict = judge_pool(&pool.spec, class);
        let present = pool.status.as_ref().and_then(|status| status.conditions.as_deref());
        let said = [(VALIDATION, &verdict.validation), (CLASS_READY, &verdict.class)];
        let conditions = stated(&[VALIDATION, CLASS_READY], present, &subject(&pool.metadata, now), &said);
        written += pools.write(pool, &json!({ "conditions": conditions })).await?;
    }
    Ok(written)
}

/// The class as its pools see it: the first of its parts that does not hold, if one does not.
fn seen(class: &ProxmoxNodeClass, parts: &[&Verdict]) -> ClassSeen {
    if class.metadata.deletion_timestamp.is_some() {
        return ClassSeen::Terminating;
    }
    let trouble = parts.iter().find(|part| part.status != ConditionStatus::True);
    ClassSeen::Present(trouble.map_or_else(|| Verdict::holds("Ready"), |part| (*part).clone()))
}

fn subject(meta: &ObjectMeta, now: &Time) -> Subject {
    Subject {
        generation: meta.generation.unwrap_or_default(),
        created: meta.creation_timestamp.clone().unwrap_or_else(|| now.clone()),
        deleting: meta.deletion_timestamp.is_some(),
        now: now.clone(),
    }
}

fn stated(
    dependents: &'static [&'static str],
    present: Option<&[Condition]>,
    subject: &Subject,
    said: &[(&str, &Verdict)],
) -> Vec<Condition> {
    let mut set = ConditionSet::new(dependents, present.unwrap_or_default(), subject);
    for (type_, verdict) in said {
        let Verdict { status, reason, message } = verdict;
        set.set(&Statement { type_, status: *status, reason, message }, subject);
    }
    set.into_conditions()
}

fn counted(zones: &[String]) -> ResourceMap {
    let count = i32::try_from(zones.len()).unwrap_or(i32::MAX);
    ResourceMap::from([("zones".to_owned(), IntOrString::String(count.to_string()))])
}

/// Objects of one kind, and the right to write their status.
struct Writer<K> {
    api: Api<K>,
    objects: Vec<K>,
}

impl<K> Writer<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    async fn list(context: &StatusContext) -> Result<Writer<K>, StatusError> {
        let api: Api<K> = Api::all(context.workload.clone());
        let action = || format!("list {}", K::plural(&()));
        let list = api
            .list(&ListParams::default())
            .await
            .map_err(|source| StatusError { action: action(), source: Box::new(source) })?;
        Ok(Writer { api, objects: list.items })
    }

    /// Writes a status if it says anything new; a writer who was faster is left to the next pass.
    async fn write(&self, object: &K, status: &Value) -> Result<usize, StatusError> {
        let present = serde_json::to_value(object).unwrap_or_default();
        let same =
            status.as_object().into_iter().flatten().all(|(key, value)| present["status"].get(key) == Some(value));
        if same {
            return Ok(0);
        }
        let version = object.meta().resource_version.clone();
        let patch = json!({ "metadata": { "resourceVersion": version }, "status": status });
        let name = object.name_any();
        match self.api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => Ok(1),
            Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => Ok(0),
            Err(source) => Err(StatusError {
                action: format!("write the status of {} {name}", K::kind(&())),
                source: Box::new(source),
            }),
        }
    }
}
