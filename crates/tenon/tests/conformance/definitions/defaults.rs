//! What do servers store of what they accept: what is filled in, what is dropped, what is kept as written?

use anyhow::Context as _;
use serde_json::{Value, json};

use super::samples::{Kinds, sample};
use crate::ground::Ground;
use crate::things::with;

/// The least valid objects, by kind.
fn least(kind: &str) -> Value {
    let class = json!({ "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "default" });
    let node = json!({ "requirements": [], "nodeClassRef": class });
    match kind {
        "NodePool" => json!({ "template": { "spec": node } }),
        "NodeClaim" => node,
        "NodeOverlay" => json!({ "requirements": [] }),
        "CapacityBuffer" => json!({}),
        "ProxmoxNodeClass" => {
            json!({ "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } })
        }
        "ProxmoxTemplate" => json!({
            "sourceImage": { "url": "https://images.example.com/a.qcow2" }, "storageIDs": ["local"],
            "network": [{ "bridge": "vmbr0" }],
        }),
        _ => json!({ "templateName": "debian" }),
    }
}

/// Makes objects under names of the behaviour's own.
struct Maker<'a> {
    ground: &'a Ground,
    kinds: Kinds,
    count: u32,
}

impl Maker<'_> {
    async fn new(ground: &Ground) -> anyhow::Result<Maker<'_>> {
        ground.define().await?;
        Ok(Maker { ground, kinds: Kinds::read()?, count: 0 })
    }

    /// Makes an object of these fields and returns it as stored.
    async fn made(&mut self, kind: &str, fields: Value) -> anyhow::Result<Value> {
        self.count += 1;
        let name = format!("{}-{}", self.ground.name, self.count);
        let head = json!({ "apiVersion": self.kinds.version(kind), "kind": kind, "metadata": { "name": name } });
        self.ground.made(&self.kinds.path(kind, &self.ground.name), with(head, fields)).await
    }

    /// The spec that comes of a spec.
    async fn spec(&mut self, kind: &str, spec: Value) -> anyhow::Result<Value> {
        Ok(self.made(kind, json!({ "spec": spec })).await?["spec"].take())
    }

    /// The spec that comes of the least spec with something besides.
    async fn with(&mut self, kind: &str, more: Value) -> anyhow::Result<Value> {
        self.spec(kind, with(least(kind), more)).await
    }

    fn path(&self, object: &Value) -> anyhow::Result<String> {
        let kind = object["kind"].as_str().context("no kind")?;
        let name = object["metadata"]["name"].as_str().context("no name")?;
        Ok(format!("{}/{name}", self.kinds.path(kind, &self.ground.name)))
    }
}

pub(super) async fn what_is_left_out_is_filled_in(ground: &Ground) -> anyhow::Result<()> {
    let mut maker = Maker::new(ground).await?;
    let usual = json!({
        "consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [{ "nodes": "10%" }],
    });
    let expected =
        with(least("NodePool"), json!({ "disruption": usual, "template": { "spec": { "expireAfter": "720h" } } }));
    assert_eq!(maker.with("NodePool", json!({})).await?, expected);
    for (given, budgets) in [
        (json!({}), json!([{ "nodes": "10%" }])),
        (json!({ "budgets": [] }), json!([])),
        (json!({ "budgets": [{}] }), json!([{ "nodes": "10%" }])),
        (json!({ "budgets": [{ "reasons": ["Empty"] }] }), json!([{ "nodes": "10%", "reasons": ["Empty"] }])),
    ] {
        let pool = maker.with("NodePool", json!({ "disruption": given })).await?;
        assert_eq!(pool["disruption"], with(usual.clone(), json!({ "budgets": budgets })));
    }
    let claim = maker.with("NodeClaim", json!({})).await?;
    assert_eq!(claim, with(least("NodeClaim"), json!({ "expireAfter": "720h" })));
    assert_eq!(maker.with("NodeOverlay", json!({})).await?, least("NodeOverlay"));
    let buffer = maker.with("CapacityBuffer", json!({})).await?;
    assert_eq!(buffer, json!({ "provisioningStrategy": "buffer.x-k8s.io/active-capacity" }));
    proxmox_defaults(&mut maker).await
}

async fn proxmox_defaults(maker: &mut Maker<'_>) -> anyhow::Result<()> {
    let filled = json!({
        "placementStrategy": { "zoneBalance": "Balanced" }, "bootDevice": { "size": "30G" },
        "metadataOptions": { "type": "none" },
    });
    let class = maker.with("ProxmoxNodeClass", json!({})).await?;
    assert_eq!(class, with(least("ProxmoxNodeClass"), filled));
    let empty = json!({
        "bootDevice": {}, "placementStrategy": {}, "metadataOptions": {}, "securityGroups": [{ "name": "web" }],
    });
    let class = maker.with("ProxmoxNodeClass", empty).await?;
    assert_eq!(class["bootDevice"], json!({}), "a disk that is written gets no size");
    assert_eq!(class["placementStrategy"], json!({ "zoneBalance": "Balanced" }));
    assert_eq!(class["metadataOptions"], json!({ "type": "none" }));
    assert_eq!(class["securityGroups"], json!([{ "interface": "net0", "name": "web" }]));

    let card = json!({ "bridge": "vmbr0", "model": "virtio", "mtu": 1500 });
    let filled = json!({
        "machine": "q35", "bios": "seabios", "cpu": { "type": "x86-64-v2-AES" }, "network": [card],
    });
    let template = maker.with("ProxmoxTemplate", json!({})).await?;
    assert_eq!(template, with(least("ProxmoxTemplate"), filled), "no agent, no TPM, no display, no name for the card");
    let blocks = json!({ "agent": {}, "tpm": {}, "vga": {}, "cpu": { "flags": ["+aes"] } });
    let template = maker.with("ProxmoxTemplate", blocks).await?;
    assert_eq!(template["agent"], json!({ "enabled": false, "type": "virtio" }));
    assert_eq!(template["tpm"], json!({ "version": "v2.0" }));
    assert_eq!(template["vga"], json!({ "type": "std" }));
    assert_eq!(template["cpu"], json!({ "type": "x86-64-v2-AES", "flags": ["+aes"] }));
    let unmanaged = maker.with("ProxmoxUnmanagedTemplate", json!({})).await?;
    assert_eq!(unmanaged, least("ProxmoxUnmanagedTemplate"));
    Ok(())
}

pub(super) async fn what_nobody_knows_is_dropped(ground: &Ground) -> anyhow::Result<()> {
    let mut maker = Maker::new(ground).await?;
    let metadata = json!({
        "labels": { "a": "b" }, "annotations": { "c": "d" }, "name": "n", "namespace": "n", "finalizers": ["x/y"],
        "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    let pool = maker.with("NodePool", json!({ "template": { "metadata": metadata } })).await?;
    assert_eq!(pool["template"]["metadata"], json!({ "labels": { "a": "b" }, "annotations": { "c": "d" } }));
    for kind in [
        "NodePool",
        "NodeClaim",
        "NodeOverlay",
        "CapacityBuffer",
        "ProxmoxNodeClass",
        "ProxmoxTemplate",
        "ProxmoxUnmanagedTemplate",
    ] {
        let plain = maker.with(kind, json!({})).await?;
        let unknown = maker.with(kind, json!({ "unknown": { "a": 1 } })).await?;
        assert_eq!(unknown, plain, "{kind}");
        let object =
            maker.made(kind, json!({ "spec": least(kind), "other": 1, "status": { "conditions": [] } })).await?;
        assert_eq!((object.get("other"), object.get("status")), (None, None), "{kind}");
    }
    let overlay = json!({ "requirements": [{ "key": "a", "operator": "Exists", "minValues": 3 }] });
    let overlay = maker.spec("NodeOverlay", overlay).await?;
    assert_eq!(overlay["requirements"], json!([{ "key": "a", "operator": "Exists" }]), "an overlay has no minValues");
    let class = json!({ "kubeletConfiguration": { "maxPods": 20, "podPidsLimit": 5 } });
    let class = maker.with("ProxmoxNodeClass", class).await?;
    assert_eq!(class["kubeletConfiguration"], json!({ "maxPods": 20 }));
    Ok(())
}

pub(super) async fn a_null_is_as_if_nothing_were_said(ground: &Ground) -> anyhow::Result<()> {
    let mut maker = Maker::new(ground).await?;
    let nothing = json!({
        "disruption": null, "limits": null, "weight": null, "replicas": null,
        "template": { "metadata": null, "spec": { "taints": null, "startupTaints": null, "expireAfter": null } },
    });
    let plain = maker.with("NodePool", json!({})).await?;
    let spec = with_nulls(least("NodePool"), nothing);
    assert_eq!(maker.spec("NodePool", spec).await?, plain);
    let plain = maker.with("ProxmoxNodeClass", json!({})).await?;
    let nothing = json!({
        "region": null, "placementStrategy": null, "kubeletConfiguration": null, "bootDevice": null, "tags": null,
        "metadataOptions": null, "securityGroups": null, "resourcePool": null, "cloneMode": null, "timeouts": null,
    });
    assert_eq!(maker.spec("ProxmoxNodeClass", with_nulls(least("ProxmoxNodeClass"), nothing)).await?, plain);
    let size = maker.with("ProxmoxNodeClass", json!({ "bootDevice": { "storage": "fast" } })).await?;
    assert_eq!(size["bootDevice"], json!({ "storage": "fast" }));
    let claim = with_nulls(least("NodeClaim"), json!({ "nodeClassRef": null }));
    let head = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": ground.name } });
    let mut object = head;
    object["spec"] = claim;
    let refused = ground.post("/apis/karpenter.sh/v1/nodeclaims", object).await?.refused(422, "Invalid")?;
    let causes = refused["details"]["causes"].to_string();
    anyhow::ensure!(causes.contains("spec.nodeClassRef"), "{causes}");
    Ok(())
}

/// `with`, but a null is put there instead of taking something away.
fn with_nulls(mut base: Value, more: Value) -> Value {
    match (&mut base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                let old = base.remove(&key).unwrap_or_default();
                let new = if value.is_null() { Value::Null } else { with_nulls(old, value) };
                base.insert(key, new);
            }
        }
        (base, more) => *base = more,
    }
    base
}

pub(super) async fn the_proxmox_kinds_need_no_spec(ground: &Ground) -> anyhow::Result<()> {
    let mut maker = Maker::new(ground).await?;
    for kind in ["ProxmoxNodeClass", "ProxmoxTemplate", "ProxmoxUnmanagedTemplate"] {
        let bare = maker.made(kind, json!({})).await?;
        assert_eq!(bare.get("spec"), None, "{kind}");
        let null = maker.made(kind, with_nulls(json!({}), json!({ "spec": null }))).await?;
        assert_eq!(null.get("spec"), None, "{kind}");
        let mut full = maker.made(kind, json!({ "spec": least(kind) })).await?;
        if let Some(fields) = full.as_object_mut() {
            fields.remove("spec");
        }
        let put = ground.put(&maker.path(&full)?, full.clone()).await?.expect(200)?;
        assert_eq!(put.get("spec"), None, "{kind}");
        read_without_spec(kind, bare)?;
    }
    Ok(())
}

/// Our types read such an object, and write it as it was.
fn read_without_spec(kind: &str, object: Value) -> anyhow::Result<()> {
    let again = match kind {
        "ProxmoxNodeClass" => serde_json::to_value(serde_json::from_value::<tenon_api::ProxmoxNodeClass>(object)?)?,
        "ProxmoxTemplate" => serde_json::to_value(serde_json::from_value::<tenon_api::ProxmoxTemplate>(object)?)?,
        _ => serde_json::to_value(serde_json::from_value::<tenon_api::ProxmoxUnmanagedTemplate>(object)?)?,
    };
    assert_eq!(again["spec"], Value::Null, "{kind}");
    Ok(())
}

pub(super) async fn what_is_not_checked_passes(ground: &Ground) -> anyhow::Result<()> {
    let mut maker = Maker::new(ground).await?;
    let ask = |requirement: Value| json!({ "template": { "spec": { "requirements": [requirement] } } });
    for odd in [
        json!({ "key": "a", "operator": "NotIn" }),
        json!({ "key": "a", "operator": "Exists", "values": ["x"] }),
        json!({ "key": "a", "operator": "In", "values": ["x", "x"], "minValues": 2 }),
        json!({ "key": "a", "operator": "In", "values": ["not a label value!", ""] }),
        json!({ "key": "a".repeat(200), "operator": "Exists" }),
    ] {
        maker.with("NodePool", ask(odd.clone())).await.with_context(|| odd.to_string())?;
        maker.with("NodeClaim", json!({ "requirements": [odd.clone()] })).await.with_context(|| odd.to_string())?;
    }
    let taint = json!({ "key": "a", "effect": "NoSchedule" });
    let twice = json!({ "template": { "spec": { "taints": [taint, taint], "startupTaints": [taint] } } });
    maker.with("NodePool", twice).await?;
    let long = "x".repeat(100);
    let name = json!({ "metadata": { "name": format!("{}-{long}", ground.name) }, "spec": least("NodePool") });
    maker.made("NodePool", name).await?;
    Ok(())
}

pub(super) async fn a_rule_that_cannot_be_evaluated_refuses(ground: &Ground) -> anyhow::Result<()> {
    let maker = Maker::new(ground).await?;
    for odd in [
        json!({ "key": "a", "operator": "In" }),
        json!({ "key": "a", "operator": "Gt" }),
        json!({ "key": "a", "operator": "Gt", "values": ["x"] }),
        json!({ "key": "a", "operator": "Lt", "values": ["1.5"] }),
        json!({ "key": "a", "operator": "Gte", "values": ["9223372036854775808"] }),
        json!({ "key": "a", "operator": "Lte", "values": [""] }),
    ] {
        for kind in ["NodeClaim", "NodeOverlay"] {
            let spec = with(least(kind), json!({ "requirements": [odd] }));
            let object = json!({
                "apiVersion": maker.kinds.version(kind), "kind": kind, "metadata": { "name": ground.name }, "spec": spec,
            });
            let refused = ground.post(&maker.kinds.path(kind, ""), object).await?.refused(422, "Invalid")?;
            let causes = refused["details"]["causes"].as_array().cloned().unwrap_or_default();
            anyhow::ensure!(causes.iter().any(|cause| cause["field"] == "spec.requirements"), "{odd}: {causes:?}");
        }
    }
    Ok(())
}

pub(super) async fn a_claim_is_compared_as_it_is_stored(ground: &Ground) -> anyhow::Result<()> {
    let mut maker = Maker::new(ground).await?;
    let requests = json!({ "cpu": 2, "memory": 8_589_934_592_i64, "pods": "110" });
    let claim = maker
        .made(
            "NodeClaim",
            json!({ "spec": with(least("NodeClaim"), json!({ "resources": { "requests": requests } })) }),
        )
        .await?;
    assert_eq!(claim["spec"]["resources"]["requests"], requests, "numbers stay numbers");
    let typed: tenon_api::NodeClaim = serde_json::from_value(claim.clone())?;
    let read = typed.spec.resources.and_then(|resources| resources.requests).unwrap_or_default();
    assert_eq!(serde_json::to_value(read)?, json!({ "cpu": 2, "memory": "8589934592", "pods": "110" }));
    // So a claim that our types read and wrote is refused: claims are patched.
    let rewritten = json!({ "spec": { "resources": { "requests": { "memory": "8589934592" } } } });
    let path = maker.path(&claim)?;
    ground.merge(&path, rewritten).await?.refused(422, "Invalid")?;
    ground.merge(&path, json!({ "metadata": { "labels": { "a": "b" } } })).await?.expect(200)?;
    Ok(())
}

pub(super) async fn a_pool_has_a_scale_only_with_replicas(ground: &Ground) -> anyhow::Result<()> {
    let mut maker = Maker::new(ground).await?;
    let dynamic = maker.made("NodePool", json!({ "spec": least("NodePool") })).await?;
    let scale = format!("{}/scale", maker.path(&dynamic)?);
    // The embedded server answers with a scale of 0 here.
    if ground.server() == "real" {
        assert_eq!(ground.get(&scale).await?.code, 500);
    }
    let wanted = json!({ "metadata": { "name": dynamic["metadata"]["name"] }, "spec": { "replicas": 1 } });
    let refused = ground.put(&scale, wanted).await?.refused(422, "Invalid")?.to_string();
    anyhow::ensure!(refused.contains("cannot be added or removed later"), "{refused}");
    let fixed = maker.made("NodePool", json!({ "spec": with(least("NodePool"), json!({ "replicas": 2 })) })).await?;
    let path = maker.path(&fixed)?;
    let shown = ground.get(&format!("{path}/scale")).await?.expect(200)?;
    assert_eq!((&shown["spec"]["replicas"], &shown["status"]["replicas"]), (&json!(2), &json!(0)));
    assert_eq!(fixed.get("status"), None, "nodes are counted once a status is written");
    let status = json!({ "status": { "conditions": [] } });
    let judged = ground.merge(&format!("{path}/status"), status).await?.expect(200)?;
    assert_eq!(judged["status"], json!({ "conditions": [], "nodes": 0 }));
    Ok(())
}

pub(super) async fn conditions_of_the_proxmox_kinds_are_one_list(ground: &Ground) -> anyhow::Result<()> {
    let mut maker = Maker::new(ground).await?;
    for kind in ["ProxmoxNodeClass", "ProxmoxTemplate", "ProxmoxUnmanagedTemplate"] {
        let object = maker.made(kind, json!({ "spec": least(kind) })).await?;
        let ready = sample(kind, "")["status"]["conditions"][0].clone();
        let twice = json!({ "status": { "conditions": [ready, ready] } });
        let path = format!("{}/status", maker.path(&object)?);
        let stored = ground.merge(&path, twice.clone()).await?.expect(200)?;
        assert_eq!(stored["status"]["conditions"], twice["status"]["conditions"], "{kind}");
    }
    Ok(())
}

pub(super) async fn the_additions_are_optional(ground: &Ground) -> anyhow::Result<()> {
    let mut maker = Maker::new(ground).await?;
    let plain = maker.with("ProxmoxNodeClass", json!({})).await?;
    assert_eq!((plain.get("cloneMode"), plain["placementStrategy"].get("hosts")), (None, None));
    let placement =
        json!({ "hosts": "MaxMemory", "minAvailable": { "cpu": 2, "memory": "4Gi" }, "excludedHosts": ["pve9"] });
    let ours = json!({ "cloneMode": "Linked", "placementStrategy": placement });
    let class = maker.with("ProxmoxNodeClass", ours).await?;
    assert_eq!(class["cloneMode"], "Linked");
    let stored = json!({
        "zoneBalance": "Balanced", "hosts": "MaxMemory", "minAvailable": { "cpu": 2, "memory": "4Gi" },
        "excludedHosts": ["pve9"],
    });
    assert_eq!(class["placementStrategy"], stored);
    let packed = maker.with("ProxmoxNodeClass", json!({ "placementStrategy": { "goal": "PackHosts" } })).await?;
    assert_eq!(packed["placementStrategy"], json!({ "zoneBalance": "Balanced", "goal": "PackHosts" }));
    assert_eq!(plain["placementStrategy"].get("goal"), None);
    Ok(())
}
