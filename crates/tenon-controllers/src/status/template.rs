//! Whether a ProxmoxUnmanagedTemplate names templates that are there, and what is said of a ProxmoxTemplate.

use tenon_api::condition_reasons::{
    AWAITING_RECONCILIATION, REGION_UNREACHABLE, TEMPLATE_READY, TEMPLATE_VALIDATION, TEMPLATES_NOT_FOUND,
    condition_reason,
};
use tenon_api::{ConditionStatus, ProxmoxTemplate, ProxmoxUnmanagedTemplateSpec};

use super::Verdict;
use super::estate::Estate;
use super::template_candidates::{chosen, rejected, wanted_tags};

/// The condition of a template.
pub(crate) const READY: &str = TEMPLATE_READY.name();

/// What is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateVerdict {
    /// Each template as `region/host/vmid`. `None` if it cannot be told now: what was found before stays.
    pub zones: Option<Vec<String>>,
    /// The condition.
    pub ready: Verdict,
}

/// Looks for the templates a spec names.
pub fn judge_template(spec: &ProxmoxUnmanagedTemplateSpec, estate: &Estate) -> TemplateVerdict {
    if spec.template_name.is_none() && spec.tags.is_none() {
        // It would name every template there is.
        let message = "spec.templateName and spec.tags are both missing; set at least one of them";
        return TemplateVerdict { zones: Some(Vec::new()), ready: Verdict::fails(&TEMPLATE_VALIDATION, message) };
    }
    let region = spec.region.as_deref();
    let tags = wanted_tags(spec);
    if let Some(region) = region.filter(|region| !estate.regions.contains_key(*region)) {
        let known: Vec<&str> = estate.regions.keys().map(String::as_str).collect();
        let message = format!("region {region} is not in the cloud config, which has {}", known.join(", "));
        return TemplateVerdict { zones: Some(Vec::new()), ready: Verdict::fails(&TEMPLATES_NOT_FOUND, message) };
    }
    let matches = estate.templates(region).into_iter().filter(|template| {
        spec.template_name.as_ref().is_none_or(|name| *name == template.name)
            && tags.iter().all(|tag| template.tags.contains(tag))
    });
    let mut zones: Vec<String> = matches.map(|template| template.zone).collect();
    zones.sort();
    let troubles = estate.troubles(region);
    match (zones.is_empty(), troubles.is_empty()) {
        // Some region may hide what is looked for: nothing is forgotten until it answers.
        (true, false) => TemplateVerdict { zones: None, ready: Verdict::unknown(&REGION_UNREACHABLE, troubles) },
        (true, true) => {
            let message = sentences([wanted(spec), rejected(spec, estate, false)]);
            TemplateVerdict { zones: Some(zones), ready: Verdict::fails(&TEMPLATES_NOT_FOUND, message) }
        }
        (false, _) => {
            let silent = silent(estate, region);
            let message = sentences([chosen(estate, &zones), rejected(spec, estate, true), silent]);
            let ready = Verdict::holds(&TEMPLATE_READY).with_message(message);
            TemplateVerdict { zones: Some(zones), ready }
        }
    }
}

/// What the loop that makes templates from images said of one.
pub(crate) fn said_ready(template: &ProxmoxTemplate) -> Verdict {
    let mut conditions = template.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let said = conditions.rfind(|condition| condition.type_ == READY);
    let awaiting = || Verdict::unknown(&AWAITING_RECONCILIATION, "its VM templates were not looked at yet");
    let Some(said) = said else { return awaiting() };
    match (said.status, condition_reason(&said.reason)) {
        (ConditionStatus::True, _) => Verdict::holds(&TEMPLATE_READY).with_message(said.message.clone()),
        (ConditionStatus::False, Some(reason)) => Verdict::fails(reason, said.message.clone()),
        (ConditionStatus::Unknown, Some(reason)) => Verdict::unknown(reason, said.message.clone()),
        (_, None) => awaiting(),
    }
}

/// What was found before in regions that do not answer is still there, as far as anybody knows.
pub(super) fn with_silent(
    mut zones: Vec<String>,
    before: &[String],
    estate: &Estate,
    wanted: Option<&str>,
) -> Vec<String> {
    let region = |zone: &String| zone.split('/').next().unwrap_or_default().to_owned();
    let is_kept = |zone: &&String| {
        let region = region(zone);
        estate.is_silent(&region) && wanted.is_none_or(|wanted| wanted == region)
    };
    zones.extend(before.iter().filter(is_kept).cloned());
    zones.sort();
    zones.dedup();
    zones
}

/// The regions that matter and do not answer, without the details that may differ from look to look.
fn silent(estate: &Estate, region: Option<&str>) -> String {
    let of_interest = estate.regions.keys().filter(|name| region.is_none_or(|wanted| wanted == *name));
    let silent: Vec<&str> = of_interest.filter(|name| estate.is_silent(name)).map(String::as_str).collect();
    match silent.as_slice() {
        [] => String::new(),
        names => format!("what was found before is kept for regions that do not answer: {}", names.join(", ")),
    }
}

/// What there is to say, one thing after the other.
fn sentences<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn wanted(spec: &ProxmoxUnmanagedTemplateSpec) -> String {
    let name = spec.template_name.as_ref().map(|name| format!("named {name}"));
    let tags = spec.tags.as_ref().map(|tags| format!("tagged {}", tags.join(", ")));
    let wanted: Vec<String> = name.into_iter().chain(tags).collect();
    let place = spec.region.as_ref().map(|region| format!(" in region {region}")).unwrap_or_default();
    format!("no VM template {}{place}; create one, or correct spec.templateName and spec.tags", wanted.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::super::estate::RegionTrouble;
    use super::*;

    #[test]
    fn what_was_found_in_a_silent_region_is_kept_as_long_as_the_template_is_looked_for_there() {
        let mut estate = Estate::default();
        estate.regions.insert("away".to_owned(), Err(RegionTrouble::Silent("no answer".to_owned())));
        estate.regions.insert("lab".to_owned(), Ok(tenon_pve::Resources::default().into()));
        let before = ["away/pve1/9001".to_owned(), "lab/pve1/9001".to_owned(), "gone/pve1/9001".to_owned()];
        let kept = |wanted| with_silent(vec!["lab/pve2/9002".to_owned()], &before, &estate, wanted);
        assert_eq!(kept(None), ["away/pve1/9001", "lab/pve2/9002"]);
        assert_eq!(kept(Some("lab")), ["lab/pve2/9002"]);
    }
}
