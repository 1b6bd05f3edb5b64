//! Table: shapes of pods, and what each needs on a node.

use anyhow::Context as _;
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

/// A pod in a certain shape.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) spec: Value,
    /// What its status says while it is on a node; then another pod is scheduled beside it.
    pub(crate) status: Option<Value>,
    /// What it needs, worked out by hand.
    pub(crate) needs: Vec<(&'static str, &'static str)>,
}

/// The class of runtime that has overhead.
pub(crate) async fn overhead_class(client: &Client) -> anyhow::Result<()> {
    let class: RuntimeClass = serde_json::from_value(json!({
        "metadata": { "name": "heavy" },
        "handler": "heavy",
        "overhead": { "podFixed": { "cpu": "250m", "memory": "120Mi" } },
    }))?;
    Api::all(client.clone()).create(&PostParams::default(), &class).await.context("the runtime class is refused")?;
    Ok(())
}

fn container(name: &str, resources: &Value) -> Value {
    json!({ "name": name, "image": "registry.example/c:1", "resources": resources })
}

pub(crate) fn asking(name: &str, cpu: &str, memory: &str) -> Value {
    container(name, &json!({ "requests": { "cpu": cpu, "memory": memory } }))
}

fn sidecar(name: &str, cpu: &str, memory: &str) -> Value {
    let mut sidecar = asking(name, cpu, memory);
    sidecar["restartPolicy"] = "Always".into();
    sidecar
}

fn shape(name: &'static str, spec: Value, needs: &[(&'static str, &'static str)]) -> Shape {
    Shape { name, spec, status: None, needs: needs.to_vec() }
}

fn status(name: &str, allocated: &Value, actual: &Value) -> Value {
    json!({
        "name": name, "image": "registry.example/c:1", "imageID": "", "ready": false, "restartCount": 0,
        "allocatedResources": allocated, "resources": { "requests": actual },
    })
}

pub(crate) fn shapes() -> Vec<Shape> {
    [of_containers(), of_init_containers(), of_the_pod(), of_other_resources(), of_resizes()]
        .into_iter()
        .flatten()
        .collect()
}

fn of_containers() -> Vec<Shape> {
    let many: Vec<Value> = (0..20).map(|index| asking(&format!("c{index}"), "33m", "7Mi")).collect();
    vec![
        shape("plain", json!({ "containers": [asking("a", "500m", "64Mi")] }), &[("cpu", "500m"), ("memory", "64Mi")]),
        shape("many-containers", json!({ "containers": many }), &[("cpu", "660m"), ("memory", "140Mi")]),
        shape(
            "limits-only",
            json!({ "containers": [container("a", &json!({ "limits": { "cpu": "300m", "memory": "100M" } }))] }),
            &[("cpu", "300m"), ("memory", "100M")],
        ),
        shape(
            "limits-fill-what-is-missing",
            json!({ "containers": [container("a", &json!({
                "limits": { "cpu": "1", "memory": "100M" }, "requests": { "cpu": "100m" },
            }))] }),
            &[("cpu", "100m"), ("memory", "100M")],
        ),
        shape(
            "odd-amounts",
            json!({ "containers": [asking("a", "0.1", "1.5Gi"), asking("b", "1e-3", "1e6")] }),
            &[("cpu", "101m"), ("memory", "1611612736")],
        ),
        shape(
            "finer-than-counted",
            json!({ "containers": [asking("a", "0.0005", "100.5")] }),
            &[("cpu", "1m"), ("memory", "101")],
        ),
    ]
}

fn of_init_containers() -> Vec<Shape> {
    vec![
        shape(
            "init-heavy",
            json!({
                "containers": [asking("a", "100m", "64Mi"), asking("b", "200m", "64Mi")],
                "initContainers": [asking("i", "1", "16Mi"), asking("j", "500m", "256Mi")],
            }),
            &[("cpu", "1"), ("memory", "256Mi")],
        ),
        shape(
            "sidecar",
            json!({ "containers": [asking("a", "100m", "64Mi")], "initContainers": [sidecar("s", "200m", "32Mi")] }),
            &[("cpu", "300m"), ("memory", "96Mi")],
        ),
        shape(
            "sidecar-before-init",
            json!({
                "containers": [asking("a", "100m", "64Mi")],
                "initContainers": [sidecar("s", "200m", "32Mi"), asking("i", "1", "16Mi")],
            }),
            &[("cpu", "1200m"), ("memory", "96Mi")],
        ),
        shape(
            "sidecar-after-init",
            json!({
                "containers": [asking("a", "100m", "64Mi")],
                "initContainers": [asking("i", "1", "16Mi"), sidecar("s", "200m", "32Mi")],
            }),
            &[("cpu", "1"), ("memory", "96Mi")],
        ),
        shape(
            "sidecars-between-inits",
            json!({
                "containers": [asking("a", "100m", "64Mi")],
                "initContainers": [
                    asking("i", "700m", "8Mi"), sidecar("s", "200m", "32Mi"), asking("j", "600m", "300Mi"),
                    sidecar("t", "300m", "16Mi"), asking("k", "250m", "8Mi"),
                ],
            }),
            &[("cpu", "800m"), ("memory", "332Mi")],
        ),
    ]
}

fn of_the_pod() -> Vec<Shape> {
    let level = |resources: Value| json!({ "containers": [asking("a", "100m", "64Mi")], "resources": resources });
    vec![
        shape(
            "overhead",
            json!({ "containers": [asking("a", "100m", "64Mi")], "runtimeClassName": "heavy" }),
            &[("cpu", "350m"), ("memory", "184Mi")],
        ),
        shape(
            "pod-level",
            level(json!({ "requests": { "cpu": "2", "memory": "1Gi" } })),
            &[("cpu", "2"), ("memory", "1Gi")],
        ),
        shape("pod-level-in-part", level(json!({ "requests": { "cpu": "2" } })), &[("cpu", "2"), ("memory", "64Mi")]),
        shape(
            "pod-level-limits-only",
            json!({ "containers": [container("a", &json!({}))], "resources": { "limits": { "cpu": "2", "memory": "1Gi" } } }),
            &[("cpu", "2"), ("memory", "1Gi")],
        ),
        shape(
            "pod-level-limits-above-containers",
            level(json!({ "limits": { "cpu": "2", "memory": "1Gi" } })),
            &[("cpu", "100m"), ("memory", "64Mi")],
        ),
        shape(
            "pod-level-with-overhead-and-sidecar",
            json!({
                "containers": [asking("a", "100m", "64Mi")], "initContainers": [sidecar("s", "200m", "32Mi")],
                "resources": { "requests": { "cpu": "1" } }, "runtimeClassName": "heavy",
            }),
            &[("cpu", "1250m"), ("memory", "216Mi")],
        ),
    ]
}

fn of_other_resources() -> Vec<Shape> {
    let device = json!({ "limits": { "example.com/gpu": 2 }, "requests": { "cpu": "1" } });
    let disk = json!({ "requests": { "ephemeral-storage": "3Gi", "cpu": "10m" } });
    let pages = json!({ "limits": { "hugepages-2Mi": "64Mi", "memory": "100Mi", "cpu": "1" } });
    vec![
        shape(
            "extended-resource",
            json!({ "containers": [container("a", &device)] }),
            &[("example.com/gpu", "2"), ("cpu", "1")],
        ),
        shape(
            "ephemeral-storage",
            json!({ "containers": [container("a", &disk), container("b", &disk)] }),
            &[("ephemeral-storage", "6Gi"), ("cpu", "20m")],
        ),
        shape(
            "hugepages",
            json!({ "containers": [container("a", &pages)] }),
            &[("hugepages-2Mi", "64Mi"), ("memory", "100Mi"), ("cpu", "1")],
        ),
    ]
}

fn of_resizes() -> Vec<Shape> {
    let spec = json!({ "containers": [asking("a", "100m", "64Mi")] });
    let held =
        json!([status("a", &json!({ "cpu": "300m", "memory": "32Mi" }), &json!({ "cpu": "200m", "memory": "96Mi" }))]);
    let refused = json!([{
        "type": "PodResizePending", "status": "True", "reason": "Infeasible", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    vec![
        Shape {
            status: Some(json!({ "containerStatuses": held })),
            ..shape("resize", spec.clone(), &[("cpu", "300m"), ("memory", "96Mi")])
        },
        Shape {
            status: Some(json!({
                "containerStatuses": [status("a", &json!({ "cpu": "30m", "memory": "32Mi" }), &json!({ "cpu": "20m", "memory": "32Mi" }))],
                "conditions": refused,
            })),
            ..shape("resize-infeasible", spec, &[("cpu", "30m"), ("memory", "32Mi")])
        },
        Shape {
            status: Some(json!({
                "initContainerStatuses": [
                    status("s", &json!({ "cpu": "400m" }), &json!({ "cpu": "400m" })),
                    status("i", &json!({ "cpu": "900m" }), &json!({ "cpu": "900m" })),
                ],
            })),
            ..shape(
                "resize-of-a-sidecar",
                json!({
                    "containers": [asking("a", "100m", "64Mi")],
                    "initContainers": [sidecar("s", "200m", "32Mi"), asking("i", "50m", "16Mi")],
                }),
                &[("cpu", "500m"), ("memory", "96Mi")],
            )
        },
        Shape {
            status: Some(json!({
                "resources": { "requests": { "cpu": "1500m", "memory": "64Mi" } },
                "allocatedResources": { "cpu": "2500m", "memory": "64Mi" },
            })),
            ..shape(
                "resize-of-the-pod",
                json!({
                    "containers": [asking("a", "100m", "64Mi")],
                    "resources": { "requests": { "cpu": "2", "memory": "80Mi" } },
                }),
                &[("cpu", "2500m"), ("memory", "80Mi")],
            )
        },
    ]
}
