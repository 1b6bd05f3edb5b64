//! The part of SECURITY.md on Proxmox: which privileges, where, for which request, and the commands that grant them. Written from
//! the table of privileges.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tenon_pve::pve_rights::{self, AclPlace, Demand, Flow, PVE_CALLS, Privileges, PveCall, REQUIRED, Without};

/// The part between the marks of SECURITY.md.
pub(crate) fn section() -> String {
    let required = pve_rights::privileges(&REQUIRED);
    let mut text = String::from("### What every installation needs\n\n");
    table(&mut text, &required, &REQUIRED);
    text.push_str(
        "\nThe commands, on any host of the Proxmox cluster. Change the names in the first lines.\n\n```sh\n",
    );
    text.push_str(
        "NODES=k8s-nodes TEMPLATE=9000   # resource pool of the nodes; VM template they are cloned from\n\
         DISKS=local-lvm SEEDS=seeds     # storages of their disks and of their seed images\n\
         pveum pool add $NODES\n\
         pveum user add tenon@pve\n\
         pveum user token add tenon@pve controller --privsep 0\n",
    );
    commands(&mut text, "Tenon", &required);
    text.push_str(
        "```\n\n### What more is needed, and when\n\nThe commands use the names from above, and `TEMPLATES` (a resource pool for the VM \
         templates of ProxmoxTemplates) and `IMAGES` (the storage of their images).\n",
    );
    for flow in Flow::MADE.into_iter().filter(|flow| !REQUIRED.contains(flow)) {
        further(&mut text, flow, &required);
    }
    text
}

/// A flow that not every installation has.
fn further(text: &mut String, flow: Flow, required: &Privileges) {
    let mut more = flow.privileges();
    for (place, held) in &mut more {
        held.retain(|privilege| !required.get(place).is_some_and(|held| held.contains(privilege)));
    }
    more.retain(|_, held| !held.is_empty());
    let condition = match flow.demand() {
        Demand::With(setting) => format!("Only with {setting}."),
        Demand::Optional(lost) => format!("Optional. Without it {lost}."),
        Demand::Always | Demand::Never => String::new(),
    };
    let _ = write!(text, "\n**{}.** {condition}", title(flow));
    if more.is_empty() {
        text.push_str(" No further privilege.\n");
        return;
    }
    text.push_str("\n\n");
    table(text, &more, &[flow]);
    text.push_str("\n```sh\n");
    commands(text, &format!("Tenon{flow:?}"), &more);
    text.push_str("```\n");
}

fn title(flow: Flow) -> &'static str {
    match flow {
        Flow::Status => "Status",
        Flow::Launch => "Launch",
        Flow::Release => "Release",
        Flow::Reboot => "Reboot",
        Flow::SecurityGroups => "Security groups",
        Flow::PoolMoves => "Moving nodes to another resource pool",
        Flow::Templates => "VM templates from images",
        Flow::TemplatePools => "Moving VM templates to another resource pool",
        Flow::PciDevices => "PCI devices",
        Flow::KubeletCertificates => "Certificates of kubelets",
        Flow::Diagnosis => "Why a node does not join",
        Flow::PoolNames => "Resource pools",
        Flow::ClusterState => "Maintenance mode and quorum",
        Flow::OtherGuests => "Guests of others",
        Flow::Never => "",
    }
}

fn table(text: &mut String, held: &Privileges, flows: &[Flow]) {
    text.push_str("| On | Privilege | Needed for |\n|---|---|---|\n");
    for (place, privileges) in held {
        for privilege in privileges {
            let _ =
                writeln!(text, "| {} | {} | {} |", name(*place), spelled(privilege), uses(flows, (*place, privilege)));
        }
    }
}

fn spelled(privilege: &str) -> String {
    let old = pve_rights::on_version_8(privilege);
    if old == privilege { privilege.to_owned() } else { format!("{privilege} (Proxmox VE 8: {old})") }
}

/// What a privilege is needed for, each purpose once.
fn uses(flows: &[Flow], need: (AclPlace, &str)) -> String {
    let rows = PVE_CALLS.iter().filter(|call| flows.contains(&call.flow) && call.needs.contains(&need));
    let mut told = BTreeSet::new();
    let texts: Vec<String> = rows.filter(|call| told.insert(call.why)).map(purpose).collect();
    texts.join("; ")
}

fn purpose(call: &PveCall) -> String {
    let path = ["/nodes/{node}/qemu/{vmid}", "/nodes/{node}/storage/{storage}", "/nodes/{node}"]
        .iter()
        .find_map(|front| call.path.strip_prefix(front));
    let path = path.map_or_else(|| call.path.to_owned(), |rest| format!("…{rest}"));
    let path = path.replace(['{', '}'], "");
    let shows = if call.without == Without::Hidden { ", which shows less without it" } else { "" };
    format!("{} (`{} {path}`{shows})", call.why, call.method)
}

fn name(place: AclPlace) -> &'static str {
    match place {
        AclPlace::NodePool => "resource pool of the nodes",
        AclPlace::NodeTemplates => "VM templates of the nodes",
        AclPlace::Disks => "storages of disks",
        AclPlace::Seeds => "storages of seed images",
        AclPlace::Bridges => "bridges",
        AclPlace::Hosts => "hosts",
        AclPlace::TemplatePool => "resource pool of ProxmoxTemplates",
        AclPlace::Images => "storages of images",
        AclPlace::PciMappings => "PCI mappings",
        AclPlace::Guests => "all guests",
        AclPlace::Cluster => "`/`",
    }
}

/// The path of a place in the commands, and whether what is below it is meant, too.
fn acl(place: AclPlace) -> &'static str {
    match place {
        AclPlace::NodePool => "/pool/$NODES",
        AclPlace::NodeTemplates => "/vms/$TEMPLATE",
        AclPlace::Disks => "/storage/$DISKS",
        AclPlace::Seeds => "/storage/$SEEDS",
        AclPlace::Bridges => "/sdn/zones/localnetwork",
        AclPlace::Hosts => "/nodes",
        AclPlace::TemplatePool => "/pool/$TEMPLATES",
        AclPlace::Images => "/storage/$IMAGES",
        AclPlace::PciMappings => "/mapping/pci",
        AclPlace::Guests => "/vms",
        AclPlace::Cluster => "/ --propagate 0",
    }
}

fn commands(text: &mut String, prefix: &str, held: &Privileges) {
    for (place, privileges) in held {
        let all = Vec::from_iter(privileges.iter().copied()).join(",");
        let role = format!("{prefix}{place:?}");
        let _ = writeln!(text, "pveum role add {role} --privs \"{all}\"");
        let _ = writeln!(text, "pveum acl modify {} --users tenon@pve --roles {role}", acl(*place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_privilege_is_explained_and_granted_once() {
        let text = section();
        let mut granted = BTreeSet::new();
        for line in text.lines().filter_map(|line| line.strip_prefix("pveum role add ")) {
            let (role, privileges) = line.split_once(" --privs ").unwrap();
            assert!(granted.insert(role.to_owned()), "{role} is there twice");
            assert!(privileges.len() > 2 && text.contains(&format!("--roles {role}\n")), "{line}");
        }
        for call in PVE_CALLS.iter().filter(|call| call.flow != Flow::Never) {
            for (place, privilege) in call.needs {
                let row = format!("| {} | {} | ", name(*place), spelled(privilege));
                assert!(text.contains(&row), "{privilege} on {place:?} is not explained");
            }
        }
    }
}
