//! Can the guest's kubelet join with what the user-data wrote?

use std::collections::BTreeMap;

use serde::Deserialize;
use tenon_cloudinit::{Error, LeftOutReason, Seed, Templates, render};

use crate::read_back::{CloudConfig, seed, user_data, yaml};
use crate::sample::{CA, TOKEN, bare, full, map, texts};

const DROP_IN: &str = "/etc/systemd/system/kubelet.service.d/20-tenon.conf";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kubelet {
    api_version: String,
    kind: String,
    #[serde(rename = "providerID")]
    provider_id: String,
    #[serde(rename = "cpuCFSQuotaPeriod")]
    cpu_cfs_quota_period: String,
    shutdown_grace_period: String,
    feature_gates: BTreeMap<String, bool>,
    kube_reserved: BTreeMap<String, String>,
    register_with_taints: Vec<BTreeMap<String, String>>,
}

/// The flags of the command that systemd is left with: an empty `ExecStart` takes away those before it.
fn flags(user_data: &CloudConfig) -> BTreeMap<String, String> {
    let unit = user_data.content(DROP_IN);
    let commands: Vec<&str> = unit.lines().filter_map(|line| line.strip_prefix("ExecStart=")).collect();
    assert_eq!(commands.first(), Some(&""));
    let [_, command] = commands[..] else { panic!("not one command: {unit}") };
    let words = command.split(' ').skip(1);
    let pairs = words.map(|word| word.strip_prefix("--").and_then(|flag| flag.split_once('=')).unwrap());
    pairs.map(|(flag, value)| (flag.to_owned(), value.to_owned())).collect()
}

#[test]
fn the_kubelet_command_names_the_files_that_are_written() {
    let user_data = user_data(&full());
    let flags = flags(&user_data);
    let bootstrap = user_data.find(&flags["bootstrap-kubeconfig"]).unwrap();
    assert_eq!(bootstrap.permissions, "0600");
    assert_eq!(bootstrap.owner, "root:root");
    assert!(bootstrap.content.contains("server: https://10.0.0.1:6443"));
    assert!(bootstrap.content.contains(TOKEN));
    assert!(user_data.find(&flags["config"]).is_some());
    assert!(user_data.find(&flags["kubeconfig"]).is_none(), "the kubelet writes it, once it has its certificate");
    assert_eq!(flags["hostname-override"], user_data.hostname);
}

#[test]
fn the_kubelet_sets_only_labels_it_may_set_and_the_seed_says_which_are_missing() {
    let input = full();
    assert_eq!(
        flags(&user_data(&input))["node-labels"],
        "karpenter.sh/nodepool=default,topology.kubernetes.io/zone=pve1"
    );
    let Seed { labels_left_out, .. } = seed(&input);
    let [left_out] = &labels_left_out[..] else { panic!("{labels_left_out:?}") };
    assert_eq!(left_out.key, "node-role.kubernetes.io/worker");
    assert_eq!(left_out.reason, LeftOutReason::Reserved);
}

#[test]
fn the_kubelet_configuration_keeps_every_setting_in_the_kubelets_spelling() {
    let user_data = user_data(&full());
    let kubelet: Kubelet = yaml(user_data.content("/var/lib/kubelet/config.yaml"));
    assert_eq!(
        (kubelet.api_version.as_str(), kubelet.kind.as_str()),
        ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration")
    );
    assert_eq!(kubelet.provider_id, "proxmox://cluster-1/20001");
    assert_eq!((kubelet.cpu_cfs_quota_period.as_str(), kubelet.shutdown_grace_period.as_str()), ("50ms", "30s"));
    assert!(kubelet.feature_gates["CustomCPUCFSQuotaPeriod"]);
    assert_eq!(kubelet.kube_reserved, map(&[("cpu", "80m"), ("memory", "384Mi")]));
    let unregistered = map(&[("key", "karpenter.sh/unregistered"), ("effect", "NoExecute")]);
    let dedicated = map(&[("key", "dedicated"), ("value", "db"), ("effect", "NoSchedule")]);
    assert_eq!(kubelet.register_with_taints, [unregistered, dedicated]);
}

#[test]
fn the_kubelet_starts_after_its_unit_was_read_again() {
    let commands: Vec<String> = user_data(&full()).runcmd.iter().map(|words| words.join(" ")).collect();
    let kubelet = ["systemctl daemon-reload", "systemctl enable kubelet", "systemctl restart kubelet"];
    assert_eq!(commands[0], "systemctl enable --now qemu-guest-agent");
    assert_eq!(commands[commands.len() - 3..], kubelet);
}

#[test]
fn without_bootstrap_there_is_no_kubelet_file() {
    let user_data = user_data(&bare());
    let paths: Vec<&str> = user_data.write_files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["/etc/karpenter.yaml"]);
    assert_eq!(user_data.runcmd.len(), 1);
}

#[test]
fn files_with_secrets_are_for_root_only() {
    let user_data = user_data(&full());
    for file in &user_data.write_files {
        let secret = file.content.contains(TOKEN);
        assert_eq!(file.permissions, if secret { "0600" } else { "0644" }, "{}", file.path);
    }
    assert_eq!(user_data.find("/etc/karpenter.yaml").unwrap().permissions, "0600");
}

#[test]
fn hugepages_are_set_aside_on_the_first_boot_and_on_later_ones() {
    let user_data = user_data(&full());
    assert_eq!(user_data.content("/etc/sysctl.d/99-hugepages.conf"), "vm.nr_hugepages = 512\n");
    assert!(user_data.content("/etc/tmpfiles.d/99-hugepages.conf").ends_with("/nr_hugepages - - - - 1\n"));
    assert!(user_data.runcmd.contains(&texts(&["sysctl", "-p", "/etc/sysctl.d/99-hugepages.conf"])));
}

#[test]
fn the_context_holds_the_certificate_the_token_and_the_values() {
    let user_data = user_data(&full());
    let context = user_data.context();
    assert_eq!(context.kubernetes.rootca, CA);
    assert_eq!(user_data.content("/etc/kubernetes/pki/ca.crt"), CA);
    assert_eq!(context.kubernetes.bootstraptoken, TOKEN);
    assert_eq!(context.metadata.instanceid, "20001");
    assert_eq!(context.metadata.tags, ["karpenter", "no"]);
    assert_eq!(context.values["enabled"], "yes");
}

#[test]
fn keys_come_from_the_list_and_from_the_values_each_once() {
    let mut input = full();
    input.ssh_authorized_keys.push("ssh-rsa AAAAB3 b".to_owned());
    let [user] = &user_data(&input).users[..] else { panic!("one user") };
    assert_eq!(user.name, "karpenter");
    let expected = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 ops: on # call", "ssh-rsa AAAAB3 b", "ssh-rsa AAAAB3 a"];
    assert_eq!(user.ssh_authorized_keys, expected);
}

#[test]
fn what_could_never_join_is_refused_before_a_vm_is_made() {
    let with = |change: fn(&mut tenon_cloudinit::SeedInput)| {
        let mut input = full();
        change(&mut input);
        render(&input, &Templates::default()).unwrap_err()
    };
    let error = with(|input| input.identity.node_name = "a\nExecStart=/bin/sh".to_owned());
    assert!(matches!(error, Error::NodeName { .. }));
    let error = with(|input| input.bootstrap.as_mut().unwrap().api_server = "http://10.0.0.1".to_owned());
    assert!(matches!(error, Error::ApiServer { .. }));
    let error = with(|input| input.bootstrap.as_mut().unwrap().ca_pem = "not a certificate".to_owned());
    assert!(matches!(error, Error::ClusterCa));
    let error = with(|input| input.kubelet.kube_reserved.clear());
    assert!(matches!(error, Error::StaticCpuWithoutReserve));
}

#[test]
fn debug_output_of_input_and_seed_holds_no_secret() {
    let mut input = full();
    input.values.text.insert("k3sToken".to_owned(), "hunter2".to_owned());
    let shown = format!("{input:?} {:?}", seed(&input));
    assert!(shown.contains("k3sToken"), "{shown}");
    assert!(!shown.contains("hunter2") && !shown.contains("0123456789abcdef"), "{shown}");
}
