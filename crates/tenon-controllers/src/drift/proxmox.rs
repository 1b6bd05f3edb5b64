//! Instance types and images as Proxmox has them. Both are worked out again only if a listing shows other facts; a template that
//! was changed without a trace in its row is read again after a minute.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tenon_api::drift::{KnownImages, KnownInstanceTypes, OfferedInstanceType, region_of};
use tenon_api::{NodeClaim, ProxmoxNodeClass, names};
use tenon_model::{HostName, InstanceType, Place, Requirement, VmId};
use tenon_pve::GuestKind;

use crate::claim::image_id;
use crate::context::Context;
use crate::moments::after;
use crate::regions::RegionFacts;
use crate::status::Estate;

/// A template that could not be read is not asked again for every claim.
const UNREADABLE_FOR: SignedDuration = SignedDuration::from_secs(15);

/// A node must be this old before its size is looked for, as the reference has it …
const SIZE_AFTER: SignedDuration = SignedDuration::from_hours(1);

/// … and a size that was found is not looked for again for so long.
const SIZE_FOUND_FOR: SignedDuration = SignedDuration::from_mins(30);

/// A template: region, host, id.
type Template = (String, HostName, VmId);

/// What is remembered from look to look, and may be forgotten at any time.
#[derive(Default)]
pub(super) struct ProxmoxCache {
    estate: Option<Estate>,
    /// The facts that the sizes were worked out from.
    facts: RegionFacts,
    sizes: Option<Vec<OfferedInstanceType>>,
    /// Templates that could not be read, and when.
    unreadable: BTreeMap<Template, Timestamp>,
    /// When the size of each claim, by uid, was found last.
    found: BTreeMap<String, Timestamp>,
}

impl ProxmoxCache {
    /// Looks at what the last poll of every Proxmox cluster showed.
    pub(super) async fn look(&mut self, context: &Context, now: Timestamp) {
        let facts = context.regions.facts();
        let estate = context.regions.look_polled().await;
        if self.estate.is_none() || self.facts != facts {
            // A host that does not answer is not a host that is gone.
            let all_answer = estate.regions.values().all(Result::is_ok) && !estate.regions.is_empty();
            self.sizes = all_answer.then(|| offered(&estate, &context.settings.types));
        }
        self.unreadable.retain(|_, at| after(*at, UNREADABLE_FOR) > now);
        (self.estate, self.facts) = (Some(estate), facts);
    }

    /// Whether a template could not be read, so that there is something to look at again.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.unreadable.is_empty()
    }

    /// The sizes there are, if a claim's is to be looked for.
    pub(super) fn sizes(&self, claim: &NodeClaim, now: Timestamp) -> KnownInstanceTypes<'_> {
        let is_old = claim.creation_timestamp().is_some_and(|made| after(made.0, SIZE_AFTER) <= now);
        let is_found =
            self.found.get(&claim.uid().unwrap_or_default()).is_some_and(|at| after(*at, SIZE_FOUND_FOR) > now);
        // Of a region that was taken out of the cloud config nothing is offered, and nothing is known.
        let region = claim.labels().get(names::LABEL_REGION);
        let is_shown = |region: &String| self.estate.iter().any(|estate| estate.regions.contains_key(region));
        match &self.sizes {
            Some(sizes) if is_old && !is_found && region.is_none_or(is_shown) => KnownInstanceTypes::Are(sizes),
            _ => KnownInstanceTypes::Unknown,
        }
    }

    /// The size of a claim was looked for, and is there.
    pub(super) fn size_is_found(&mut self, claim: &NodeClaim, now: Timestamp) {
        self.found.retain(|_, at| after(*at, SIZE_FOUND_FOR) > now);
        self.found.insert(claim.uid().unwrap_or_default(), now);
    }

    /// The images of the templates that a class selected and that lie where a claim's node is; `None` if that cannot be told.
    pub(super) async fn images(
        &mut self,
        context: &Context,
        claim: &NodeClaim,
        class: &ProxmoxNodeClass,
    ) -> Option<Vec<String>> {
        let now = context.clock.now();
        let Some(templates) = self.templates(claim, class)? else { return Some(Vec::new()) };
        let mut images = Vec::new();
        for template in templates {
            if self.unreadable.contains_key(&template) {
                return None;
            }
            let Some(image) = read(context, &template).await else {
                self.unreadable.insert(template, now);
                return None;
            };
            images.push(image);
        }
        Some(images)
    }

    /// The templates in question: none in a region that is not spoken of, nothing known in one that does not answer.
    fn templates(&self, claim: &NodeClaim, class: &ProxmoxNodeClass) -> Option<Option<Vec<Template>>> {
        let estate = self.estate.as_ref()?;
        let (Some(region), Some(zone)) = (region_of(claim), claim.labels().get(names::LABEL_ZONE)) else {
            return Some(None);
        };
        let resources = estate.regions.get(&region)?.as_ref().ok()?;
        let zones = class.status.iter().flat_map(|status| status.selected_zones.iter().flatten());
        let of_region = zones.filter_map(|zone| zone.strip_prefix(&region)?.strip_prefix('/')?.split_once('/'));
        // Where the template itself lies does not matter: on a shared storage one serves several hosts.
        let of_zone = of_region.filter(|(host, _)| host == zone);
        let ids: Vec<VmId> = of_zone.filter_map(|(_, id)| id.parse().ok()).collect();
        let rows = resources.guests.iter().filter(|row| row.template && row.kind == GuestKind::Qemu);
        let there = rows.filter(|row| ids.contains(&row.id));
        let mut templates: Vec<Template> = there.map(|row| (region.clone(), row.host.clone(), row.id)).collect();
        templates.sort();
        Some(Some(templates))
    }
}

/// Images, as the drift decision takes them.
pub(super) fn known_images(images: Option<&Vec<String>>) -> KnownImages<'_> {
    images.map_or(KnownImages::Unknown, |images| KnownImages::Are(images))
}

async fn read(context: &Context, (region, host, vmid): &Template) -> Option<String> {
    let pve = context.region(region).ok()?;
    let place = Place { region: region.clone(), host: host.clone() };
    match context.regions.reads.template(&pve, &place, *vmid).await {
        Ok(config) => Some(image_id(*vmid, &config)),
        Err(error) => {
            tracing::debug!(region, %host, %vmid, error = error.full_message(), "cannot read image of template");
            None
        }
    }
}

/// Every size in every place there is, with room or without.
fn offered(estate: &Estate, types: &[InstanceType]) -> Vec<OfferedInstanceType> {
    let shown = estate.regions.iter().filter_map(|(region, view)| Some((region, view.as_ref().ok()?)));
    let places: Vec<(&String, &HostName)> =
        shown.flat_map(|(region, view)| view.hosts.iter().map(move |row| (region, &row.host))).collect();
    let offered = |size: &InstanceType| {
        let at = |(region, host): &(&String, &HostName)| {
            [
                (names::LABEL_INSTANCE_TYPE, size.name.as_str()),
                (names::LABEL_INSTANCE_FAMILY, size.family()),
                (names::LABEL_CAPACITY_TYPE, size.capacity_type.as_str()),
                (names::LABEL_REGION, region.as_str()),
                (names::LABEL_ZONE, host.as_str()),
            ]
            .into_iter()
            .map(|(label, value)| (label.to_owned(), Requirement::is(value)))
            .collect()
        };
        OfferedInstanceType { name: size.name.clone(), offerings: places.iter().map(at).collect() }
    };
    types.iter().map(offered).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tenon_pve::{HostRow, Resources};

    use super::*;

    fn claim() -> NodeClaim {
        let class = json!({ "group": "g", "kind": "k", "name": "default" });
        let made = json!({ "name": "a", "uid": "a", "creationTimestamp": "2026-01-01T00:00:00Z" });
        let claim = json!({ "metadata": made, "spec": { "requirements": [], "nodeClassRef": class } });
        serde_json::from_value(claim).unwrap()
    }

    fn at(minute: i64) -> Timestamp {
        "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minute)
    }

    #[test]
    fn a_size_is_looked_for_after_an_hour_and_again_half_an_hour_after_it_was_found() {
        let mut cache = ProxmoxCache { sizes: Some(Vec::new()), ..ProxmoxCache::default() };
        let is_asked =
            |cache: &ProxmoxCache, minute| matches!(cache.sizes(&claim(), at(minute)), KnownInstanceTypes::Are(_));
        assert!(!is_asked(&cache, 59) && is_asked(&cache, 60));
        cache.size_is_found(&claim(), at(60));
        assert!(!is_asked(&cache, 89) && is_asked(&cache, 90));
        assert!(!is_asked(&ProxmoxCache::default(), 90), "of a silent estate nothing is known");
    }

    #[test]
    fn every_size_is_offered_on_every_host_even_one_that_is_away() {
        let host = |name: &str, status: &str| {
            Arc::new(HostRow {
                host: name.parse().unwrap(),
                status: Some(status.to_owned()),
                maxcpu: None,
                maxmem: None,
                cpu: None,
                mem: None,
            })
        };
        let hosts = vec![host("pve1", "online"), host("pve2", "offline")];
        let view = Resources { guests: Vec::new(), hosts, storages: Vec::new() };
        let estate = Estate { regions: BTreeMap::from([("lab".to_owned(), Ok(view.into()))]) };
        let sizes = offered(&estate, &InstanceType::built_in());
        assert_eq!(sizes.len(), 20);
        let zones = sizes[0].offerings.iter().filter_map(|offering| offering.get(names::LABEL_ZONE)).cloned();
        assert_eq!(zones.collect::<Vec<_>>(), [Requirement::is("pve1"), Requirement::is("pve2")]);
        assert_eq!(sizes[0].offerings[0].get(names::LABEL_INSTANCE_TYPE), Some(&Requirement::is(&sizes[0].name)));
    }
}
