//! `tenon render NODECLAIM` against an API server in memory.

use clap::Parser;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tenon_controllers::Clock;
use tenon_controllers::election::Fence;
use tenon_sim::{Cluster, ClusterConfig};

use super::Render;
use super::live::Look;
use super::mask::Mask;
use super::output;
use super::subject::Wanted;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    render: Render,
}

/// What is printed for a claim of a cluster, and the remarks; or why there is nothing to print.
async fn render(client: &Client, args: &[&str]) -> Result<(String, Vec<String>), String> {
    let line = ["tenon", "web-x7", "--kubeconfig", "unused"].iter().chain(args);
    let args = Line::try_parse_from(line).unwrap().render;
    let wanted = Wanted::read(&args).map_err(|error| format!("{error:#}"))?;
    let mut remarks = Vec::new();
    let fence = Fence::closed(Clock::Wall);
    let mut look = Look { client: client.clone(), fence, wanted: &wanted, remarks: &mut remarks };
    let subject = look.subject("web-x7").await.map_err(|error| format!("{error:#}"))?;
    let seed = super::rendered(&subject, &Mask::nothing()).map_err(|error| format!("{error:#}"))?;
    let mut out = Vec::new();
    output::print(&seed, None, &Mask::of(&subject), &mut out).unwrap();
    Ok((String::from_utf8(out).unwrap(), remarks))
}

/// A cluster with these objects.
async fn cluster(objects: &[Value]) -> (Cluster, Client) {
    let cluster = Cluster::new(ClusterConfig::default()).unwrap();
    let client = cluster.client();
    for definition in tenon_api::definitions() {
        Api::all(client.clone()).create(&PostParams::default(), &definition).await.unwrap();
    }
    for object in objects {
        create(&client, object).await;
    }
    (cluster, client)
}

async fn create(client: &Client, object: &Value) -> DynamicObject {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    if text("/kind") == "ProxmoxNodeClass" {
        resource.plural = "proxmoxnodeclasses".to_owned();
    }
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    api.create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap()).await.unwrap()
}

fn class() -> Value {
    json!({"apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxNodeClass", "metadata": {"name": "workers"},
        "spec": {"instanceTemplateRef": {"kind": "ProxmoxUnmanagedTemplate", "name": "t"}, "metadataOptions": {"type": "cdrom",
            "templatesRef": {"name": "templates", "namespace": "kube-system"},
            "valuesRef": {"name": "values", "namespace": "kube-system"}}}})
}

fn claim() -> Value {
    let record = json!({"region": "lab", "host": "pve3", "vmid": 20007, "template": 9000, "step": "Launched", "attempt": 1,
        "uuid": "6a1f7b9e-0000-4000-8000-000000000007", "startedAt": 1, "lastProgressAt": 1});
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "web-x7", "labels": {"node.kubernetes.io/instance-type": "s1.4VCPU-16GB", "team": "web"},
            "annotations": {"tenon.dev/launch": record.to_string()}},
        "spec": {"requirements": [], "expireAfter": "Never", "taints": [{"key": "dedicated", "effect": "NoSchedule"}],
            "nodeClassRef": {"group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "workers"}}})
}

fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "kube-system"}, "stringData": data})
}

const TEMPLATE: &str = "id: {{ .Metadata.InstanceID }} {{ .Metadata.InstanceUUID }} {{ .Metadata.Zone }}\n\
    server: {{ .Kubernetes.APIServer }} {{ .Kubernetes.Version }}\ncpu: {{ .Resources.CPU }} {{ .Values.greeting }}\n\
    {{ range .Kubernetes.KubeletConfiguration.RegisterWithTaints }}taint: {{ .Key }}\n{{ end }}";

#[tokio::test]
async fn a_claim_of_a_cluster_is_rendered_with_its_own_facts() {
    let objects = [
        class(),
        claim(),
        secret("templates", &json!({ "user-data": TEMPLATE })),
        secret("values", &json!({"greeting": "hello-there"})),
    ];
    let (_cluster, client) = cluster(&objects).await;
    let (text, remarks) = render(&client, &["--cluster-endpoint", "https://api.example:6443"]).await.unwrap();
    assert!(text.contains("id: 20007 6a1f7b9e-0000-4000-8000-000000000007 pve3\n"), "{text}");
    assert!(text.contains("server: https://api.example:6443 v1."), "{text}");
    assert!(text.contains("cpu: 4 <masked greeting>\n"), "{text}");
    assert!(text.contains("taint: dedicated\n") && text.contains("provider-id: proxmox://lab/20007\n"), "{text}");
    assert!(remarks.iter().any(|remark| remark.contains("NodeClaim web-x7 has no bootstrap token")), "{remarks:?}");
    assert!(remarks.iter().any(|remark| remark.contains("using one virtio card with DHCP")), "{remarks:?}");
}

#[tokio::test]
async fn a_file_takes_the_place_of_what_the_cluster_has() {
    let objects =
        [class(), claim(), secret("templates", &json!({ "user-data": "old\n" })), secret("values", &json!({}))];
    let (_cluster, client) = cluster(&objects).await;
    let folder = tempfile::tempdir().unwrap();
    let edited = folder.path().join("edited.yaml");
    std::fs::write(&edited, secret("templates", &json!({"user-data": "new {{ .Metadata.Hostname }}\n"})).to_string())
        .unwrap();
    let config = folder.path().join("qm.txt");
    std::fs::write(
        &config,
        "net0: e1000=BC:24:11:AA:BB:CC,bridge=vmbr9,mtu=9000\nipconfig0: ip=10.0.0.7/24,gw=10.0.0.1\n",
    )
    .unwrap();
    let args = ["--cluster-endpoint", "https://a:6443", "--templates", edited.to_str().unwrap(), "--vm-config"];
    let (text, _) = render(&client, &[&args[..], &[config.to_str().unwrap()]].concat()).await.unwrap();
    assert!(text.starts_with("==> user-data <==\nnew web-x7\n"), "{text}");
    assert!(text.contains("10.0.0.7/24") && text.contains("mtu: 9000") && text.contains("bc:24:11:aa:bb:cc"), "{text}");
}

#[tokio::test]
async fn what_the_cluster_lacks_is_named() {
    let (_cluster, client) = cluster(&[]).await;
    let why = render(&client, &[]).await.unwrap_err();
    assert_eq!(why, "NodeClaim web-x7 does not exist in the cluster; see `kubectl get nodeclaims`");
    create(&client, &claim()).await;
    let why = render(&client, &[]).await.unwrap_err();
    assert_eq!(why, "ProxmoxNodeClass workers does not exist in the cluster; create it");
    create(&client, &class()).await;
    let why = render(&client, &[]).await.unwrap_err();
    assert!(
        why.starts_with("Secret kube-system/templates, which spec.metadataOptions.templatesRef names, does not exist"),
        "{why}"
    );
    create(&client, &secret("values", &json!({}))).await;
    create(&client, &secret("templates", &json!({ "user-data": "#cloud-config\nx: {{ .Values.none }}\n" }))).await;
    let why = render(&client, &["--cluster-endpoint", "https://a:6443"]).await.unwrap_err();
    let first = "cannot render first-boot data: Secret kube-system/templates, key user-data, line 2, column 7: ";
    assert!(why.starts_with(first) && why.contains("\n2 | x: {{ .Values.none }}\n  |       ^\n"), "{why}");
    let why = render(&client, &["--instance-type", "huge"]).await.unwrap_err();
    assert!(why.starts_with("instance type huge is not defined; known: "), "{why}");
}
