//! What a VM's first-boot data is made of: class, size, claim, and what Proxmox says of its cards.

use serde_json::{Value, json};
use tenon_api::{NodeClaim, ProxmoxNodeClass};
use tenon_cloudinit::{Bootstrap, NetworkConfigVersion, SeedInput};
use tenon_controllers::first_boot::{SeedFacts, Sources, VmFacts, interfaces, render_seed, seed_input};
use tenon_model::{InstanceType, Quantity, VmId};
use tenon_pve::{Interface, VmConfig};

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn config(keys: &Value) -> VmConfig {
    let lines = keys.as_object().unwrap().iter().map(|(key, value)| format!("{key}: {}", value.as_str().unwrap()));
    VmConfig::from_lines(&lines.collect::<Vec<_>>().join("\n")).unwrap()
}

fn bridge(row: Value) -> Interface {
    read(row)
}

fn class(spec: &Value) -> ProxmoxNodeClass {
    let mut whole = json!({ "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } });
    whole.as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap());
    read(json!({ "metadata": { "name": "default" }, "spec": whole }))
}

fn claim() -> NodeClaim {
    read(json!({
        "metadata": { "name": "default-7f2c", "labels": { "karpenter.sh/nodepool": "default" } },
        "spec": {
            "requirements": [],
            "taints": [{ "key": "a", "value": "b", "effect": "NoSchedule" }],
            "startupTaints": [{ "key": "c", "effect": "NoExecute" }],
            "nodeClassRef": { "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "default" },
        },
    }))
}

fn size() -> InstanceType {
    let mut size = InstanceType::built_in().into_iter().find(|size| size.name == "c1.1VCPU-2GB").unwrap();
    size.capacity.add(&tenon_model::Resources::default().with("hugepages-2Mi", Quantity::whole(64 << 20)));
    size
}

fn input(class: &ProxmoxNodeClass, keys: &Value) -> SeedInput {
    let (claim, size) = (claim(), size());
    let sources = Sources::default();
    with_facts(class, (&claim, &size), &sources, |facts, vm| seed_input(facts, vm, &config(keys)))
}

fn with_facts<T>(
    class: &ProxmoxNodeClass,
    (claim, instance_type): (&NodeClaim, &InstanceType),
    sources: &Sources,
    act: impl FnOnce(&SeedFacts<'_>, &VmFacts) -> T,
) -> T {
    let ca_pem = "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n".to_owned();
    let token = "abc123.0123456789abcdef".parse().unwrap();
    let facts = SeedFacts {
        claim,
        class,
        instance_type,
        bootstrap: Bootstrap { api_server: "https://10.0.0.1:6443".to_owned(), ca_pem, token },
        kubernetes_version: "v1.36.1".to_owned(),
        sources,
        bridges: &[],
    };
    let vmid = VmId::try_from(20_001).unwrap();
    let vm = VmFacts { vmid, uuid: "u".to_owned(), region: "lab".to_owned(), host: "pve1".to_owned() };
    act(&facts, &vm)
}

#[test]
fn cards_are_listed_by_number_whatever_their_model() {
    let cards = interfaces(
        &config(&json!({
            "net10": "e1000=BC:24:11:00:00:10,bridge=vmbr1",
            "net2": "virtio=BC:24:11:00:00:02,bridge=vmbr0,mtu=9000",
            "net0": "model=rtl8139,macaddr=BC:24:11:00:00:00,bridge=vmbr0",
            "ipconfig0": "ip=dhcp,ip6=auto",
            "ipconfig2": "ip=10.0.0.5/24,gw=10.0.0.1,ip6=fd00::5/64,gw6=fd00::1",
        })),
        &[],
    );
    let names: Vec<&str> = cards.iter().map(|card| card.name.as_str()).collect();
    assert_eq!(names, ["eth0", "eth2", "eth10"]);
    assert_eq!((cards[0].mac.as_str(), cards[0].mtu), ("BC:24:11:00:00:00", 1500));
    assert!(cards[0].dhcp4 && cards[0].slaac && !cards[0].dhcp6);
    assert_eq!((cards[1].addresses4.as_slice(), cards[1].mtu), (&["10.0.0.5/24".to_owned()][..], 9000));
    assert_eq!(cards[1].gateway6.as_deref(), Some("fd00::1"));
    assert!(!cards[2].dhcp4, "of a card of which nothing is said, nothing is said");
}

#[test]
fn a_card_takes_mtu_and_addresses_of_a_bridge_that_is_up() {
    let up = bridge(json!({
        "iface": "vmbr0", "type": "bridge", "active": 1, "mtu": "9000", "cidr": "10.0.0.1/24", "gateway": "10.0.0.254",
        "cidr6": "fd00::1/64", "gateway6": "fd00::fe",
    }));
    let down = bridge(json!({ "iface": "vmbr1", "type": "bridge", "mtu": "4000", "cidr": "10.1.0.1/24" }));
    let keys = json!({
        "net0": "virtio=BC:24:11:00:00:00,bridge=vmbr0,mtu=1",
        "net1": "virtio=BC:24:11:00:00:01,bridge=vmbr1",
        "net2": "virtio=BC:24:11:00:00:02,bridge=vmbr0,mtu=1400",
    });
    let cards = interfaces(&config(&keys), &[up, down]);
    assert_eq!(cards.iter().map(|card| card.mtu).collect::<Vec<_>>(), [9000, 1500, 1400]);
    assert_eq!(cards[0].node_address4.as_deref(), Some("10.0.0.1/24"));
    assert_eq!(
        (cards[0].node_address6.as_deref(), cards[0].node_gateway6.as_deref()),
        (Some("fd00::1/64"), Some("fd00::fe"))
    );
    assert_eq!(cards[1].node_address4, None);
}

#[test]
fn every_kubelet_setting_of_a_class_reaches_the_guest() {
    let kubelet = json!({
        "cpuManagerPolicy": "static", "cpuCFSQuota": false, "cpuCFSQuotaPeriod": "50ms",
        "topologyManagerPolicy": "restricted", "topologyManagerScope": "pod", "imageGCHighThresholdPercent": 90,
        "imageGCLowThresholdPercent": 70, "shutdownGracePeriod": "1m", "allowedUnsafeSysctls": ["net.*"],
        "clusterDNS": ["10.96.0.10"], "maxPods": 30, "failSwapOn": false,
    });
    let class = class(&json!({ "kubeletConfiguration": kubelet, "metadataOptions": { "type": "cdrom" } }));
    let templates = [("user-data", &b"{{ toJson .Kubernetes.KubeletConfiguration }}"[..])];
    let sources = Sources { templates: tenon_cloudinit::Templates::from_keys(templates), ..Sources::default() };
    let seed = with_facts(&class, (&claim(), &size()), &sources, |facts, vm| {
        render_seed(facts, vm, &config(&json!({}))).unwrap()
    });
    let seen: Value = serde_json::from_slice(&seed.user_data).unwrap();
    let expected = json!({
        "CPUManagerPolicy": "static", "CPUCFSQuota": false, "CPUCFSQuotaPeriod": "50ms",
        "TopologyManagerPolicy": "restricted", "TopologyManagerScope": "pod", "ImageGCHighThresholdPercent": 90,
        "ImageGCLowThresholdPercent": 70, "ShutdownGracePeriod": "1m0s", "AllowedUnsafeSysctls": ["net.*"],
        "ClusterDNS": ["10.96.0.10"], "MaxPods": 30, "FailSwapOn": false, "ProviderID": "proxmox://lab/20001",
        "KubeReserved": { "cpu": "20m", "memory": "256Mi" }, "SystemReserved": { "cpu": "10m", "memory": "64Mi" },
        "EvictionHard": { "memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "15%" },
        "RegisterWithTaints": [
            { "Key": "karpenter.sh/unregistered", "Value": "", "Effect": "NoExecute" },
            { "Key": "a", "Value": "b", "Effect": "NoSchedule" },
            { "Key": "c", "Value": "", "Effect": "NoExecute" },
        ],
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&seen[field], value, "{field}");
    }
}

#[test]
fn size_tags_and_resolvers_are_what_templates_see() {
    let class =
        class(&json!({ "tags": ["a", "b"], "metadataOptions": { "type": "cdrom", "networkConfigVersion": 1 } }));
    let input = input(&class, &json!({ "nameserver": "10.0.0.2 10.0.0.3", "searchdomain": "example.com" }));
    assert_eq!(input.identity.tags, ["a", "b"]);
    assert_eq!(input.network.name_servers, ["10.0.0.2", "10.0.0.3"]);
    assert_eq!(input.network.search_domains, ["example.com"]);
    assert_eq!((input.resources.cpu, input.resources.hugepages_2mi, input.resources.hugepages_1gi), (1, 32, 0));
    assert_eq!(input.network_config_version, NetworkConfigVersion::One);
    assert_eq!((input.kubelet.max_pods, input.pods), (None, Some(64)), "the template's object has what the class says");
}

#[test]
fn an_error_names_the_secret_the_key_and_the_place() {
    let templates = [("network-config", &b"a: b\nc: {{ nosuch }}\n"[..])];
    let templates = tenon_cloudinit::Templates::from_keys(templates);
    let sources = Sources { templates, origin: "Secret kube-system/worker".to_owned(), ..Sources::default() };
    let class = class(&json!({ "metadataOptions": { "type": "cdrom" } }));
    let error = with_facts(&class, (&claim(), &size()), &sources, |facts, vm| {
        render_seed(facts, vm, &config(&json!({}))).unwrap_err()
    });
    let expected = "Secret kube-system/worker, key network-config, line 2, column 7: function \"nosuch\" not defined";
    assert_eq!(error, expected);
}
