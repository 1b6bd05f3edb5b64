//! One Proxmox machine: how much it has.

use serde::Deserialize;
use tenon_model::HostName;

use crate::client::{Client, segment};
use crate::error::{Error, Result};
use crate::reply::{parse, whole};

/// What a host has, and what of it is in use right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStatus {
    /// Hardware threads.
    pub cpus: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Memory in use, in bytes, by whatever uses it.
    pub memory_used_bytes: u64,
}

#[derive(Deserialize)]
struct Wire {
    cpuinfo: Cpu,
    memory: Memory,
}

#[derive(Deserialize)]
struct Cpu {
    #[serde(deserialize_with = "whole")]
    cpus: u64,
}

#[derive(Deserialize)]
struct Memory {
    #[serde(deserialize_with = "whole")]
    total: u64,
    #[serde(deserialize_with = "whole")]
    used: u64,
}

impl Client {
    /// Reads one host's capacity. Needs `Sys.Audit` on it.
    pub async fn host_status(&self, host: &HostName) -> Result<HostStatus> {
        let action = format!("read the status of host {host}");
        let data = self.get(action.clone(), format!("/nodes/{}/status", segment(host))).await?;
        let wire: Wire = parse(data).map_err(|cause| Error::new(action, cause))?;
        Ok(HostStatus { cpus: wire.cpuinfo.cpus, memory_bytes: wire.memory.total, memory_used_bytes: wire.memory.used })
    }
}
