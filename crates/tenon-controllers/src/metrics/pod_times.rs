//! How long do pods take to be bound and to start? Only pods that were seen before they started are timed; what is kept
//! of one is dropped when it starts, ends or goes.
//!
//! Times are taken when the watch shows a change: pods are kept without the times of their conditions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kube::runtime::watcher::Event;
use tenon_api::kube_objects::Pod;
use tenon_model::PodKey;

use super::catalogue::karpenter;
use super::exposition::Exposition;
use super::families::{Series, labels};

labels! {
    /// Whether a pod has ResourceClaims.
    WithDevices { dynamic_resources: bool }
}

/// How long pods take.
#[derive(Debug)]
pub(crate) struct PodTimes {
    startup: Series<()>,
    bound: Series<WithDevices>,
    provisioning_bound: Series<WithDevices>,
    provisioning_startup: Series<()>,
    book: Mutex<Book>,
}

/// Pods that have not started.
#[derive(Debug, Default)]
struct Book {
    pods: BTreeMap<Arc<PodKey>, Coming>,
    /// Which list of all pods is being read, or was last.
    list: u64,
}

/// A pod that has not started.
#[derive(Debug)]
struct Coming {
    created: Timestamp,
    is_bound: bool,
    with_devices: bool,
    /// When a plan found a node for it.
    placed: Option<Timestamp>,
    /// The list that showed it last.
    list: u64,
}

impl Default for PodTimes {
    fn default() -> PodTimes {
        PodTimes {
            startup: Series::new(&karpenter::PODS_STARTUP),
            bound: Series::new(&karpenter::PODS_BOUND),
            provisioning_bound: Series::new(&karpenter::PODS_PROVISIONING_BOUND),
            provisioning_startup: Series::new(&karpenter::PODS_PROVISIONING_STARTUP),
            book: Mutex::default(),
        }
    }
}

impl PodTimes {
    /// Takes note of what the watch shows.
    pub(crate) fn see(&self, event: &Event<Pod>, now: Timestamp) {
        match event {
            Event::Init => {
                let mut book = self.lock();
                book.list = book.list.wrapping_add(1);
            }
            Event::InitApply(pod) | Event::Apply(pod) => self.see_pod(pod, now),
            Event::Delete(pod) => {
                self.lock().pods.remove(&pod.metadata.key);
            }
            Event::InitDone => {
                let mut book = self.lock();
                let list = book.list;
                book.pods.retain(|_, pod| pod.list == list);
            }
        }
    }

    fn see_pod(&self, pod: &Pod, now: Timestamp) {
        let mut book = self.lock();
        let list = book.list;
        let Some(coming) = book.pods.get_mut(&pod.metadata.key) else {
            if matches!(phase(pod), "" | "Pending")
                && let Some(created) = &pod.metadata.creation_timestamp
            {
                let (is_bound, with_devices) = (pod.node_name.is_some(), has_devices(pod));
                let coming = Coming { created: created.0, is_bound, with_devices, placed: None, list };
                book.pods.insert(pod.metadata.key.clone(), coming);
            }
            return;
        };
        coming.list = list;
        if matches!(phase(pod), "Succeeded" | "Failed") {
            book.pods.remove(&pod.metadata.key);
            return;
        }
        if !coming.is_bound && pod.node_name.is_some() {
            coming.is_bound = true;
            let of = WithDevices { dynamic_resources: coming.with_devices };
            self.bound.get_or_create(&of).observe(seconds(coming.created, now));
            if let Some(placed) = coming.placed {
                self.provisioning_bound.get_or_create(&of).observe(seconds(placed, now));
            }
        }
        if is_ready(pod) {
            self.startup.get_or_create(&()).observe(seconds(coming.created, now));
            if let Some(placed) = coming.placed {
                self.provisioning_startup.get_or_create(&()).observe(seconds(placed, now));
            }
            book.pods.remove(&pod.metadata.key);
        }
    }

    /// A plan found nodes for these pods. The first time counts, and only for those that are not bound.
    pub(crate) fn placed<'a>(&self, pods: impl Iterator<Item = &'a Arc<PodKey>>, now: Timestamp) {
        let mut book = self.lock();
        for key in pods {
            if let Some(coming) = book.pods.get_mut(key).filter(|coming| !coming.is_bound) {
                coming.placed.get_or_insert(now);
            }
        }
    }

    /// Writes all of it down.
    pub(super) fn show(&self, page: &mut Exposition<'_>, now: Option<Timestamp>) {
        [&self.startup.family, &self.bound.family].into_iter().for_each(|family| family.show(page));
        [&self.provisioning_bound.family, &self.provisioning_startup.family]
            .into_iter()
            .for_each(|family| family.show(page));
        let Some(now) = now else { return };
        for (key, pod) in &self.lock().pods {
            let unbound = (!pod.is_bound).then_some(());
            let placed = pod.placed;
            for (metric, since) in [
                (&karpenter::PODS_UNSTARTED, Some(pod.created)),
                (&karpenter::PODS_UNBOUND, unbound.map(|()| pod.created)),
                (&karpenter::PODS_PROVISIONING_UNSTARTED, placed),
                (&karpenter::PODS_PROVISIONING_UNBOUND, unbound.and(placed)),
            ] {
                if let (Some(since), Some(mut lines)) = (since, page.of(metric)) {
                    // The third label is that of the two about pods that are not bound.
                    let values: [&str; 3] =
                        [&key.name, &key.namespace, if pod.with_devices { "true" } else { "false" }];
                    lines.number(&values, seconds(since, now));
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seconds(since: Timestamp, now: Timestamp) -> f64 {
    now.duration_since(since).as_secs_f64().max(0.0)
}

pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn has_devices(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.resource_claims.iter().flatten().next().is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const CREATED: &str = "2026-01-01T00:00:00Z";

    fn pod(name: &str, more: &Value) -> Pod {
        let metadata = json!({ "name": name, "namespace": "n", "uid": name, "creationTimestamp": CREATED });
        let mut pod = json!({ "metadata": metadata, "spec": {}, "status": { "phase": "Pending" } });
        for (part, value) in more.as_object().into_iter().flatten() {
            pod[part] = value.clone();
        }
        serde_json::from_value(pod).unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(CREATED.parse::<Timestamp>().unwrap().as_second() + seconds).unwrap()
    }

    fn text(times: &PodTimes, now: i64) -> String {
        let mut page = Exposition::without(|_| false);
        times.show(&mut page, Some(at(now)));
        page.text()
    }

    #[test]
    fn a_pod_is_timed_from_its_creation_and_from_its_plan_until_it_is_bound_and_until_it_is_ready() {
        let times = PodTimes::default();
        let waits = pod("a", &json!({}));
        times.see(&Event::Apply(waits.clone()), at(1));
        times.placed([&waits.metadata.key].into_iter(), at(4));
        times.placed([&waits.metadata.key].into_iter(), at(5));
        let shown = text(&times, 10);
        for line in [
            "karpenter_pods_unstarted_time_seconds{name=\"a\",namespace=\"n\"} 10",
            "karpenter_pods_unbound_time_seconds{name=\"a\",namespace=\"n\",dynamic_resources=\"false\"} 10",
            "karpenter_pods_provisioning_unbound_time_seconds{name=\"a\",namespace=\"n\",dynamic_resources=\"false\"} 6",
            "karpenter_pods_provisioning_unstarted_time_seconds{name=\"a\",namespace=\"n\"} 6",
        ] {
            assert!(shown.contains(line), "{line}: {shown}");
        }
        times.see(&Event::Apply(pod("a", &json!({ "spec": { "nodeName": "x" } }))), at(20));
        let shown = text(&times, 21);
        assert!(!shown.contains("unbound_time_seconds") && shown.contains("unstarted_time_seconds{"), "{shown}");
        assert!(shown.contains("pods_bound_duration_seconds_sum{dynamic_resources=\"false\"} 20\n"), "{shown}");
        assert!(shown.contains("pods_provisioning_bound_duration_seconds_sum{dynamic_resources=\"false\"} 16\n"));
        let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        times.see(&Event::Apply(pod("a", &json!({ "spec": { "nodeName": "x" }, "status": ready }))), at(30));
        let shown = text(&times, 31);
        assert!(!shown.contains("time_seconds{"), "{shown}");
        assert!(shown.contains("karpenter_pods_startup_duration_seconds{quantile=\"0.5\"} 30\n"), "{shown}");
        assert!(shown.contains("karpenter_pods_startup_duration_seconds_count 1\n"), "{shown}");
        assert!(shown.contains("karpenter_pods_provisioning_startup_duration_seconds_sum 26\n"), "{shown}");
    }

    #[test]
    fn j9_pods_with_resource_claims_are_told_apart() {
        let times = PodTimes::default();
        let claims = json!({ "resourceClaims": [{ "name": "gpu" }] });
        times.see(&Event::Apply(pod("a", &json!({ "spec": claims }))), at(0));
        assert!(text(&times, 1).contains("dynamic_resources=\"true\"} 1\n"), "{}", text(&times, 1));
        let bound = json!({ "resourceClaims": [{ "name": "gpu" }], "nodeName": "x" });
        times.see(&Event::Apply(pod("a", &json!({ "spec": bound }))), at(3));
        let shown = text(&times, 4);
        assert!(
            shown.contains("karpenter_pods_bound_duration_seconds_count{dynamic_resources=\"true\"} 1\n"),
            "{shown}"
        );
    }

    #[test]
    fn pods_that_run_already_end_or_go_leave_nothing() {
        let times = PodTimes::default();
        let running = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        times.see(&Event::InitApply(pod("runs", &json!({ "status": running }))), at(0));
        for name in ["ends", "goes", "is-missed"] {
            times.see(&Event::Apply(pod(name, &json!({}))), at(0));
        }
        times.see(&Event::Apply(pod("ends", &json!({ "status": { "phase": "Failed" } }))), at(1));
        times.see(&Event::Delete(pod("goes", &json!({}))), at(1));
        assert_eq!(text(&times, 2).matches("karpenter_pods_unstarted_time_seconds{").count(), 1);
        // It went while the watch was interrupted.
        [Event::Init, Event::InitDone].iter().for_each(|event| times.see(event, at(3)));
        assert_eq!(text(&times, 4), "");
        times.placed([&pod("runs", &json!({})).metadata.key].into_iter(), at(5));
        assert_eq!(text(&times, 6), "");
    }
}
