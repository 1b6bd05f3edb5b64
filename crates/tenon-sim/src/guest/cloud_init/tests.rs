//! cloud-init's doings with seeds, good and bad.

use super::super::disk::File;
use super::*;

fn seed(user_data: &str) -> BTreeMap<String, Vec<u8>> {
    let meta = "instance-id: '7'\nlocal-hostname: from-meta\n";
    [("user-data", user_data), ("meta-data", meta)].map(|(k, v)| (k.to_owned(), v.as_bytes().to_vec())).into()
}

fn with_vendor(user_data: &str, vendor_data: &str) -> (Disk, Vec<String>) {
    let (mut seed, mut disk) = (seed(user_data), Disk::from_image("image"));
    seed.insert("vendor-data".to_owned(), vendor_data.as_bytes().to_vec());
    let told = apply(&seed, &mut disk);
    (disk, told)
}

#[test]
fn files_are_written_with_mode_owner_and_decoded_content() {
    let mut disk = Disk::from_image("image");
    let text = "#cloud-config\nwrite_files:\n- path: /a\n  permissions: '0600'\n  content: |\n    one\n- path: /b\n  \
                owner: x:y\n  encoding: b64\n  content: dHdv\n- {path: /c, permissions: 0640, content: ''}\n";
    assert_eq!(apply(&seed(text), &mut disk), Vec::<String>::new());
    assert_eq!(disk.file("/a"), Some(&File::secret("one\n")));
    assert_eq!(disk.file("/b"), Some(&File { mode: 0o644, owner: "x:y".into(), content: b"two".into() }));
    assert_eq!(disk.file("/c").map(|f| f.mode), Some(0o640));
    assert_eq!(disk.hostname, "from-meta");
}

#[test]
fn the_same_instance_is_set_up_once() {
    let mut disk = Disk::from_image("image");
    apply(&seed("#cloud-config\nhostname: h\nwrite_files: [{path: /a, content: one}]\n"), &mut disk);
    apply(&seed("#cloud-config\nwrite_files: [{path: /a, content: two}]\n"), &mut disk);
    assert_eq!(disk.text("/a"), Some("one"));
}

#[test]
fn what_cloud_init_would_not_read_is_told() {
    for (text, word) in [
        ("hostname: a\n", "does not begin"),
        ("## template: jinja\n#cloud-config\nhostname: a\n", "user-data is a Jinja template"),
        ("#!/bin/sh\nkubeadm join\n", "user-data is a script, and the simulator runs no scripts"),
        ("#cloud-config\nwrite_files: [\n", "cannot read user-data"),
        ("#cloud-config\nwrite_files: [{path: a}]\n", "not absolute"),
        ("#cloud-config\nwrite_files: [{path: /a, encoding: b64, content: '!'}]\n", "cannot decode /a"),
        ("#cloud-config\nwrite_files: [{path: /a, permissions: rw}]\n", "not octal"),
    ] {
        let told = apply(&seed(text), &mut Disk::from_image("image"));
        assert!(told.len() == 1 && told[0].contains(word), "{text}: {told:?}");
    }
}

#[test]
fn vendor_data_says_what_user_data_leaves_open() {
    let vendor = "#cloud-config\nhostname: vendor\nwrite_files: [{path: /v, content: v}]\n";
    let (disk, told) = with_vendor("#cloud-config\nhostname: user\n", vendor);
    assert_eq!((disk.hostname.as_str(), disk.text("/v")), ("user", Some("v")));
    assert_eq!(told, Vec::<String>::new());
    let (disk, _) = with_vendor("", vendor);
    assert_eq!((disk.hostname.as_str(), disk.text("/v")), ("vendor", Some("v")));
}

#[test]
fn a_list_of_user_data_replaces_that_of_vendor_data() {
    let vendor = "#cloud-config\nwrite_files: [{path: /v, content: v}]\n";
    let (disk, _) = with_vendor("#cloud-config\nwrite_files: [{path: /u, content: u}]\n", vendor);
    assert_eq!((disk.text("/u"), disk.text("/v")), (Some("u"), None));
}

#[test]
fn vendor_data_that_is_broken_or_refused_leaves_user_data_as_it_is() {
    let user = "#cloud-config\nwrite_files: [{path: /u, content: u}]\n";
    let (disk, told) = with_vendor(user, "#cloud-config\nwrite_files: [\n");
    assert!(disk.text("/u") == Some("u") && told[0].starts_with("cannot read vendor-data"), "{told:?}");
    let (disk, told) = with_vendor("#cloud-config\nvendor_data: {enabled: false}\n", user);
    assert_eq!((disk.text("/u"), told), (None, Vec::new()));
}

#[test]
fn what_echo_prints_is_in_the_boot_log() {
    let text = "#cloud-config\nruncmd:\n- [echo, joining, as, a]\n- echo done\n- [systemctl, restart, kubelet]\n";
    assert_eq!(apply(&seed(text), &mut Disk::from_image("image")), ["joining as a", "done"]);
}

#[test]
fn commands_that_are_not_run_are_named_without_their_arguments() {
    let text = "#cloud-config\nbootcmd: [[modprobe, br_netfilter]]\nruncmd:\n- [systemctl, restart, kubelet]\n- TOKEN=hush \
                /usr/bin/kubeadm join --token hush\n- [sh, -c, hush]\n- kubeadm reset\n";
    let told = apply(&seed(text), &mut Disk::from_image("image"));
    let expected = [
        "the simulator does not run the commands of bootcmd: modprobe",
        "the simulator does not run the commands of runcmd: kubeadm, sh",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_k3s_agent_is_told_once() {
    let told = apply(
        &seed("#cloud-config\nruncmd:\n- curl https://get.k3s.io | K3S_URL=https://k:1 sh -\n"),
        &mut Disk::from_image("image"),
    );
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].contains("cannot run k3s"), "{told:?}");
}
