//! What a VM is to be, and what of one that is there differs from it.

use std::collections::BTreeMap;

use serde_json::json;
use tenon_api::ProxmoxTemplateSpec;
use tenon_model::{Place, Seconds, TemplateBuild, TemplateStep};
use tenon_pve::{TemplateMark, VmConfig};

use super::desired::{DesiredTemplate, Difference};

fn spec() -> ProxmoxTemplateSpec {
    serde_json::from_value(json!({
        "sourceImage": { "url": "https://images.example/debian.qcow2" }, "storageIDs": ["fast"],
        "bios": "ovmf", "tpm": {}, "resourcePool": "team",
        "cpu": { "type": "host", "flags": ["+aes", "-pcid"] }, "vga": { "type": "std", "memory": 64 },
        "agent": { "enabled": true, "type": "isa", "fsTrimClonedDisks": true },
        "network": [
            { "bridge": "vmbr0", "address4": "10.0.0.0/24", "gateway4": "10.0.0.1", "dnsServers": ["10.0.0.2", "10.0.0.3"] },
            { "name": "net3", "bridge": "vmbr1", "model": "e1000", "vlan": 7, "firewall": false },
        ],
        "pciDevices": [{ "mapping": "gpu", "mdev": "nvidia-63", "pcie": true, "xvga": false }],
        "tags": ["Zeta", "alpha"], "onBoot": false,
    }))
    .unwrap()
}

fn build() -> TemplateBuild {
    TemplateBuild {
        place: Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() },
        vmid: "1000".parse().unwrap(),
        number: "17".to_owned(),
        image_storage: "images".to_owned(),
        image_name: "debian-1.qcow2".to_owned(),
        disk_storage: "fast".to_owned(),
        shared: false,
        step: TemplateStep::Create,
        attempt: 0,
        upid: None,
        uuid: "9e01f0b4-0000-8000-8000-000000000001".to_owned(),
        in_place: None,
        started_at: Seconds(0),
        last_progress_at: Seconds(0),
        downloaded: false,
        ordered_at: None,
        certified: false,
        adopted: false,
        retired: false,
        host_gone_since: None,
        pool: None,
        clones: None,
        error: None,
        progress: None,
    }
}

fn with<T>(spec: &ProxmoxTemplateSpec, ask: impl FnOnce(&DesiredTemplate<'_>) -> T) -> T {
    let build = build();
    let mark = TemplateMark { cluster: "c".to_owned(), template: "t".to_owned(), vmid: build.vmid };
    ask(&DesiredTemplate { spec, name: "debian", build: &build, mark: &mark })
}

#[test]
fn a_vm_is_created_with_what_proxmox_takes_and_without_tags() {
    let options: BTreeMap<String, String> = with(&spec(), |desired| desired.creation().into_iter().collect());
    let said = |key: &str| options.get(key).map(String::as_str);
    for (key, text) in [
        ("scsi0", "fast:0,import-from=images:import/debian-1.qcow2,iothread=1"),
        ("efidisk0", "fast:0,efitype=4m"),
        ("tpmstate0", "fast:4,version=v2.0"),
        ("smbios1", "uuid=9e01f0b4-0000-8000-8000-000000000001"),
        ("pool", "team"),
        ("cpu", "cputype=host,flags=+aes;-pcid"),
        ("vga", "type=std,memory=64"),
        ("agent", "enabled=1,fstrim_cloned_disks=1,type=isa"),
        ("net0", "model=virtio,bridge=vmbr0,mtu=1500"),
        ("net3", "model=e1000,bridge=vmbr1,firewall=0,tag=7"),
        ("ipconfig0", "ip=10.0.0.0/24,gw=10.0.0.1"),
        ("ipconfig3", "ip=dhcp,ip6=auto"),
        ("nameserver", "10.0.0.2 10.0.0.3"),
        ("hostpci0", "mapping=gpu,mdev=nvidia-63,pcie=1,x-vga=0"),
        ("onboot", "0"),
        ("machine", "q35"),
        ("bios", "ovmf"),
    ] {
        assert_eq!(said(key), Some(text), "{key}");
    }
    assert_eq!(said("tags"), None);
}

/// What Proxmox shows of a VM that was created so.
fn stored(edit: impl FnOnce(&mut Vec<String>)) -> VmConfig {
    let is_plain = |key: &str| !matches!(key, "net0" | "net3" | "description");
    let mut lines: Vec<String> = with(&spec(), |desired| {
        let kept = desired.kept().into_iter().filter(|(key, _)| is_plain(key));
        kept.map(|(key, text)| format!("{key}: {text}")).collect()
    });
    lines.push("net0: virtio=BC:24:11:5C:2F:10,bridge=vmbr0,mtu=1500".to_owned());
    lines.push("net3: e1000=BC:24:11:5C:2F:13,bridge=vmbr1,firewall=0,tag=7".to_owned());
    lines.push("digest: abc".to_owned());
    edit(&mut lines);
    VmConfig::from_lines(&lines.join("\n")).unwrap()
}

fn difference(config: &VmConfig) -> Difference {
    let mut difference = with(&spec(), |desired| desired.difference(config));
    // A description has several lines, which a file of lines does not.
    difference.set.retain(|(key, _)| key != "description");
    difference
}

#[test]
fn what_proxmox_gives_back_in_its_own_spelling_is_no_difference() {
    assert_eq!(difference(&stored(|_| ())), Difference::default());
}

#[test]
fn only_what_differs_is_written_and_a_card_keeps_its_address() {
    let edited = stored(|lines| {
        lines.retain(|line| !line.starts_with("onboot") && !line.starts_with("net0"));
        lines.push("net0: virtio=BC:24:11:5C:2F:10,bridge=vmbr0,mtu=1500,tag=9".to_owned());
        lines.push("net1: virtio=BC:24:11:5C:2F:11,bridge=vmbr0".to_owned());
        lines.push("hookscript: local:snippets/x.pl".to_owned());
    });
    let found = difference(&edited);
    let net0 = "model=virtio,bridge=vmbr0,mtu=1500,macaddr=BC:24:11:5C:2F:10".to_owned();
    assert_eq!(found.set, [("net0".to_owned(), net0), ("onboot".to_owned(), "0".to_owned())]);
    assert_eq!(found.delete, ["net1"], "keys of people are left alone");
    assert!(found.params(&edited).contains(&("digest".to_owned(), "abc".to_owned())));
}
