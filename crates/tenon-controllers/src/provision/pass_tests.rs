//! What a pass makes on a cluster whose watch shows claims late, or never, and whose pools change while it plans.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tenon_api::{NodeClaim, NodePool, hash_stamp, names};

use super::gather::gather;
use super::pass::{Planned, checked, create};
use super::report::Report;
use super::test_stage::{Stage, add_pod, object};
use crate::settings::Settings;

#[tokio::test(start_paused = true)]
async fn a_pass_right_after_another_makes_no_second_node_for_a_pod_though_the_watch_shows_no_claim_yet() {
    let stage = Stage::new().await;
    stage.pass().await;
    let claims = stage.claims().await;
    assert_eq!(claims.len(), 1);
    assert!(stage.context.watched.claims.is_empty(), "the watch showed it after all");
    stage.pass().await;
    assert_eq!(stage.claims().await.len(), 1);
    let name = claims[0].name_any();
    let told = stage.told("Nominated").await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.contains(&format!("Pod is expected on NodeClaim {name}, whose Node is not ready yet")), "{told:?}");
    let text = stage.context.metrics.text();
    let counted = "karpenter_nodeclaims_created_total{reason=\"provisioned\",nodepool=\"default\",min_values_relaxed=\"false\"} 1";
    assert!(text.contains(counted), "{text}");
    assert!(
        text.contains(
            "karpenter_scheduler_pending_pods_by_effective_zone_count{controller=\"provisioner\",zone=\"flexible\"} 1"
        ),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_the_watch_never_shows_counts_as_long_as_it_is_there() {
    let stage = Stage::new().await;
    stage.pass().await;
    let made = stage.claims().await.remove(0);
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(40)).await;
        stage.pass().await;
        assert_eq!(stage.claims().await.len(), 1);
    }
    let (api, name) = (Api::<NodeClaim>::all(stage.client.clone()), made.name_any());
    let let_go = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    api.patch(&name, &PatchParams::default(), &let_go).await.unwrap();
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    tokio::time::advance(Duration::from_secs(40)).await;
    stage.pass().await;
    let claims = stage.claims().await;
    assert_eq!(claims.len(), 1, "the pod waits again, and gets another");
    assert_ne!(claims[0].name_any(), name);
}

#[tokio::test(start_paused = true)]
async fn a_node_is_expected_to_be_used_for_twenty_seconds_from_the_last_pass_that_put_a_pod_there() {
    let stage = Stage::new().await;
    let begun = stage.context.clock.now();
    stage.pass().await;
    let name = stage.claims().await[0].name_any();
    let is_nominated =
        |seconds: i64| stage.context.memory.is_nominated(&name, begun + SignedDuration::from_secs(seconds));
    assert!(is_nominated(19));
    tokio::time::advance(Duration::from_secs(15)).await;
    stage.pass().await;
    assert!(is_nominated(34) && !is_nominated(36));
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_goes_while_a_plan_is_made_gets_no_claim_and_its_pods_hear_why() {
    let stage = Stage::new().await;
    let go = async { drop(stage.pools().delete("default", &DeleteParams::default()).await.unwrap()) };
    stage.make_late(|pool| pool.is_none_or(|pool| pool.metadata.deletion_timestamp.is_some()), go).await;
    assert!(stage.claims().await.is_empty());
    assert_eq!(stage.told("FailedScheduling").await, ["NodePool default or its ProxmoxNodeClass was deleted"]);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_fails_while_a_plan_is_made_gets_no_claim_and_its_pods_hear_why() {
    let stage = Stage::new().await;
    let fail = async {
        let unready = json!([{ "type": "Ready", "status": "False", "reason": "NodeClassReady", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
        let patch = Patch::Merge(json!({ "status": { "conditions": unready } }));
        stage.pools().patch_status("default", &PatchParams::default(), &patch).await.unwrap();
    };
    let is_false = |pool: &NodePool| format!("{:?}", pool.status).contains("NodeClassReady");
    stage.make_late(|pool| pool.is_some_and(is_false), fail).await;
    assert!(stage.claims().await.is_empty());
    assert_eq!(stage.told("FailedScheduling").await, ["NodePool default is no longer Ready: NodeClassReady"]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_carries_the_hash_of_the_pool_it_was_planned_for_though_the_pool_changed_since() {
    let stage = Stage::new().await;
    let planned = stage.pools().get("default").await.unwrap();
    let labels = json!({ "spec": { "template": { "metadata": { "labels": { "team": "blue" } } } } });
    let is_blue = |pool: &NodePool| pool.spec.template.metadata.is_some();
    stage.make_late(|pool| pool.is_some_and(is_blue), stage.change_pool(&labels)).await;
    let claims = stage.claims().await;
    let of_then = hash_stamp::of_pool(&planned);
    let of_now = hash_stamp::of_pool(&stage.pools().get("default").await.unwrap());
    assert_ne!(of_then, of_now);
    assert!(of_then.iter().all(|(name, value)| claims[0].annotations().get(name) == Some(value)), "{claims:?}");
    assert!(!claims[0].labels().contains_key("team"), "it is made as it was planned");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_sank_below_what_the_pool_has_while_a_plan_was_made_stops_the_claim() {
    let stage = Stage::new().await;
    stage.pass().await;
    assert_eq!(stage.claims().await.len(), 1);
    // Another pod, which does not fit beside the first one.
    add_pod(&stage.client, "large", ("6", json!({}))).await;
    stage.until_waiting(2).await;
    let sunk = json!({ "spec": { "limits": { "cpu": "1" } } });
    let is_sunk = |pool: &NodePool| format!("{:?}", pool.spec.limits).contains("\"1\"");
    stage.make_late(|pool| pool.is_some_and(is_sunk), stage.change_pool(&sunk)).await;
    assert_eq!(stage.claims().await.len(), 1, "what was made stays, and nothing comes to it");
    let told = stage.told("FailedScheduling").await;
    assert_eq!(told, ["NodePool default uses 4 cpu, more than its limit of 1; raise spec.limits or remove nodes"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_breaks_a_rule_is_not_created_and_the_others_are() {
    let stage = Stage::new().await;
    let small = json!({ "nodeSelector": { names::LABEL_INSTANCE_TYPE: "c1.1VCPU-2GB" } });
    add_pod(&stage.client, "other", ("500m", small)).await;
    stage.until_waiting(2).await;
    let (gathered, snapshot, mut plan) = stage.plan().await;
    let wrong = plan.new_nodes.iter_mut().find(|node| node.pods[0].name.as_ref() == "other").unwrap();
    wrong.chosen.price = tenon_model::Price::FREE;
    let plan = checked(&stage.context, &snapshot, plan);
    let mut report = Report::new(&stage.context, &gathered);
    let planned = Planned { plan: &plan, snapshot: &snapshot, gathered: &gathered };
    create(&stage.context, &planned, &mut report).await;
    report.of(&plan, &gathered).await;
    assert_eq!(stage.claims().await.len(), 1);
    let told = stage.told("FailedScheduling").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("an offering that does not exist; this is a bug in Tenon, please report it"), "{told:?}");
    let text = stage.context.metrics.text();
    assert!(text.contains("tenon_pass_errors_total{controller=\"provisioner\"} 1\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn services_are_watched_only_where_pods_are_spread_by_default() {
    let mut settings = Settings::default();
    let text =
        "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}";
    settings.planning.set("scheduler-config", text).unwrap();
    for (settings, services) in [(Settings::default(), 0), (settings, 1)] {
        let stage = Stage::with(settings).await;
        let service: Service = object(json!({
            "metadata": { "name": "s", "namespace": "default" },
            "spec": { "selector": { "app": "x" }, "ports": [{ "port": 80 }] },
        }));
        let api: Api<Service> = Api::namespaced(stage.client.clone(), "default");
        api.create(&PostParams::default(), &service).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        let found = gather(&stage.context).await.related.services;
        assert_eq!(found.iter().filter(|found| found.name_any() == "s").count(), services);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_s_decision_is_timed_from_when_it_was_seen_to_wait() {
    let stage = Stage::new().await;
    let (stopper, stop) = crate::stop::stop();
    let context = Arc::new(stage.context);
    let running = tokio::spawn(super::run(context.clone(), stop));
    let took = || {
        let text = context.metrics.text();
        let sum = text.lines().find_map(|line| {
            let (name, seconds) = line.split_once(' ')?;
            (name == "karpenter_pods_scheduling_decision_duration_seconds_sum").then(|| seconds.parse::<f64>().unwrap())
        });
        sum.unwrap()
    };
    let undecided =
        "karpenter_pods_provisioning_scheduling_undecided_time_seconds{name=\"waits\",namespace=\"default\"} 0.5";
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(context.metrics.text().contains(undecided), "{}", context.metrics.text());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!((1.0..1.1).contains(&took()), "the window of a second, and no time to think: {}", took());
    assert!(!context.metrics.text().contains("undecided_time_seconds{"));
    stopper.tell();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_many_pods_that_wait_a_hundred_hear_why_in_one_pass_and_the_others_in_the_next() {
    let stage = Stage::new().await;
    for number in 0..130 {
        add_pod(&stage.client, &format!("huge-{number}"), ("1000", json!({}))).await;
    }
    stage.until_waiting(131).await;
    // Being told where one goes counts too.
    for told in [99, 130, 130] {
        stage.pass().await;
        assert_eq!(stage.told("FailedScheduling").await.len(), told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_no_node_can_be_right_for_is_ignored_and_hears_why_unless_it_wants_none_of_ours() {
    let stage = Stage::new().await;
    add_pod(&stage.client, "odd", ("1", json!({ "nodeSelector": { "karpenter.sh/initialized": "true" } }))).await;
    let none_of_ours = json!([{ "matchExpressions": [{ "key": names::LABEL_NODEPOOL, "operator": "DoesNotExist" }] }]);
    let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": none_of_ours } });
    add_pod(&stage.client, "elsewhere", ("1", json!({ "affinity": { "nodeAffinity": required } }))).await;
    add_pod(&stage.client, "huge", ("1000", json!({}))).await;
    stage.until_waiting(4).await;
    stage.pass().await;
    let told = stage.told("FailedScheduling").await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().any(|told| told.contains("karpenter.sh/initialized")), "{told:?}");
    let text = stage.context.metrics.text();
    assert!(text.contains("karpenter_scheduler_ignored_pods_count 2\n"), "{text}");
    assert!(text.contains("karpenter_scheduler_unschedulable_pods_count{controller=\"provisioner\"} 1\n"), "{text}");
}
