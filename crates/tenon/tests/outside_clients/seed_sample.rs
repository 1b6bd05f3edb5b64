//! Which seeds are the outside readers given?

use std::collections::BTreeMap;

use serde::Deserialize;
use tenon_cloudinit::{Bootstrap, Identity, Interface, KubeletSettings, Network, Resources, SeedInput, Taint};
use tenon_cloudinit::{Seed, TaintEffect, Templates, Values, render};
use tenon_model::VmId;

/// The name of each file of a seed, and its bytes.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A seed as a reader sees it: files, and the image they are in.
pub(crate) struct Sample {
    pub(crate) files: Files,
    pub(crate) image: Vec<u8>,
}

impl Sample {
    fn of(seed: &Seed) -> anyhow::Result<Sample> {
        let files = seed.files().map(|(name, content)| (name.key().to_owned(), content.to_vec()));
        Ok(Sample { files: files.collect(), image: seed.iso()? })
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        std::str::from_utf8(&self.files[name]).expect("a rendered file is text")
    }
}

/// A VM of which nothing but id and name is known.
pub(crate) fn bare() -> anyhow::Result<Sample> {
    Sample::of(&render(&input()?, &Templates::default())?)
}

/// Examples of the guide whose user-data is a cloud-config.
pub(crate) const KUBEADM: &str = include_str!("../../../../examples/first-boot/kubeadm.yaml");
pub(crate) const K3S: &str = include_str!("../../../../examples/first-boot/k3s.yaml");

/// A Secret of an example.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default, rename = "stringData")]
    string_data: BTreeMap<String, String>,
}

/// An example: the templates come first, the values second.
pub(crate) fn example(text: &str) -> anyhow::Result<Sample> {
    let manifests: Vec<Manifest> = serde_saphyr::from_multiple(text)?;
    let [templates, values, ..] = manifests.as_slice() else { anyhow::bail!("the example has no two Secrets") };
    let contents = templates.string_data.iter().map(|(key, text)| (key.as_str(), text.as_bytes()));
    let mut input = full_input()?;
    input.values = Values::from(values.string_data.clone());
    Sample::of(&render(&input, &Templates::from_keys(contents))?)
}

/// A VM that uses nearly everything, with texts that a YAML reader takes for something else unless they are quoted.
pub(crate) fn full() -> anyhow::Result<Sample> {
    Sample::of(&render(&full_input()?, &Templates::default())?)
}

fn full_input() -> anyhow::Result<SeedInput> {
    let mut input = input()?;
    input.identity.instance_uuid = "1f0a2b3c-0000-4000-8000-000000000001".to_owned();
    input.identity.provider_id = "proxmox://cluster-1/20001".to_owned();
    // A region and a zone that are read as numbers, if they are read carelessly.
    input.identity.region = "1e3".to_owned();
    input.identity.zone = "0o17".to_owned();
    input.identity.tags = texts(&["karpenter", "no", "1:30", "0x1f", "2020-01-01", "~", "=", "1_000", ".5"]);
    input.resources = Resources { cpu: 4, memory_bytes: 8_589_934_592, hugepages_1gi: 1, hugepages_2mi: 512 };
    input.network = network();
    input.kubelet = kubelet();
    input.bootstrap = Some(Bootstrap {
        api_server: "https://10.0.0.1:6443".to_owned(),
        ca_pem: "-----BEGIN CERTIFICATE-----\nMIIB: not # real\nAAAA\n-----END CERTIFICATE-----\n".to_owned(),
        token: "abc123.0123456789abcdef".parse()?,
    });
    input.kubernetes_version = "v1.36.1".to_owned();
    input.ssh_authorized_keys = texts(&["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 ops: on # call"]);
    let values = [("on", "yes"), ("Null", "null"), ("lines", " a\n\tb\n\n"), ("accent", "é \u{2028} \u{7f}")];
    input.values = Values::from(BTreeMap::from(values.map(|(key, value)| (key.to_owned(), value.to_owned()))));
    Ok(input)
}

fn input() -> anyhow::Result<SeedInput> {
    Ok(SeedInput::new(Identity::new(VmId::try_from(20_001)?, "default-7f2c")))
}

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

/// A device with fixed addresses and one that asks for all of them.
fn network() -> Network {
    let fixed = Interface {
        name: "eth0".to_owned(),
        mac: "BC:24:11:00:00:01".to_owned(),
        mtu: 1400,
        addresses4: texts(&["10.0.0.5/24"]),
        gateway4: Some("10.0.0.254".to_owned()),
        addresses6: texts(&["fd00:1::5/64"]),
        gateway6: Some("fd00:1::1".to_owned()),
        ..Interface::default()
    };
    let asking = Interface {
        name: "eth1".to_owned(),
        mac: "BC:24:11:00:00:02".to_owned(),
        dhcp4: true,
        dhcp6: true,
        ..Interface::default()
    };
    Network {
        interfaces: vec![fixed, asking],
        search_domains: texts(&["example.com"]),
        name_servers: texts(&["10.0.0.2"]),
    }
}

fn kubelet() -> KubeletSettings {
    let taint = Taint { key: "dedicated".to_owned(), value: "on".to_owned(), effect: TaintEffect::NoSchedule };
    KubeletSettings {
        max_pods: Some(110),
        cluster_dns: texts(&["10.96.0.10"]),
        register_with_taints: vec![taint],
        node_labels: [("karpenter.sh/nodepool".to_owned(), "no".to_owned())].into(),
        ..KubeletSettings::default()
    }
}
