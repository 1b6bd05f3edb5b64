//! Does what is counted read as dashboards of the reference expect it, and does it go with what it counts?

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;

const PROVISIONER: Loop = Loop { controller: "provisioner" };

/// The samples of a metric, without its name.
fn samples(metrics: &Metrics, name: &str) -> Vec<String> {
    let text = metrics.text();
    let of = |line: &str| line.strip_prefix(name).filter(|rest| rest.starts_with([' ', '{'])).map(str::to_owned);
    let mut found: Vec<String> = text.lines().filter_map(of).collect();
    found.sort();
    found
}

/// Pods that wait, by their names.
fn wait(metrics: &Metrics, names: &[&str]) {
    let uids: Vec<String> = names.iter().map(|name| format!("uid-of-{name}")).collect();
    let pods = names.iter().zip(&uids).map(|(name, uid)| WaitingPod { uid, namespace: "n", name });
    metrics.scheduling.waiting(pods);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_being_made_shows_its_pods_and_its_age_and_the_next_one_takes_its_place() {
    let metrics = Metrics::default();
    let solving = metrics.scheduling.begin(&PROVISIONER, 7);
    tokio::time::advance(Duration::from_millis(2500)).await;
    let first = "{controller=\"provisioner\",scheduling_id=\"0\"}";
    assert_eq!(samples(&metrics, "karpenter_scheduler_queue_depth"), [format!("{first} 7")]);
    assert_eq!(samples(&metrics, "karpenter_scheduler_unfinished_work_seconds"), [format!("{first} 2.5")]);
    solving.end(2);
    assert_eq!(samples(&metrics, "karpenter_scheduler_queue_depth"), [format!("{first} 2")]);
    assert!(samples(&metrics, "karpenter_scheduler_unfinished_work_seconds").is_empty());
    let took = "karpenter_scheduler_scheduling_duration_seconds";
    assert_eq!(samples(&metrics, &format!("{took}_sum")), ["{controller=\"provisioner\"} 2.5"]);
    let buckets = samples(&metrics, &format!("{took}_bucket"));
    let bounds = |value: &str| buckets.iter().filter(|line| line.ends_with(value)).count();
    assert_eq!((buckets.len(), bounds(" 0"), bounds(" 1")), (46, 22, 24), "{buckets:?}");
    drop(metrics.scheduling.begin(&PROVISIONER, 1));
    let next = "{controller=\"provisioner\",scheduling_id=\"1\"} 1";
    assert_eq!(samples(&metrics, "karpenter_scheduler_queue_depth"), [next]);
    assert!(samples(&metrics, "karpenter_scheduler_unfinished_work_seconds").is_empty(), "it was given up");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_undecided_until_something_is_decided_about_it_or_it_goes() {
    let (metrics, second) = (Metrics::default(), Duration::from_secs(1));
    let undecided = || samples(&metrics, "karpenter_pods_provisioning_scheduling_undecided_time_seconds");
    let took = |what: &str| samples(&metrics, &format!("karpenter_pods_scheduling_decision_duration_seconds_{what}"));
    wait(&metrics, &["a", "b"]);
    tokio::time::advance(second).await;
    wait(&metrics, &["a", "b", "c"]);
    tokio::time::advance(second).await;
    let shown = |name: &str, seconds: &str| format!("{{name=\"{name}\",namespace=\"n\"}} {seconds}");
    assert_eq!(undecided(), [shown("a", "2.0"), shown("b", "2.0"), shown("c", "1.0")]);
    metrics.scheduling.decided(["uid-of-a", "uid-of-nobody"].into_iter());
    assert_eq!((undecided(), took("sum")), (vec![shown("b", "2.0"), shown("c", "1.0")], vec![" 2.0".to_owned()]));
    wait(&metrics, &["a", "c"]);
    assert_eq!(undecided(), [shown("c", "1.0")], "b is gone");
    metrics.scheduling.decided(["uid-of-a", "uid-of-c"].into_iter());
    assert_eq!((undecided(), took("count"), took("sum")), (vec![], vec![" 2".to_owned()], vec![" 3.0".to_owned()]));
    wait(&metrics, &[]);
    wait(&metrics, &["a"]);
    assert_eq!(undecided(), [shown("a", "0.0")], "who waits anew is decided anew");
}

#[test]
fn what_came_of_a_plan_takes_the_place_of_what_came_of_the_last_one() {
    let metrics = Metrics::default();
    let zones = |zones: &[(&str, u64)]| zones.iter().map(|(zone, pods)| ((*zone).to_owned(), *pods)).collect();
    let outcome = PlanCounts { ignored: 1, unschedulable: 2, by_zone: zones(&[("pve1", 3), ("flexible", 4)]) };
    metrics.scheduling.report(&PROVISIONER, &outcome);
    assert_eq!(samples(&metrics, "karpenter_scheduler_ignored_pods_count"), [" 1"]);
    let of = "{controller=\"provisioner\"";
    assert_eq!(samples(&metrics, "karpenter_scheduler_unschedulable_pods_count"), [format!("{of}}} 2")]);
    let by_zone = || samples(&metrics, "karpenter_scheduler_pending_pods_by_effective_zone_count");
    assert_eq!(by_zone(), [format!("{of},zone=\"flexible\"}} 4"), format!("{of},zone=\"pve1\"}} 3")]);
    let outcome = PlanCounts { by_zone: zones(&[("none", 1)]), ..PlanCounts::default() };
    metrics.scheduling.report(&PROVISIONER, &outcome);
    assert_eq!(by_zone(), [format!("{of},zone=\"none\"}} 1")]);
    assert_eq!(samples(&metrics, "karpenter_scheduler_ignored_pods_count"), [" 0"]);
}

#[tokio::test(start_paused = true)]
async fn the_cluster_is_unsynced_until_everything_was_read() {
    let metrics = Metrics::default();
    let shown = |name: &str| samples(&metrics, &format!("karpenter_cluster_state_{name}"));
    assert_eq!((shown("synced"), shown("unsynced_time_seconds")), (vec![" 0".to_owned()], vec![" 0.0".to_owned()]));
    metrics.state.begin();
    tokio::time::advance(Duration::from_secs(4)).await;
    assert_eq!((shown("synced"), shown("unsynced_time_seconds")), (vec![" 0".to_owned()], vec![" 4.0".to_owned()]));
    metrics.state.is_read();
    metrics.state.count_nodes(5);
    assert_eq!((shown("synced"), shown("unsynced_time_seconds")), (vec![" 1".to_owned()], vec![" 0.0".to_owned()]));
    assert_eq!(shown("node_count"), [" 5"]);
}

#[test]
fn every_metric_of_plans_has_the_reference_s_name_and_kind() {
    let metrics = Metrics::default();
    let made = Created { reason: "provisioned".into(), nodepool: "p".into(), min_values_relaxed: "false".into() };
    metrics.claims_created.get_or_create(&made).inc();
    metrics.scheduling.begin(&PROVISIONER, 1).end(0);
    let _solving = metrics.scheduling.begin(&PROVISIONER, 1);
    wait(&metrics, &["a"]);
    let by_zone = [("flexible".to_owned(), 1)].into();
    metrics.scheduling.report(&PROVISIONER, &PlanCounts { by_zone, ..PlanCounts::default() });
    let text = metrics.text();
    for (name, kind) in [
        ("scheduler_queue_depth", "gauge"),
        ("scheduler_unfinished_work_seconds", "gauge"),
        ("scheduler_ignored_pods_count", "gauge"),
        ("scheduler_unschedulable_pods_count", "gauge"),
        ("scheduler_pending_pods_by_effective_zone_count", "gauge"),
        ("scheduler_scheduling_duration_seconds", "histogram"),
        ("pods_scheduling_decision_duration_seconds", "histogram"),
        ("pods_provisioning_scheduling_undecided_time_seconds", "gauge"),
        ("nodeclaims_created", "counter"),
        ("cluster_state_node_count", "gauge"),
        ("cluster_state_synced", "gauge"),
        ("cluster_state_unsynced_time_seconds", "gauge"),
    ] {
        assert!(text.contains(&format!("# TYPE karpenter_{name} {kind}\n")), "{name}: {text}");
        assert!(text.contains(&format!("# HELP karpenter_{name} ")), "{name}: {text}");
    }
    let shown = "{reason=\"provisioned\",nodepool=\"p\",min_values_relaxed=\"false\"} 1";
    assert_eq!(samples(&metrics, "karpenter_nodeclaims_created_total"), [shown]);
    assert!(metrics.text().ends_with("# EOF\n"));
}

#[test]
fn a_counter_has_the_name_the_reference_gave_it() {
    let metrics = Metrics::default();
    metrics.nodes_created.get_or_create(&OfNode { nodepool: "default".to_owned(), zone: "pve1".to_owned() }).inc();
    let text = metrics.text();
    assert!(text.contains("karpenter_nodes_created_total{nodepool=\"default\",zone=\"pve1\"} 1"), "{text}");
    assert!(text.contains("karpenter_build_info{version="), "{text}");
}

#[test]
fn every_metric_stands_on_its_page() {
    let page = include_str!("../../../../docs/reference/metrics.md");
    let (metrics, text) = (Metrics::default(), String::new);
    metrics.errors.get_or_create(&PROVISIONER).inc();
    metrics.region_up.get_or_create(&InRegion { region: text() }).set(1);
    metrics.claims_drifted.get_or_create(&DriftedIn { nodepool: text(), reason: "r" }).set(1);
    metrics.leads.get_or_create(&OfLease { name: text() }).set(1);
    metrics.evictions.get_or_create(&Code { code: 201 }).inc();
    let of_node = OfNode { nodepool: text(), zone: text() };
    metrics.nodes_created.get_or_create(&of_node).inc();
    metrics.nodes_terminated.get_or_create(&of_node).inc();
    wait(&metrics, &["a"]);
    metrics.scheduling.begin(&PROVISIONER, 1).end(0);
    let by_zone = [(text(), 1)].into();
    metrics.scheduling.report(&PROVISIONER, &PlanCounts { by_zone, ..PlanCounts::default() });
    let _solving = metrics.scheduling.begin(&PROVISIONER, 1);
    let shown = metrics.text();
    let kinds = shown.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let names = kinds.map(|(name, kind)| format!("`{name}{}`", if kind == "counter" { "_total" } else { "" }));
    let missing: Vec<String> = names.filter(|name| !page.contains(name)).collect();
    assert!(missing.is_empty() && shown.matches("# TYPE ").count() >= 19, "{missing:?}");
}

#[test]
fn the_dashboard_and_the_alerts_of_the_chart_ask_for_metrics_that_stand_on_the_page() {
    let page = include_str!("../../../../docs/reference/metrics.md");
    let dashboard = include_str!("../../../../charts/tenon/files/dashboard.json");
    let alerts = include_str!("../../../../charts/tenon/files/alerts.yaml");
    for (text, least) in [(dashboard, 15), (alerts, 6)] {
        let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let is_metric =
            |word: &&str| ["karpenter_", "tenon_", "leader_election_"].iter().any(|at| word.starts_with(at));
        let names: BTreeSet<&str> = words.filter(is_metric).map(|name| name.trim_end_matches("_bucket")).collect();
        let missing: Vec<&&str> = names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty() && names.len() >= least, "{missing:?} of {names:?}");
    }
}
