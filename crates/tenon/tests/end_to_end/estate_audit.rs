//! Does everybody who shares a Proxmox cluster change only what they made? Answered from the ledger of the estate.
//!
//! Every call that changes something has to be known here: one that is not is a finding, too.

use std::collections::{BTreeMap, BTreeSet};

use tenon_sim::{LedgerEntry, TaskSpan};

/// What a caller did to VMs and volumes of their own, by the kind of the call.
type Counts = BTreeMap<&'static str, usize>;

/// What the ledger says.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Changes of what somebody else made, or what nobody here made.
    pub(crate) findings: Vec<String>,
    /// Changes of one's own, by caller.
    pub(crate) own: BTreeMap<String, Counts>,
    /// Who made the VM that has an id now.
    vms: BTreeMap<u32, String>,
    /// Who made the images that are there, by volume.
    volumes: BTreeMap<String, String>,
    /// Volumes that were there from the start.
    first: BTreeSet<String>,
    /// Clones that ended without a VM.
    failed: BTreeSet<String>,
}

/// Reads the ledger of an estate that had these volumes at first, from its first to its last entry. What was refused changed
/// nothing, and of two clones to one id that were asked for at once, Proxmox accepts both and fails one.
pub(crate) fn audit(ledger: &[LedgerEntry], first: &[&str], clones: &[TaskSpan]) -> Audit {
    let first = first.iter().map(|volume| (*volume).to_owned()).collect();
    let failed = clones.iter().filter(|clone| clone.failure.is_some()).map(|clone| clone.upid.clone()).collect();
    let mut audit = Audit { first, failed, ..Audit::default() };
    for entry in ledger.iter().filter(|entry| entry.status == 200 && entry.method != "GET") {
        audit.read(entry);
    }
    audit
}

impl Audit {
    fn read(&mut self, entry: &LedgerEntry) {
        let words: Vec<&str> = entry.path.trim_matches('/').split('/').collect();
        match (entry.method.as_str(), words.as_slice()) {
            ("POST", ["nodes", _, "qemu", source, "clone"]) => self.clone(entry, source),
            ("DELETE", ["nodes", _, "qemu", id]) => {
                self.vm(entry, "destroy", id);
                self.vms.remove(&number(id));
            }
            ("PUT" | "POST", ["nodes", _, "qemu", id, "config"]) => self.vm(entry, "config", id),
            ("POST", ["nodes", _, "qemu", id, "status", "start"]) => self.vm(entry, "start", id),
            ("POST", ["nodes", _, "qemu", id, "status", _]) => self.vm(entry, "stop", id),
            // Resizes, firewalls, guest agents, conversions to templates, and whatever else there is below a VM.
            (_, ["nodes", _, "qemu", id, _, ..]) => self.vm(entry, "other", id),
            ("PUT", ["pools", ..]) => {
                let vms = entry.params.get("vms").map(String::as_str).unwrap_or_default();
                vms.split(',').filter(|id| !id.is_empty()).for_each(|id| self.vm(entry, "pool", id));
                if entry.params.contains_key("storage") || vms.is_empty() {
                    self.find(entry, "changes the pool itself");
                }
            }
            ("POST", ["nodes", _, "storage", storage, "upload"]) => {
                let file = entry.params.get("filename").map(String::as_str).unwrap_or_default();
                self.upload(entry, format!("{storage}:iso/{file}"));
            }
            ("DELETE", ["nodes", _, "storage", _, "content", volume @ ..]) => {
                self.delete_volume(entry, &volume.join("/"));
            }
            ("DELETE", ["nodes", _, "tasks", upid]) if upid.split(':').nth(7) == Some(&entry.user) => {}
            _ => self.find(entry, "is no change that this audit knows"),
        }
    }

    /// The id may have been somebody's before: Proxmox gives it only if no VM has it.
    fn clone(&mut self, entry: &LedgerEntry, source: &str) {
        let id = entry.params.get("newid").map(|id| number(id)).unwrap_or_default();
        if self.vms.contains_key(&number(source)) {
            self.find(entry, "clones a VM that is no template");
        }
        if entry.upid.as_ref().is_some_and(|upid| self.failed.contains(upid)) {
            return;
        }
        self.vms.insert(id, entry.user.clone());
        self.count(entry, "clone");
    }

    fn vm(&mut self, entry: &LedgerEntry, kind: &'static str, id: &str) {
        match self.vms.get(&number(id)) {
            Some(maker) if *maker == entry.user => self.count(entry, kind),
            Some(maker) => self.find(entry, &format!("changes VM {id} of {maker}")),
            None => self.find(entry, &format!("changes VM {id}, which nobody here made")),
        }
    }

    fn upload(&mut self, entry: &LedgerEntry, volume: String) {
        match self.volumes.get(&volume).filter(|maker| **maker != entry.user) {
            Some(maker) => self.find(entry, &format!("overwrites {volume} of {maker}")),
            None => self.count(entry, "upload"),
        }
        self.volumes.insert(volume, entry.user.clone());
    }

    fn delete_volume(&mut self, entry: &LedgerEntry, volume: &str) {
        match self.volumes.get(volume) {
            Some(maker) if *maker == entry.user => self.count(entry, "delete image"),
            Some(maker) => self.find(entry, &format!("deletes {volume} of {maker}")),
            None if self.first.contains(volume) => {
                self.find(entry, &format!("deletes {volume}, which nobody here made"));
            }
            // It was never there: a launch that failed before its upload is cleaned up by name.
            None => {}
        }
    }

    fn count(&mut self, entry: &LedgerEntry, kind: &'static str) {
        *self.own.entry(entry.user.clone()).or_default().entry(kind).or_default() += 1;
    }

    fn find(&mut self, entry: &LedgerEntry, what: &str) {
        self.findings.push(format!("{:?}: {} {} by {} {what}", entry.at, entry.method, entry.path, entry.user));
    }
}

/// An id; 0 is no VM.
fn number(id: &str) -> u32 {
    id.parse().unwrap_or_default()
}

fn call(user: &str, call: &str, params: &[(&str, &str)]) -> LedgerEntry {
    let (method, path) = call.split_once(' ').unwrap_or_default();
    LedgerEntry {
        at: std::time::Duration::ZERO,
        user: user.to_owned(),
        method: method.to_owned(),
        path: path.to_owned(),
        params: params.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        status: 200,
        reason: "OK".to_owned(),
        upid: None,
    }
}

#[test]
fn the_audit_finds_every_change_of_what_somebody_else_made() {
    let made = [
        call("a", "POST /nodes/pve1/qemu/9001/clone", &[("newid", "20000")]),
        call("a", "POST /nodes/pve1/storage/local/upload", &[("filename", "seed.iso")]),
    ];
    let rows: &[(&str, &[(&str, &str)])] = &[
        ("PUT /nodes/pve1/qemu/20000/config", &[]),
        ("PUT /nodes/pve1/qemu/20000/resize", &[]),
        ("POST /nodes/pve1/qemu/20000/status/start", &[]),
        ("POST /nodes/pve1/qemu/20000/status/stop", &[]),
        ("POST /nodes/pve1/qemu/20000/firewall/rules", &[]),
        ("DELETE /nodes/pve1/qemu/20000", &[]),
        ("POST /nodes/pve1/qemu/20000/template", &[]),
        ("PUT /pools", &[("poolid", "x"), ("vms", "20000")]),
        ("POST /nodes/pve1/storage/local/upload", &[("filename", "seed.iso")]),
        ("DELETE /nodes/pve1/storage/local/content/local:iso/seed.iso", &[]),
    ];
    for (change, params) in rows {
        let with = |user: &str| [made.as_slice(), &[call(user, change, params)]].concat();
        let found = audit(&with("b"), &[], &[]).findings;
        assert_eq!((found.len(), audit(&with("a"), &[], &[]).findings.len()), (1, 0), "{change}: {found:?}");
    }
    for change in [
        "PUT /nodes/pve1/qemu/9001/config",
        "POST /nodes/pve1/qemu/9001/template",
        "DELETE /nodes/pve1/qemu/9001",
        "DELETE /nodes/pve1/storage/local/content/local:iso/debian.iso",
        "POST /nodes/pve1/storage/local/content",
        "POST /pools",
        "PUT /cluster/options",
        "DELETE /nodes/pve1/tasks/UPID:pve1:0:0:0:qmclone:9001:b:",
    ] {
        let found = audit(&[call("a", change, &[])], &["local:iso/debian.iso"], &[]).findings;
        assert_eq!(found.len(), 1, "{change}");
    }
}

#[test]
fn of_two_clones_to_one_id_the_one_that_succeeded_made_the_vm() {
    let clone = |user: &str| {
        let asked = call(user, "POST /nodes/pve1/qemu/9001/clone", &[("newid", "20000")]);
        LedgerEntry { upid: Some(format!("UPID:{user}")), ..asked }
    };
    let failed = TaskSpan {
        upid: "UPID:b".to_owned(),
        host: "pve1".to_owned(),
        id: "9001".to_owned(),
        began: std::time::Duration::ZERO,
        ended: Some(std::time::Duration::ZERO),
        failure: Some("unable to create VM 20000: config file already exists".to_owned()),
    };
    let ledger = [clone("a"), clone("b"), call("a", "DELETE /nodes/pve1/qemu/20000", &[])];
    assert_eq!(audit(&ledger, &[], &[failed]).findings, Vec::<String>::new());
    assert_eq!(audit(&ledger, &[], &[]).findings.len(), 1);
}
