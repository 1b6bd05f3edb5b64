//! What does cloud-init do on the first boot?

use serde::Serialize;

use crate::Error;
use crate::boot_files::{self, BootFile};
use crate::input::SeedInput;
use crate::node_labels::Sorted;
use crate::yaml::to_yaml;

/// cloud-init tells the kind of a user-data by its first line.
const FIRST_LINE: &str = "#cloud-config\n";
/// Through it Proxmox learns the guest's addresses and stops it in order.
const GUEST_AGENT: &str = "qemu-guest-agent";
/// The login of operators.
const USER: &str = "karpenter";

/// The file `user-data`.
pub(crate) fn render(input: &SeedInput, labels: &Sorted<'_>) -> Result<String, Error> {
    let boot = boot_files::plan(input, labels)?;
    let mut runcmd = vec![vec!["systemctl", "enable", "--now", GUEST_AGENT]];
    runcmd.extend(boot.commands);
    let config = CloudConfig {
        hostname: &input.identity.node_name,
        manage_etc_hosts: true,
        package_update: true,
        packages: [GUEST_AGENT],
        users: [User {
            name: USER,
            sudo: "ALL=(ALL) NOPASSWD:ALL",
            shell: "/bin/bash",
            groups: ["users"],
            ssh_authorized_keys: ssh_authorized_keys(input),
        }],
        write_files: boot.files,
        runcmd,
    };
    Ok(format!("{FIRST_LINE}{}", to_yaml("user-data", &config)?))
}

/// The listed keys first, then those among the values, each once.
fn ssh_authorized_keys(input: &SeedInput) -> Vec<&str> {
    let listed = input.ssh_authorized_keys.iter().map(String::as_str);
    let mut keys: Vec<&str> = Vec::new();
    for key in listed.chain(input.values.ssh_authorized_keys()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

#[derive(Serialize)]
struct CloudConfig<'a> {
    hostname: &'a str,
    manage_etc_hosts: bool,
    package_update: bool,
    packages: [&'a str; 1],
    users: [User<'a>; 1],
    write_files: Vec<BootFile>,
    runcmd: Vec<Vec<&'a str>>,
}

#[derive(Serialize)]
struct User<'a> {
    name: &'a str,
    sudo: &'a str,
    shell: &'a str,
    groups: [&'a str; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ssh_authorized_keys: Vec<&'a str>,
}
