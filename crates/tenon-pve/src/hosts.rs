//! Proxmox machines: which there are, how much one has, what hardware and networks it offers.

use http::Method;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tenon_model::HostName;

use crate::client::{Call, Client, Form, segment};
use crate::error::Result;
use crate::reply::{amount, amount_or_none, flag, host_name, plain, text_or_none, whole_or_none};

/// A machine of the cluster. What is `None` is not known: the machine is away, or the token may not see it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Host {
    /// Its name.
    #[serde(rename = "node", deserialize_with = "host_name")]
    pub name: HostName,
    /// `online`, `offline` or `unknown`.
    pub status: Option<String>,
    /// Its threads.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub maxcpu: Option<u64>,
    /// Its memory in bytes.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub maxmem: Option<u64>,
    /// The SHA-256 of its certificate.
    pub ssl_fingerprint: Option<String>,
}

/// What a host has, and what of it is in use right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStatus {
    /// Hardware threads.
    pub cpus: u64,
    /// Cores of all sockets; 0 if Proxmox does not say.
    pub cores: u64,
    /// Sockets; 0 if Proxmox does not say.
    pub sockets: u64,
    /// The model of its CPU; empty if Proxmox does not say.
    pub cpu_model: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Memory in use, in bytes, by whatever uses it.
    pub memory_used_bytes: u64,
    /// The release of Proxmox on it, such as `pve-manager/9.2.11/…`.
    pub release: Option<String>,
    /// The kernel it runs.
    pub kernel: Option<String>,
}

#[derive(Deserialize)]
struct Wire {
    cpuinfo: Cpu,
    memory: Memory,
    pveversion: Option<String>,
    kversion: Option<String>,
}

#[derive(Deserialize)]
struct Cpu {
    #[serde(deserialize_with = "amount")]
    cpus: u64,
    #[serde(default, deserialize_with = "amount_or_none")]
    cores: Option<u64>,
    #[serde(default, deserialize_with = "amount_or_none")]
    sockets: Option<u64>,
    #[serde(default, deserialize_with = "text_or_none")]
    model: Option<String>,
}

#[derive(Deserialize)]
struct Memory {
    #[serde(deserialize_with = "amount")]
    total: u64,
    #[serde(deserialize_with = "amount")]
    used: u64,
}

/// A network interface of a host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Interface {
    /// Its name; a single look at one leaves it out.
    #[serde(default)]
    pub iface: String,
    /// `bridge`, `eth`, `bond`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it is up.
    #[serde(default, deserialize_with = "flag")]
    pub active: bool,
    /// Its IPv4 address with the length of the prefix.
    pub cidr: Option<String>,
    /// Its IPv6 address with the length of the prefix.
    pub cidr6: Option<String>,
    /// Where IPv4 leaves its network.
    pub gateway: Option<String>,
    /// Where IPv6 leaves its network.
    pub gateway6: Option<String>,
    /// Its maximum packet, if it was set.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub mtu: Option<u64>,
    /// Whether a bridge divides by VLAN.
    #[serde(default, deserialize_with = "flag")]
    pub bridge_vlan_aware: bool,
}

/// A PCI device of a host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PciDevice {
    /// Its address, such as `0000:01:00.0`.
    pub id: String,
    /// The number of its maker, such as `0x10de`.
    #[serde(default, deserialize_with = "text_or_none")]
    pub vendor: Option<String>,
    /// Its number.
    #[serde(default, deserialize_with = "text_or_none")]
    pub device: Option<String>,
    /// The group it is passed through with, if it can be.
    #[serde(rename = "iommugroup", deserialize_with = "group", default)]
    pub iommu_group: Option<u64>,
}

/// A CPU model a VM may have on a host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CpuModel {
    /// Its name, as the option `cpu` takes it.
    pub name: String,
    /// Whether the cluster's people defined it.
    #[serde(default, deserialize_with = "flag")]
    pub custom: bool,
}

impl Client {
    /// The machines of the cluster, by name. Every token sees their names.
    pub async fn hosts(&self) -> Result<Vec<Host>> {
        let action = "list the hosts of the cluster".to_owned();
        let call = Call { action, method: Method::GET, path: "/nodes".to_owned(), params: &[] };
        let mut hosts: Vec<Host> = self.read(call).await?;
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(hosts)
    }

    /// Reads one host's capacity. Needs `Sys.Audit` on it.
    pub async fn host_status(&self, host: &HostName) -> Result<HostStatus> {
        let wire: Wire = self.read(host_call(host, format!("read the status of host {host}"), "status")).await?;
        Ok(HostStatus {
            cpus: wire.cpuinfo.cpus,
            cores: wire.cpuinfo.cores.unwrap_or_default(),
            sockets: wire.cpuinfo.sockets.unwrap_or_default(),
            cpu_model: wire.cpuinfo.model.unwrap_or_default(),
            memory_bytes: wire.memory.total,
            memory_used_bytes: wire.memory.used,
            release: wire.pveversion,
            kernel: wire.kversion,
        })
    }

    /// Networks of a host the token may see, by name; of one kind (`bridge`, `any_bridge`, …) if it is given.
    pub async fn interfaces(&self, host: &HostName, kind: Option<&str>) -> Result<Vec<Interface>> {
        let form = Form::default().with_some("type", kind);
        let call = host_call(host, format!("list the network interfaces of host {host}"), "network");
        let mut interfaces: Vec<Interface> = self.read(Call { params: form.params(), ..call }).await?;
        interfaces.sort_by(|a, b| a.iface.cmp(&b.iface));
        Ok(interfaces)
    }

    /// One network of a host. Needs `Sys.Audit` on it.
    pub async fn interface(&self, host: &HostName, name: &str) -> Result<Interface> {
        let action = format!("read network interface {name} of host {host}");
        let found: Interface = self.read(host_call(host, action, &format!("network/{}", segment(name)))).await?;
        Ok(Interface { iface: name.to_owned(), ..found })
    }

    /// PCI devices of a host, by address.
    pub async fn pci_devices(&self, host: &HostName) -> Result<Vec<PciDevice>> {
        let call = host_call(host, format!("list the PCI devices of host {host}"), "hardware/pci");
        let mut devices: Vec<PciDevice> = self.read(call).await?;
        devices.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(devices)
    }

    /// CPU models a VM may have on a host, by name.
    pub async fn cpu_models(&self, host: &HostName) -> Result<Vec<CpuModel>> {
        let call = host_call(host, format!("list the CPU models of host {host}"), "capabilities/qemu/cpu");
        let mut models: Vec<CpuModel> = self.read(call).await?;
        models.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(models)
    }
}

fn host_call(host: &HostName, action: String, what: &str) -> Call<'static> {
    Call { action, method: Method::GET, path: format!("/nodes/{}/{what}", segment(host)), params: &[] }
}

/// Proxmox says -1 for none.
fn group<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u64>, D::Error> {
    Ok(plain(&Value::deserialize(input)?).parse().ok())
}
