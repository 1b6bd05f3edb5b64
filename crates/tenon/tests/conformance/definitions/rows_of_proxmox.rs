//! Table: what the Proxmox kinds accept and refuse (ProxmoxNodeClass, ProxmoxTemplate, ProxmoxUnmanagedTemplate).

use serde_json::{Value, json};

use super::{Row, row};

pub(super) fn rows() -> Vec<Row> {
    [required(), texts(), lists(), class(), kubelet(), template(), image(), cards()].into_iter().flatten().collect()
}

fn required() -> Vec<Row> {
    let needs = |field, places| row(field, places, json!(["kept"]), json!(["gone"]));
    vec![
        needs("required instanceTemplateRef", "ProxmoxNodeClass spec"),
        needs("required kind", "ProxmoxNodeClass spec.instanceTemplateRef"),
        needs("required name", "ProxmoxNodeClass spec.instanceTemplateRef, ProxmoxNodeClass spec.securityGroups[]"),
        needs("required network", "ProxmoxTemplate spec"),
        needs("required sourceImage", "ProxmoxTemplate spec"),
        needs("required storageIDs", "ProxmoxTemplate spec"),
        needs("required bridge", "ProxmoxTemplate spec.network[]"),
        needs("required mapping", "ProxmoxTemplate spec.pciDevices[]"),
        needs("required url", "ProxmoxTemplate spec.sourceImage"),
    ]
}

fn texts() -> Vec<Row> {
    vec![
        row(
            "minLength",
            "ProxmoxNodeClass spec.instanceTemplateRef.name, ProxmoxNodeClass spec.region, ProxmoxTemplate \
             spec.description, ProxmoxTemplate spec.network[].address4, ProxmoxTemplate spec.network[].address6, \
             ProxmoxTemplate spec.network[].bridge, ProxmoxTemplate spec.network[].gateway4, ProxmoxTemplate \
             spec.network[].gateway6, ProxmoxTemplate spec.network[].name, ProxmoxTemplate spec.pciDevices[].mapping, \
             ProxmoxTemplate spec.region, ProxmoxTemplate spec.sourceImage.imageName, ProxmoxUnmanagedTemplate \
             spec.region, ProxmoxUnmanagedTemplate spec.templateName",
            json!(["x", " "]),
            json!([""]),
        ),
        row(
            "maxLength",
            "ProxmoxNodeClass spec.bootDevice.storage, ProxmoxNodeClass spec.securityGroups[].name",
            json!(["", "x".repeat(30)]),
            json!(["x".repeat(31)]),
        ),
        row(
            "maxLength",
            "ProxmoxNodeClass spec.resourcePool, ProxmoxTemplate spec.resourcePool, ProxmoxTemplate \
             spec.sourceImage.imageName",
            json!(["x".repeat(64)]),
            json!(["x".repeat(65)]),
        ),
        row(
            "pattern",
            "ProxmoxNodeClass spec.addresses.ranges[], ProxmoxNodeClass spec.addresses.exclude[]",
            json!(["10.0.0.0/24", "10.0.0.5-10.0.0.9/24", "fd00::1-fd00::ff/64", "FD00::/64"]),
            json!(["", "10.0.0.0/24,10.0.1.0/24", "host", "10.0.0.0 /24", "1".repeat(101)]),
        ),
        row(
            "pattern",
            "ProxmoxNodeClass spec.addresses.gateway",
            json!(["1.2.3.4", "192.168.100.100"]),
            json!(["", "fd00::1", "10.0.0.1/24", "router"]),
        ),
        row(
            "pattern",
            "ProxmoxNodeClass spec.addresses.gateway6, ProxmoxNodeClass spec.addresses.dns[]",
            json!(["::", "fe80::1", "FD00::1", "::ffff:10.0.0.1"]),
            json!(["", ":", "fd00::/64", "fe80::1%eth0"]),
        ),
        row(
            "pattern",
            "ProxmoxNodeClass spec.resourcePool, ProxmoxTemplate spec.resourcePool",
            json!(["k8s", "a/b", "a/b/c", "0.x_y-z", "a./b"]),
            json!(["", "a/b/c/d", "/a", "a/", "a//b", "-a", "a b"]),
        ),
    ]
}

fn lists() -> Vec<Row> {
    let tags = |count: usize| json!(vec!["x"; count]);
    let addresses = |count: usize| json!(vec!["10.0.0.0/24"; count]);
    let servers = |count: usize| json!(vec!["10.0.0.2"; count]);
    let groups = |count: usize| json!(vec![json!({ "name": "web" }); count]);
    let cards = |count: usize| json!(vec![json!({ "bridge": "vmbr0" }); count]);
    let devices = |count: usize| json!(vec![json!({ "mapping": "gpu" }); count]);
    vec![
        row(
            "maxItems",
            "ProxmoxNodeClass spec.tags, ProxmoxTemplate spec.tags, ProxmoxTemplate spec.cpu.flags",
            json!([tags(0), tags(10)]),
            json!([tags(11)]),
        ),
        row(
            "maxItems",
            "ProxmoxNodeClass spec.addresses.ranges",
            json!([addresses(0), addresses(32)]),
            json!([addresses(33)]),
        ),
        row("maxItems", "ProxmoxNodeClass spec.addresses.exclude", json!([addresses(256)]), json!([addresses(257)])),
        row("maxItems", "ProxmoxNodeClass spec.addresses.dns", json!([servers(8)]), json!([servers(9)])),
        row(
            "maxItems",
            "ProxmoxNodeClass spec.placementStrategy.excludedHosts",
            json!([tags(0), tags(64)]),
            json!([tags(65)]),
        ),
        row("maxItems", "ProxmoxUnmanagedTemplate spec.tags", json!([tags(10)]), json!([tags(11)])),
        row("maxItems", "ProxmoxNodeClass spec.securityGroups", json!([groups(0), groups(10)]), json!([groups(11)])),
        row("maxItems", "ProxmoxNodeClass spec.kubeletConfiguration.clusterDNS", json!([tags(3)]), json!([tags(4)])),
        row("maxItems", "ProxmoxTemplate spec.network", json!([cards(1), cards(6)]), json!([cards(7)])),
        row("maxItems", "ProxmoxTemplate spec.pciDevices", json!([devices(0), devices(6)]), json!([devices(7)])),
        row("minItems", "ProxmoxTemplate spec.network", json!([cards(1)]), json!([cards(0)])),
        row(
            "minItems",
            "ProxmoxTemplate spec.network[].dnsServers, ProxmoxTemplate spec.storageIDs, ProxmoxUnmanagedTemplate \
             spec.tags",
            json!([tags(1)]),
            json!([tags(0)]),
        ),
    ]
}

/// What must stay free on a host: a number, or a quantity without a minus.
const MIN_AVAILABLE: &str = "ProxmoxNodeClass spec.placementStrategy.minAvailable.cpu, ProxmoxNodeClass \
                             spec.placementStrategy.minAvailable.memory";

fn class() -> Vec<Row> {
    let size = "ProxmoxNodeClass spec.bootDevice.size";
    vec![
        row(
            "enum",
            "ProxmoxNodeClass spec.instanceTemplateRef.kind",
            json!(["ProxmoxTemplate", "ProxmoxUnmanagedTemplate"]),
            json!(["", "Template"]),
        ),
        row("enum", "ProxmoxNodeClass spec.metadataOptions.type", json!(["none", "cdrom"]), json!(["", "usb", "None"])),
        row(
            "enum",
            "ProxmoxNodeClass spec.placementStrategy.zoneBalance",
            json!(["Balanced", "AvailabilityFirst"]),
            json!(["", "balanced"]),
        ),
        row(
            "enum",
            "ProxmoxNodeClass spec.placementStrategy.hosts",
            json!(["Spread", "MaxMemory", "MaxCPU", "BalancedLoad", "RoundRobin"]),
            json!(["", "MaxCpu", "Random"]),
        ),
        row(
            "enum",
            "ProxmoxNodeClass spec.placementStrategy.goal",
            json!(["PackHosts", "SpreadHosts"]),
            json!(["", "Pack", "packHosts"]),
        ),
        row(
            "goal chooses hosts itself: leave hosts unset, or set Spread with SpreadHosts",
            "ProxmoxNodeClass spec.placementStrategy",
            json!([
                {},
                { "hosts": "MaxCPU" },
                { "goal": "PackHosts", "zoneBalance": "AvailabilityFirst", "excludedHosts": ["pve9"] },
                { "goal": "SpreadHosts" },
                { "goal": "SpreadHosts", "hosts": "Spread" },
            ]),
            json!([
                { "goal": "PackHosts", "hosts": "Spread" },
                { "goal": "PackHosts", "hosts": "MaxMemory" },
                { "goal": "SpreadHosts", "hosts": "RoundRobin" },
            ]),
        ),
        row(
            "pattern",
            "ProxmoxNodeClass spec.placementStrategy.excludedHosts[]",
            json!(["pve1", "PVE-2", "0", "x".repeat(63)]),
            json!(["", "-pve", "pve-", "pve.lan", "pve 1", "lab/pve1", "*", "x".repeat(64)]),
        ),
        row(
            "pattern",
            MIN_AVAILABLE,
            json!(["4", "500m", "16Gi", "+2", "1e3", ".5", 0, 16]),
            json!(["", "-1", "16GB", "all"]),
        ),
        row("minimum", MIN_AVAILABLE, json!([0, 17_179_869_184_i64]), json!([-1])),
        row(
            "enum",
            "ProxmoxNodeClass spec.cloneMode",
            json!(["Auto", "Linked", "Full"]),
            json!(["", "linked", "None"]),
        ),
        row(
            "pattern",
            "ProxmoxNodeClass spec.timeouts.launch, ProxmoxNodeClass spec.timeouts.registration",
            json!(["1s", "10m", "1h30m", "0h05m", "0s1m", "100s"]),
            json!(["", "0s", "0h0m0s", "10", "m", "1d", "1.5h", "-1m", "10m ", "500ms", "Never"]),
        ),
        row(
            r"pattern ^\d+(T|G|Ti|Gi)$",
            size,
            // A number skips the patterns.
            json!(["30G", "1T", "32Gi", "2Ti", "0G", 32_000_000_000_i64, 0, -5]),
            json!(["30", "30M", "1.5G", "+30G", "30g", "30GB", "30G "]),
        ),
        row(
            r"pattern ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            size,
            json!(["1G"]),
            json!(["lots", "", "30GB"]),
        ),
        row(
            "pattern",
            "ProxmoxNodeClass spec.securityGroups[].interface",
            // The pattern has no anchors.
            json!(["net0", "net31", "xnet0y"]),
            json!(["", "net", "eth0", "Net0"]),
        ),
        row(
            "set templateName, tags, or both",
            "ProxmoxUnmanagedTemplate spec",
            json!([{ "templateName": "x" }, { "tags": ["x"] }, { "templateName": "x", "tags": ["x"], "region": "r" }]),
            json!([{}, { "region": "r" }]),
        ),
    ]
}

fn kubelet() -> Vec<Row> {
    const NETWORK: &str = "ProxmoxNodeClass spec.metadataOptions.networkConfigVersion";
    const PERCENT: &str = "ProxmoxNodeClass spec.kubeletConfiguration.imageGCHighThresholdPercent, ProxmoxNodeClass \
                           spec.kubeletConfiguration.imageGCLowThresholdPercent";
    const PODS: &str = "ProxmoxNodeClass spec.kubeletConfiguration.maxPods";
    let too_large = || json!([2_147_483_648_i64]);
    vec![
        row("minimum", NETWORK, json!([1]), json!([0])),
        row("maximum", NETWORK, json!([2]), json!([3])),
        row("format", NETWORK, json!([1]), too_large()),
        row("minimum", PERCENT, json!([0]), json!([-1])),
        row("maximum", PERCENT, json!([100]), json!([101])),
        row("format", PERCENT, json!([50]), too_large()),
        row("minimum", PODS, json!([10]), json!([9])),
        row("maximum", PODS, json!([250]), json!([251])),
        row("format", PODS, json!([110]), too_large()),
        row(
            "enum",
            "ProxmoxNodeClass spec.kubeletConfiguration.cpuManagerPolicy",
            json!(["none", "static"]),
            json!(["", "dynamic"]),
        ),
        row(
            "enum",
            "ProxmoxNodeClass spec.kubeletConfiguration.topologyManagerPolicy",
            json!(["restricted", "best-effort", "none", "single-numa-node"]),
            json!(["", "strict"]),
        ),
        row(
            "enum",
            "ProxmoxNodeClass spec.kubeletConfiguration.topologyManagerScope",
            json!(["container", "pod"]),
            json!(["", "node"]),
        ),
    ]
}

fn template() -> Vec<Row> {
    let enums: [(&'static str, Value); 7] = [
        ("ProxmoxTemplate spec.agent.type", json!(["virtio", "isa"])),
        ("ProxmoxTemplate spec.bios", json!(["seabios", "ovmf"])),
        (
            "ProxmoxTemplate spec.cpu.type",
            json!(["host", "kvm64", "x86-64-v2", "x86-64-v2-AES", "x86-64-v3", "x86-64-v4"]),
        ),
        ("ProxmoxTemplate spec.machine", json!(["pc", "q35"])),
        ("ProxmoxTemplate spec.tpm.version", json!(["v1.2", "v2.0"])),
        ("ProxmoxTemplate spec.vga.type", json!(["none", "serial0", "std", "vmware"])),
        ("ProxmoxTemplate spec.network[].model", json!(["e1000", "e1000e", "rtl8139", "virtio", "vmxnet3"])),
    ];
    let mut rows: Vec<Row> =
        enums.into_iter().map(|(place, words)| row("enum", place, words, json!(["", "other", "Q35", "v2"]))).collect();
    rows.push(row("minimum", "ProxmoxTemplate spec.vga.memory", json!([4]), json!([3, 0])));
    rows.push(row("maximum", "ProxmoxTemplate spec.vga.memory", json!([512]), json!([513])));
    rows
}

fn image() -> Vec<Row> {
    vec![
        row(
            "pattern",
            "ProxmoxTemplate spec.sourceImage.url",
            json!([
                "https://images.example.com/a.qcow2",
                "http://a.io",
                "https://a-b.example.com/",
                "https://a.bc/x?y=z#w",
                "https://..example.com/a",
            ]),
            json!([
                "",
                "ftp://a.io/x",
                "https://a.io:8443/x",
                "https://10.0.0.1/x",
                "https://localhost/x",
                "https://user@a.io/x",
                "https://a.io?x=y",
                "https://a.b/x",
                "https://a.io/x y",
            ]),
        ),
        row(
            "minLength",
            "ProxmoxTemplate spec.sourceImage.checksum",
            json!(["x".repeat(32)]),
            json!(["", "x".repeat(31)]),
        ),
        row(
            "maxLength",
            "ProxmoxTemplate spec.sourceImage.checksum",
            json!(["x".repeat(128)]),
            json!(["x".repeat(129)]),
        ),
        row(
            "enum",
            "ProxmoxTemplate spec.sourceImage.checksumType",
            json!(["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]),
            json!(["", "SHA256", "crc32"]),
        ),
    ]
}

fn cards() -> Vec<Row> {
    vec![
        row(
            "self == 1 || ( self >= 576 && self <= 65520)",
            "ProxmoxTemplate spec.network[].mtu",
            json!([1, 576, 1500, 65_520]),
            json!([0, 2, 575, 65_521, -1]),
        ),
        row("minimum", "ProxmoxTemplate spec.network[].vlan", json!([1]), json!([0])),
        row("maximum", "ProxmoxTemplate spec.network[].vlan", json!([4094]), json!([4095])),
    ]
}
