//! VMs that are started again, on a cluster in memory: what is done, how often, and what becomes of a node that does not come back.

use std::sync::Arc;

use serde_json::json;

use super::test_stage::ClaimStage;
use crate::memory::Memory;

const BOUND: &str = "karpenter.sh/reboot-termination-grace-period";
const BEFORE: &str = "karpenter.sh/reboot-pre-boot-id";

/// A cluster with a node that is up.
struct Site {
    stage: ClaimStage,
}

impl Site {
    async fn new() -> Site {
        let stage = ClaimStage::new().await;
        stage.add_initialized("a", json!({})).await;
        let site = Site { stage };
        site.boots("one", "True").await;
        site
    }

    /// The kubelet reports.
    async fn boots(&self, boot_id: &str, ready: &str) {
        let status = json!({
            "nodeInfo": { "bootID": boot_id },
            "conditions": [{ "type": "Ready", "status": ready }],
        });
        self.stage.patch_status(self.stage.nodes_api(), "a", status).await;
    }

    /// What repair writes when it wants a reboot.
    async fn request(&self, bound: Option<&str>) {
        let annotations = json!({ "metadata": { "annotations": { BOUND: bound } } });
        self.stage.patch(self.stage.claims_api(), "a", annotations).await;
        let status = self.stage.claim("a").await.status;
        let mut conditions = json!(status.and_then(|status| status.conditions).unwrap_or_default());
        conditions.as_array_mut().unwrap().retain(|condition| condition["type"] != "Rebooting");
        conditions.as_array_mut().unwrap().push(json!({
            "type": "Rebooting", "status": "True", "reason": "RebootRequested",
            "message": "rebooting for Ready/NodeStatusUnknown", "lastTransitionTime": self.stage.context.clock.time(),
        }));
        self.stage.patch_status(self.stage.claims_api(), "a", json!({ "conditions": conditions })).await;
    }

    /// The controller is killed, and begins again.
    fn restart(&mut self) {
        Arc::get_mut(&mut self.stage.context).unwrap().memory = Memory::default();
    }

    /// What Proxmox was asked to do.
    fn asked(&self, verb: &str) -> usize {
        let is_one = |path: &str| path.ends_with(&format!("/status/{verb}"));
        self.stage.estate.ledger().iter().filter(|entry| entry.method == "POST" && is_one(&entry.path)).count()
    }

    async fn rebooting(&self) -> (String, String) {
        let (status, reason, _) = self.stage.condition("a", "Rebooting").await;
        (status, reason)
    }

    async fn is_fenced(&self) -> bool {
        let node = self.stage.node("a").await.unwrap();
        node.spec.unwrap().taints.unwrap_or_default().iter().any(|taint| taint.key == "karpenter.sh/rebooting")
    }

    async fn is_labelled(&self) -> bool {
        self.stage.node("a").await.unwrap().metadata.labels.unwrap().contains_key("karpenter.sh/initialized")
    }

    async fn annotation(&self, name: &str) -> Option<String> {
        self.stage.claim("a").await.metadata.annotations.unwrap_or_default().get(name).cloned()
    }

    fn counted(&self, result: &str) -> u64 {
        self.stage.counted("karpenter_nodes_reboots_total", &[&format!("result=\"{result}\"")])
    }
}

fn told(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[tokio::test(start_paused = true)]
async fn j4_a_node_is_rebooted_once_and_initialized_again_though_the_controller_dies_after_every_step() {
    let mut site = Site::new().await;
    site.stage.add_pod(("a", "p"), json!({})).await;
    site.request(None).await;
    for _ in 0..4 {
        site.stage.run("a", 3).await;
        site.restart();
    }
    assert!(site.is_fenced().await && site.stage.is_leaving("p").await && site.asked("reboot") == 0);
    assert!(site.is_labelled().await, "it is up until it is rebooted");
    site.stage.end_pod("p").await;
    for _ in 0..60 {
        site.stage.pass("a").await;
        site.restart();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    assert_eq!((site.asked("reboot"), site.asked("reset")), (1, 0));
    assert_eq!(site.rebooting().await, told("True", "RebootIssued"));
    assert_eq!(site.stage.condition("a", "Initialized").await.1, "Rebooting");
    assert_eq!(site.annotation(BEFORE).await.as_deref(), Some("one"));
    assert!(site.is_fenced().await && !site.is_labelled().await, "Ready, but not rebooted yet as far as it says");
    site.boots("two", "False").await;
    site.stage.run("a", 5).await;
    assert!(!site.is_fenced().await);
    assert_eq!(site.stage.told("a", "RebootObserved").await.len(), 1);
    assert_eq!(site.rebooting().await, told("True", "RebootIssued"));
    site.boots("two", "True").await;
    for _ in 0..6 {
        site.stage.pass("a").await;
        site.restart();
    }
    assert_eq!(site.rebooting().await, told("False", "RebootSucceeded"));
    assert_eq!(site.stage.condition("a", "Initialized").await.0, "True");
    assert!(site.is_labelled().await && site.annotation(BEFORE).await.is_none());
    assert_eq!((site.counted("succeeded"), site.asked("reboot")), (1, 1));
    assert_eq!(site.stage.vms().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn j4_pods_that_stay_are_not_deleted_and_without_time_they_are_not_even_asked() {
    for (bound, is_asked) in [("7s", true), ("0s", false)] {
        let site = Site::new().await;
        let keep = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
        site.stage.add_pod(("a", "stays"), keep).await;
        site.stage.add_pod(("a", "goes"), json!({})).await;
        site.request(Some(bound)).await;
        site.stage.run("a", 6).await;
        assert_eq!(site.asked("reboot"), usize::from(!is_asked), "{bound}");
        site.stage.run("a", 30).await;
        assert_eq!(site.asked("reboot"), 1, "{bound}");
        assert_eq!(site.stage.is_leaving("goes").await, is_asked, "{bound}");
        assert!(!site.stage.is_leaving("stays").await, "{bound}");
    }
}

#[tokio::test(start_paused = true)]
async fn j4_a_grace_period_that_cannot_be_read_ends_it_and_the_node_stays() {
    for bound in ["soon", "-1s"] {
        let site = Site::new().await;
        site.request(Some(bound)).await;
        site.stage.run("a", 60).await;
        assert_eq!(site.rebooting().await, told("False", "RebootFailed"), "{bound}");
        assert!(!site.stage.is_deleting("a").await && !site.is_fenced().await && site.is_labelled().await);
        assert_eq!((site.counted("invalid_request"), site.asked("reboot")), (1, 0));
        let event = site.stage.told("a", "RebootFailed").await;
        assert!(event[0].contains(BOUND), "{event:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn j4_a_node_that_does_not_come_back_is_given_up_after_twenty_minutes_with_the_bound_as_its_deadline() {
    for (bound, has_deadline) in [(Some("0s"), true), (None, false)] {
        let site = Site::new().await;
        site.request(bound).await;
        site.stage.run("a", 60).await;
        assert_eq!(site.rebooting().await, told("True", "RebootIssued"));
        site.boots("one", "Unknown").await;
        site.stage.run("a", 19 * 60).await;
        assert!(!site.stage.is_deleting("a").await);
        site.stage.pass("a").await;
        tokio::time::sleep(std::time::Duration::from_secs(120)).await;
        site.stage.pass("a").await;
        site.stage.pass("a").await;
        site.stage.pass("a").await;
        assert!(site.stage.is_deleting("a").await);
        assert_eq!(site.rebooting().await, told("False", "RebootFailed"));
        assert_eq!(site.annotation("karpenter.sh/nodeclaim-termination-timestamp").await.is_some(), has_deadline);
        assert_eq!((site.counted("recovery_timeout"), site.stage.told("a", "RebootFailed").await.len()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn j4_a_guest_that_does_not_reboot_is_reset_once_and_a_vm_that_stopped_is_started() {
    let mut site = Site::new().await;
    site.stage.estate.ignore_shutdown(site.stage.vms()[0]).unwrap();
    site.request(Some("0s")).await;
    for _ in 0..60 {
        site.stage.pass("a").await;
        site.restart();
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    }
    assert_eq!((site.asked("reboot"), site.asked("reset")), (1, 1));
    assert_eq!(site.rebooting().await, told("True", "RebootIssued"));
    let site = Site::new().await;
    let host = "pve1";
    site.stage.estate.set_host_online(host, false).unwrap();
    site.stage.estate.set_host_online(host, true).unwrap();
    let starts = site.asked("start");
    site.request(Some("0s")).await;
    site.stage.run("a", 60).await;
    assert_eq!((site.asked("reboot"), site.asked("start")), (0, starts + 1));
    assert_eq!(site.rebooting().await, told("True", "RebootIssued"));
}

#[tokio::test(start_paused = true)]
async fn j4_a_vm_that_no_longer_exists_ends_it_at_once_and_its_claim_goes() {
    let site = Site::new().await;
    let vmid = site.stage.vms()[0];
    site.stage.estate.remove_vm(vmid).unwrap();
    site.request(Some("0s")).await;
    site.stage.run("a", 10).await;
    assert_eq!(site.counted("provider_error"), 1);
    assert!(site.stage.is_gone("a").await || site.stage.is_deleting("a").await);
}

#[tokio::test(start_paused = true)]
async fn j4_a_deletion_goes_on_and_a_second_reboot_begins_anew() {
    let site = Site::new().await;
    for boot in ["two", "three"] {
        site.request(Some("0s")).await;
        site.stage.run("a", 60).await;
        site.boots(boot, "True").await;
        site.stage.run("a", 60).await;
        assert_eq!(site.rebooting().await, told("False", "RebootSucceeded"), "{boot}");
        assert_eq!(site.stage.condition("a", "Initialized").await.0, "True", "{boot}");
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    }
    assert_eq!((site.asked("reboot"), site.counted("succeeded")), (2, 2));
    site.request(None).await;
    site.stage.delete(site.stage.claims_api(), "a").await;
    site.stage.run("a", 120).await;
    assert!(site.stage.is_gone("a").await && site.asked("reboot") == 2);
}
