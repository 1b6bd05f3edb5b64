//! Small estates and objects in few words.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tenon_controllers::status::Estate;
use tenon_pve::{GuestKind, GuestRow, HostRow, Resources, StorageRow};

pub(crate) fn guest(id: u32, host: &str, memory_gib: u64) -> GuestRow {
    GuestRow {
        id: id.try_into().unwrap(),
        host: host.parse().unwrap(),
        kind: GuestKind::Qemu,
        status: Some("running".to_owned()),
        name: Some(format!("vm-{id}")),
        template: false,
        tags: None,
        lock: None,
        pool: None,
        maxcpu: Some(2),
        maxmem: Some(memory_gib << 30),
    }
}

pub(crate) fn template(id: u32, host: &str, name: &str, tags: &str) -> GuestRow {
    GuestRow { template: true, name: Some(name.to_owned()), tags: Some(tags.to_owned()), ..guest(id, host, 1) }
}

/// Two hosts with 16 cores and 64 GiB, storage `fast` on the first only, and room for seeds on both.
pub(crate) fn listing(guests: Vec<GuestRow>) -> Resources {
    let host = |name: &str| {
        Arc::new(HostRow {
            host: name.parse().unwrap(),
            status: Some("online".to_owned()),
            maxcpu: Some(16),
            maxmem: Some(64 << 30),
            cpu: None,
            mem: None,
        })
    };
    Resources {
        guests: guests.into_iter().map(Arc::new).collect(),
        hosts: vec![host("pve1"), host("pve2")],
        storages: vec![
            storage("fast", "pve1", "images", 0),
            storage("local", "pve1", "iso,vztmpl", 50),
            storage("local", "pve2", "iso", 99),
            storage("shared", "pve2", "images,iso", 20),
        ],
    }
}

/// A storage of 100 GiB, so many of them used.
fn storage(name: &str, host: &str, content: &str, used_gib: u64) -> Arc<StorageRow> {
    Arc::new(StorageRow {
        storage: name.to_owned(),
        host: host.parse().unwrap(),
        status: Some("available".to_owned()),
        shared: false,
        content: content.to_owned(),
        disk: Some(used_gib << 30),
        maxdisk: Some(100 << 30),
    })
}

pub(crate) fn estate(guests: Vec<GuestRow>) -> Estate {
    Estate { regions: BTreeMap::from([("lab".to_owned(), Ok(listing(guests).into()))]) }
}

/// An object from the fields of its spec.
pub(crate) fn spec<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn class_spec(extra: Value) -> tenon_api::ProxmoxNodeClassSpec {
    let mut value = json!({ "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } });
    let (Some(fields), Value::Object(extra)) = (value.as_object_mut(), extra) else { panic!("not an object") };
    fields.extend(extra);
    spec(value)
}
