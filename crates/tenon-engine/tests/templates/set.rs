//! Which templates are wanted.

use std::collections::{BTreeMap, BTreeSet};

use tenon_engine::{TemplateTarget, WantedTemplates, arrange};
use tenon_model::{Place, Seconds, TemplateBuild, TemplateStep};

use crate::templates::build;

fn target(host: &str, shared: bool) -> TemplateTarget {
    TemplateTarget {
        place: Place { region: "lab".to_owned(), host: host.parse().unwrap() },
        image_storage: "local".to_owned(),
        disk_storage: "local".to_owned(),
        shared,
    }
}

fn wanted(targets: &[TemplateTarget]) -> WantedTemplates {
    let hosts = ["pve1", "pve2", "pve3"].map(|name| name.parse().unwrap());
    WantedTemplates {
        none: false,
        number: "1".to_owned(),
        only_region: None,
        hosts: BTreeMap::from([("lab".to_owned(), hosts.into())]),
        unfit: BTreeSet::new(),
        targets: targets.to_vec(),
    }
}

fn retired(builds: &[TemplateBuild], wanted: &WantedTemplates) -> Vec<u32> {
    let arranged = arrange(builds, wanted, Seconds(2_000));
    arranged.builds.iter().filter(|build| build.retired).map(|build| build.vmid.get()).collect()
}

#[test]
fn each_host_gets_one_and_hosts_that_share_a_storage_get_one_together() {
    let missing =
        arrange(&[build("pve1", 1000)], &wanted(&[target("pve1", false), target("pve2", false)]), Seconds(0)).missing;
    assert_eq!(missing, [target("pve2", false)]);
    // The one that is there serves, whichever host comes first today.
    let shared = TemplateBuild { shared: true, ..build("pve2", 1000) };
    assert!(arrange(&[shared], &wanted(&[target("pve1", true)]), Seconds(0)).missing.is_empty());
}

#[test]
fn a_template_of_before_serves_until_the_new_one_of_its_host_is_ready() {
    let old = |host, vmid| TemplateBuild { number: "0".to_owned(), ..build(host, vmid) };
    let targets = wanted(&[target("pve1", false), target("pve2", false)]);
    let mut builds = vec![old("pve1", 1000), old("pve2", 1001)];
    let arranged = arrange(&builds, &targets, Seconds(0));
    assert_eq!((arranged.missing.len(), retired(&builds, &targets)), (2, vec![]));
    builds.push(TemplateBuild { step: TemplateStep::Create, ..build("pve1", 1002) });
    assert_eq!(retired(&builds, &targets), Vec::<u32>::new());
    builds[2].step = TemplateStep::Ready;
    assert_eq!(retired(&builds, &targets), [1000], "the other host has none yet");
}

#[test]
fn one_of_before_that_never_was_ready_is_not_waited_for() {
    let old = TemplateBuild { number: "0".to_owned(), step: TemplateStep::Download, ..build("pve1", 1000) };
    assert_eq!(retired(&[old], &wanted(&[target("pve1", false)])), [1000]);
}

#[test]
fn a_host_that_is_away_keeps_its_template() {
    // It is listed, but no target.
    assert_eq!(retired(&[build("pve3", 1000)], &wanted(&[])), Vec::<u32>::new());
}

#[test]
fn a_host_has_to_be_missing_for_ten_minutes_before_its_template_is_retired() {
    let gone = [build("pve9", 1000)];
    let first = arrange(&gone, &wanted(&[]), Seconds(2_000)).builds;
    assert_eq!((first[0].retired, first[0].host_gone_since), (false, Some(Seconds(2_000))), "one look is no proof");
    let silent = WantedTemplates { hosts: BTreeMap::new(), ..wanted(&[]) };
    assert_eq!(arrange(&first, &silent, Seconds(9_000)).builds, first, "a look that shows no hosts says nothing");
    let later = arrange(&first, &wanted(&[]), Seconds(2_599)).builds;
    assert!(!later[0].retired);
    let late = arrange(&later, &wanted(&[]), Seconds(2_600)).builds;
    assert!(late[0].retired);
    // It is back before ten minutes are over: they begin anew.
    let back = TemplateBuild { place: build("pve1", 1000).place, ..later[0].clone() };
    assert_eq!(arrange(&[back], &wanted(&[]), Seconds(2_599)).builds[0].host_gone_since, None);
}

#[test]
fn a_template_that_was_retired_with_its_host_serves_again_when_the_host_is_back() {
    let gone = TemplateBuild { retired: true, host_gone_since: Some(Seconds(1_000)), ..build("pve1", 1000) };
    let destroying = TemplateBuild { step: TemplateStep::Destroy, ..gone.clone() };
    let targets = wanted(&[target("pve1", false)]);
    for retired in [gone.clone(), destroying] {
        let arranged = arrange(&[retired], &targets, Seconds(9_000));
        let back = &arranged.builds[0];
        assert_eq!((back.retired, back.step, back.host_gone_since), (false, TemplateStep::Ready, None));
        assert!(arranged.missing.is_empty(), "nothing is made anew");
    }
    // What is retired for another reason, or whose VM is gone, is not.
    let other = TemplateBuild { host_gone_since: None, ..gone.clone() };
    let destroyed = TemplateBuild { step: TemplateStep::DeleteImage, ..gone.clone() };
    let replaced = TemplateBuild { number: "0".to_owned(), ..gone };
    for stays in [vec![other], vec![destroyed], vec![replaced, build("pve1", 1001)]] {
        assert!(arrange(&stays, &targets, Seconds(9_000)).builds[0].retired, "{stays:?}");
    }
}

#[test]
fn only_another_region_that_is_configured_retires_a_template() {
    let mut wanted = wanted(&[]);
    wanted.hosts = BTreeMap::from([("attic".to_owned(), BTreeSet::new())]);
    assert_eq!(retired(&[build("pve1", 1000)], &wanted), Vec::<u32>::new(), "its region is not configured any more");
    wanted.only_region = Some("attic".to_owned());
    assert_eq!(retired(&[build("pve1", 1000)], &wanted), [1000]);
}

#[test]
fn of_two_that_serve_the_same_the_ready_one_stays_or_else_the_older() {
    let targets = wanted(&[target("pve1", false)]);
    let young = TemplateBuild { started_at: Seconds(5_000), ..build("pve1", 1001) };
    assert_eq!(retired(&[build("pve1", 1000), young.clone()], &targets), [1001]);
    let unready = TemplateBuild { step: TemplateStep::Create, ..build("pve1", 1000) };
    assert_eq!(retired(&[unready, young], &targets), [1000]);
}

#[test]
fn nothing_is_wanted_of_an_object_that_goes() {
    let going = WantedTemplates { none: true, ..wanted(&[target("pve1", false), target("pve2", false)]) };
    let arranged = arrange(&[build("pve1", 1000)], &going, Seconds(0));
    assert!(arranged.missing.is_empty() && arranged.builds.iter().all(|build| build.retired));
}
