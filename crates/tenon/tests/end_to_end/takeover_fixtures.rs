//! A cluster as the Go controllers leave it: pools, classes, claims, nodes and VMs, written as those write them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, names};
use tenon_sim::{TemplateSpec, VmSpec};

use crate::bench::{from_json, uuid};
use crate::world::World;

/// Hashes of the reference, which nobody here can make anew.
pub(crate) const POOL_HASH: &str = "6821555240594823858";
pub(crate) const CLASS_HASH: &str = "12164463184420211932";
const IN_PLACE_HASH: &str = "14695981039346656037";
/// The hash in the description of a template of the reference.
pub(crate) const IMAGE: &str = "15108473915739476123";
/// As often as a kubelet says that it lives.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// A hash from before the pool was changed.
pub(crate) const OLD_HASH: &str = "1234567890123456789";

/// A node of the reference: its claim has its name, and so has its VM.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GoNode {
    pub(crate) name: &'static str,
    pub(crate) host: &'static str,
    pub(crate) vmid: u32,
    /// Whether the reference found that it has drifted.
    pub(crate) drifted: bool,
}

/// In the order they are judged.
pub(crate) const NODES: [GoNode; 3] = [
    GoNode { name: "default-4hx9z", host: "pve1", vmid: 20_000, drifted: false },
    GoNode { name: "default-k8q2m", host: "pve1", vmid: 20_001, drifted: true },
    GoNode { name: "default-x7k2p", host: "pve2", vmid: 20_002, drifted: false },
];

/// A dozen nodes on two hosts, none of which has drifted.
pub(crate) fn dozen() -> Vec<GoNode> {
    let node = |number: u32| {
        let name: &'static str =
            String::leak(format!("default-{}", ["a", "b"][number as usize % 2].repeat(4) + &number.to_string()));
        GoNode { name, host: ["pve1", "pve2"][number as usize % 2], vmid: 20_000 + number, drifted: false }
    };
    (0..12).map(node).collect()
}

/// The template on a host, with this image.
pub(crate) fn template(host: &str, vmid: u32, image: &str) -> TemplateSpec {
    let told = format!("The virtual machine managed by Karpenter, do not delete it. Hash: {image}");
    let cpu = ("cpu".to_owned(), "x86-64-v2-AES".to_owned());
    let config = BTreeMap::from([("description".to_owned(), told), cpu]);
    TemplateSpec { host: host.into(), vmid, name: "talos".into(), config, ..TemplateSpec::default() }
}

/// Everything the Go controllers leave behind.
pub(crate) async fn leave_behind(world: &World) -> anyhow::Result<()> {
    leave_nodes(world, &NODES).await
}

/// The same with these nodes.
pub(crate) async fn leave_nodes(world: &World, nodes: &[GoNode]) -> anyhow::Result<()> {
    let owner = leave_rules(world).await?;
    leave_nodes_of(world, nodes, &owner).await
}

/// These nodes, of a pool that is there.
pub(crate) async fn leave_nodes_of(world: &World, nodes: &[GoNode], pool_uid: &str) -> anyhow::Result<()> {
    for node in nodes {
        world.estate.add_vm(&node.vm())?;
        node.write(world, pool_uid).await?;
    }
    Ok(())
}

/// The kubelets of nodes that no guest runs: a Node stays Ready as long as its VM is there.
pub(crate) struct Kubelets(tokio::task::JoinHandle<()>);

impl Kubelets {
    pub(crate) fn of(world: &World, nodes: Vec<GoNode>) -> Kubelets {
        let (api, estate) = (Api::<Node>::all(world.admin.clone()), world.estate.clone());
        Kubelets(tokio::spawn(async move {
            loop {
                for node in nodes.iter().filter(|node| estate.vm(node.vmid).is_some()) {
                    let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                    let ready = json!([{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
                        "lastHeartbeatTime": now, "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
                    let status = Patch::Strategic(json!({ "status": { "conditions": ready } }));
                    // A Node that is gone needs none.
                    let _ = api.patch_status(node.name, &PatchParams::default(), &status).await;
                }
                tokio::time::sleep(HEARTBEAT).await;
            }
        }))
    }
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// So many claims, whose nodes and VMs nobody looks at here.
pub(crate) async fn leave_claims(world: &World, number: u32) -> anyhow::Result<()> {
    let owner = leave_rules(world).await?;
    for vmid in 20_000..20_000 + number {
        let name = String::leak(format!("default-{vmid}"));
        GoNode { name, host: "pve1", vmid, drifted: false }.write_claim(world, &owner).await?;
    }
    Ok(())
}

/// Templates, a class and a pool; returns the pool's uid.
pub(crate) async fn leave_rules(world: &World) -> anyhow::Result<String> {
    world.estate.add_template(&template("pve1", 1000, IMAGE))?;
    world.estate.add_template(&template("pve2", 1001, IMAGE))?;
    world.add_template("talos").await?;
    leave_class_and_pool(world, ("ProxmoxUnmanagedTemplate", "debian")).await
}

/// A class whose template this is, and a pool; returns the pool's uid.
pub(crate) async fn leave_class_and_pool(world: &World, (kind, name): (&str, &str)) -> anyhow::Result<String> {
    let mut class = class();
    class["spec"]["instanceTemplateRef"] = json!({ "kind": kind, "name": name });
    let class: ProxmoxNodeClass = from_json(class)?;
    Api::all(world.admin.clone()).create(&PostParams::default(), &class).await?;
    let pool: NodePool = from_json(pool())?;
    let pool = Api::<NodePool>::all(world.admin.clone()).create(&PostParams::default(), &pool).await?;
    pool.uid().context("the pool has no uid")
}

fn class() -> Value {
    json!({
        "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxNodeClass",
        "metadata": { "name": "default", "annotations": class_stamp() },
        "spec": {
            "placementStrategy": { "zoneBalance": "Balanced" },
            "bootDevice": { "size": "30G", "storage": "shared" },
            "metadataOptions": { "type": "cdrom" },
            "tags": ["karpenter"],
        },
    })
}

/// No node of this pool is disrupted until a scenario says otherwise.
fn pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": { "name": "default", "annotations": pool_stamp(POOL_HASH) },
        "spec": {
            "template": {
                "metadata": { "labels": { "team": "red" } },
                "spec": {
                    "requirements": [
                        { "key": names::LABEL_ARCH, "operator": "In", "values": ["amd64"] },
                        { "key": names::LABEL_CAPACITY_TYPE, "operator": "In", "values": ["on-demand"] },
                        { "key": names::LABEL_INSTANCE_FAMILY, "operator": "In", "values": ["s1", "c1"] },
                    ],
                    "nodeClassRef": class_ref(), "expireAfter": "720h",
                    "taints": [{ "key": "dedicated", "value": "web", "effect": "NoSchedule" }],
                },
            },
            "disruption": {
                "consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "budgets": [{ "nodes": "0" }],
            },
        },
    })
}

fn class_ref() -> Value {
    json!({ "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" })
}

fn pool_stamp(hash: &str) -> Value {
    json!({ names::ANNOTATION_NODEPOOL_HASH: hash, names::ANNOTATION_NODEPOOL_HASH_VERSION: "v3" })
}

fn class_stamp() -> Value {
    json!({ names::ANNOTATION_NODECLASS_HASH: CLASS_HASH, names::ANNOTATION_NODECLASS_HASH_VERSION: "v1" })
}

impl GoNode {
    fn hash(&self) -> &'static str {
        if self.drifted { OLD_HASH } else { POOL_HASH }
    }

    fn provider_id(&self) -> String {
        format!("proxmox://lab/{}", self.vmid)
    }

    fn labels(&self) -> Value {
        json!({
            "team": "red",
            names::LABEL_NODEPOOL: "default",
            names::LABEL_NODECLASS: "default",
            names::LABEL_CAPACITY_TYPE: "on-demand",
            names::LABEL_INSTANCE_TYPE: "s1.4VCPU-16GB",
            names::LABEL_INSTANCE_FAMILY: "s1",
            names::LABEL_INSTANCE_CPU_TYPE: "x86-64-v2-AES",
            names::LABEL_INSTANCE_IMAGE_ID: IMAGE,
            names::LABEL_REGION: "lab",
            names::LABEL_ZONE: self.host,
            names::LABEL_ARCH: "amd64",
            names::LABEL_OS: "linux",
        })
    }

    fn annotations(&self) -> Value {
        let mut annotations = json!({
            "karpenter.sh/nodeclaim-min-values-relaxed": "false",
            names::ANNOTATION_IN_PLACE_HASH: IN_PLACE_HASH,
            names::ANNOTATION_CLOUDINIT_STATUS: "Initialized",
            names::ANNOTATION_BOOTSTRAP_TOKEN: "abcdef",
        });
        for stamp in [pool_stamp(self.hash()), class_stamp()] {
            if let (Some(all), Value::Object(stamp)) = (annotations.as_object_mut(), stamp) {
                all.extend(stamp);
            }
        }
        annotations
    }

    /// A VM with the reference's description, serial and tags.
    pub(crate) fn vm(&self) -> VmSpec {
        let serial = base64(&format!("h={};i={}", self.name, self.vmid));
        let smbios = format!("uuid={},base64=1,sku={},serial={serial}", uuid(self.vmid), base64("s1.4VCPU-16GB"));
        let config = [
            ("description", "Karpenter managed instance, class=default, capacity-type=on-demand"),
            ("cores", "4"),
            ("memory", "16384"),
            ("smbios1", &smbios),
        ];
        let config = config.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let base = TemplateSpec {
            host: self.host.into(),
            vmid: self.vmid,
            name: self.name.into(),
            tags: "karpenter".into(),
            cloudinit_drive: false,
            config,
            ..TemplateSpec::default()
        };
        VmSpec { base, running: true }
    }

    /// Claim and Node.
    pub(crate) async fn write(&self, world: &World, pool_uid: &str) -> anyhow::Result<()> {
        let uid = self.write_claim(world, pool_uid).await?;
        let nodes: Api<Node> = Api::all(world.admin.clone());
        nodes.create(&PostParams::default(), &from_json(self.node(&uid))?).await?;
        let status = Patch::Merge(json!({ "status": self.node_status() }));
        nodes.patch_status(self.name, &PatchParams::default(), &status).await?;
        Ok(())
    }

    /// The claim without its Node.
    pub(crate) async fn write_claim(&self, world: &World, pool_uid: &str) -> anyhow::Result<String> {
        let claims: Api<NodeClaim> = Api::all(world.admin.clone());
        let claim = claims.create(&PostParams::default(), &from_json(self.claim(pool_uid))?).await?;
        let status = Patch::Merge(json!({ "status": self.claim_status() }));
        claims.patch_status(self.name, &PatchParams::default(), &status).await?;
        claim.uid().context("the claim has no uid")
    }

    fn claim(&self, pool_uid: &str) -> Value {
        json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {
                "name": self.name, "generateName": "default-", "labels": self.labels(),
                "annotations": self.annotations(), "finalizers": [names::FINALIZER],
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "default", "uid": pool_uid,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "requirements": [
                    { "key": names::LABEL_NODEPOOL, "operator": "In", "values": ["default"] },
                    { "key": names::LABEL_ARCH, "operator": "In", "values": ["amd64"] },
                    { "key": names::LABEL_CAPACITY_TYPE, "operator": "In", "values": ["on-demand"] },
                    { "key": names::LABEL_INSTANCE_TYPE, "operator": "In",
                        "values": ["s1.4VCPU-16GB", "c1.8VCPU-16GB"] },
                ],
                "resources": { "requests": { "cpu": "3100m", "memory": "6Gi", "pods": "5" } },
                "nodeClassRef": class_ref(), "expireAfter": "720h",
                "taints": [{ "key": "dedicated", "value": "web", "effect": "NoSchedule" }],
            },
        })
    }

    fn claim_status(&self) -> Value {
        let told = |type_: &str, reason: &str| {
            json!({
                "type": type_, "status": "True", "reason": reason, "message": "", "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let parts = ["ConsistentStateFound", "Consolidatable", "Initialized", "Launched", "Registered", "Ready"];
        let mut conditions: Vec<Value> = parts.iter().map(|part| told(part, part)).collect();
        if self.drifted {
            conditions.push(told("Drifted", "NodePoolDrifted"));
        }
        json!({
            "nodeName": self.name, "providerID": self.provider_id(), "imageID": IMAGE,
            "capacity": { "cpu": "4", "memory": "17179869184", "pods": "110", "ephemeral-storage": "30Gi" },
            "allocatable": { "cpu": "3890m", "memory": "16605249536", "pods": "110", "ephemeral-storage": "30Gi" },
            "conditions": conditions, "lastPodEventTime": "2026-01-01T00:00:00Z",
        })
    }

    fn node(&self, claim_uid: &str) -> Value {
        let mut labels = self.labels();
        labels["karpenter.sh/registered"] = json!("true");
        labels["karpenter.sh/initialized"] = json!("true");
        labels["kubernetes.io/hostname"] = json!(self.name);
        json!({
            "metadata": {
                "name": self.name, "labels": labels, "annotations": self.annotations(),
                "finalizers": [names::FINALIZER],
                "ownerReferences": [{
                    "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": self.name, "uid": claim_uid,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "providerID": self.provider_id(),
                "taints": [{ "key": "dedicated", "value": "web", "effect": "NoSchedule" }],
            },
        })
    }

    fn node_status(&self) -> Value {
        let texts = ["bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion"];
        let more = ["machineID", "osImage"];
        let mut info: serde_json::Map<String, Value> =
            texts.into_iter().chain(more).map(|name| (name.to_owned(), json!("x"))).collect();
        let known =
            [("systemUUID", uuid(self.vmid)), ("architecture", "amd64".into()), ("operatingSystem", "linux".into())];
        info.extend(known.map(|(name, value)| (name.to_owned(), json!(value))));
        let amounts = json!({ "cpu": "4", "memory": "16Gi", "pods": "110" });
        let ready = json!([{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
        json!({ "nodeInfo": info, "capacity": amounts, "allocatable": amounts, "conditions": ready })
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}
