//! What do the flags of a kubelet command say?

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::disk::Disk;
use super::trouble::Trouble;
use super::unit;

/// What a kubelet with an external cloud provider is registered with, until that provider has looked at it.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// Labels of Kubernetes' own that a kubelet may set; others with these domains stop it.
const RESERVED_DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];
const FREE_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const FREE_LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
];

/// The flags that matter for joining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    /// Where the kubeconfig for the first request lies.
    pub(crate) bootstrap_kubeconfig: Option<String>,
    /// Where the kubelet keeps its own.
    pub(crate) kubeconfig: String,
    /// Where its configuration lies; without one the kubelet's own defaults hold.
    pub(crate) config: Option<String>,
    pub(crate) hostname_override: Option<String>,
    pub(crate) node_labels: BTreeMap<String, String>,
    pub(crate) settings: Settings,
}

/// Settings that win over those of the configuration file, each as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) provider_id: Option<String>,
    pub(crate) taints: Option<Vec<Value>>,
    /// Comes on top of all others.
    pub(crate) cloud_taint: Option<Value>,
    pub(crate) max_pods: Option<u64>,
    pub(crate) kube_reserved: Option<BTreeMap<String, String>>,
    pub(crate) system_reserved: Option<BTreeMap<String, String>>,
    pub(crate) eviction_hard: Option<BTreeMap<String, String>>,
    pub(crate) client_ca_file: Option<String>,
}

impl Command {
    /// The command that systemd would run on this disk.
    pub(crate) fn find(disk: &Disk) -> Result<Self, Trouble> {
        Self::parse(&unit::kubelet_words(disk)?)
    }

    fn parse(words: &[String]) -> Result<Self, Trouble> {
        let flags = Flags::read(words);
        Ok(Self {
            bootstrap_kubeconfig: flags.text("bootstrap-kubeconfig"),
            // Without one a kubelet runs on its own and talks to nobody.
            kubeconfig: flags.text("kubeconfig").ok_or(Trouble::NoFlag("--kubeconfig"))?,
            config: flags.text("config"),
            hostname_override: flags.text("hostname-override").map(|name| name.trim().to_lowercase()),
            node_labels: flags.labels()?,
            settings: Settings::read(&flags)?,
        })
    }
}

impl Settings {
    fn read(flags: &Flags) -> Result<Self, Trouble> {
        let max_pods = flags.text("max-pods").map(|text| text.parse());
        let max_pods =
            max_pods.transpose().map_err(|_| Trouble::Flag { flag: "--max-pods", why: "it is not a number".into() })?;
        let is_external = flags.text("cloud-provider").as_deref() == Some("external");
        Ok(Self {
            provider_id: flags.text("provider-id"),
            taints: flags.text("register-with-taints").map(|text| taints(&text)).transpose()?,
            cloud_taint: is_external.then(|| json!({ "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" })),
            max_pods,
            kube_reserved: flags.text("kube-reserved").map(|text| pairs(&text, '=')),
            system_reserved: flags.text("system-reserved").map(|text| pairs(&text, '=')),
            eviction_hard: flags.text("eviction-hard").map(|text| pairs(&text, '<')),
            client_ca_file: flags.text("client-ca-file"),
        })
    }
}

/// Names and values, in the order of the command.
struct Flags(Vec<(String, String)>);

impl Flags {
    /// `--name=value` or `--name value`.
    fn read(words: &[String]) -> Self {
        let mut flags = Vec::new();
        let mut rest = words.iter().skip(1).peekable();
        while let Some(word) = rest.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (flag, rest.next_if(|next| !next.starts_with('-')).cloned().unwrap_or_default()),
            };
            flags.push((name.to_owned(), value));
        }
        Self(flags)
    }

    /// The last of a name wins; an empty one is none.
    fn text(&self, name: &str) -> Option<String> {
        let last = self.0.iter().rev().find(|(flag, _)| flag == name);
        last.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    }

    /// Labels of all `--node-labels` together.
    fn labels(&self) -> Result<BTreeMap<String, String>, Trouble> {
        let all = self.0.iter().filter(|(flag, _)| flag == "node-labels");
        let labels: BTreeMap<String, String> = all.flat_map(|(_, text)| pairs(text, '=')).collect();
        match labels.keys().find(|key| is_reserved(key)) {
            Some(key) => Err(Trouble::ReservedLabel(key.clone())),
            None => Ok(labels),
        }
    }
}

fn is_reserved(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |parent: &str| domain == parent || domain.ends_with(&format!(".{parent}"));
    RESERVED_DOMAINS.into_iter().any(is_in) && !FREE_DOMAINS.into_iter().any(is_in) && !FREE_LABELS.contains(&key)
}

/// `a=b,c=d`; a key without a value has an empty one.
fn pairs(text: &str, between: char) -> BTreeMap<String, String> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once(between).unwrap_or((pair, ""))).map(|(k, v)| (k.into(), v.into())).collect()
}

/// `key=value:Effect,key:Effect`.
fn taints(text: &str) -> Result<Vec<Value>, Trouble> {
    let parse = |taint: &str| {
        let (whole, effect) = taint.rsplit_once(':')?;
        let (key, value) = whole.split_once('=').unwrap_or((whole, ""));
        let mut taint = json!({ "key": key, "effect": effect });
        if !value.is_empty() {
            taint["value"] = json!(value);
        }
        ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect).then_some(taint)
    };
    let bad = |taint: &str| Trouble::Flag { flag: "--register-with-taints", why: format!("`{taint}` is not a taint") };
    text.split(',').map(str::trim).map(|taint| parse(taint).ok_or_else(|| bad(taint))).collect()
}

#[cfg(test)]
mod tests;
