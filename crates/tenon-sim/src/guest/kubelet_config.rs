//! What does a kubelet's configuration file say about its Node?

use std::collections::BTreeMap;

use serde_json::Value;

use super::disk::Disk;
use super::trouble::Trouble;

const FLAG: &str = "--config";

/// The fields that reach the Node; quantities as they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KubeletConfig {
    pub(crate) provider_id: Option<String>,
    /// As the Node's spec takes them.
    pub(crate) taints: Vec<Value>,
    pub(crate) max_pods: Option<u64>,
    pub(crate) kube_reserved: BTreeMap<String, String>,
    pub(crate) system_reserved: BTreeMap<String, String>,
    /// Absent when the kubelet's own thresholds hold.
    pub(crate) eviction_hard: Option<BTreeMap<String, String>>,
}

impl KubeletConfig {
    /// The configuration at this path, if a kubelet would start with it.
    pub(crate) fn read(disk: &Disk, path: &str) -> Result<Self, Trouble> {
        if disk.file(path).is_none() {
            return Err(Trouble::NoFile { path: path.to_owned(), named_by: FLAG });
        }
        let text = disk.text(path).ok_or_else(|| Trouble::unreadable(path, "it is not text"))?;
        let config: Value =
            serde_saphyr::from_str(text).map_err(|error| Trouble::unreadable(path, error.to_string()))?;
        if config["kind"] != "KubeletConfiguration" {
            return Err(Trouble::unreadable(path, "its kind is not KubeletConfiguration"));
        }
        if let Some(ca) = config["authentication"]["x509"]["clientCAFile"].as_str().filter(|ca| !ca.is_empty())
            && disk.file(ca).is_none()
        {
            let named_by = "clientCAFile of the kubelet's configuration";
            return Err(Trouble::NoFile { path: ca.to_owned(), named_by });
        }
        Ok(Self {
            provider_id: config["providerID"].as_str().filter(|id| !id.is_empty()).map(str::to_owned),
            taints: config["registerWithTaints"].as_array().cloned().unwrap_or_default(),
            max_pods: config["maxPods"].as_u64(),
            kube_reserved: quantities(&config["kubeReserved"]),
            system_reserved: quantities(&config["systemReserved"]),
            eviction_hard: config["evictionHard"].is_object().then(|| quantities(&config["evictionHard"])),
        })
    }
}

/// Quantities may be written as texts or as numbers.
fn quantities(map: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    map.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::disk::File;
    use super::*;

    fn read(text: &str) -> Result<KubeletConfig, Trouble> {
        let mut disk = Disk::from_image("image");
        disk.write("/c", File::public(text));
        KubeletConfig::read(&disk, "/c")
    }

    #[test]
    fn the_fields_of_the_node_are_read() {
        let text = "kind: KubeletConfiguration\nproviderID: proxmox://a/1\nmaxPods: 50\nkubeReserved: {cpu: 1, \
                    memory: 1Gi}\nregisterWithTaints: [{key: a, effect: NoSchedule}]\n";
        let config = read(text).unwrap();
        assert_eq!(config.provider_id.as_deref(), Some("proxmox://a/1"));
        assert_eq!((config.max_pods, config.taints.len(), config.eviction_hard), (Some(50), 1, None));
        assert_eq!(config.kube_reserved, [("cpu", "1"), ("memory", "1Gi")].map(|(k, v)| (k.into(), v.into())).into());
    }

    #[test]
    fn a_configuration_a_kubelet_would_refuse_says_why() {
        for (text, word) in [
            ("kind: Other\n", "kind is not"),
            ("kind: [\n", "cannot read /c"),
            ("kind: KubeletConfiguration\nauthentication: {x509: {clientCAFile: /ca}}\n", "/ca, named by clientCAFile"),
        ] {
            let told = read(text).unwrap_err().story();
            assert!(told.contains(word), "{told}");
        }
    }
}
