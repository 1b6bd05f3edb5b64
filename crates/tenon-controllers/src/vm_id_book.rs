//! Which VM ids were freed just now, and how far ids have come: a ConfigMap, so that it outlives the controller.
//!
//! A DELETE that a former leader sent may land late. If its id were given to another VM at once, that VM would be hit. So ids
//! ascend, and one that was freed is not used for a while. When the end of the range is reached, the lowest id that is free
//! and not in quarantine is used.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tenon_model::{Seconds, VmId, VmIds};

use crate::{kube_error, writes};

/// The ConfigMap, in the namespace of `--system-namespace`.
const NAME: &str = "tenon-vm-ids";

/// Its one key.
const KEY: &str = "regions.json";

/// How long a freed id is not used: no request is on its way for this long.
const QUARANTINE_S: i64 = 600;

/// Times a write is tried when somebody else wrote in between.
const ATTEMPTS: usize = 3;

/// The book of ids of every region.
pub(crate) struct VmIdBook {
    maps: Api<ConfigMap>,
    /// What is known, whether or not it is written yet.
    known: Mutex<Known>,
    /// Held while the ConfigMap is read or written.
    writing: tokio::sync::Mutex<()>,
    is_reported: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    is_read: bool,
    pages: Pages,
    /// Ids that were chosen for another launch just now, and do not stand in its claim yet, as far as stores show it.
    reserved: BTreeMap<(String, VmId), Seconds>,
}

#[derive(Debug, Clone, Default)]
struct Pages {
    version: Option<String>,
    regions: BTreeMap<String, Page>,
}

/// The ids of one region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Page {
    /// The highest id that was freed so far.
    #[serde(default)]
    highest: u32,
    /// When ids were freed, in seconds since 1970.
    #[serde(default)]
    freed: BTreeMap<u32, i64>,
}

impl VmIdBook {
    pub(crate) fn new(workload: Client, namespace: &str) -> VmIdBook {
        VmIdBook {
            maps: Api::namespaced(workload, namespace),
            known: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            is_reported: AtomicBool::new(false),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes ids that are in quarantine or reserved, and lets others begin after the highest that was used.
    pub(crate) async fn apply(&self, ids: &mut VmIds, now: Seconds) {
        if !self.known().is_read {
            let _writing = self.writing.lock().await;
            self.read_again().await;
        }
        let mut known = self.known();
        known.reserved.retain(|_, at| now.since(*at) < QUARANTINE_S);
        for (region, page) in &known.pages.regions {
            page.apply(region, ids, now);
        }
        for (region, id) in known.reserved.keys() {
            ids.take(region, [*id]);
        }
    }

    /// An id was chosen for a launch: nobody else chooses it before stores show it.
    pub(crate) fn reserve(&self, region: &str, id: VmId, now: Seconds) {
        self.known().reserved.insert((region.to_owned(), id), now);
    }

    /// Writes down that ids of a region are free from now on. What cannot be written is remembered until a restart.
    pub(crate) async fn free(&self, region: &str, ids: &[VmId], now: Seconds) {
        self.known().pages.regions.entry(region.to_owned()).or_default().free(ids, now);
        let _writing = self.writing.lock().await;
        for _ in 0..ATTEMPTS {
            if !self.known().is_read {
                self.read_again().await;
            }
            let pages = self.known().pages.clone();
            match self.save(&pages).await {
                Ok(version) => {
                    self.is_reported.store(false, Ordering::Relaxed);
                    self.known().pages.version = version;
                    return;
                }
                Err(error) if writes::is_outdated(&error) => self.known().is_read = false,
                Err(error) => {
                    self.note::<Pages>(Err(error));
                    return;
                }
            }
        }
    }

    /// Reads the ConfigMap, and adds what is known besides.
    async fn read_again(&self) {
        let Some(read) = self.note(self.load().await) else { return };
        let mut known = self.known();
        known.pages.version = read.version;
        for (region, page) in read.regions {
            known.pages.regions.entry(region).or_default().merge(page);
        }
        known.is_read = true;
    }

    async fn load(&self) -> Result<Pages, kube::Error> {
        let Some(map) = self.maps.get_opt(NAME).await? else { return Ok(Pages::default()) };
        let text = map.data.as_ref().and_then(|data| data.get(KEY));
        // A text that somebody broke is begun anew: the quarantine is a precaution, the proof of ownership decides.
        let regions = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        Ok(Pages { version: map.resource_version(), regions })
    }

    async fn save(&self, pages: &Pages) -> Result<Option<String>, kube::Error> {
        let text = serde_json::to_string(&pages.regions).map_err(kube::Error::SerdeError)?;
        let map = json!({ "metadata": { "name": NAME, "resourceVersion": pages.version }, "data": { KEY: text } });
        let written = if pages.version.is_some() {
            self.maps.patch(NAME, &PatchParams::default(), &Patch::Merge(map)).await?
        } else {
            let map: ConfigMap = serde_json::from_value(map).map_err(kube::Error::SerdeError)?;
            self.maps.create(&PostParams::default(), &map).await?
        };
        Ok(written.resource_version())
    }

    /// Logs once that the book cannot be read or written.
    fn note<T>(&self, outcome: Result<T, kube::Error>) -> Option<T> {
        outcome
            .map_err(|error| {
                if !self.is_reported.swap(true, Ordering::Relaxed) {
                    let error = kube_error::message(&error);
                    tracing::warn!(config_map = NAME, error, "cannot keep the VM IDs in quarantine over a restart");
                }
            })
            .ok()
    }
}

impl Page {
    fn merge(&mut self, other: Page) {
        self.highest = self.highest.max(other.highest);
        for (id, at) in other.freed {
            let known = self.freed.entry(id).or_insert(at);
            *known = at.max(*known);
        }
    }

    fn free(&mut self, ids: &[VmId], now: Seconds) {
        self.freed.retain(|_, at| now.since(Seconds(*at)) < QUARANTINE_S);
        for id in ids {
            self.highest = self.highest.max(id.get());
            self.freed.insert(id.get(), now.0);
        }
    }

    fn apply(&self, region: &str, ids: &mut VmIds, now: Seconds) {
        let held = self.freed.iter().filter(|(_, at)| now.since(Seconds(**at)) < QUARANTINE_S);
        ids.take(region, held.filter_map(|(id, _)| VmId::try_from(*id).ok()));
        if let Ok(highest) = VmId::try_from(self.highest) {
            ids.begin_after(region, highest);
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_model::VmIdRange;

    use super::*;

    fn id(number: u32) -> VmId {
        number.try_into().unwrap()
    }

    fn next(page: &Page, now: i64) -> Vec<Option<u32>> {
        let mut ids = VmIds::new(VmIdRange::new(id(100), id(104)).unwrap());
        ids.take("lab", [id(101)]);
        page.apply("lab", &mut ids, Seconds(now));
        (0..4).map(|_| ids.take_next("lab").map(VmId::get)).collect()
    }

    #[test]
    fn a_freed_id_comes_again_last_and_not_before_ten_minutes() {
        let mut page = Page::default();
        assert_eq!(next(&page, 0), [Some(100), Some(102), Some(103), Some(104)]);
        page.free(&[id(102)], Seconds(1_000));
        assert_eq!(next(&page, 1_599), [Some(103), Some(104), Some(100), None]);
        assert_eq!(next(&page, 1_600), [Some(103), Some(104), Some(100), Some(102)]);
    }

    #[test]
    fn what_was_freed_long_ago_is_forgotten_and_how_far_ids_came_is_not() {
        let mut page = Page::default();
        page.free(&[id(103)], Seconds(0));
        page.free(&[id(100)], Seconds(10_000));
        assert_eq!(page, Page { highest: 103, freed: [(100, 10_000)].into() });
        let text = serde_json::to_string(&page).unwrap();
        assert_eq!(serde_json::from_str::<Page>(&text).unwrap(), page);
    }
}
