//! Does what is counted read as dashboards of the reference expect it, and does it go with what it counts?

use std::collections::BTreeSet;
use std::time::Duration;

use kube::runtime::watcher::Event;

use super::catalogue::by_kind::NODECLAIM;
use super::conditions::{ShownCondition, ShownObject};
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
    assert_eq!(undecided(), [shown("a", "2"), shown("b", "2"), shown("c", "1")]);
    metrics.scheduling.decided(["uid-of-a", "uid-of-nobody"].into_iter());
    assert_eq!((undecided(), took("sum")), (vec![shown("b", "2"), shown("c", "1")], vec![" 2".to_owned()]));
    wait(&metrics, &["a", "c"]);
    assert_eq!(undecided(), [shown("c", "1")], "b is gone");
    metrics.scheduling.decided(["uid-of-a", "uid-of-c"].into_iter());
    assert_eq!((undecided(), took("count"), took("sum")), (vec![], vec![" 2".to_owned()], vec![" 3".to_owned()]));
    wait(&metrics, &[]);
    wait(&metrics, &["a"]);
    assert_eq!(undecided(), [shown("a", "0")], "who waits anew is decided anew");
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
async fn i8_sync_the_cluster_is_unsynced_until_everything_was_read() {
    let metrics = Metrics::default();
    let shown = |name: &str| samples(&metrics, &format!("karpenter_cluster_state_{name}"));
    assert_eq!((shown("synced"), shown("unsynced_time_seconds")), (vec![" 0".to_owned()], vec![" 0".to_owned()]));
    metrics.state.begin();
    tokio::time::advance(Duration::from_secs(4)).await;
    assert_eq!((shown("synced"), shown("unsynced_time_seconds")), (vec![" 0".to_owned()], vec![" 4".to_owned()]));
    metrics.state.is_read();
    metrics.state.count_nodes(5);
    assert_eq!((shown("synced"), shown("unsynced_time_seconds")), (vec![" 1".to_owned()], vec![" 0".to_owned()]));
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
        ("nodeclaims_created_total", "counter"),
        ("cluster_state_node_count", "gauge"),
        ("cluster_state_synced", "gauge"),
        ("cluster_state_unsynced_time_seconds", "gauge"),
    ] {
        assert!(text.contains(&format!("# TYPE karpenter_{name} {kind}\n")), "{name}: {text}");
        assert!(text.contains(&format!("# HELP karpenter_{name} ")), "{name}: {text}");
    }
    let shown = "{reason=\"provisioned\",nodepool=\"p\",min_values_relaxed=\"false\"} 1";
    assert_eq!(samples(&metrics, "karpenter_nodeclaims_created_total"), [shown]);
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
fn the_dashboard_and_the_alerts_of_the_chart_ask_for_metrics_of_the_catalogue_and_their_labels() {
    let dashboard = include_str!("../../../../charts/tenon/files/dashboard.json");
    let alerts = include_str!("../../../../charts/tenon/files/alerts.yaml");
    for (text, least) in [(dashboard, 15), (alerts, 6)] {
        let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let is_metric = |word: &&str| {
            ["karpenter_", "tenon_", "leader_election_", "operator_", "client_go_"]
                .iter()
                .any(|at| word.starts_with(at))
        };
        let names: BTreeSet<&str> = words.filter(is_metric).collect();
        let is_there = |name: &&str| Metric::all().iter().any(|metric| metric.has_sample(name));
        let missing: Vec<&str> = names.iter().copied().filter(|name| !is_there(name)).collect();
        assert!(missing.is_empty() && names.len() >= least, "{missing:?} of {names:?}");
    }
}

#[test]
fn a_sample_has_the_labels_of_its_row_and_odd_values_are_escaped() {
    let metrics = Metrics::default();
    let odd = "a\"b\\c\nd".to_owned();
    metrics.nodes_created.get_or_create(&OfNode { nodepool: odd, zone: String::new() }).inc();
    let text = metrics.text();
    assert!(text.contains("karpenter_nodes_created_total{nodepool=\"a\\\"b\\\\c\\nd\",zone=\"\"} 1\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_summary_shows_the_quantiles_of_the_last_ten_minutes_and_counts_all() {
    let metrics = Metrics::default();
    let of = InPool { nodepool: "p".to_owned() };
    let observe = |seconds: f64| metrics.nodes_termination.get_or_create(&of).observe(seconds);
    (1..=10).for_each(|second| observe(f64::from(second)));
    let name = "karpenter_nodes_termination_duration_seconds";
    let shown = |metrics: &Metrics, quantile: &str| {
        let of = format!("{{nodepool=\"p\",quantile=\"{quantile}\"}} ");
        samples(metrics, name).iter().find_map(|line| line.strip_prefix(of.as_str()).map(str::to_owned)).unwrap()
    };
    let all: Vec<String> = ["0", "0.5", "0.9", "0.99", "1"].map(|quantile| shown(&metrics, quantile)).to_vec();
    assert_eq!(all, ["1", "6", "10", "10", "10"]);
    assert_eq!(samples(&metrics, &format!("{name}_count")), ["{nodepool=\"p\"} 10"]);
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(
        (shown(&metrics, "0.5"), samples(&metrics, &format!("{name}_sum"))),
        ("NaN".to_owned(), vec!["{nodepool=\"p\"} 55".to_owned()])
    );
}

#[test]
fn build_info_and_the_timeouts_of_consolidation_are_there_from_the_start() {
    let metrics = Metrics::default();
    let build = samples(&metrics, "karpenter_build_info").remove(0);
    let labels = ["version", "goversion", "goarch", "commit"];
    assert!(labels.iter().all(|label| build.contains(&format!("{label}=\""))) && build.ends_with("} 1"), "{build}");
    let timeouts = samples(&metrics, "karpenter_voluntary_disruption_consolidation_timeouts_total");
    assert_eq!(timeouts, ["{consolidation_type=\"multi\"} 0", "{consolidation_type=\"single\"} 0"]);
}

#[test]
fn the_name_of_a_variant_is_told_without_what_is_in_it() {
    #[derive(Debug)]
    #[expect(dead_code, reason = "its text is looked at")]
    enum Told {
        Plain,
        Tuple(&'static str),
        Fields { secret: u8 },
    }
    let names = [Told::Plain, Told::Tuple("x"), Told::Fields { secret: 1 }].map(|told| variant(&told));
    assert_eq!(names, ["Plain", "Tuple", "Fields"]);
}

/// How many samples there are, without those that a histogram or summary has several of.
fn series(metrics: &Metrics) -> usize {
    let is_one = |line: &&str| !line.starts_with('#') && !line.contains("_bucket{") && !line.contains("quantile=");
    metrics.text().lines().filter(is_one).count()
}

/// A node comes with a pod, and goes.
fn life(metrics: &Metrics, number: usize) {
    let (nodepool, zone) = ("default".to_owned(), format!("pve{}", number % 3));
    let name = format!("node-{number}");
    let pod: tenon_api::kube_objects::Pod = serde_json::from_value(serde_json::json!({
        "metadata": { "name": format!("pod-{number}"), "namespace": "n", "uid": format!("uid-{number}"),
            "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": {}, "status": { "phase": "Pending" },
    }))
    .unwrap();
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    metrics.pods.see(&Event::Apply(pod.clone()), now);
    wait(metrics, &[pod.name()]);
    metrics.scheduling.begin(&PROVISIONER, 1).end(0);
    metrics.pods.placed([&pod.metadata.key].into_iter(), now);
    metrics.nodes_created.get_or_create(&OfNode { nodepool: nodepool.clone(), zone: zone.clone() }).inc();
    let condition = |status: &str| {
        let (of_type, status, reason) = ("Launched".to_owned(), status.to_owned(), "Launched".to_owned());
        vec![ShownCondition { of_type, status, reason, since: Some(now) }]
    };
    for status in ["Unknown", "True"] {
        let (group, by_kind, name, deleted) = ("karpenter.sh", &NODECLAIM, name.clone(), Some(now));
        let (labels, conditions) = (vec!["small".to_owned(), nodepool.clone()], condition(status));
        metrics.conditions.look(vec![ShownObject { group, by_kind, name, labels, conditions, deleted }], now);
    }
    metrics.pods.see(&Event::Delete(pod), now);
    wait(metrics, &[]);
    metrics.conditions.look(vec![], now);
    metrics.nodes_terminated.get_or_create(&OfNode { nodepool, zone }).inc();
}

#[test]
fn a_storm_of_two_hundred_nodes_leaves_no_more_series_than_the_first_few() {
    let metrics = Metrics::default();
    (0..3).for_each(|number| life(&metrics, number));
    let few = series(&metrics);
    (3..200).for_each(|number| life(&metrics, number));
    assert_eq!(series(&metrics), few, "{}", metrics.text());
    assert!(metrics.text().contains("karpenter_nodes_created_total{nodepool=\"default\",zone=\"pve0\"} 67\n"));
}

#[test]
fn what_has_a_label_for_each_object_is_left_out_with_the_cluster_state() {
    for metric in Metric::all() {
        let is_of_objects = metric.labels.iter().any(|label| label.values.ends_with("that exist"));
        assert!(metric.is_cluster_state || !is_of_objects, "{}", metric.name);
    }
}
