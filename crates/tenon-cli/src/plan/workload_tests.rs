//! Workloads in files: how many pods of each are planned, what these pods are like, and why some are not planned.

use tenon_api::kube_objects::Pod;
use tenon_api::planning::is_provisionable;

use super::load_tests::{indented, read};

const POD_TEMPLATE: &str =
    "{metadata: {labels: {app: x}}, spec: {containers: [{name: c, resources: {limits: {cpu: 1}}}]}}";

/// A workload of a kind, with more fields in its spec.
fn workload(kind: &str, spec: &str) -> String {
    let version = if kind.ends_with("Job") { "batch/v1" } else { "apps/v1" };
    let spec = match kind {
        "CronJob" => format!("jobTemplate: {{spec: {{template: {POD_TEMPLATE}}}}}, schedule: '@daily'{spec}"),
        "Job" => format!("template: {POD_TEMPLATE}{spec}"),
        _ => format!("selector: {{}}, serviceName: s, template: {POD_TEMPLATE}{spec}"),
    };
    format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: web}}\nspec: {{{spec}}}\n")
}

/// What is said about the workloads of a text, and the names of all pods.
fn planned(text: &str) -> (Vec<String>, Vec<String>) {
    let found = read("x.yaml", text).unwrap_or_else(|fault| panic!("{text}\n{fault}"));
    (found.workloads, found.objects.pods.iter().map(|pod| pod.name().to_owned()).collect())
}

#[test]
fn each_kind_is_planned_by_its_own_number() {
    for (kind, spec, names) in [
        ("Deployment", ", replicas: 3", &["web-1", "web-2", "web-3"][..]),
        ("Deployment", "", &["web-1"]),
        ("ReplicaSet", ", replicas: 2", &["web-1", "web-2"]),
        ("StatefulSet", ", replicas: 2", &["web-0", "web-1"]),
        ("StatefulSet", ", ordinals: {start: 5}", &["web-5"]),
        ("Job", "", &["web-1"]),
        ("Job", ", parallelism: 3, completions: 2", &["web-1", "web-2"]),
        ("Job", ", completions: 9", &["web-1"]),
        ("CronJob", "", &["web-1"]),
    ] {
        let pods = if names.len() == 1 { "1 pod".to_owned() } else { format!("{} pods", names.len()) };
        let said = format!("planned {pods} of {kind} default/web");
        assert_eq!(
            planned(&workload(kind, spec)),
            (vec![said], names.iter().map(ToString::to_string).collect()),
            "{spec}"
        );
    }
    let inner = workload("CronJob", "").replace("{spec: {template", "{spec: {parallelism: 2, template");
    assert_eq!(planned(&inner).1, ["web-1", "web-2"]);
}

#[test]
fn a_pod_of_a_workload_is_what_a_cluster_would_create() {
    let claims = ", volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]";
    let objects = read("x.yaml", &workload("StatefulSet", claims)).unwrap().objects;
    let pod: &Pod = &objects.pods[0];
    assert!(is_provisionable(pod));
    assert_eq!(pod.uid(), "default/web-0");
    let labels = pod.labels();
    assert_eq!((labels["app"].as_str(), labels["statefulset.kubernetes.io/pod-name"].as_str()), ("x", "web-0"));
    let spec = pod.spec.clone().unwrap();
    assert_eq!(spec.containers[0].resources.clone().unwrap().requests.unwrap()["cpu"].0, "1");
    let volume = &spec.volumes.as_ref().unwrap()[0];
    assert_eq!(volume.persistent_volume_claim.clone().unwrap().claim_name, "data-web-0");
    let owner = |kind: &str| {
        let pod = read("x.yaml", &workload(kind, "")).unwrap().objects.pods.remove(0);
        pod.owner_references()[0].kind.clone()
    };
    assert_eq!(
        (owner("Deployment").as_str(), owner("CronJob").as_str(), owner("Job").as_str()),
        ("ReplicaSet", "Job", "Job")
    );
}

#[test]
fn claims_that_a_cluster_would_create_with_the_pods_are_planned_with_them() {
    let templates = ", replicas: 2, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast}}]";
    let given =
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-web-1}\nspec: {volumeName: pv-1}\n";
    let objects = read("x.yaml", &(workload("StatefulSet", templates) + given)).unwrap().objects;
    let claims: Vec<_> = objects
        .persistent_volume_claims
        .iter()
        .map(|claim| (claim.metadata.name.as_deref().unwrap(), claim.storage_class_name(), claim.volume_name()))
        .collect();
    assert_eq!(claims, [("data-web-0", Some("fast"), None), ("data-web-1", None, Some("pv-1"))]);
    let ephemeral =
        "volumes: [{name: tmp, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: quick}}}}], containers";
    let text = workload("Deployment", "").replacen("containers", ephemeral, 1);
    let objects = read("x.yaml", &text).unwrap().objects;
    let claim = &objects.persistent_volume_claims[0];
    assert_eq!(claim.metadata.name.as_deref(), Some("web-1-tmp"));
    assert_eq!(claim.storage_class_name(), Some("quick"));
}

#[test]
fn pods_of_a_deployment_belong_together_by_its_selector() {
    let objects = read("x.yaml", &workload("Deployment", "")).unwrap().objects;
    let (set, owner) = (&objects.replica_sets[0], &objects.pods[0].owner_references()[0]);
    assert_eq!(set.metadata.name.as_ref(), Some(&owner.name));
    assert!(set.spec.selector.is_some() && set.spec.template.is_none());
}

#[test]
fn a_workload_that_is_suspended_deleted_or_wants_nothing_is_not_planned_and_says_why() {
    let deleted =
        workload("Deployment", "").replace("{name: web}", "{name: web, deletionTimestamp: '2026-01-01T00:00:00Z'}");
    let suspended = workload("CronJob", "").replace("{spec: {template", "{spec: {suspend: true, template");
    for (text, why) in [
        (workload("Job", ", suspend: true"), "Job default/web: spec.suspend is true"),
        (workload("CronJob", ", suspend: true"), "CronJob default/web: spec.suspend is true"),
        (suspended, "CronJob default/web: spec.jobTemplate.spec.suspend is true"),
        (workload("Deployment", ", replicas: 0"), "Deployment default/web: spec.replicas is 0"),
        (workload("Job", ", completions: 0"), "Job default/web: spec.completions is 0"),
        (deleted, "Deployment default/web: metadata.deletionTimestamp is set"),
        (
            "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web}\n".to_owned(),
            "ReplicaSet default/web: the pod template is missing",
        ),
    ] {
        assert_eq!(planned(&text), (vec![format!("planned 0 pods of {why}")], Vec::new()), "{text}");
    }
}

#[test]
fn only_workloads_that_no_cluster_has_acted_on_are_planned() {
    for (kind, status, pods) in [
        ("Deployment", "{}", 1),
        ("Deployment", "null", 1),
        ("Deployment", "{observedGeneration: 1}", 0),
        ("StatefulSet", "{replicas: 0, availableReplicas: 0}", 1),
        ("StatefulSet", "{replicas: 1}", 0),
        ("Job", "{active: 1}", 0),
        ("Job", "{ready: 0}", 1),
    ] {
        let (said, names) = planned(&format!("{}status: {status}\n", workload(kind, "")));
        assert_eq!(names.len(), pods, "{kind} {status}: {said:?}");
        assert_eq!(said[0].contains("status is set, so a cluster has the pods"), pods == 0, "{said:?}");
    }
    let stored = workload("CronJob", "").replace("{name: web}", "{name: web, resourceVersion: '7'}");
    assert!(planned(&stored).1.is_empty(), "one that never ran has an empty status");
    let idle = format!("{}status: {{observedGeneration: 1}}\n", workload("Deployment", ", replicas: 0"));
    assert_eq!(planned(&idle), (Vec::new(), Vec::new()), "old ReplicaSets would fill the page");
}

#[test]
fn a_workload_whose_pods_are_in_the_input_is_not_planned_again() {
    let owned = |kind: &str, name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}-a, labels: {{pod-template-hash: 7d9f}}, ownerReferences: \
             [{{apiVersion: x, kind: {kind}, name: {name}, uid: u}}]}}\n"
        )
    };
    let set = workload("ReplicaSet", "").replace(
        "{name: web}",
        "{name: web-7d9f, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u}]}",
    );
    for (text, count) in [
        (workload("StatefulSet", "") + &owned("StatefulSet", "web"), 1),
        (workload("Deployment", "") + &owned("ReplicaSet", "web-7d9f"), 1),
        (workload("CronJob", "") + &owned("Job", "web-2890"), 1),
        (format!("{}---\n{set}{}", workload("Deployment", ""), owned("ReplicaSet", "web-7d9f")), 1),
        (workload("Deployment", "") + &owned("ReplicaSet", "other-7d9f"), 2),
        (workload("Job", "") + &owned("StatefulSet", "web"), 2),
    ] {
        assert_eq!(planned(&text).1.len(), count, "{text}\n{:?}", planned(&text));
    }
    let (said, names) = planned(&format!("{}---\n{set}", workload("Deployment", ", replicas: 9")));
    assert_eq!(names, ["web-7d9f-1"], "the ReplicaSet speaks for its Deployment");
    let why = "the pods, or the ReplicaSets or Jobs that own them, are in the input";
    assert_eq!(
        said,
        [
            "planned 1 pod of ReplicaSet default/web-7d9f".to_owned(),
            format!("planned 0 pods of Deployment default/web: {why}")
        ]
    );
}

#[test]
fn names_are_unique_although_workloads_share_one() {
    let all = format!(
        "{}---\n{}---\n{}",
        workload("Deployment", ""),
        workload("Job", ""),
        super::load_tests::POD.replace("name: a", "name: web-1")
    );
    assert_eq!(planned(&all).1, ["web-1", "web-deployment-1", "web-job-1"]);
}

#[test]
fn workloads_in_lists_are_planned_and_daemon_sets_count_as_overhead() {
    let items = format!("{}{}", indented(&workload("Deployment", "")), indented(&workload("DaemonSet", "")));
    let (said, names) = planned(&format!("apiVersion: v1\nkind: List\nitems:\n{items}"));
    assert_eq!(names, ["web-1"]);
    assert_eq!(said, ["planned 1 pod of Deployment default/web", "counted 1 DaemonSet as overhead of the new nodes"]);
}

#[test]
fn many_workloads_are_summed_up() {
    let many = |spec: &str| -> String {
        (0..25)
            .map(|index| {
                workload("Deployment", spec).replace("{name: web}", &format!("{{name: w{index:02}}}")) + "---\n"
            })
            .collect()
    };
    let (said, names) = planned(&many(", replicas: 2"));
    assert_eq!((said.len(), names.len(), said[20].as_str()), (21, 50, "planned 10 pods of 5 more workloads"));
    let named = "planned 0 pods of 25 workloads (Deployment default/w00, Deployment default/w01, Deployment default/w02 and 22 more): spec.replicas is 0";
    assert_eq!(planned(&many(", replicas: 0")).0, [named]);
}

#[test]
fn a_wrong_number_or_template_is_reported_with_its_line() {
    let lines = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2147483647\n  selector: {}\n  \
                 template: {}\n";
    let job = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: web}\nspec:\n  schedule: x\n  jobTemplate:\n    spec:\n      \
               template:\n        spec:\n          containers:\n          - name: c\n            resources: {requests: {cpu: lots}}\n";
    for (text, words) in [
        (
            lines.to_owned(),
            "x.yaml:5: Deployment web: spec.replicas: 2147483647 pods are too many: tenon plan creates at most 50000 pods for all workloads; lower this number",
        ),
        (
            lines.replace("2147483647", "-1"),
            "x.yaml:5: Deployment web: spec.replicas: `-1` is negative; give 0 or more",
        ),
        (
            job.to_owned(),
            "x.yaml:12: CronJob web: spec.jobTemplate.spec.template.spec.containers[0].resources.requests.cpu: `lots`",
        ),
        (workload("Deployment", ", replicas: many"), "x.yaml:4: Deployment: "),
    ] {
        let said = read("x.yaml", &text).map(drop).unwrap_err();
        assert!(said.starts_with(words), "{said}");
    }
    let two = format!("{}---\n{}", workload("Deployment", ", replicas: 50000"), workload("Job", ""));
    let said = read("x.yaml", &two).map(drop).unwrap_err();
    assert!(said.starts_with("x.yaml:6: Job default/web: spec.parallelism: 50001 pods are too many"), "{said}");
}

#[test]
fn a_workload_whose_pods_the_scheduler_ignores_is_not_planned_and_says_why() {
    for (field, named) in [("schedulingGates: [{name: g}]", "spec.schedulingGates"), ("nodeName: n", "spec.nodeName")] {
        let text = workload("Deployment", ", replicas: 2")
            .replace("spec: {containers", &format!("spec: {{{field}, containers"));
        let (said, names) = planned(&text);
        assert!(names.is_empty() && said[0].contains(&format!("{named} of the pod template is set")), "{said:?}");
    }
}

#[test]
fn an_old_replica_set_without_pods_does_not_stand_for_the_pods_of_its_deployment() {
    let owner = "ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u}]";
    let old = |replicas: u32| {
        let text = workload("ReplicaSet", &format!(", replicas: {replicas}"));
        text.replace("{name: web}", &format!("{{name: web-old, {owner}}}"))
    };
    let with =
        |replicas| format!("{}---\n{}status: {{replicas: {replicas}}}\n", workload("Deployment", ""), old(replicas));
    assert_eq!(planned(&with(0)).1, ["web-1"]);
    assert!(planned(&with(2)).1.is_empty(), "a cluster has the pods of this one");
}
