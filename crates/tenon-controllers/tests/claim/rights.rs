//! Is the role of SECURITY.md enough to launch and remove a VM, and is nothing in it too much?

use tenon_api::SecurityGroup;
use tenon_controllers::claim::{CloneSource, DesiredVm, ReleasePass};
use tenon_model::LaunchRecord;
use tenon_pve::pve_rights::{Flow, Privileges, privileges};

use crate::claim::site::{Death, End, FIRST_ID, Site, intent, let_go, live_with};
use crate::role::{follows_the_table, refusal_of, without_each};

const FLOWS: [Flow; 4] = [Flow::Status, Flow::Launch, Flow::Release, Flow::SecurityGroups];

/// A VM of a node in a security group, from its clone to its seed image's end. Whether nothing went wrong.
async fn lives(site: &Site) -> bool {
    let client = site.client(Death::Never);
    let groups = vec![SecurityGroup { name: "nodes".to_owned(), interface: "net0".to_owned() }];
    let source = CloneSource { storage: Some("disks".to_owned()), ..CloneSource::default() };
    let order =
        DesiredVm { security_groups: groups, name_servers: vec!["192.0.2.53".to_owned()], source, ..site.order() };
    let mut record = LaunchRecord { seed_storage: Some("seeds".to_owned()), ..intent(FIRST_ID, site.now()) };
    live_with(site, (&client, &order), &mut record).await == End::Launched
        && let_go(&client, &record).await == Some(ReleasePass::Released)
}

async fn site(role: &Privileges) -> Site {
    let site = Site::with_places(role).await;
    site.admin("POST", "/cluster/firewall/groups", &[("group", "nodes")]).await;
    site
}

#[tokio::test(start_paused = true)]
async fn a_node_comes_and_goes_with_exactly_the_role_of_the_documentation() {
    let site = site(&privileges(&FLOWS)).await;
    assert!(lives(&site).await);
    follows_the_table(&site.estate, &FLOWS);
}

#[tokio::test(start_paused = true)]
async fn a_node_does_not_come_and_go_without_any_one_privilege_of_launch_and_release() {
    let role = privileges(&FLOWS);
    for (fewer, missing) in without_each(&role, &privileges(&[Flow::Launch, Flow::Release])) {
        let site = site(&fewer).await;
        assert!(!lives(&site).await, "without {missing:?} nothing fails");
        let refused = refusal_of(&site.estate, missing);
        assert!(refused.is_some(), "no row of the table says what fails without {missing:?}");
    }
}
