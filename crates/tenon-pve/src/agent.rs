//! Speaks with the agent inside a guest. It answers only while the guest runs it: until then Proxmox waits three seconds
//! and refuses.

use std::net::IpAddr;

use http::Method;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client, Form};
use crate::error::{Cause, Error, Result};
use crate::guests::vm_path;
use crate::reply::{flag, whole, whole_or_none};
use crate::transport::TransportError;

/// A network interface, as the guest sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GuestInterface {
    /// Its name in the guest.
    pub name: String,
    /// Its MAC address, in lower case.
    #[serde(rename = "hardware-address")]
    pub mac: Option<String>,
    /// Its addresses.
    #[serde(rename = "ip-addresses", default)]
    pub addresses: Vec<GuestAddress>,
}

/// An address of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GuestAddress {
    /// The address, without the zone some guests add.
    #[serde(rename = "ip-address", deserialize_with = "address")]
    pub address: IpAddr,
    /// The length of its prefix.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub prefix: Option<u64>,
}

/// What a guest runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GuestOs {
    /// `debian`, `flatcar`, …
    pub id: Option<String>,
    /// Its name for people.
    #[serde(rename = "pretty-name")]
    pub name: Option<String>,
    /// Its kernel.
    #[serde(rename = "kernel-release")]
    pub kernel: Option<String>,
    /// `x86_64`, …
    pub machine: Option<String>,
}

/// A command in a guest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GuestExec {
    /// Whether it has ended.
    #[serde(deserialize_with = "flag")]
    pub exited: bool,
    /// How it ended.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub exitcode: Option<u64>,
    /// What it wrote.
    #[serde(rename = "out-data", default)]
    pub out: String,
    /// What it complained.
    #[serde(rename = "err-data", default)]
    pub err: String,
    /// Whether more was written than is told.
    #[serde(rename = "out-truncated", default, deserialize_with = "flag")]
    pub out_truncated: bool,
}

#[derive(Deserialize)]
struct Answer<T> {
    result: T,
}

impl Client {
    /// Asks whether the agent is there.
    pub async fn agent_ping(&self, host: &HostName, vmid: VmId) -> Result<()> {
        self.call(&agent_call((host, vmid), Method::POST, "ping")).await.map(drop)
    }

    /// The guest's interfaces with their addresses.
    pub async fn agent_interfaces(&self, host: &HostName, vmid: VmId) -> Result<Vec<GuestInterface>> {
        self.agent_read(host, vmid, "network-get-interfaces").await
    }

    /// What the guest runs.
    pub async fn agent_os(&self, host: &HostName, vmid: VmId) -> Result<GuestOs> {
        self.agent_read(host, vmid, "get-osinfo").await
    }

    /// The guest's name for itself.
    pub async fn agent_host_name(&self, host: &HostName, vmid: VmId) -> Result<String> {
        #[derive(Deserialize)]
        struct Name {
            #[serde(rename = "host-name")]
            name: String,
        }
        Ok(self.agent_read::<Name>(host, vmid, "get-host-name").await?.name)
    }

    /// Starts a program in the guest, without a shell, and tells its process id. A program that is not there costs five
    /// seconds and leaves the outcome open.
    pub async fn agent_exec(&self, host: &HostName, vmid: VmId, command: &[&str]) -> Result<u64> {
        #[derive(Deserialize)]
        struct Started {
            #[serde(deserialize_with = "whole")]
            pid: u64,
        }
        // The command is repeated, a word each time.
        let words: Vec<(&str, String)> = command.iter().map(|word| ("command", (*word).to_owned())).collect();
        let call = agent_call((host, vmid), Method::POST, "exec");
        if words.is_empty() {
            return Err(Error::new(
                call.action,
                Cause::NotSent(TransportError::Withheld("the command is empty".into())),
            ));
        }
        Ok(self.read::<Started>(Call { params: &words, ..call }).await?.pid)
    }

    /// The content of a file in the guest; nothing if there is no text in it. Proxmox hands out 16 MiB at most.
    pub async fn agent_read_file(&self, host: &HostName, vmid: VmId, path: &str) -> Result<String> {
        #[derive(Deserialize)]
        struct Content {
            #[serde(default)]
            content: String,
        }
        let form = Form::default().with("file", path);
        let call = Call { params: form.params(), ..agent_call((host, vmid), Method::GET, "file-read") };
        Ok(self.read::<Content>(call).await?.content)
    }

    /// How a program in the guest is doing. Its end is told once; whoever asks again is told that there is none.
    pub async fn agent_exec_status(&self, host: &HostName, vmid: VmId, pid: u64) -> Result<GuestExec> {
        let form = Form::default().with("pid", pid);
        self.read(Call { params: form.params(), ..agent_call((host, vmid), Method::GET, "exec-status") }).await
    }

    async fn agent_read<T: DeserializeOwned>(&self, host: &HostName, vmid: VmId, what: &str) -> Result<T> {
        Ok(self.read::<Answer<T>>(agent_call((host, vmid), Method::GET, what)).await?.result)
    }
}

fn agent_call((host, vmid): (&HostName, VmId), method: Method, what: &str) -> Call<'static> {
    let action = format!("run guest agent command {what} in VM {vmid} on host {host}");
    Call { action, method, path: format!("{}/agent/{what}", vm_path(host, vmid)), params: &[] }
}

/// `fe80::1%eth0` on some guests.
fn address<'de, D: Deserializer<'de>>(input: D) -> Result<IpAddr, D::Error> {
    let text = String::deserialize(input)?;
    text.split('%').next().unwrap_or_default().parse().map_err(D::Error::custom)
}
