//! Pods in the compact format of a real API server: whatever is read of them is what JSON says.

use http::Request;
use k8s_openapi::api::core::v1::{Namespace, Pod as WholePod, ServiceAccount};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};
use tenon_api::kube_objects::Pod;
use tenon_api::protobuf::{MEDIA_TYPE, PodEvent, PodEvents, PodList, PodPage, PodReader};
use testbed::{eventually, shared_testbed};

const NAMESPACE: &str = "compact-lists";

#[derive(Debug, PartialEq, Deserialize)]
struct List {
    items: Vec<Pod>,
}

/// A pod with every field that is read.
fn full() -> Value {
    let selector = json!({
        "matchLabels": { "app": "web" },
        "matchExpressions": [{ "key": "tier", "operator": "NotIn", "values": ["a", "b"] }, { "key": "x", "operator": "Exists" }],
    });
    let term = json!({
        "labelSelector": selector, "namespaces": ["a", "b"], "topologyKey": "zone", "namespaceSelector": {},
        "matchLabelKeys": ["release"], "mismatchLabelKeys": ["team"],
    });
    let nodes = json!({
        "matchExpressions": [{ "key": "cpus", "operator": "Gt", "values": ["4"] }, { "key": "disk", "operator": "In", "values": [""] }],
        "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n1"] }],
    });
    let (required, preferred) =
        ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution");
    let company = json!({ required: [term], preferred: [{ "weight": 7, "podAffinityTerm": term }] });
    let affinity = json!({
        "nodeAffinity": { required: { "nodeSelectorTerms": [nodes] }, preferred: [{ "weight": 3, "preference": nodes }] },
        "podAffinity": company, "podAntiAffinity": company,
    });
    let resources =
        json!({ "requests": { "cpu": "100m", "memory": "1Gi" }, "limits": { "cpu": "0.5", "memory": "2Gi" } });
    let container = |name: &str| {
        json!({
            "name": name, "image": "registry.example/c:1", "resources": resources,
            "ports": [{ "name": name, "containerPort": 80 }, { "containerPort": 81, "hostPort": 8081, "hostIP": "127.0.0.1", "protocol": "UDP" }],
        })
    };
    let (mut sidecar, mut plain) = (container("sidecar"), container("plain"));
    sidecar["restartPolicy"] = json!("Always");
    plain["resources"] = json!({});
    plain["ports"] = json!([{ "containerPort": 80 }]);
    let claim = json!({ "spec": { "accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": { "requests": { "storage": "1Gi" } } } });
    json!({
        "metadata": {
            "name": "full", "labels": { "app": "web", "empty": "", "release": "7", "team": "red" }, "finalizers": ["example.com/stay"],
            "annotations": { "karpenter.sh/do-not-disrupt": "5m", "quoted": "a \"b\" \\ \n é 漢" },
            "ownerReferences": [
                { "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true, "blockOwnerDeletion": false },
                { "apiVersion": "v1", "kind": "Node", "name": "n", "uid": "v" },
            ],
        },
        "spec": {
            "containers": [container("app"), plain], "initContainers": [sidecar, container("init")], "affinity": affinity,
            "nodeSelector": { "zone": "a", "empty": "" }, "terminationGracePeriodSeconds": 0, "hostNetwork": false,
            "tolerations": [{ "operator": "Exists" }, { "key": "k", "value": "v", "effect": "NoExecute", "tolerationSeconds": 0 }],
            "topologySpreadConstraints": [
                { "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, "minDomains": 2,
                    "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["release"] },
                { "maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway" },
            ],
            "schedulingGates": [{ "name": "example.com/gate" }], "priorityClassName": "system-node-critical",
            "volumes": [
                { "name": "files", "configMap": { "name": "files" } }, { "name": "data", "persistentVolumeClaim": { "claimName": "data-0" } },
                { "name": "scratch", "ephemeral": { "volumeClaimTemplate": claim } },
            ],
        },
    })
}

fn running() -> Value {
    let resources = json!({ "requests": { "cpu": "200m" }, "limits": { "cpu": "1" } });
    let container = json!({
        "name": "app", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "allocatedResources": { "cpu": "150m" },
        "resources": resources, "state": { "running": { "startedAt": "2026-01-01T00:00:00Z" } },
    });
    json!({
        "phase": "Running", "startTime": "2026-01-01T00:00:00Z", "hostIP": "10.0.0.1", "podIP": "10.0.0.2",
        "podIPs": [{ "ip": "10.0.0.2" }], "hostIPs": [{ "ip": "10.0.0.1" }], "qosClass": "Burstable",
        "conditions": [
            { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 \"nodes\"" },
        ],
        "containerStatuses": [container], "initContainerStatuses": [container],
    })
}

/// Writes the pods; one is going.
async fn write_pods(admin: &Client) -> anyhow::Result<()> {
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } }))?;
    Api::all(admin.clone()).create(&PostParams::default(), &namespace).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), NAMESPACE);
    eventually("the default ServiceAccount exists", async || Ok(accounts.get_opt("default").await?)).await?;
    let pods: Api<WholePod> = Api::namespaced(admin.clone(), NAMESPACE);
    let mut on_node = full();
    on_node["metadata"]["name"] = json!("on-node");
    on_node["spec"]["nodeName"] = json!("n1");
    on_node["spec"]["schedulingGates"] = json!([]);
    on_node["spec"]["hostNetwork"] = json!(true);
    for list in ["containers", "initContainers"] {
        for (index, container) in on_node["spec"][list].as_array_mut().into_iter().flatten().enumerate() {
            container["ports"] = json!([{ "containerPort": 80 + index }]);
        }
    }
    let plain = json!({ "metadata": { "name": "plain" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    for pod in [full(), on_node, plain] {
        pods.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    }
    let status = Patch::Merge(json!({ "status": running() }));
    pods.patch_status("on-node", &PatchParams::default(), &status).await?;
    let nominated = Patch::Merge(json!({ "status": { "nominatedNodeName": "n2" } }));
    pods.patch_status("plain", &PatchParams::default(), &nominated).await?;
    pods.delete("full", &DeleteParams::default()).await?;
    Ok(())
}

async fn get(client: &Client, format: &str) -> anyhow::Result<Vec<u8>> {
    get_of(client, NAMESPACE, format).await
}

async fn get_of(client: &Client, namespace: &str, format: &str) -> anyhow::Result<Vec<u8>> {
    let uri = format!("/api/v1/namespaces/{namespace}/pods");
    let request = Request::get(uri).header("accept", format).body(Body::empty())?;
    let reply = client.send(request).await?;
    assert_eq!(reply.headers()["content-type"], format);
    Ok(reply.into_body().collect_bytes().await?.to_vec())
}

#[tokio::test]
async fn pods_in_the_compact_format_say_what_they_say_in_json() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let admin = testbed.admin().await?;
    write_pods(&admin).await?;
    // Between the two requests a controller may write something.
    let mut last = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let plain: List = serde_json::from_slice(&get(&admin, "application/json").await?)?;
        let compact = page(&get(&admin, MEDIA_TYPE).await?)?.pods;
        let told = told(&admin).await?;
        assert_eq!((compact.len(), told.len()), (3, 3));
        if plain.items == compact && plain.items == told {
            return Ok(());
        }
        last = (plain.items, if compact == told { compact } else { told });
    }
    assert_eq!(last.0, last.1);
    Ok(())
}

/// The pods as they are told one by one, in order of their names.
async fn told(client: &Client) -> anyhow::Result<Vec<Pod>> {
    let query =
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";
    let uri = format!("/api/v1/namespaces/{NAMESPACE}/pods?{query}");
    let format = format!("{MEDIA_TYPE};stream=watch");
    let reply = client.send(Request::get(uri).header("accept", &format).body(Body::empty())?).await?;
    assert_eq!(reply.headers()["content-type"], format);
    let (mut events, mut reader, mut pods) = (PodEvents::default(), PodReader::default(), Vec::new());
    events.receive(&reply.into_body().collect_bytes().await?);
    loop {
        match events.next(&mut reader)? {
            Some(PodEvent::Pod(pod)) => pods.push(*pod),
            Some(PodEvent::AllTold { version }) => {
                assert!(!version.is_empty());
                pods.sort_by(|a: &Pod, b: &Pod| a.name().cmp(b.name()));
                return Ok(pods);
            }
            Some(PodEvent::Bookmark) => {}
            other => anyhow::bail!("{other:?} before all pods were told"),
        }
    }
}

fn page(message: &[u8]) -> anyhow::Result<PodPage> {
    match PodReader::default().list(message)? {
        PodList::Page(page) => Ok(page),
        PodList::Refusal(json) => anyhow::bail!("{}", String::from_utf8_lossy(&json)),
    }
}

#[tokio::test]
async fn a_list_without_pods_is_empty_in_both_formats() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let admin = testbed.admin().await?;
    let plain: List = serde_json::from_slice(&get_of(&admin, "nobody-is-here", "application/json").await?)?;
    let compact = page(&get_of(&admin, "nobody-is-here", MEDIA_TYPE).await?)?;
    assert!(compact.pods.is_empty() && plain.items.is_empty() && !compact.version.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_refusal_in_the_compact_format_is_read_as_one() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.user("nobody", None).await?;
    let PodList::Refusal(refusal) = PodReader::default().list(&get(&client, MEDIA_TYPE).await?)? else {
        anyhow::bail!("nobody may list pods");
    };
    let refusal: Value = serde_json::from_slice(&refusal)?;
    assert_eq!((&refusal["code"], &refusal["reason"]), (&json!(403), &json!("Forbidden")));
    assert!(refusal["message"].as_str().is_some_and(|said| said.contains("cannot list")), "{refusal}");
    Ok(())
}
