//! LXC containers: guests that are only there. They are listed, have a configuration, and keep their ids from others.

use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};

use crate::params::Call;
use crate::state::State;
use crate::wire::{Answer, Refusal, Reply};

/// A container that exists from the start.
#[derive(Clone, Debug)]
pub struct ContainerSpec {
    /// Its id.
    pub vmid: u32,
    /// The host it is on.
    pub host: String,
    /// The lines of its configuration.
    pub config: Vec<(String, String)>,
}

impl ContainerSpec {
    /// A container whose only card has these options, such as `name=eth0,bridge=vmbr0,ip=198.51.100.7/24`.
    pub fn new(vmid: u32, host: &str, card: &str) -> Self {
        let config = [("hostname", format!("ct{vmid}").as_str()), ("net0", card)].map(|(k, v)| (k.into(), v.into()));
        Self { vmid, host: host.into(), config: config.into() }
    }
}

impl State {
    /// Whether an id is in use, by a VM or a container.
    pub(crate) fn is_id_in_use(&self, vmid: u32) -> bool {
        self.vms.contains_key(&vmid) || self.config.containers.iter().any(|container| container.vmid == vmid)
    }

    /// Rows of `/cluster/resources` for the containers a caller may see.
    pub(crate) fn container_rows(&self, may_see: impl Fn(u32) -> bool) -> Vec<Value> {
        let seen = self.config.containers.iter().filter(|container| may_see(container.vmid));
        let row = |container: &ContainerSpec| {
            let name = container.config.iter().find(|(key, _)| key == "hostname").map(|(_, name)| name.as_str());
            json!({
                "id": format!("lxc/{}", container.vmid), "type": "lxc", "vmid": container.vmid, "node": container.host,
                "status": "running", "name": name, "template": 0, "maxcpu": 1, "maxmem": 536_870_912_u64,
            })
        };
        seen.map(row).collect()
    }
}

pub(crate) fn config(state: &mut State, call: &Call) -> Answer {
    let (host, vmid) = (call.node(), call.vmid());
    let found = state.config.containers.iter().find(|container| container.vmid == vmid && container.host == host);
    let found = found
        .ok_or_else(|| Refusal::failed(format!("Configuration file 'nodes/{host}/lxc/{vmid}.conf' does not exist")))?;
    let mut data: Map<String, Value> = found.config.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect();
    let digest: String = Sha1::digest(format!("{:?}", found.config)).iter().map(|byte| format!("{byte:02x}")).collect();
    data.insert("digest".into(), digest.into());
    Ok(Reply::data(data.into()))
}
