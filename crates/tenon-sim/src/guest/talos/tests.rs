//! Machine configurations of Talos, good and bad.

use std::collections::BTreeMap;

use super::super::access::Credential;
use super::super::command::Command;
use super::super::data_kind::DataKind;
use super::super::image::{read_kubeconfig, told_of_mode};
use super::super::kubelet_config::KubeletConfig;
use super::super::{cloud_init, trouble::Trouble};
use super::*;

const WORKER: &str = "version: v1alpha1
debug: false
machine:
  type: worker
  token: trustd.hush
  nodeLabels:
    karpenter.sh/nodepool: default
    zone: 1
  nodeTaints:
    karpenter.sh/unregistered: :NoExecute
    dedicated: db:NoSchedule
  kubelet:
    extraArgs:
      max-pods: 42
      node-labels: more=yes
    extraConfig:
      providerID: proxmox://cluster-1/20001
cluster:
  controlPlane:
    endpoint: https://10.0.0.1:6443
  token: abc123.0123456789abcdef
  ca:
    crt: Q0EK
---
apiVersion: v1alpha1
kind: ExtensionServiceConfig
";

fn booted(user_data: &str) -> (Disk, Vec<String>) {
    let meta = "instance-id: '7'\nlocal-hostname: Default-7F2C\n";
    let seed: BTreeMap<String, Vec<u8>> =
        [("user-data", user_data), ("meta-data", meta)].map(|(k, v)| (k.to_owned(), v.as_bytes().to_vec())).into();
    let mut disk = Disk::from_image("image");
    let told = cloud_init::apply(&seed, &mut disk);
    (disk, told)
}

fn kubelet(disk: &Disk) -> Result<(Command, KubeletConfig), Trouble> {
    let command = Command::find(disk)?;
    let config = KubeletConfig::read(disk, &command)?;
    Ok((command, config))
}

#[test]
fn a_worker_gets_the_kubelet_of_its_machine_configuration() {
    let (disk, told) = booted(WORKER);
    assert_eq!(told, ["read the machine configuration of a Talos worker for https://10.0.0.1:6443"]);
    let (command, config) = kubelet(&disk).unwrap();
    assert_eq!(command.hostname_override.as_deref(), Some("default-7f2c"));
    let labels = [("karpenter.sh/nodepool", "default"), ("more", "yes"), ("zone", "1")];
    assert_eq!(command.node_labels, labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    assert_eq!((config.max_pods, config.provider_id.as_deref()), (Some(42), Some("proxmox://cluster-1/20001")));
    let taints = json!([
        { "key": "dedicated", "value": "db", "effect": "NoSchedule" },
        { "key": "karpenter.sh/unregistered", "effect": "NoExecute" },
    ]);
    assert_eq!(json!(config.taints), taints);
    let path = command.bootstrap_kubeconfig.unwrap();
    let access = read_kubeconfig(&disk, &path, "--bootstrap-kubeconfig").unwrap();
    assert_eq!((access.server.as_str(), access.ca_pem.as_str()), ("https://10.0.0.1:6443", "CA\n"));
    assert_eq!(access.credential, Credential::Token("abc123.0123456789abcdef".into()));
    assert_eq!(told_of_mode(&disk, &path), None);
}

#[test]
fn a_name_in_the_configuration_wins_over_that_of_the_instance() {
    let named = WORKER.replace("  type: worker\n", "  type: worker\n  network:\n    hostname: named\n");
    let by_document = format!("{WORKER}---\napiVersion: v1alpha1\nkind: HostnameConfig\nhostname: named\n");
    for text in [named, by_document] {
        let (command, _) = kubelet(&booted(&text).0).unwrap();
        assert_eq!(command.hostname_override.as_deref(), Some("named"));
    }
}

#[test]
fn a_configuration_that_cannot_join_says_why() {
    for (old, new, word) in [
        ("type: worker", "type: controlplane", "only workers"),
        ("  token: abc123.0123456789abcdef\n", "", "no cluster.token"),
        ("crt: Q0EK", "crt: '!'", "not base64"),
        ("endpoint:", "x:", "no cluster.controlPlane.endpoint"),
        (":NoExecute", "", "karpenter.sh/unregistered has no effect"),
        ("max-pods: 42", "config: /x", "extraArgs set config"),
        ("debug: false", "debug: [", "cannot use"),
    ] {
        let (disk, told) = booted(&WORKER.replace(old, new));
        assert!(told.len() == 1 && told[0].contains(word) && !told[0].contains("abcdef"), "{told:?}");
        assert!(kubelet(&disk).is_err());
    }
}

#[test]
fn other_yaml_is_no_machine_configuration() {
    assert_ne!(DataKind::of(b"version: v1alpha1\nname: x\n"), DataKind::Talos);
    assert_ne!(DataKind::of(b"#cloud-config\nversion: v1alpha1\nmachine: {}\n"), DataKind::Talos);
}
