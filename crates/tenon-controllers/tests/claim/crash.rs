//! kill -9 at every request of a life, before it leaves and after it was carried out: the next controller goes on from
//! what was written down.

use std::time::Duration;

use tenon_controllers::claim::ReleasePass;

use crate::site::{Death, End, FIRST_ID, Site, intent, let_go, live};

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

fn deaths(count: usize) -> impl Iterator<Item = Death> {
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
