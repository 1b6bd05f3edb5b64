//! What must be known about a VM before its first boot?

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use tenon_model::VmId;

use crate::{Bootstrap, KubeletSettings, Network, NetworkConfigVersion};

/// All that a seed is made of. Plain data: nothing in it is looked up later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedInput {
    /// Who the VM is.
    pub identity: Identity,
    /// What it was sized to.
    pub resources: Resources,
    /// How many pods it was planned with; its kubelet is told so unless its settings say otherwise.
    pub pods: Option<u32>,
    /// How it reaches the world.
    pub network: Network,
    /// In which form the built-in network-config says so.
    pub network_config_version: NetworkConfigVersion,
    /// How its kubelet is set.
    pub kubelet: KubeletSettings,
    /// How its kubelet joins; without it the image brings its own way, and no kubelet file is written.
    pub bootstrap: Option<Bootstrap>,
    /// The version of the API server, for images that choose their kubelet by it. May be empty.
    pub kubernetes_version: String,
    /// Public keys of the user `karpenter`, in addition to those in `values`.
    pub ssh_authorized_keys: Vec<String>,
    /// The user's own values.
    pub values: Values,
}

impl SeedInput {
    /// A VM with a name and nothing else: no network, no bootstrap, the kubelet's own defaults.
    pub fn new(identity: Identity) -> SeedInput {
        SeedInput {
            identity,
            resources: Resources::default(),
            pods: None,
            network: Network::default(),
            network_config_version: NetworkConfigVersion::default(),
            kubelet: KubeletSettings::default(),
            bootstrap: None,
            kubernetes_version: String::new(),
            ssh_authorized_keys: Vec::new(),
            values: Values::default(),
        }
    }
}

/// Who a VM is. The name is the claim's, the VM's, the hostname and the Node's at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The id in the Proxmox cluster.
    pub vmid: VmId,
    /// The name of claim, VM and Node.
    pub node_name: String,
    /// The SMBIOS uuid; may be empty.
    pub instance_uuid: String,
    /// The size's name; may be empty.
    pub instance_type: String,
    /// `proxmox://<region>/<vmid>`; may be empty, and the kubelet then sets none.
    pub provider_id: String,
    /// The Proxmox cluster.
    pub region: String,
    /// The host.
    pub zone: String,
    /// The VM's tags.
    pub tags: Vec<String>,
    /// The name of the ProxmoxNodeClass; may be empty.
    pub node_class: String,
}

impl Identity {
    /// A VM of which only id and name are known.
    pub fn new(vmid: VmId, node_name: impl Into<String>) -> Identity {
        Identity {
            vmid,
            node_name: node_name.into(),
            instance_uuid: String::new(),
            instance_type: String::new(),
            provider_id: String::new(),
            region: String::new(),
            zone: String::new(),
            tags: Vec::new(),
            node_class: String::new(),
        }
    }
}

/// What a VM was sized to. The serialized names are those of `/etc/karpenter.yaml`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// Virtual CPUs.
    pub cpu: u32,
    /// Memory in bytes.
    #[serde(rename = "memory")]
    pub memory_bytes: u64,
    /// Pages of 1 GiB to set aside at boot.
    #[serde(rename = "hugepages1Gi", skip_serializing_if = "crate::yaml::is_zero")]
    pub hugepages_1gi: u32,
    /// Pages of 2 MiB to set aside at boot.
    #[serde(rename = "hugepages2Mi", skip_serializing_if = "crate::yaml::is_zero")]
    pub hugepages_2mi: u32,
}

/// What the user handed over for the templates. It often holds join secrets, so `Debug` shows the keys only.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
pub struct Values {
    /// Those that are text.
    #[serde(flatten)]
    pub text: BTreeMap<String, String>,
    /// Those that are not. Only templates see them.
    #[serde(skip)]
    pub binary: BTreeMap<String, Vec<u8>>,
}

impl From<BTreeMap<String, String>> for Values {
    fn from(text: BTreeMap<String, String>) -> Values {
        Values { text, binary: BTreeMap::new() }
    }
}

impl FromIterator<(String, Vec<u8>)> for Values {
    fn from_iter<I: IntoIterator<Item = (String, Vec<u8>)>>(entries: I) -> Values {
        let mut values = Values::default();
        for (key, value) in entries {
            match String::from_utf8(value) {
                Ok(text) => drop(values.text.insert(key, text)),
                Err(error) => drop(values.binary.insert(key, error.into_bytes())),
            }
        }
        values
    }
}

impl Values {
    /// The key that existing set-ups keep their public keys under, joined by commas.
    const SSH_AUTHORIZED_KEYS: &str = "SSHAuthorizedKeys";

    /// The public keys among the values.
    pub(crate) fn ssh_authorized_keys(&self) -> impl Iterator<Item = &str> {
        let joined = self.text.get(Values::SSH_AUTHORIZED_KEYS).map(String::as_str).unwrap_or_default();
        joined.split(',').map(str::trim).filter(|key| !key.is_empty())
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.text.keys().chain(self.binary.keys())).finish()
    }
}
