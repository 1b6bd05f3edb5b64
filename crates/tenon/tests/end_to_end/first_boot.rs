//! First boot in the user's own words: templates from Secrets, rendered, read by a guest as a kubelet reads them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde::Deserialize;
use serde_json::{Value, json};
use tenon_api::{ProxmoxNodeClass, names};

use crate::bench::{from_json, quick_guests};
use crate::ground::{Kind, scenarios};
use crate::world::World;

scenarios! {
    nodes_boot_with_a_users_own_templates_and_carry_labels_and_taints_from_the_start,
    a_broken_template_is_named_and_no_vm_is_created_until_it_is_mended,
}

/// The example that the guide names.
const KUBEADM: &str = include_str!("../../../../examples/first-boot/kubeadm.yaml");
pub(crate) const TEMPLATES: &str = "kubeadm-worker";
pub(crate) const VALUES: &str = "kubeadm-worker-values";
const NAMESPACE: &str = "kube-system";

#[derive(Deserialize)]
struct Manifest {
    kind: String,
    metadata: Metadata,
    #[serde(default, rename = "stringData")]
    string_data: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

/// The keys of a Secret of the example.
pub(crate) fn example(name: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let manifests: Vec<Manifest> = serde_saphyr::from_multiple(KUBEADM)?;
    let found = manifests.into_iter().find(|manifest| manifest.kind == "Secret" && manifest.metadata.name == name);
    Ok(found.ok_or_else(|| anyhow::anyhow!("the example has no Secret {name}"))?.string_data)
}

pub(crate) async fn add_secret(world: &World, name: &str, keys: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let data: BTreeMap<&String, Value> = keys.iter().map(|(key, text)| (key, base64(text))).collect();
    let secret: Secret = from_json(json!({ "metadata": { "name": name }, "data": data }))?;
    let secrets: Api<Secret> = Api::namespaced(world.admin.clone(), NAMESPACE);
    secrets.create(&PostParams::default(), &secret).await?;
    Ok(())
}

pub(crate) async fn set_key(world: &World, (name, key): (&str, &str), text: &str) -> anyhow::Result<()> {
    let secrets: Api<Secret> = Api::namespaced(world.admin.clone(), NAMESPACE);
    let patch = json!({ "data": { key: base64(text) } });
    secrets.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn base64(text: &str) -> Value {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text).into()
}

/// Values that lead a guest to this world's API server.
pub(crate) fn values(world: &World) -> anyhow::Result<BTreeMap<String, String>> {
    let mut values = example(VALUES)?;
    values.insert("APIServer".to_owned(), world.joined_at().0);
    Ok(values)
}

pub(crate) fn options() -> Value {
    json!({ "metadataOptions": {
        "type": "cdrom",
        "templatesRef": { "name": TEMPLATES, "namespace": NAMESPACE },
        "valuesRef": { "name": VALUES, "namespace": NAMESPACE },
    } })
}

/// Taints and labels that Nodes had when they were first seen.
#[derive(Clone, Default)]
struct FirstSeen(Arc<Mutex<BTreeMap<String, Node>>>);

impl FirstSeen {
    async fn watch(&self, world: &World) -> anyhow::Result<tokio::task::JoinHandle<()>> {
        let nodes: Api<Node> = Api::all(world.admin.clone());
        let mut events = Box::pin(nodes.watch(&WatchParams::default().timeout(290), "0").await?);
        let seen = self.0.clone();
        Ok(tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if let Ok(WatchEvent::Added(node)) = event {
                    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                    seen.entry(node.name_any()).or_insert(node);
                }
            }
        }))
    }

    fn taints(&self, name: &str) -> Vec<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let spec = seen.get(name).and_then(|node| node.spec.as_ref());
        let taints = spec.into_iter().flat_map(|spec| spec.taints.iter().flatten());
        taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
    }
}

async fn nodes_boot_with_a_users_own_templates_and_carry_labels_and_taints_from_the_start(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    add_secret(&world, TEMPLATES, &example(TEMPLATES)?).await?;
    add_secret(&world, VALUES, &values(&world)?).await?;
    world.add_template("debian-13").await?;
    let mut class = options();
    class["kubeletConfiguration"] = json!({ "maxPods": 42, "clusterDNS": ["10.96.0.10"] });
    world.add_class(class).await?;
    world
        .add_pool(json!({ "template": {
            "metadata": { "labels": { "example.com/tier": "batch" } },
            "spec": {
                "taints": [{ "key": "example.com/batch", "value": "true", "effect": "NoSchedule" }],
                "startupTaints": [],
                "requirements": [],
                "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
            },
        } }))
        .await?;
    let seen = FirstSeen::default();
    let watching = seen.watch(&world).await?;
    world.start_controller()?;
    let more = json!({
        "tolerations": [{ "key": "example.com/batch", "operator": "Exists" }],
        "nodeSelector": { "example.com/tier": "batch" },
    });
    let container = json!({ "resources": { "requests": { "cpu": "9", "memory": "4Gi" } } });
    world.deploy_pods(("web", 2), container, more).await?;
    world.until_running("web", 2).await?;
    for node in world.nodes().await? {
        let name = node.name_any();
        let first = seen.taints(&name);
        assert!(first.contains(&"karpenter.sh/unregistered:NoExecute".to_owned()), "{name}: {first:?}");
        assert!(first.contains(&"example.com/batch:NoSchedule".to_owned()), "{name}: {first:?}");
        // What only the template says: nobody else sets this label, or this number of pods.
        assert_eq!(node.labels().get("node.kubernetes.io/pool-host"), node.labels().get(names::LABEL_ZONE));
        assert_eq!(node.labels().get("example.com/tier").map(String::as_str), Some("batch"));
        let pods = node.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("pods").cloned());
        assert_eq!(pods.map(|pods| pods.0).as_deref(), Some("42"), "{name}");
    }
    watching.abort();
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// What is wrong with a template, and what the class must say.
const BROKEN: [(&str, &str, &str); 6] = [
    (
        "user-data",
        "#cloud-config\nhostname: {{ nosuch .Metadata }}\n",
        "line 2, column 14: function \"nosuch\" not defined",
    ),
    (
        "user-data",
        "#cloud-config\na: {{ .Values.Missing }}\n",
        "line 2, column 7: there is no value in {{ .Values.Missing }}",
    ),
    ("user-data", "#cloud-config\na: {{ index .Network.Interfaces 9 }}\n", "line 2, column 7: error calling index"),
    ("user-data", "{{ range 1000000 }}0123456789{{ end }}", "the output is larger than 1048576 bytes"),
    ("network-config", "a: {{ len .Interfaces }}]: [\n", "not valid YAML: line 1"),
    ("meta-data", "a: {{ if }}\n", "line 1, column 10: missing value for if"),
];

async fn a_broken_template_is_named_and_no_vm_is_created_until_it_is_mended(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_template("debian-13").await?;
    world.add_class(options()).await?;
    world.add_pool(json!({})).await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    until_class_says(&world, "MetadataOptionsNotFound", &format!("Secret {NAMESPACE}/{TEMPLATES}")).await?;
    let good = example(TEMPLATES)?;
    add_secret(&world, TEMPLATES, &good).await?;
    until_class_says(&world, "MetadataOptionsNotFound", &format!("Secret {NAMESPACE}/{VALUES}")).await?;
    set_key(&world, (TEMPLATES, BROKEN[0].0), BROKEN[0].1).await?;
    add_secret(&world, VALUES, &values(&world)?).await?;
    for (key, text, expected) in BROKEN {
        set_key(&world, (TEMPLATES, key), text).await?;
        let message = until_class_says(&world, "MetadataOptionsInvalid", expected).await?;
        assert!(message.starts_with(&format!("Secret {NAMESPACE}/{TEMPLATES}, key {key}")), "{message}");
        // The next one is broken elsewhere.
        set_key(&world, (TEMPLATES, key), good.get(key).map_or("", String::as_str)).await?;
    }
    assert!(world.clones().is_empty(), "no VM is created for a class that cannot boot one");
    world.until_running("web", 1).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

pub(crate) async fn until_class_says(world: &World, reason: &str, words: &str) -> anyhow::Result<String> {
    let classes: Api<ProxmoxNodeClass> = Api::all(world.admin.clone());
    world
        .until_within(Duration::from_secs(20), &format!("the class says {reason}: {words}"), async || {
            let class = classes.get("default").await?;
            let conditions = class.status.and_then(|status| status.conditions).unwrap_or_default();
            let found = conditions.into_iter().find(|condition| condition.type_ == "InstanceMetadataOptionsReady");
            Ok(found.filter(|found| found.reason == reason && found.message.contains(words)).map(|found| found.message))
        })
        .await
}
