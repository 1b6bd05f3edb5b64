//! Which VM do the tests render?

use std::collections::BTreeMap;

use tenon_cloudinit::{
    Bootstrap, Identity, Interface, KubeletSettings, Network, Resources, SeedInput, Taint, TaintEffect, Values,
};
use tenon_model::VmId;

pub(crate) const CA: &str = "-----BEGIN CERTIFICATE-----\nMIIB: not # real\nAAAA\n-----END CERTIFICATE-----\n";
pub(crate) const TOKEN: &str = "abc123.0123456789abcdef";

/// A VM of which nothing but id and name is known.
pub(crate) fn bare() -> SeedInput {
    SeedInput::new(Identity::new(VmId::try_from(20_001).unwrap(), "default-7f2c"))
}

pub(crate) fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

/// A VM that uses nearly everything.
pub(crate) fn full() -> SeedInput {
    let mut input = bare();
    input.identity.instance_uuid = "1f0a2b3c-0000-4000-8000-000000000001".to_owned();
    input.identity.instance_type = "4VCPU-8GB".to_owned();
    input.identity.provider_id = "proxmox://cluster-1/20001".to_owned();
    input.identity.region = "cluster-1".to_owned();
    input.identity.zone = "pve1".to_owned();
    input.identity.tags = texts(&["karpenter", "no"]);
    input.identity.node_class = "default".to_owned();
    input.resources = Resources { cpu: 4, memory_bytes: 8_589_934_592, hugepages_1gi: 1, hugepages_2mi: 512 };
    input.network = network();
    input.kubelet = kubelet();
    input.bootstrap = Some(bootstrap());
    input.kubernetes_version = "v1.36.1".to_owned();
    input.ssh_authorized_keys = texts(&["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 ops: on # call"]);
    input.values =
        Values::from(map(&[("SSHAuthorizedKeys", "ssh-rsa AAAAB3 a, ssh-rsa AAAAB3 b"), ("enabled", "yes")]));
    input
}

pub(crate) fn bootstrap() -> Bootstrap {
    Bootstrap { api_server: "https://10.0.0.1:6443".to_owned(), ca_pem: CA.to_owned(), token: TOKEN.parse().unwrap() }
}

fn network() -> Network {
    let interface = Interface {
        name: "eth0".to_owned(),
        mac: "BC:24:11:00:00:01".to_owned(),
        mtu: 1500,
        addresses4: texts(&["10.0.0.5/24"]),
        gateway4: Some("10.0.0.254".to_owned()),
        dhcp6: true,
        ..Interface::default()
    };
    Network { interfaces: vec![interface], search_domains: texts(&["example.com"]), name_servers: texts(&["10.0.0.2"]) }
}

fn kubelet() -> KubeletSettings {
    KubeletSettings {
        cpu_manager_policy: Some("static".to_owned()),
        cpu_cfs_quota_period: Some("50ms".to_owned()),
        shutdown_grace_period: Some("30s".to_owned()),
        cluster_dns: texts(&["10.96.0.10"]),
        max_pods: Some(110),
        fail_swap_on: Some(false),
        kube_reserved: map(&[("cpu", "80m"), ("memory", "384Mi")]),
        eviction_hard: map(&[("memory.available", "100Mi"), ("nodefs.available", "10%")]),
        register_with_taints: vec![Taint {
            key: "dedicated".to_owned(),
            value: "db".to_owned(),
            effect: TaintEffect::NoSchedule,
        }],
        node_labels: map(&[
            ("karpenter.sh/nodepool", "default"),
            ("node-role.kubernetes.io/worker", ""),
            ("topology.kubernetes.io/zone", "pve1"),
        ]),
        ..KubeletSettings::default()
    }
}
