//! Pods as Deployments, StatefulSets and DaemonSets of real clusters have them: with probes, variables, volumes, annotations, and
//! what a kubelet says of them.

use serde_json::{Value, json};

use crate::machines;

/// Deployments and StatefulSets; every tenth is a StatefulSet.
pub(crate) const COUNT: usize = 300;

/// DaemonSets.
pub(crate) const DAEMONS: usize = 3;

/// Namespaces they are spread over.
pub(crate) const NAMESPACES: usize = 20;

const THEN: &str = "2026-01-01T00:00:00Z";

/// One pod: whose it is, and where.
pub(crate) struct Spot {
    /// Which workload; those of DaemonSets follow the others.
    pub(crate) workload: usize,
    /// Which of its pods.
    pub(crate) index: usize,
    /// The node it is bound to.
    pub(crate) node: Option<usize>,
}

impl Spot {
    fn is_daemon(&self) -> bool {
        self.workload >= COUNT
    }

    fn is_stateful(&self) -> bool {
        !self.is_daemon() && self.workload.is_multiple_of(10)
    }

    pub(crate) fn namespace(&self) -> String {
        if self.is_daemon() { "kube-system".to_owned() } else { namespace(self.workload % NAMESPACES) }
    }

    pub(crate) fn name(&self) -> String {
        let (workload, index) = (name(self.workload), self.index);
        match (self.is_stateful(), self.is_daemon()) {
            (true, _) => format!("{workload}-{index}"),
            (_, true) => format!("{workload}-{index:05x}"),
            _ => format!("{workload}-{}-{index:05x}", hash(self.workload)),
        }
    }

    fn owner(&self) -> Value {
        let (kind, name) = match (self.is_stateful(), self.is_daemon()) {
            (true, _) => ("StatefulSet", name(self.workload)),
            (_, true) => ("DaemonSet", name(self.workload)),
            _ => ("ReplicaSet", format!("{}-{}", name(self.workload), hash(self.workload))),
        };
        json!({
            "apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid(self.workload), "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    fn labels(&self) -> Value {
        let mut labels = labels(self.workload);
        if self.is_stateful() {
            labels["statefulset.kubernetes.io/pod-name"] = json!(self.name());
            labels["apps.kubernetes.io/pod-index"] = json!(self.index.to_string());
            labels["controller-revision-hash"] = json!(format!("{}-{}", name(self.workload), hash(self.workload)));
        } else {
            labels["pod-template-hash"] = json!(hash(self.workload));
        }
        labels
    }

    pub(crate) fn pod(&self) -> Value {
        let mut spec = spec(self.workload);
        if let Some(node) = self.node {
            spec["nodeName"] = json!(machines::name(node));
            if self.is_daemon() {
                let on_it = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [machines::name(node)] }] });
                let required = json!({ "nodeSelectorTerms": [on_it] });
                spec["affinity"] =
                    json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
            }
        }
        if self.is_stateful() {
            let claim =
                json!({ "name": "data", "persistentVolumeClaim": { "claimName": format!("data-{}", self.name()) } });
            spec["volumes"].as_array_mut().into_iter().for_each(|volumes| volumes.push(claim.clone()));
            spec["hostname"] = json!(self.name());
        }
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": self.name(), "namespace": self.namespace(), "labels": self.labels(), "ownerReferences": [self.owner()],
                "annotations": annotations(self.workload),
            },
            "spec": spec,
        })
    }

    /// What the scheduler says of a pod that fits nowhere, and a kubelet of one that runs.
    pub(crate) fn status(&self) -> Value {
        let Some(node) = self.node else {
            let why = format!(
                "0/{} nodes are available: {0} Insufficient cpu. preemption: 0/{0} nodes are available.",
                1_000
            );
            let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why, "lastTransitionTime": THEN });
            return json!({ "phase": "Pending", "qosClass": "Burstable", "conditions": [condition] });
        };
        let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
        let conditions = conditions
            .map(|type_| json!({ "type": type_, "status": "True", "lastTransitionTime": THEN, "lastProbeTime": null }));
        let containers = containers(self.workload).iter().map(container_status).collect::<Vec<_>>();
        let address = format!("10.{}.{}.{}", node / 256, node % 256, self.index % 250 + 2);
        let host = format!("10.200.{}.{}", node / 250, node % 250 + 1);
        json!({
            "phase": "Running", "qosClass": "Burstable", "conditions": conditions, "containerStatuses": containers,
            "hostIP": host, "hostIPs": [{ "ip": host }], "podIP": address, "podIPs": [{ "ip": address }], "startTime": THEN,
        })
    }
}

pub(crate) fn daemon_set(workload: usize) -> Value {
    let labels = labels(workload);
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": name(workload), "namespace": "kube-system" },
        "spec": {
            "selector": { "matchLabels": { "app.kubernetes.io/name": labels["app.kubernetes.io/name"] } },
            "template": { "metadata": { "labels": labels, "annotations": annotations(workload) }, "spec": spec(workload) },
        },
    })
}

pub(crate) fn namespace(number: usize) -> String {
    format!("team-{number:02}")
}

fn name(workload: usize) -> String {
    format!("service-{workload:03}")
}

fn hash(workload: usize) -> String {
    format!("{:010x}", workload * 7_919 + 104_729)
}

fn uid(workload: usize) -> String {
    format!("2f0a2b3c-0000-4000-8000-{workload:012x}")
}

fn labels(workload: usize) -> Value {
    json!({
        "app.kubernetes.io/name": name(workload), "app.kubernetes.io/instance": format!("{}-prod", name(workload)),
        "app.kubernetes.io/component": "backend", "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/version": format!("1.{workload}.0"), "team": format!("team-{}", workload % NAMESPACES),
    })
}

fn annotations(workload: usize) -> Value {
    json!({
        "checksum/config": format!("{workload:064x}"), "checksum/secret": format!("{:064x}", workload + 1),
        "kubectl.kubernetes.io/restartedAt": THEN, "prometheus.io/scrape": "true", "prometheus.io/port": "9090",
        "prometheus.io/path": "/metrics",
    })
}

fn spec(workload: usize) -> Value {
    let mut spec = json!({
        "containers": containers(workload),
        "volumes": [
            { "name": "config", "configMap": { "name": format!("{}-config", name(workload)) } },
            { "name": "tls", "secret": { "secretName": format!("{}-tls", name(workload)) } },
            { "name": "tmp", "emptyDir": {} },
        ],
        "securityContext": { "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000, "seccompProfile": { "type": "RuntimeDefault" } },
        "imagePullSecrets": [{ "name": "registry" }],
        "terminationGracePeriodSeconds": 30,
    });
    let selector = json!({ "matchLabels": { "app.kubernetes.io/name": name(workload) } });
    if workload.is_multiple_of(4) {
        spec["topologySpreadConstraints"] = json!([{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector,
        }]);
    }
    if workload % 10 == 1 {
        let term = json!({ "labelSelector": selector, "topologyKey": "kubernetes.io/hostname" });
        let preferred = json!([{ "weight": 100, "podAffinityTerm": term }]);
        spec["affinity"] =
            json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": preferred } });
    }
    spec
}

/// One container, and a proxy beside it in every third workload.
fn containers(workload: usize) -> Vec<Value> {
    let count = if workload.is_multiple_of(3) { 2 } else { 1 };
    (0..count).map(|index| container(workload, index)).collect()
}

fn container(workload: usize, index: usize) -> Value {
    let written = |number: usize| json!({ "name": format!("SETTING_{number}"), "value": format!("https://dependency-{number}.team-{workload}.svc:8443") });
    let from_secret = |number: usize| {
        let key = json!({ "name": format!("{}-secret", name(workload)), "key": format!("key-{number}") });
        json!({ "name": format!("SECRET_{number}"), "valueFrom": { "secretKeyRef": key } })
    };
    let env: Vec<Value> = (0..8).map(written).chain((0..3).map(from_secret)).collect();
    let probe =
        |path: &str| json!({ "httpGet": { "path": path, "port": "http" }, "periodSeconds": 10, "timeoutSeconds": 2 });
    json!({
        "name": if index == 0 { "app" } else { "proxy" },
        "image": format!("registry.example/team-{}/{}:1.{workload}.0", workload % NAMESPACES, name(workload)),
        "args": ["--config=/etc/service/config.yaml", "--log-format=json"],
        "env": env,
        "ports": [{ "name": "http", "containerPort": 8080 + index }, { "name": "metrics", "containerPort": 9090 + index }],
        "resources": {
            "requests": { "cpu": format!("{}m", 20 + workload % 10), "memory": format!("{}Mi", 64 + workload % 50) },
            "limits": { "memory": "512Mi" },
        },
        "livenessProbe": probe("/healthz"), "readinessProbe": probe("/readyz"),
        "securityContext": { "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] } },
        "volumeMounts": [
            { "name": "config", "mountPath": "/etc/service", "readOnly": true }, { "name": "tls", "mountPath": "/etc/tls" },
            { "name": "tmp", "mountPath": "/tmp" },
        ],
    })
}

fn container_status(container: &Value) -> Value {
    json!({
        "name": container["name"], "ready": true, "started": true, "restartCount": 0, "image": container["image"],
        "imageID": format!("registry.example/service@sha256:{:064x}", 4_711), "containerID": format!("containerd://{:064x}", 815),
        "state": { "running": { "startedAt": THEN } }, "lastState": {},
        "allocatedResources": container["resources"]["requests"], "resources": container["resources"],
    })
}
