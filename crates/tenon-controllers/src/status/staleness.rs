//! How old is what is known of the hosts of a class, where their Proxmox cluster does not answer?

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tenon_api::ConditionStatus;

use super::Verdict;
use super::estate::Estate;

/// Seconds of the step in which the time of the last listing is shown: a text that differs from pass to pass would be written
/// in every one.
const STEP_S: i64 = 60;

/// The condition of a class that is true by what was known before, with the time of the last listing of each silent region.
pub(super) fn noted(verdict: Verdict, zones: &[String], estate: &Estate, listed: &LastListings) -> Verdict {
    if verdict.status() != ConditionStatus::True {
        return verdict;
    }
    let region = |zone: &String| zone.split('/').next().unwrap_or_default().to_owned();
    let mut regions: Vec<String> = zones.iter().map(region).collect();
    regions.sort();
    regions.dedup();
    let told = regions.iter().filter_map(|region| {
        let trouble = estate.regions.get(region)?.as_ref().err()?;
        let since = listed.at(region).map_or_else(
            || "has not been listed since Tenon started".to_owned(),
            |at| format!("was last listed at {at}"),
        );
        Some(format!("Proxmox API of region {region} unavailable: {trouble}; the region {since}, and its hosts count as they were then"))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { verdict } else { verdict.with_message(told.join("; ")) }
}

/// When each region was listed last.
pub(super) struct LastListings {
    ages: BTreeMap<String, Duration>,
    now: Timestamp,
}

impl LastListings {
    pub(super) fn new(ages: BTreeMap<String, Duration>, now: &Time) -> LastListings {
        LastListings { ages, now: now.0 }
    }

    /// The minute of the last listing of a region.
    fn at(&self, region: &str) -> Option<Timestamp> {
        let age = i64::try_from(self.ages.get(region)?.as_secs()).unwrap_or(i64::MAX);
        let second = self.now.as_second().saturating_sub(age);
        Timestamp::from_second(second - second.rem_euclid(STEP_S)).ok()
    }
}

#[cfg(test)]
mod tests {
    use tenon_api::condition_reasons::INSTANCE_TEMPLATE_READY;

    use super::super::estate::RegionTrouble;
    use super::*;

    fn estate() -> Estate {
        let silent = Err(RegionTrouble::Silent("no reply within 6 s".to_owned()));
        Estate { regions: BTreeMap::from([("a".to_owned(), Ok(Default::default())), ("b".to_owned(), silent)]) }
    }

    fn told(zones: &[&str], age: Option<u64>) -> String {
        let zones: Vec<String> = zones.iter().map(ToString::to_string).collect();
        let ages = age.map(|age| ("b".to_owned(), Duration::from_secs(age)));
        let now = Time("2026-11-18T10:05:30Z".parse().unwrap());
        let verdict = Verdict::holds(&INSTANCE_TEMPLATE_READY);
        let noted = noted(verdict, &zones, &estate(), &LastListings::new(ages.into_iter().collect(), &now));
        assert_eq!(noted.status(), ConditionStatus::True);
        noted.message().to_owned()
    }

    #[test]
    fn a_class_says_since_when_a_region_of_its_hosts_is_silent_and_nothing_of_other_regions() {
        assert_eq!(told(&["a/pve1/9000"], Some(40)), "");
        let text = "Proxmox API of region b unavailable: no reply within 6 s; the region was last listed at \
                    2026-11-18T10:04:00Z, and its hosts count as they were then";
        assert_eq!(told(&["a/pve1/9000", "b/pve1/9000", "b/pve2/9000"], Some(40)), text);
        assert_eq!(told(&["b/pve1/9000"], Some(60)), text, "a text does not change with every pass");
        assert!(told(&["b/pve1/9000"], None).contains("has not been listed since Tenon started"));
    }
}
