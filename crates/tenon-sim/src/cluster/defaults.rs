//! What does the server add to objects of built-in kinds?
//!
//! Only what schedulers, kubelets, controllers and people look at.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::kinds::Kind;
use super::object::{self, default, edit, with_part};
use super::pod_defaults;

/// What is set once, when an object is made.
pub(crate) fn on_create(kind: &Kind, new: &mut Value) {
    match (kind.group.as_str(), kind.resource.as_str()) {
        ("", "pods") => pod_defaults::start(new),
        ("", "nodes") => start_node(new),
        ("", "namespaces") => start_namespace(new),
        ("", "persistentvolumes" | "persistentvolumeclaims") => {
            object::set(new, "status", Some(json!({ "phase": "Pending" })));
        }
        ("" | "events.k8s.io", "events") => {
            default(new, "source", json!({}));
            name_times(new, ["firstTimestamp", "lastTimestamp"]);
        }
        ("", "services") => default(new, "status", json!({ "loadBalancer": {} })),
        ("storage.k8s.io", "volumeattachments") => object::set(new, "status", Some(json!({ "attached": false }))),
        ("policy", "poddisruptionbudgets") => object::set(
            new,
            "status",
            Some(json!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 })),
        ),
        ("apps", resource) | ("", resource @ "replicationcontrollers") => {
            object::set(new, "status", Some(first_status(resource)));
        }
        ("batch", "jobs") => start_job(new),
        ("certificates.k8s.io", _) => object::set(new, "status", Some(json!({}))),
        _ => {}
    }
}

/// What is set whenever an object is written.
pub(crate) fn on_write(kind: &Kind, new: &mut Value) {
    object::drop_nulls(new);
    match (kind.group.as_str(), kind.resource.as_str()) {
        ("", "pods") => {
            with_part(new, "spec", pod_defaults::spec);
            let class = pod_defaults::quality(new);
            with_part(new, "status", |status| default(status, "qosClass", class.into()));
            each_condition(new, |told| name_times(told, ["lastProbeTime", "lastTransitionTime"]));
        }
        ("", "nodes") => each_condition(new, |told| name_times(told, ["lastHeartbeatTime", "lastTransitionTime"])),
        ("", "secrets") => secret(new),
        ("apps", resource) | ("", resource @ "replicationcontrollers") => workload(resource, new),
        ("batch", "jobs") => with_part(new, "spec", job_spec),
        ("", "services") => {
            for (key, value) in
                [("type", "ClusterIP"), ("sessionAffinity", "None"), ("internalTrafficPolicy", "Cluster")]
            {
                with_part(new, "spec", |spec| default(spec, key, value.into()));
            }
            with_part(new, "spec", |spec| {
                default(spec, "ipFamilies", json!(["IPv4"]));
                default(spec, "ipFamilyPolicy", "SingleStack".into());
            });
        }
        ("", "persistentvolumeclaims") => {
            with_part(new, "spec", |spec| default(spec, "volumeMode", "Filesystem".into()));
        }
        ("scheduling.k8s.io", _) => default(new, "preemptionPolicy", "PreemptLowerPriority".into()),
        ("storage.k8s.io", "storageclasses") => {
            default(new, "reclaimPolicy", "Delete".into());
            default(new, "volumeBindingMode", "Immediate".into());
        }
        _ => {}
    }
}

/// Times of built-in kinds that are not set are still named.
fn name_times(told: &mut Value, keys: [&str; 2]) {
    edit(told, |map| {
        for key in keys {
            map.entry(key).or_insert(Value::Null);
        }
    });
}

fn each_condition(object: &mut Value, act: impl Fn(&mut Value)) {
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    conditions.into_iter().flatten().for_each(act);
}

fn job_spec(spec: &mut Value) {
    for (key, value) in [("parallelism", 1), ("completions", 1), ("backoffLimit", 6)] {
        default(spec, key, value.into());
    }
    for (key, value) in [("completionMode", "NonIndexed"), ("podReplacementPolicy", "TerminatingOrFailed")] {
        default(spec, key, value.into());
    }
    default(spec, "suspend", false.into());
    if let Some(template) = spec.pointer_mut("/template/spec") {
        pod_defaults::spec(template);
    }
}

/// The counts a workload has before anybody has counted.
fn first_status(resource: &str) -> Value {
    match resource {
        "replicasets" | "replicationcontrollers" => json!({ "replicas": 0 }),
        "statefulsets" => json!({ "replicas": 0, "availableReplicas": 0 }),
        "daemonsets" => json!({
            "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
        }),
        _ => json!({}),
    }
}

fn workload(resource: &str, new: &mut Value) {
    with_part(new, "spec", |spec| {
        if resource != "daemonsets" {
            default(spec, "replicas", 1.into());
        }
        if !["replicasets", "replicationcontrollers"].contains(&resource) {
            default(spec, "revisionHistoryLimit", 10.into());
        }
        match resource {
            "daemonsets" => rolling(spec, "updateStrategy", &json!({ "maxUnavailable": 1, "maxSurge": 0 })),
            "statefulsets" => {
                default(spec, "podManagementPolicy", "OrderedReady".into());
                rolling(spec, "updateStrategy", &json!({ "partition": 0 }));
            }
            "deployments" => {
                rolling(spec, "strategy", &json!({ "maxUnavailable": "25%", "maxSurge": "25%" }));
                default(spec, "progressDeadlineSeconds", 600.into());
            }
            "replicationcontrollers" => {
                if let Some(labels) = spec.pointer("/template/metadata/labels").cloned() {
                    default(spec, "selector", labels);
                }
            }
            _ => {}
        }
        if let Some(template) = spec.pointer_mut("/template/spec") {
            pod_defaults::spec(template);
        }
    });
}

/// Updates roll unless they are told not to; how fast is filled in number by number.
fn rolling(spec: &mut Value, key: &str, pace: &Value) {
    with_part(spec, key, |strategy| {
        default(strategy, "type", "RollingUpdate".into());
        if object::text(strategy, "/type") == "RollingUpdate" {
            with_part(strategy, "rollingUpdate", |rolling| {
                for (key, value) in pace.as_object().into_iter().flatten() {
                    default(rolling, key, value.clone());
                }
            });
        }
    });
}

/// A job finds its pods by its own uid, unless its owner says how.
fn start_job(new: &mut Value) {
    object::set(new, "status", Some(json!({})));
    if new.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let (name, uid) = (object::name(new).to_owned(), object::text(new, "/metadata/uid").to_owned());
    let labels = [
        ("batch.kubernetes.io/controller-uid", uid.as_str()),
        ("controller-uid", uid.as_str()),
        ("batch.kubernetes.io/job-name", name.as_str()),
        ("job-name", name.as_str()),
    ];
    with_part(new, "spec", |spec| {
        default(spec, "manualSelector", false.into());
        object::set(spec, "selector", Some(json!({ "matchLabels": { labels[0].0: uid } })));
        with_part(spec, "template", |template| {
            with_part(template, "metadata", |metadata| {
                with_part(metadata, "labels", |told| {
                    labels.iter().for_each(|(key, value)| object::set(told, key, Some((*value).into())));
                });
            });
        });
    });
    let told = new.pointer("/spec/template/metadata/labels").cloned();
    with_part(new, "metadata", |metadata| {
        if let Some(told) = told {
            default(metadata, "labels", told);
        }
    });
}

fn start_node(new: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    with_part(new, "spec", |spec| {
        default(spec, "taints", json!([]));
        let taints = spec.get_mut("taints").and_then(Value::as_array_mut);
        if let Some(taints) = taints
            && !taints.iter().any(|taint| object::text(taint, "/key") == NOT_READY)
        {
            taints.push(json!({ "key": NOT_READY, "effect": "NoSchedule" }));
        }
    });
    with_part(new, "status", |status| {
        if let Some(capacity) = status.get("capacity").cloned() {
            default(status, "allocatable", capacity);
        }
        default(status, "daemonEndpoints", json!({ "kubeletEndpoint": { "Port": 0 } }));
        let info = [
            "machineID",
            "systemUUID",
            "bootID",
            "kernelVersion",
            "osImage",
            "containerRuntimeVersion",
            "kubeletVersion",
            "kubeProxyVersion",
            "operatingSystem",
            "architecture",
        ];
        with_part(status, "nodeInfo", |told| info.iter().for_each(|key| default(told, key, "".into())));
    });
}

fn start_namespace(new: &mut Value) {
    let name = object::name(new).to_owned();
    with_part(new, "metadata", |metadata| {
        with_part(metadata, "labels", |labels| default(labels, "kubernetes.io/metadata.name", name.into()));
    });
    object::set(new, "spec", Some(json!({ "finalizers": ["kubernetes"] })));
    object::set(new, "status", Some(json!({ "phase": "Active" })));
}

fn secret(new: &mut Value) {
    default(new, "type", "Opaque".into());
    let plain = edit(new, |map| map.remove("stringData"));
    for (key, value) in plain.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
        with_part(new, "data", |data| object::set(data, key, Some(encoded.into())));
    }
}
