//! kill -9 at every request of a life, before it leaves and after it was carried out: the next controller goes on from
//! what was written down.

use std::time::Duration;

use tenon_api::SecurityGroup;
use tenon_controllers::claim::{CloneSource, DesiredVm, ReleasePass};
use tenon_engine::launch::LaunchResult;
use tenon_sim::{FaultKind, FaultSpec};

use crate::claim::site::{Death, End, FIRST_ID, Site, intent, launch_once, let_go, live, live_with, order};

/// Requests of one undisturbed launch, and of the release after it.
async fn requests() -> (usize, usize) {
    let site = Site::new();
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &client, &mut record).await, End::Launched);
    let launch = site.estate.ledger().len();
    assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released));
    (launch, site.estate.ledger().len() - launch)
}

pub(crate) fn deaths(count: usize) -> impl Iterator<Item = Death> {
    (0..count).flat_map(|number| [Death::Before(number), Death::After(number)])
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_of_a_launch_leaves_exactly_one_vm() {
    let (count, _) = requests().await;
    for death in deaths(count) {
        let site = Site::new();
        let mut record = intent(FIRST_ID, site.now());
        assert_eq!(live(&site, &site.client(death), &mut record).await, End::Died, "{death:?}");
        // The next controller is there a little later.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let next = site.client(Death::Never);
        assert_eq!(live(&site, &next, &mut record).await, End::Launched, "{death:?}");
        let vms = site.vms();
        assert_eq!(vms.len(), 1, "{death:?}: {:?}", vms.iter().map(|vm| vm.vmid).collect::<Vec<_>>());
        assert_eq!((vms[0].vmid, vms[0].status), (FIRST_ID, "running"), "{death:?}");
        let clones = site.estate.ledger().into_iter().filter(|entry| entry.path.ends_with("/clone")).count();
        assert_eq!(clones, 1, "{death:?}: the copy was sent {clones} times");
        assert_eq!(let_go(&next, &record).await, Some(ReleasePass::Released), "{death:?}");
        assert!(site.vms().is_empty(), "{death:?}");
    }
    println!("{} deaths survived", count * 2);
}

/// A VM in two security groups, copied from a template that is known to have no rules.
fn order_with_groups() -> DesiredVm<'static> {
    let group = |name: &str| SecurityGroup { interface: "net0".to_owned(), name: name.to_owned() };
    let source = CloneSource { has_no_rules: true, ..order().source };
    DesiredVm { security_groups: vec![group("web"), group("ssh")], source, ..order() }
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_of_a_launch_leaves_every_security_group_once_and_in_order() {
    let count = {
        let site = Site::new();
        let with = (&site.client(Death::Never), &order_with_groups());
        assert_eq!(live_with(&site, with, &mut intent(FIRST_ID, site.now())).await, End::Launched);
        site.estate.ledger().len()
    };
    let mut after_a_rule = 0;
    for death in deaths(count) {
        let (site, order) = (Site::new(), order_with_groups());
        let mut record = intent(FIRST_ID, site.now());
        assert_eq!(live_with(&site, (&site.client(death), &order), &mut record).await, End::Died, "{death:?}");
        let died_at = site.estate.ledger().last().map(|entry| entry.path.clone()).unwrap_or_default();
        after_a_rule += usize::from(died_at.ends_with("/firewall/rules"));
        tokio::time::sleep(Duration::from_secs(5)).await;
        let next = site.client(Death::Never);
        assert_eq!(live_with(&site, (&next, &order), &mut record).await, End::Launched, "{death:?}");
        let path = format!("/nodes/pve1/qemu/{FIRST_ID}/firewall");
        let rules = site.admin("GET", &format!("{path}/rules"), &[]).await;
        let names: Vec<&str> =
            rules["data"].as_array().unwrap().iter().map(|rule| rule["action"].as_str().unwrap()).collect();
        assert_eq!(names, ["web", "ssh"], "{death:?}");
        let options = site.admin("GET", &format!("{path}/options"), &[]).await;
        assert_eq!(options["data"]["enable"], 1, "{death:?}: {options}");
        assert_eq!(let_go(&next, &record).await, Some(ReleasePass::Released), "{death:?}");
    }
    assert!(after_a_rule >= 4, "it died {after_a_rule} times between two rules");
}

/// Two calls for one id, as when one was thought lost: both are answered with a task, and one task loses.
#[tokio::test(start_paused = true)]
async fn a_clone_that_lands_late_and_wins_is_still_the_one_vm() {
    // Whichever of the two answers was written down, the loser's too.
    for kept in 0..2 {
        let (site, order) = (Site::new(), order());
        let (client, rival) = (site.client(Death::Never), site.client(Death::Never));
        let record = intent(FIRST_ID, site.now());
        // Both have looked before either has called: the estate answers a call after 30 ms.
        let time = site.time();
        let (first, second) =
            tokio::join!(launch_once(&client, &order, &record, &time), launch_once(&rival, &order, &record, &time));
        let outcome = [first, second].into_iter().nth(kept).unwrap();
        let Ok(LaunchResult::Record(mut record)) = outcome else { panic!("both should be sent: {outcome:?}") };
        assert_eq!(live(&site, &client, &mut record).await, End::Launched, "{kept}");
        assert_eq!((site.vms().len(), record.vmid.get()), (1, FIRST_ID), "{kept}");
        assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released));
        assert!(site.vms().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_second_clone_looks_before_it_leaves_the_id() {
    let site = Site::new();
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    // The first call is made and its name never written down, as if its reply were lost for good.
    let Ok(LaunchResult::Record(_)) = launch_once(&client, &order(), &record, &site.time()).await else {
        panic!("it should be sent")
    };
    tokio::time::sleep(Duration::from_secs(5)).await;
    // The next look is answered from before: the VM does not seem to be there, so the call goes out again.
    let text = format!("Configuration file 'nodes/pve1/qemu-server/{FIRST_ID}.conf' does not exist");
    for _ in 0..2 {
        site.estate.fail_next(FaultSpec::new("GET", "/config", FaultKind::Refuse { status: 500, text: text.clone() }));
    }
    assert_eq!(live(&site, &client, &mut record).await, End::Launched);
    assert_eq!(record.vmid.get(), FIRST_ID, "the VM that is there is ours");
    assert_eq!(site.vms().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_of_a_release_leaves_nothing() {
    let (_, count) = requests().await;
    for death in deaths(count) {
        let site = Site::new();
        let before = site.estate.volumes().len();
        let mut record = intent(FIRST_ID, site.now());
        assert_eq!(live(&site, &site.client(Death::Never), &mut record).await, End::Launched);
        let end = let_go(&site.client(death), &record).await;
        assert_eq!(end, None, "{death:?}");
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(let_go(&site.client(Death::Never), &record).await, Some(ReleasePass::Released), "{death:?}");
        assert!(site.vms().is_empty(), "{death:?}");
        assert_eq!(site.estate.volumes().len(), before, "{death:?}");
    }
    println!("{} deaths survived", count * 2);
}
