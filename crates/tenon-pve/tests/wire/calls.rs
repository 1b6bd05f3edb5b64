//! The call of the client that makes a recorded request.

use bytes::Bytes;
use serde_json::{Value, json};
use tenon_model::{HostName, VmId};
use tenon_pve::{
    Client, CloneOptions, CloudInitDocument, ConfigView, Detail, Download, NewRule, OwnerMark, PoolChange, Proof,
    ProvenVm, ResourceKind, Result, Shutdown, Stop, StorageFilter, Suspend, TaskFilter, TaskSource, Upid, Upload,
    VolumeFilter,
};

use crate::recordings::{Recording, plain};

/// The uuid of the VM a proof is read from.
pub(crate) const UUID: &str = "9e01f0b4-0000-4000-8000-000000000001";

/// What a call said, to be compared with the data of the reply.
pub(crate) enum Said {
    /// That it is done.
    Done,
    /// The task that does it.
    Task(Upid),
    /// A list with so many rows.
    Rows(usize),
    /// These keys with these texts.
    Keys(Vec<(String, String)>),
    /// A text or number.
    Text(String),
}

impl Said {
    /// Whether this is what the reply says.
    pub(crate) fn is_in(&self, data: &Value) -> bool {
        match self {
            Said::Done => true,
            Said::Task(upid) => data.as_str() == Some(upid.as_str()),
            Said::Rows(count) => data.as_array().is_some_and(|rows| rows.len() == *count),
            Said::Text(text) => plain(data) == *text,
            Said::Keys(keys) => keys.iter().all(|(key, text)| data.get(key).is_some_and(|value| plain(value) == *text)),
        }
    }
}

/// The parameters of a write that takes any, without those that stand in the path anyway.
fn passed<'a>(row: &'a Recording, in_path: &[&str]) -> Vec<(&'a str, String)> {
    let is_repeated = |(name, value): &&(String, String)| {
        matches!(name.as_str(), "node" | "vmid") && in_path.contains(&value.as_str())
    };
    let kept = row.params.iter().filter(|param| !is_repeated(param));
    kept.map(|(name, value)| (name.as_str(), value.clone())).collect()
}

/// Makes the call a recording was made of, as far as the client has one. `None`: there is none, or it cannot say that.
pub(crate) async fn make(client: &Client, row: &Recording) -> Option<Result<Said>> {
    let parts: Vec<&str> = row.path.trim_matches('/').split('/').collect();
    match (row.method.as_str(), parts.as_slice()) {
        (_, ["nodes", host, "qemu", vmid, rest @ ..]) => {
            of_vm(client, row, (host.parse().ok()?, vmid.parse().ok()?), rest).await
        }
        (_, ["nodes", host, "storage", rest @ ..]) => of_storage(client, row, &host.parse().ok()?, rest).await,
        (_, ["nodes", host, "tasks", rest @ ..]) => of_tasks(client, row, &host.parse().ok()?, rest).await,
        (_, ["nodes", host, rest @ ..]) => of_host(client, row, &host.parse().ok()?, rest).await,
        (_, ["pools"]) => of_pools(client, row).await,
        _ => of_cluster(client, row, &parts).await,
    }
}

/// Proves a VM to be ours, for which two requests precede the recorded one.
async fn proven(client: &Client, host: &HostName, vmid: VmId) -> ProvenVm {
    let mark = OwnerMark { cluster: "c".to_owned(), claim: "u".to_owned(), vmid };
    client.prove(host, &Proof { mark, uuid: Some(UUID.to_owned()) }).await.unwrap().unwrap()
}

/// What is answered before the recorded reply: the configuration a proof is read from, and for a destruction the write
/// that precedes it.
pub(crate) fn preludes(row: &Recording) -> Vec<Value> {
    let needs_proof = ["/status/stop", "/status/shutdown", "/status/reset", "/status/reboot", "/status/suspend"];
    let ours = json!({ "digest": "d", "description": "x", "smbios1": format!("uuid={UUID}") });
    let is_destruction = row.method == "DELETE" && row.path.trim_matches('/').split('/').nth_back(1) == Some("qemu");
    match row.method.as_str() {
        _ if is_destruction => vec![ours, Value::Null],
        "POST" if row.path.ends_with("/template") || needs_proof.iter().any(|end| row.path.ends_with(end)) => {
            vec![ours]
        }
        _ => vec![],
    }
}

fn number<T: std::str::FromStr>(row: &Recording, name: &str) -> Option<T> {
    row.param(name).and_then(|text| text.parse().ok())
}

fn text(row: &Recording, name: &str) -> Option<String> {
    row.param(name).map(str::to_owned)
}

fn flag(row: &Recording, name: &str) -> Option<bool> {
    row.param(name).map(|value| value == "1")
}

async fn of_cluster(client: &Client, row: &Recording, parts: &[&str]) -> Option<Result<Said>> {
    let map = |map: std::collections::BTreeMap<String, String>| Said::Keys(map.into_iter().collect());
    Some(match (row.method.as_str(), parts) {
        ("GET", ["version"]) => client.version().await.map(|version| Said::Keys(vec![("version".to_owned(), version)])),
        ("GET", ["access", "permissions"]) => client.permissions(row.param("path")).await.map(|_| Said::Done),
        ("GET", ["cluster", "resources"]) => {
            let known = client.resources_of(match row.param("type") {
                None => return Some(client.resources().await.map(|_| Said::Done)),
                Some("vm") => ResourceKind::Guests,
                Some("node") => ResourceKind::Hosts,
                Some("storage") => ResourceKind::Storages,
                Some("sdn") => ResourceKind::Networks,
                Some(_) => return None,
            });
            known.await.map(|found| match found.guests.len() + found.hosts.len() + found.storages.len() {
                0 => Said::Done,
                rows => Said::Rows(rows),
            })
        }
        ("GET", ["cluster", "status"]) => client.cluster_status().await.map(|_| Said::Done),
        ("GET", ["cluster", "options"]) => client.cluster_options().await.map(map),
        ("GET", ["cluster", "ha", "status", "current"]) => client.ha_status().await.map(|rows| Said::Rows(rows.len())),
        ("GET", ["cluster", "ha", "status", "manager_status"]) => client.ha_host_states().await.map(|_| Said::Done),
        ("GET", ["cluster", "nextid"]) => match row.param("vmid") {
            None => client.next_id().await.map(|id| Said::Text(id.to_string())),
            Some(id) => client.is_id_free(id.parse().ok()?).await.map(|_| Said::Done),
        },
        ("GET", ["nodes"]) => client.hosts().await.map(|rows| Said::Rows(rows.len())),
        ("GET", ["storage"]) => client.storage_definitions(row.param("type")).await.map(|rows| Said::Rows(rows.len())),
        ("GET", ["storage", name]) => client.storage_definition(name).await.map(|storage| {
            Said::Keys(vec![("storage".to_owned(), storage.storage), ("type".to_owned(), storage.kind)])
        }),
        _ => return None,
    })
}

async fn of_host(client: &Client, row: &Recording, host: &HostName, rest: &[&str]) -> Option<Result<Said>> {
    let vmid = row.param("vmid").unwrap_or_default();
    Some(match (row.method.as_str(), rest) {
        ("GET", ["status"]) => client.host_status(host).await.map(|_| Said::Done),
        ("GET", ["network"]) => client.interfaces(host, row.param("type")).await.map(|rows| Said::Rows(rows.len())),
        ("GET", ["network", name]) => {
            client.interface(host, name).await.map(|found| Said::Keys(vec![("type".to_owned(), found.kind)]))
        }
        ("GET", ["hardware", "pci"]) => client.pci_devices(host).await.map(|rows| Said::Rows(rows.len())),
        ("GET", ["capabilities", "qemu", "cpu"]) => client.cpu_models(host).await.map(|rows| Said::Rows(rows.len())),
        ("GET", ["qemu"]) => {
            let detail = if row.param("full").is_some() { Detail::Full } else { Detail::Brief };
            client.vms(host, detail).await.map(|rows| Said::Rows(rows.len()))
        }
        ("POST", ["qemu"]) => {
            client.create_vm(host, number(row, "vmid")?, &passed(row, &[host.as_str(), vmid])).await.map(Said::Task)
        }
        _ => return None,
    })
}

async fn of_storage(client: &Client, row: &Recording, host: &HostName, rest: &[&str]) -> Option<Result<Said>> {
    let task = |upid: Result<Upid>| upid.map(Said::Task);
    Some(match (row.method.as_str(), rest) {
        ("GET", []) => {
            let target = row.param("target").map(|name| name.parse().unwrap());
            let filter = StorageFilter { content: text(row, "content"), enabled: flag(row, "enabled"), target };
            client.storages_where(host, &filter).await.map(|rows| Said::Rows(rows.len()))
        }
        ("GET", [storage, "status"]) => client
            .storage_status(host, storage)
            .await
            .map(|found| Said::Keys(vec![("content".to_owned(), found.content), ("type".to_owned(), found.kind)])),
        ("GET", [storage, "content"]) => {
            let filter = VolumeFilter { content: text(row, "content"), vmid: number(row, "vmid") };
            client.volumes_where(host, storage, &filter).await.map(|rows| Said::Rows(rows.len()))
        }
        ("GET", [_, "content", volume @ ..]) => client
            .volume(host, &volume.join("/"))
            .await
            .map(|found| Said::Keys(vec![("size".to_owned(), found.size.to_string())])),
        ("DELETE", [_, "content", volume @ ..]) => match number(row, "delay") {
            Some(delay) => client.delete_volume_within(host, &volume.join("/"), delay).await.map(|_| Said::Done),
            None => task(client.delete_volume(host, &volume.join("/")).await),
        },
        ("POST", [storage, "upload"]) => {
            let (name, size) = row.file.clone()?;
            let upload = Upload { content: text(row, "content")?, name, checked: row.param("checksum").is_some() };
            task(client.upload(host, storage, &upload, &Bytes::from(vec![0; size])).await)
        }
        ("POST", [storage, "download-url"]) => {
            let checksum = text(row, "checksum-algorithm").zip(text(row, "checksum"));
            let (content, url, name) = (text(row, "content")?, text(row, "url")?, text(row, "filename")?);
            let verify_certificates = flag(row, "verify-certificates");
            task(client.download(host, storage, &Download { content, url, name, checksum, verify_certificates }).await)
        }
        _ => return None,
    })
}

async fn of_tasks(client: &Client, row: &Recording, host: &HostName, rest: &[&str]) -> Option<Result<Said>> {
    let source = match row.param("source") {
        None => None,
        Some("archive") => Some(TaskSource::Archive),
        Some("active") => Some(TaskSource::Active),
        Some("all") => Some(TaskSource::All),
        Some(_) => return None,
    };
    Some(match (row.method.as_str(), rest) {
        ("GET", []) => {
            let filter = TaskFilter {
                source,
                vmid: number(row, "vmid"),
                kind: text(row, "typefilter"),
                failed: flag(row, "errors"),
                ended_so: text(row, "statusfilter"),
                user: text(row, "userfilter"),
                since: number(row, "since"),
                start: number(row, "start"),
                limit: number(row, "limit"),
            };
            client.tasks(host, &filter).await.map(|rows| Said::Rows(rows.len()))
        }
        ("GET", [task, "status"]) => client.task_progress(&task.parse().ok()?).await.map(|_| Said::Done),
        ("GET", [task, "log"]) => client
            .task_log_from(&task.parse().ok()?, number(row, "start").unwrap_or_default(), number(row, "limit"))
            .await
            .map(|lines| Said::Rows(lines.len())),
        ("DELETE", [task]) => client.stop_task(&task.parse().ok()?).await.map(|()| Said::Done),
        _ => return None,
    })
}

async fn of_pools(client: &Client, row: &Recording) -> Option<Result<Said>> {
    let done = |outcome: Result<()>| outcome.map(|()| Said::Done);
    let change = match (flag(row, "delete"), flag(row, "allow-move")) {
        (Some(true), _) => PoolChange::Remove,
        (_, Some(true)) => PoolChange::Move,
        _ => PoolChange::Add,
    };
    Some(match (row.method.as_str(), row.param("poolid")) {
        ("GET", None) => client.pools().await.map(|rows| Said::Rows(rows.len())),
        ("GET", Some(pool)) => client.pool(pool).await.map(|_| Said::Rows(1)),
        ("POST", Some(pool)) => done(client.create_pool(pool, row.param("comment")).await),
        ("DELETE", Some(pool)) => done(client.delete_pool(pool).await),
        ("PUT", Some(pool)) => match (row.param("vms"), row.param("storage")) {
            (Some(vms), None) => {
                let vms: Vec<VmId> = vms.split(',').map(|id| id.parse().ok()).collect::<Option<_>>()?;
                done(client.change_pool(pool, &vms, change).await)
            }
            (None, Some(storage)) => done(client.change_pool_storage(pool, storage, change).await),
            _ => return None,
        },
        _ => return None,
    })
}

async fn of_vm(
    client: &Client,
    row: &Recording,
    (host, vmid): (HostName, VmId),
    rest: &[&str],
) -> Option<Result<Said>> {
    let params = passed(row, &[host.as_str(), &vmid.to_string()]);
    let host = &host;
    let task = |upid: Result<Upid>| upid.map(Said::Task);
    Some(match (row.method.as_str(), rest) {
        ("DELETE", []) => task(client.destroy_proven(proven(client, host, vmid).await).await),
        ("GET", ["config"]) => {
            let view = match (row.param("current"), row.param("snapshot")) {
                (Some(_), _) => ConfigView::Running,
                (_, Some(name)) => ConfigView::Snapshot(name),
                _ => ConfigView::Desired,
            };
            let keys = |(key, text): (&str, &str)| (key.to_owned(), text.to_owned());
            client.vm_config_as(host, vmid, view).await.map(|config| Said::Keys(config.iter().map(keys).collect()))
        }
        ("PUT", ["config"]) => client.configure_vm(host, vmid, &params).await.map(|()| Said::Done),
        ("POST", ["config"]) => task(client.configure_vm_in_task(host, vmid, &params).await),
        ("GET", ["pending"]) => client.pending(host, vmid).await.map(|rows| Said::Rows(rows.len())),
        ("PUT", ["resize"]) => task(client.resize_disk(host, vmid, row.param("disk")?, row.param("size")?).await),
        ("POST", ["template"]) => task(client.make_template(&proven(client, host, vmid).await).await),
        ("POST", ["clone"]) => {
            let options = CloneOptions {
                name: text(row, "name"),
                description: text(row, "description"),
                pool: text(row, "pool"),
                full: flag(row, "full"),
                storage: text(row, "storage"),
                format: text(row, "format"),
                target: text(row, "target"),
                limit_kib_s: number(row, "bwlimit"),
            };
            task(client.clone_vm_with(host, (vmid, number(row, "newid")?), &options).await)
        }
        ("GET", ["status", "current"]) => client.vm_status(host, vmid).await.map(|_| Said::Done),
        ("POST", ["status", verb]) => task(power(client, row, (host, vmid), verb).await?),
        (_, ["agent", what]) => return of_agent(client, row, (host, vmid), what).await,
        (_, ["firewall", rest @ ..]) => return of_firewall(client, row, (host, vmid), rest).await,
        ("PUT", ["cloudinit"]) => client.regenerate_cloudinit(host, vmid).await.map(|()| Said::Done),
        ("GET", ["cloudinit"]) => client.cloudinit_pending(host, vmid).await.map(|rows| Said::Rows(rows.len())),
        ("GET", ["cloudinit", "dump"]) => {
            client.cloudinit_document(host, vmid, CloudInitDocument::User).await.map(Said::Text)
        }
        _ => return None,
    })
}

async fn power(client: &Client, row: &Recording, (host, vmid): (&HostName, VmId), verb: &str) -> Option<Result<Upid>> {
    match verb {
        "start" => {
            return Some(match number(row, "timeout") {
                Some(timeout_s) => client.start_vm_within(host, vmid, timeout_s).await,
                None => client.start_vm(host, vmid).await,
            });
        }
        "resume" => return Some(client.resume_vm(host, vmid).await),
        _ => {}
    }
    let vm = proven(client, host, vmid).await;
    Some(match verb {
        "stop" => {
            let overrule_shutdown = flag(row, "overrule-shutdown").unwrap_or_default();
            client.stop_proven_with(&vm, Stop { timeout_s: number(row, "timeout"), overrule_shutdown }).await
        }
        "shutdown" => {
            let how = Shutdown { timeout_s: number(row, "timeout"), force: flag(row, "forceStop") };
            client.shutdown_proven(&vm, how).await
        }
        "reset" => client.reset_proven(&vm).await,
        "reboot" => client.reboot_proven(&vm, number(row, "timeout")).await,
        "suspend" if row.param("todisk").is_some() => client.suspend_proven(&vm, Suspend::ToDisk).await,
        "suspend" => client.suspend_proven(&vm, Suspend::ToMemory).await,
        _ => return None,
    })
}

async fn of_agent(
    client: &Client,
    row: &Recording,
    (host, vmid): (&HostName, VmId),
    what: &str,
) -> Option<Result<Said>> {
    Some(match (row.method.as_str(), what) {
        ("POST", "ping") => client.agent_ping(host, vmid).await.map(|()| Said::Done),
        ("GET", "network-get-interfaces") => client.agent_interfaces(host, vmid).await.map(|_| Said::Done),
        ("GET", "get-osinfo") => client.agent_os(host, vmid).await.map(|_| Said::Done),
        ("GET", "get-host-name") => client.agent_host_name(host, vmid).await.map(|_| Said::Done),
        ("POST", "exec") => {
            let words: Vec<&str> = row.params.iter().map(|(_, word)| word.as_str()).collect();
            let pid = client.agent_exec(host, vmid, &words).await;
            pid.map(|pid| Said::Keys(vec![("pid".to_owned(), pid.to_string())]))
        }
        ("GET", "exec-status") => client.agent_exec_status(host, vmid, number(row, "pid")?).await.map(|_| Said::Done),
        _ => return None,
    })
}

async fn of_firewall(
    client: &Client,
    row: &Recording,
    (host, vmid): (&HostName, VmId),
    rest: &[&str],
) -> Option<Result<Said>> {
    let params = passed(row, &[]);
    let done = |outcome: Result<()>| outcome.map(|()| Said::Done);
    Some(match (row.method.as_str(), rest) {
        ("GET", ["options"]) => {
            client.firewall_options(host, vmid).await.map(|map| Said::Keys(map.into_iter().collect()))
        }
        ("PUT", ["options"]) => done(client.set_firewall_options(host, vmid, &params).await),
        ("GET", ["rules"]) => client.firewall_rules(host, vmid).await.map(|rows| Said::Rows(rows.len())),
        ("GET", ["rules", pos]) => client.firewall_rule(host, vmid, pos.parse().ok()?).await.map(|_| Said::Done),
        ("PUT", ["rules", pos]) => done(client.change_firewall_rule(host, vmid, pos.parse().ok()?, &params).await),
        ("POST", ["rules"]) => {
            let rule = NewRule {
                kind: text(row, "type")?,
                action: text(row, "action")?,
                enable: flag(row, "enable"),
                iface: text(row, "iface"),
                proto: text(row, "proto"),
                source: text(row, "source"),
                dest: text(row, "dest"),
                dport: text(row, "dport"),
                comment: text(row, "comment"),
            };
            done(client.add_firewall_rule(host, vmid, &rule).await)
        }
        _ => return None,
    })
}
