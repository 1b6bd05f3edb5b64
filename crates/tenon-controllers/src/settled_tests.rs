//! Do loops rest while Proxmox shows nothing new, and does the one row that changed reach whom it concerns?

use std::time::Duration;

use serde_json::json;
use tenon_api::{ProxmoxUnmanagedTemplate, names};
use tenon_sim::{TemplateSpec, VmSpec};
use tokio::task::JoinSet;

use crate::claim::test_stage::ClaimStage;
use crate::settled::{REFRESHED_EVERY, REFRESHED_RARELY};
use crate::stop::{Stopper, stop};
use crate::{drift, garbage_collection, in_place, status, templates};

/// Loops that rest while nothing changes.
const CONTROLLERS: [&str; 5] =
    ["status", "nodeclaim.disruption", "nodeclaim.inplaceupdate", "nodeclaim.garbagecollection", "nodetemplateclass"];

/// How long is watched.
const WATCHED: Duration = Duration::from_secs(1200);

/// A claim whose VM runs, two VMs of somebody else among our ids, and the loops.
struct Idle {
    stage: ClaimStage,
    _stopper: Stopper,
    _loops: JoinSet<()>,
}

impl Idle {
    async fn begin() -> Idle {
        let stage = ClaimStage::new().await;
        let template = json!({ "metadata": { "name": "debian" }, "spec": { "templateName": "debian" } });
        stage.create::<ProxmoxUnmanagedTemplate>(kube::Api::all(stage.client.clone()), template).await;
        stage.add_initialized("n", json!({})).await;
        for vmid in [20_500, 20_501] {
            let base =
                TemplateSpec { host: "pve1".to_owned(), vmid, name: format!("vm-{vmid}"), ..TemplateSpec::default() };
            stage.estate.add_vm(&VmSpec { base, running: true }).unwrap();
        }
        let ((stopper, stop), context) = (stop(), &stage.context);
        let mut loops = JoinSet::new();
        loops.spawn(status::run(context.clone(), stop.clone()));
        loops.spawn(drift::run(context.clone(), stop.clone()));
        loops.spawn(in_place::run(context.clone(), stop.clone()));
        loops.spawn(templates::run(context.clone(), stop.clone()));
        loops.spawn(garbage_collection::run(context.clone(), stop.clone()));
        let regions = context.regions.clone();
        loops.spawn(async move { regions.poll(stop).await });
        // Whatever there was to do is done.
        tokio::time::sleep(Duration::from_secs(300)).await;
        Idle { stage, _stopper: stopper, _loops: loops }
    }

    /// How often each loop made a whole pass so far, and how often it rested.
    fn passes(&self) -> Vec<(u64, u64)> {
        let counted = |controller: &str, pass: &str| {
            let labels = [format!("controller=\"{controller}\""), format!("pass=\"{pass}\"")];
            self.stage.counted("tenon_passes_total", &[&labels[0], &labels[1]])
        };
        CONTROLLERS.iter().map(|controller| (counted(controller, "full"), counted(controller, "skipped"))).collect()
    }

    /// Whole passes of each loop in this time, and how often it rested.
    async fn in_a_while(&self, meanwhile: impl AsyncFn()) -> Vec<(u64, u64)> {
        let before = self.passes();
        meanwhile().await;
        let since = |((full, skipped), (full_before, skipped_before)): (&(u64, u64), &(u64, u64))| {
            (full - full_before, skipped - skipped_before)
        };
        self.passes().iter().zip(&before).map(since).collect()
    }

    fn changed(&self, row: &str) -> u64 {
        self.stage.counted("tenon_region_rows_changed_total", &[&format!("row=\"{row}\"")])
    }

    /// Requests for this path since then.
    fn asked(&self, path: &str, since: Duration) -> usize {
        let ledger = self.stage.estate.ledger();
        ledger.iter().filter(|entry| entry.at >= since && entry.path == path).count()
    }
}

/// So often each loop looks at everything though nothing changes.
fn assert_rests(passes: &[(u64, u64)]) {
    for ((full, skipped), controller) in passes.iter().zip(CONTROLLERS) {
        let every = match controller {
            "nodeclaim.inplaceupdate" | "nodeclaim.garbagecollection" => REFRESHED_RARELY,
            _ => REFRESHED_EVERY,
        };
        let most = WATCHED.as_secs() / every.as_secs();
        assert!((most - 2..=most).contains(full), "{controller}: {full} whole passes of {most}");
        assert!(*skipped > 3 * full, "{controller} rested {skipped} times: {passes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_nothing_changes_loops_rest_but_for_a_pass_now_and_then() {
    let idle = Idle::begin().await;
    let since = idle.stage.estate.elapsed();
    let passes = idle.in_a_while(async || tokio::time::sleep(WATCHED).await).await;
    assert_rests(&passes);
    let listings = idle.asked("/cluster/resources", since);
    assert!((80..=150).contains(&listings), "{listings} listings in 20 minutes: one poll for all");
    let template = idle.asked("/nodes/pve1/qemu/9001/config", since);
    assert!(template <= 21, "the template was read {template} times in 20 minutes");
    assert_eq!(idle.asked("/nodes/pve1/qemu/20500/config", since), 0, "its row did not change");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_loads_alone_wakes_nobody() {
    let idle = Idle::begin().await;
    let passes = idle.in_a_while(async || {
        for round in 0..WATCHED.as_secs() / 20 {
            idle.stage.estate.set_storage_free("local", (20 + round % 7) << 30).unwrap();
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
    });
    assert_rests(&passes.await);
    assert!(idle.changed("load") > 40, "{} loads changed", idle.changed("load"));
}

#[tokio::test(start_paused = true)]
async fn of_many_rows_the_one_that_changed_is_looked_at_and_soon() {
    let idle = Idle::begin().await;
    let (since, guests) = (idle.stage.estate.elapsed(), idle.changed("guest"));
    idle.stage.estate.lock(20_500, "backup").unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(idle.changed("guest") - guests, 1);
    assert_eq!(idle.asked("/nodes/pve1/qemu/20500/config", since), 1);
    assert_eq!(idle.asked("/nodes/pve1/qemu/20501/config", since), 0);

    idle.stage.estate.migrate(20_000, "pve2").unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    let node = idle.stage.node("n").await.unwrap();
    let host = node.metadata.labels.and_then(|labels| labels.get(names::LABEL_HOST).cloned());
    assert_eq!(host.as_deref(), Some("pve2"), "a VM that was moved is told to its Node");
}

#[tokio::test(start_paused = true)]
async fn a_class_learns_of_templates_that_go_and_come_though_no_object_changed() {
    let idle = Idle::begin().await;
    let zones = async || {
        let classes: kube::Api<tenon_api::ProxmoxNodeClass> = kube::Api::all(idle.stage.client.clone());
        classes.get("default").await.unwrap().status.unwrap().selected_zones.unwrap_or_default()
    };
    assert_eq!(zones().await[0], "lab/pve1/9001");
    idle.stage.estate.remove_vm(9001).unwrap();
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert!(zones().await.is_empty());
    // What does not hold is judged as often as ever; a name is listed up to ten seconds late.
    let template =
        TemplateSpec { host: "pve1".to_owned(), vmid: 9002, name: "debian".to_owned(), ..TemplateSpec::default() };
    idle.stage.estate.add_template(&template).unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(zones().await[0], "lab/pve1/9002");
}
