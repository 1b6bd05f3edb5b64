//! Volumes: claims that wait for their first consumer, claims with a volume in one zone, and one shared by all.

use serde_json::{Value, json};

use super::super::dice::Dice;
use super::workloads::App;
use super::{Place, ZONE, uid};

/// The driver that attaches disks.
pub(super) const DRIVER: &str = "csi.disks.example";
/// The driver of network shares, which know no zone.
const SHARES: &str = "csi.shares.example";

/// What an app stores its data on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Volume {
    None,
    /// A claim per pod, of a class that binds late.
    Late(&'static str),
    /// A claim per pod, bound to a disk in a zone.
    Zonal,
    /// One claim for all pods.
    Shared,
}

impl Volume {
    pub(super) fn roll(dice: &mut Dice) -> Volume {
        match dice.below(5) {
            0 => Volume::Late("disk"),
            1 => Volume::Late("disk-some-zones"),
            2 | 3 => Volume::Zonal,
            _ => Volume::Shared,
        }
    }
}

/// The storage classes: one for all zones, one for some, one for shares.
pub(super) fn classes(dice: &mut Dice, place: &Place) -> Vec<Value> {
    let class = |name: &str, driver: &str, mode: &str| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": name, "uid": format!("class-{name}")},
            "provisioner": driver, "volumeBindingMode": mode, "reclaimPolicy": "Delete",
        })
    };
    let mut narrow = class("disk-some-zones", DRIVER, "WaitForFirstConsumer");
    let zones = dice.some(&place.zones, 1);
    narrow["allowedTopologies"] = json!([{"matchLabelExpressions": [{"key": ZONE, "values": zones}]}]);
    vec![class("disk", DRIVER, "WaitForFirstConsumer"), narrow, class("share", SHARES, "Immediate")]
}

/// How many disks a machine can hold.
pub(super) fn node_limit(node: &str, count: u64) -> Value {
    let driver = json!({"name": DRIVER, "nodeID": node, "topologyKeys": [ZONE], "allocatable": {"count": count}});
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node, "uid": format!("csinode-{node}")},
        "spec": {"drivers": [driver]},
    })
}

/// The name of the claim that a pod of the app uses.
pub(super) fn claim_name(app: &App, pod: &str) -> String {
    if app.volume == Volume::Shared { format!("share-{}", app.name) } else { format!("data-{pod}") }
}

/// The name of a pod, and the zone where its disk already is.
pub(super) struct Holder<'a> {
    pub(super) pod: &'a str,
    pub(super) zone: Option<&'a str>,
}

/// The claim of a pod, with its volume.
pub(super) fn claim(dice: &mut Dice, place: &Place, app: &App, holder: &Holder<'_>) -> Vec<Value> {
    let Holder { pod, zone } = *holder;
    let claim = claim_name(app, pod);
    match (app.volume, zone) {
        (Volume::Late(class), None) => vec![claim_of(dice, app, &claim, &Backing { class, volume: None })],
        (Volume::Late(_) | Volume::Zonal, _) => {
            let zone = zone.unwrap_or_else(|| dice.pick(&place.zones).as_str());
            bound(dice, app, &claim, Some(zone))
        }
        _ => Vec::new(),
    }
}

/// The claim that all pods of the app share.
pub(super) fn shared(dice: &mut Dice, app: &App) -> Vec<Value> {
    if app.volume == Volume::Shared { bound(dice, app, &claim_name(app, ""), None) } else { Vec::new() }
}

/// A claim and the volume that it is bound to, in a zone or everywhere.
fn bound(dice: &mut Dice, app: &App, claim: &str, zone: Option<&str>) -> Vec<Value> {
    let volume = format!("pv-{}-{claim}", app.namespace);
    let (class, driver, mode) =
        if zone.is_some() { ("disk", DRIVER, "ReadWriteOnce") } else { ("share", SHARES, "ReadWriteMany") };
    let mut spec = json!({
        "capacity": {"storage": "8Gi"},
        "accessModes": [mode],
        "storageClassName": class,
        "persistentVolumeReclaimPolicy": "Delete",
        "csi": {"driver": driver, "volumeHandle": volume},
        "claimRef": {"kind": "PersistentVolumeClaim", "name": claim, "namespace": app.namespace},
    });
    if let Some(zone) = zone {
        let term = json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]});
        spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [term]}});
    }
    let disk = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": volume, "uid": uid(dice)}, "spec": spec, "status": {"phase": "Bound"},
    });
    vec![disk, claim_of(dice, app, claim, &Backing { class, volume: Some(&volume) })]
}

/// The class of a claim, and the volume if it is bound to one.
struct Backing<'a> {
    class: &'a str,
    volume: Option<&'a str>,
}

fn claim_of(dice: &mut Dice, app: &App, name: &str, backing: &Backing<'_>) -> Value {
    let Backing { class, volume } = *backing;
    let mode = if app.volume == Volume::Shared { "ReadWriteMany" } else { "ReadWriteOnce" };
    let mut spec = json!({
        "accessModes": [mode], "storageClassName": class, "resources": {"requests": {"storage": "8Gi"}},
    });
    if let Some(volume) = volume {
        spec["volumeName"] = json!(volume);
    }
    let phase = if volume.is_some() { "Bound" } else { "Pending" };
    let annotations = if volume.is_some() { json!({"pv.kubernetes.io/bind-completed": "yes"}) } else { json!({}) };
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": app.namespace, "uid": uid(dice), "annotations": annotations},
        "spec": spec, "status": {"phase": phase},
    })
}
