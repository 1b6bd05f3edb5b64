//! What do a kubelet's configuration file and its flags say about its Node? Flags win.

use std::collections::BTreeMap;

use serde_json::Value;

use super::command::{Command, Settings};
use super::disk::Disk;
use super::trouble::Trouble;

const FLAG: &str = "--config";
const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";

/// The fields that reach the Node; quantities as they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KubeletConfig {
    pub(crate) provider_id: Option<String>,
    /// As the Node's spec takes them.
    pub(crate) taints: Vec<Value>,
    pub(crate) max_pods: Option<u64>,
    pub(crate) kube_reserved: BTreeMap<String, String>,
    pub(crate) system_reserved: BTreeMap<String, String>,
    /// Whether the kubelet asks the cluster for the certificate of its own port.
    pub(crate) server_tls_bootstrap: bool,
    /// Absent when the kubelet's own thresholds hold.
    pub(crate) eviction_hard: Option<BTreeMap<String, String>>,
}

impl KubeletConfig {
    /// What the command comes to, if a kubelet would start with it.
    pub(crate) fn read(disk: &Disk, command: &Command) -> Result<Self, Trouble> {
        let settings = &command.settings;
        let (config, client_ca) = match &command.config {
            Some(path) => Self::from_file(disk, path)?,
            None => (Self::default(), None),
        };
        let named_by = "the kubelet's configuration as the authority of its clients";
        if let Some(path) = settings.client_ca_file.clone().or(client_ca).filter(|path| disk.file(path).is_none()) {
            return Err(Trouble::NoFile { path, named_by });
        }
        Ok(config.with(settings.clone()))
    }

    fn with(self, settings: Settings) -> Self {
        let mut taints = settings.taints.unwrap_or(self.taints);
        taints.extend(settings.cloud_taint);
        Self {
            provider_id: settings.provider_id.or(self.provider_id),
            taints,
            max_pods: settings.max_pods.or(self.max_pods),
            kube_reserved: settings.kube_reserved.unwrap_or(self.kube_reserved),
            system_reserved: settings.system_reserved.unwrap_or(self.system_reserved),
            server_tls_bootstrap: self.server_tls_bootstrap,
            eviction_hard: settings.eviction_hard.or(self.eviction_hard),
        }
    }

    /// The file's configuration, and the file that it names as the authority of the kubelet's clients.
    fn from_file(disk: &Disk, path: &str) -> Result<(Self, Option<String>), Trouble> {
        if disk.file(path).is_none() {
            return Err(Trouble::NoFile { path: path.to_owned(), named_by: FLAG });
        }
        let text = disk.text(path).ok_or_else(|| Trouble::unreadable(path, "it is not text"))?;
        let config: Value =
            serde_saphyr::from_str(text).map_err(|error| Trouble::unreadable(path, error.to_string()))?;
        if config["kind"] != "KubeletConfiguration" {
            return Err(Trouble::unreadable(path, "its kind is not KubeletConfiguration"));
        }
        if config["apiVersion"] != API_VERSION {
            return Err(Trouble::unreadable(path, format!("its apiVersion is not {API_VERSION}")));
        }
        let client_ca = config["authentication"]["x509"]["clientCAFile"].as_str().filter(|ca| !ca.is_empty());
        let config_of_node = Self {
            provider_id: config["providerID"].as_str().filter(|id| !id.is_empty()).map(str::to_owned),
            taints: config["registerWithTaints"].as_array().cloned().unwrap_or_default(),
            max_pods: config["maxPods"].as_u64(),
            kube_reserved: quantities(&config["kubeReserved"]),
            system_reserved: quantities(&config["systemReserved"]),
            server_tls_bootstrap: config["serverTLSBootstrap"].as_bool().unwrap_or_default(),
            eviction_hard: config["evictionHard"].is_object().then(|| quantities(&config["evictionHard"])),
        };
        Ok((config_of_node, client_ca.map(str::to_owned)))
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

    const KIND: &str = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

    fn command(settings: Settings) -> Command {
        Command {
            bootstrap_kubeconfig: None,
            kubeconfig: "/k".into(),
            config: Some("/c".into()),
            hostname_override: None,
            node_labels: BTreeMap::new(),
            settings,
        }
    }

    fn read(text: &str, settings: Settings) -> Result<KubeletConfig, Trouble> {
        let mut disk = Disk::from_image("image");
        disk.write("/c", File::public(text));
        KubeletConfig::read(&disk, &command(settings))
    }

    const FILE: &str = "providerID: proxmox://a/1\nmaxPods: 50\nkubeReserved: {cpu: 1, memory: 1Gi}\n\
                        registerWithTaints: [{key: a, effect: NoSchedule}]\n";

    #[test]
    fn the_fields_of_the_node_are_read() {
        let config = read(&format!("{KIND}{FILE}"), Settings::default()).unwrap();
        assert_eq!(config.provider_id.as_deref(), Some("proxmox://a/1"));
        assert_eq!((config.max_pods, config.taints.len(), config.eviction_hard), (Some(50), 1, None));
        assert_eq!(config.kube_reserved, [("cpu", "1"), ("memory", "1Gi")].map(|(k, v)| (k.into(), v.into())).into());
    }

    #[test]
    fn flags_win_over_the_file_each_as_a_whole() {
        let settings = Settings {
            max_pods: Some(7),
            taints: Some(vec![]),
            cloud_taint: Some(Value::Null),
            kube_reserved: Some([("cpu".into(), "2".into())].into()),
            ..Settings::default()
        };
        let config = read(&format!("{KIND}{FILE}"), settings).unwrap();
        assert_eq!((config.max_pods, config.provider_id.as_deref()), (Some(7), Some("proxmox://a/1")));
        assert_eq!(config.taints, [Value::Null], "the one for the cloud provider comes on top");
        assert_eq!(config.kube_reserved, [("cpu".into(), "2".into())].into());
    }

    #[test]
    fn without_a_file_the_flags_are_all_there_is() {
        let settings = Settings { provider_id: Some("p".into()), ..Settings::default() };
        let command = Command { config: None, ..command(settings) };
        let config = KubeletConfig::read(&Disk::from_image("image"), &command).unwrap();
        assert_eq!(config, KubeletConfig { provider_id: Some("p".into()), ..KubeletConfig::default() });
    }

    #[test]
    fn a_configuration_a_kubelet_would_refuse_says_why() {
        for (text, word) in [
            ("kind: Other\n", "kind is not"),
            ("kind: KubeletConfiguration\n", "apiVersion is not"),
            ("kind: [\n", "cannot read /c"),
            (&format!("{KIND}authentication: {{x509: {{clientCAFile: /ca}}}}\n"), "/ca, named by the kubelet's"),
        ] {
            let told = read(text, Settings::default()).unwrap_err().story();
            assert!(told.contains(word), "{told}");
        }
    }
}
