//! What does the server add to pods and to the templates of pods?

use serde_json::{Value, json};

use super::object::{self, default, with_part};

pub(crate) fn start(new: &mut Value) {
    let class = quality(new);
    object::set(new, "status", Some(json!({ "phase": "Pending", "qosClass": class })));
    with_part(new, "spec", |spec| {
        default(spec, "priority", 0.into());
        default(spec, "enableServiceLinks", true.into());
        default(spec, "preemptionPolicy", "PreemptLowerPriority".into());
        default(spec, "tolerations", json!([]));
        let Some(tolerations) = spec.get_mut("tolerations").and_then(Value::as_array_mut) else { return };
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            let covers = |told: &Value| {
                let (name, effect) = (object::text(told, "/key"), object::text(told, "/effect"));
                (name == key || name.is_empty()) && (effect == "NoExecute" || effect.is_empty())
            };
            if !tolerations.iter().any(covers) {
                let effect = "NoExecute";
                tolerations
                    .push(json!({ "key": key, "operator": "Exists", "effect": effect, "tolerationSeconds": 300 }));
            }
        }
    });
}

/// The class of a pod, by what its containers ask for.
pub(crate) fn quality(pod: &Value) -> &'static str {
    let kinds = ["/spec/containers", "/spec/initContainers"];
    let containers: Vec<&Value> = kinds.iter().flat_map(|path| object::list(pod, path)).collect();
    let amount = |container: &Value, path: &str| container.pointer(path).filter(|value| !value.is_null()).cloned();
    let both = ["cpu", "memory"];
    let is_guaranteed = containers.iter().all(|container| {
        both.iter().all(|resource| {
            let limit = amount(container, &format!("/resources/limits/{resource}"));
            let request = amount(container, &format!("/resources/requests/{resource}"));
            limit.is_some() && (request.is_none() || request == limit)
        })
    });
    let asks = |container: &&Value| {
        let mut paths =
            both.iter().flat_map(|r| [format!("/resources/limits/{r}"), format!("/resources/requests/{r}")]);
        paths.any(|path| amount(container, &path).is_some())
    };
    if !containers.iter().any(asks) {
        "BestEffort"
    } else if is_guaranteed {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

pub(crate) fn spec(spec: &mut Value) {
    for (key, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
    ] {
        default(spec, key, value);
    }
    for key in ["containers", "initContainers"] {
        for container in spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            container_defaults(container);
        }
    }
}

fn container_defaults(container: &mut Value) {
    default(container, "resources", json!({}));
    default(container, "terminationMessagePath", "/dev/termination-log".into());
    default(container, "terminationMessagePolicy", "File".into());
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default(port, "protocol", "TCP".into());
    }
    let image = object::text(container, "/image");
    let tag = image.rsplit_once('/').map_or(image, |(_, last)| last).split_once(':').map(|(_, tag)| tag);
    let policy = if tag.is_none_or(|tag| tag == "latest") { "Always" } else { "IfNotPresent" };
    default(container, "imagePullPolicy", policy.into());
    // A limit without a request is a request as well.
    let Some(limits) = container.pointer("/resources/limits").and_then(Value::as_object).cloned() else { return };
    with_part(container, "resources", |resources| {
        with_part(resources, "requests", |requests| {
            limits.into_iter().for_each(|(name, amount)| default(requests, &name, amount));
        });
    });
}
