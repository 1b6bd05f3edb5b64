//! Table: every request that the client can make, the privileges it needs, where, and for what it is made.
//!
//! Facts of Proxmox VE 9.2. A request of several flows has a row in each. Parameters of one request that need different privileges
//! have rows of their own.

use super::AclPlace::{
    Bridges, Cluster, Disks, Guests, Hosts, Images, NodePool, NodeTemplates, PciMappings, Seeds, TemplatePool,
};
use super::{AclPlace, Flow, PveCall, Without};

type Needs = &'static [(AclPlace, &'static str)];

const fn call(flow: Flow, method: &'static str, path: &'static str, needs: Needs, why: &'static str) -> PveCall {
    PveCall { method, path, keys: &[], flow, needs, without: Without::Refused, why }
}

/// Any token may ask it: the rows it shows depend on the privileges.
const fn seen(flow: Flow, path: &'static str, needs: Needs, why: &'static str) -> PveCall {
    PveCall { without: Without::Hidden, ..call(flow, "GET", path, needs, why) }
}

const fn never(method: &'static str, path: &'static str) -> PveCall {
    call(Flow::Never, method, path, &[], "")
}

/// A write of the configuration of a node's VM.
const fn option(keys: &'static [&'static str], needs: Needs, why: &'static str) -> PveCall {
    PveCall { keys, ..call(Flow::Launch, "PUT", CONFIG, needs, why) }
}

/// A key that a VM template is created with.
const fn template_option(keys: &'static [&'static str], needs: Needs, why: &'static str) -> PveCall {
    PveCall { keys, ..call(Flow::Templates, "POST", "/nodes/{node}/qemu", needs, why) }
}

/// A key of a VM template that is there.
const fn template_change(keys: &'static [&'static str], needs: Needs, why: &'static str) -> PveCall {
    PveCall { keys, ..call(Flow::Templates, "PUT", CONFIG, needs, why) }
}

const RESOURCES: &str = "/cluster/resources";
const NEXT_ID: &str = "/cluster/nextid";
const CLUSTER_STATUS: &str = "/cluster/status";
const PERMISSIONS: &str = "/access/permissions";
const POOLS: &str = "/pools";
const VM: &str = "/nodes/{node}/qemu/{vmid}";
const CONFIG: &str = "/nodes/{node}/qemu/{vmid}/config";
const CONTAINER: &str = "/nodes/{node}/lxc/{vmid}/config";
const CLONE: &str = "/nodes/{node}/qemu/{vmid}/clone";
const STATUS: &str = "/nodes/{node}/qemu/{vmid}/status/current";
const RULES: &str = "/nodes/{node}/qemu/{vmid}/firewall/rules";
const RULE: &str = "/nodes/{node}/qemu/{vmid}/firewall/rules/{pos}";
const CONTENT: &str = "/nodes/{node}/storage/{storage}/content";
const VOLUME: &str = "/nodes/{node}/storage/{storage}/content/{volume}";
const TASKS: &str = "/nodes/{node}/tasks";
const TASK: &str = "/nodes/{node}/tasks/{upid}";
const TASK_STATUS: &str = "/nodes/{node}/tasks/{upid}/status";
const TASK_LOG: &str = "/nodes/{node}/tasks/{upid}/log";

/// Every row, by flow.
pub const PVE_CALLS: &[PveCall] = &[
    // Status
    call(Flow::Status, "GET", "/version", &[], "whether the API answers"),
    call(Flow::Status, "POST", "/access/ticket", &[], "logs in with `username` and `password`"),
    call(Flow::Status, "GET", PERMISSIONS, &[], "which privilege is missing, after a refusal that does not say"),
    seen(Flow::Status, RESOURCES, &[(Hosts, "Sys.Audit")], "CPU and memory of the hosts"),
    seen(Flow::Status, RESOURCES, &[(NodePool, "VM.Audit")], "the VMs of nodes"),
    seen(Flow::Status, RESOURCES, &[(NodeTemplates, "VM.Audit")], "the VM templates"),
    seen(Flow::Status, RESOURCES, &[(Disks, "Datastore.AllocateSpace")], "the storages of disks"),
    seen(Flow::Status, RESOURCES, &[(Seeds, "Datastore.Audit")], "the storages of seed images"),
    seen(Flow::Status, "/nodes/{node}/network", &[(Bridges, "SDN.Audit")], "the bridges of a host"),
    call(
        Flow::Status,
        "GET",
        "/nodes/{node}/status",
        &[(Hosts, "Sys.Audit")],
        "the CPUs of a host (`--node-policy static`)",
    ),
    seen(Flow::Status, "/nodes", &[], "the hosts (`--node-policy static`)"),
    call(Flow::Status, "GET", CONFIG, &[(NodePool, "VM.Audit")], "CPUs, addresses and drift of the VMs of nodes"),
    call(
        Flow::Status,
        "GET",
        CONFIG,
        &[(NodeTemplates, "VM.Audit")],
        "disks, network cards and addresses of a VM template",
    ),
    // Launch
    call(Flow::Launch, "GET", NEXT_ID, &[], "whether a VM ID is free"),
    call(Flow::Launch, "POST", CLONE, &[(NodeTemplates, "VM.Clone")], "clones the VM template"),
    call(Flow::Launch, "POST", CLONE, &[(NodePool, "VM.Allocate")], "creates the VM"),
    call(Flow::Launch, "POST", CLONE, &[(Disks, "Datastore.AllocateSpace")], "creates the disks"),
    call(Flow::Launch, "POST", CLONE, &[(Bridges, "SDN.Use")], "connects the network cards to bridges"),
    call(Flow::Launch, "GET", CONFIG, &[(NodePool, "VM.Audit")], "proves that the VM is Tenon's own"),
    option(&["cores", "sockets", "numa", "numaN"], &[(NodePool, "VM.Config.CPU")], "sets the CPUs"),
    option(&["memory", "balloon"], &[(NodePool, "VM.Config.Memory")], "sets the memory"),
    option(&["smbios1"], &[(NodePool, "VM.Config.HWType")], "sets the UUID, which proves whose VM it is"),
    option(&["tags", "description"], &[(NodePool, "VM.Config.Options")], "sets tags; marks a VM that is adopted"),
    option(
        &["protection"],
        &[(NodePool, "VM.Config.Options")],
        "removes the protection that a VM has from its VM template",
    ),
    option(
        &["netN"],
        &[(NodePool, "VM.Config.Network"), (Bridges, "SDN.Use")],
        "sets queues and firewall of the network cards",
    ),
    option(&["ipconfigN", "nameserver"], &[(NodePool, "VM.Config.Network")], "sets addresses and DNS servers"),
    option(
        &["ideN"],
        &[(NodePool, "VM.Config.CDROM"), (Seeds, "Datastore.Audit")],
        "puts the seed image into the drive, and ejects it",
    ),
    option(&["ideN"], &[(NodePool, "VM.Config.Cloudinit")], "replaces the cloud-init drive of the VM template"),
    call(
        Flow::Launch,
        "PUT",
        "/nodes/{node}/qemu/{vmid}/resize",
        &[(NodePool, "VM.Config.Disk")],
        "grows the boot disk",
    ),
    call(
        Flow::Launch,
        "GET",
        "/nodes/{node}/storage/{storage}/status",
        &[(Seeds, "Datastore.Audit")],
        "creates the folder of ISO images again",
    ),
    call(
        Flow::Launch,
        "POST",
        "/nodes/{node}/storage/{storage}/upload",
        &[(Seeds, "Datastore.AllocateTemplate")],
        "uploads the seed image",
    ),
    call(
        Flow::Launch,
        "POST",
        "/nodes/{node}/qemu/{vmid}/status/start",
        &[(NodePool, "VM.PowerMgmt")],
        "starts the VM",
    ),
    call(Flow::Launch, "GET", STATUS, &[(NodePool, "VM.Audit")], "whether the VM runs"),
    call(
        Flow::Launch,
        "GET",
        TASKS,
        &[],
        "finds the task of a clone whose reply was lost; its own tasks need no privilege",
    ),
    call(Flow::Launch, "GET", TASK_STATUS, &[], "follows its own tasks"),
    call(Flow::Launch, "GET", TASK_LOG, &[], "why one of its own tasks failed"),
    // Release
    call(
        Flow::Release,
        "POST",
        "/nodes/{node}/qemu/{vmid}/status/shutdown",
        &[(NodePool, "VM.PowerMgmt")],
        "shuts the guest down",
    ),
    call(Flow::Release, "POST", "/nodes/{node}/qemu/{vmid}/status/stop", &[(NodePool, "VM.PowerMgmt")], "stops the VM"),
    PveCall {
        keys: &["description"],
        ..call(
            Flow::Release,
            "PUT",
            CONFIG,
            &[(NodePool, "VM.Config.Options")],
            "marks the VM just before the destroy, so that a change by somebody else is noticed",
        )
    },
    call(Flow::Release, "DELETE", VM, &[(NodePool, "VM.Allocate")], "destroys the VM"),
    call(
        Flow::Release,
        "DELETE",
        VOLUME,
        &[(Seeds, "Datastore.Allocate")],
        "deletes the seed image. Proxmox has no smaller privilege for it, and this one includes every volume of the storage: give seed images a storage of their own",
    ),
    call(Flow::Release, "DELETE", TASK, &[], "stops a clone of its own that is not wanted any more"),
    // Reboots
    call(
        Flow::Reboot,
        "POST",
        "/nodes/{node}/qemu/{vmid}/status/reboot",
        &[(NodePool, "VM.PowerMgmt")],
        "asks the guest to reboot",
    ),
    call(
        Flow::Reboot,
        "POST",
        "/nodes/{node}/qemu/{vmid}/status/reset",
        &[(NodePool, "VM.PowerMgmt")],
        "resets a VM whose guest does not reboot",
    ),
    // Security groups
    call(
        Flow::SecurityGroups,
        "GET",
        RULES,
        &[(NodeTemplates, "VM.Audit")],
        "whether clones inherit rules from the VM template",
    ),
    call(Flow::SecurityGroups, "GET", RULES, &[(NodePool, "VM.Audit")], "which rules the VM has"),
    call(Flow::SecurityGroups, "POST", RULES, &[(NodePool, "VM.Config.Network")], "adds a security group"),
    call(Flow::SecurityGroups, "PUT", RULE, &[(NodePool, "VM.Config.Network")], "moves a rule, or switches it on"),
    call(Flow::SecurityGroups, "DELETE", RULE, &[(NodePool, "VM.Config.Network")], "removes a security group"),
    call(
        Flow::SecurityGroups,
        "PUT",
        "/nodes/{node}/qemu/{vmid}/firewall/options",
        &[(NodePool, "VM.Config.Network")],
        "switches the firewall of the VM on",
    ),
    // Pools
    call(
        Flow::PoolMoves,
        "PUT",
        POOLS,
        &[(NodePool, "Pool.Allocate"), (NodePool, "VM.Allocate")],
        "moves VMs that run to the new pool, or, if `resourcePool` is removed, out of the old one. Grant it on both pools. Without it the VMs stay in their pool, and an event says so (InPlaceUpdateFailed)",
    ),
    seen(Flow::PoolNames, RESOURCES, &[(NodePool, "Pool.Audit")], "which pool a VM is in"),
    seen(Flow::PoolNames, RESOURCES, &[(TemplatePool, "Pool.Audit")], "which pool a VM template is in"),
    // Templates
    seen(Flow::Templates, RESOURCES, &[(Images, "Datastore.Audit")], "the storages of images"),
    call(Flow::Templates, "GET", CONTENT, &[(Images, "Datastore.Audit")], "which images are there"),
    call(Flow::Templates, "GET", VOLUME, &[(Images, "Datastore.Audit")], "whether an image is complete"),
    call(
        Flow::Templates,
        "POST",
        "/nodes/{node}/storage/{storage}/download-url",
        &[(Images, "Datastore.AllocateTemplate"), (Hosts, "Sys.AccessNetwork")],
        "lets a host download an image",
    ),
    call(Flow::Templates, "DELETE", VOLUME, &[(Images, "Datastore.Allocate")], "deletes images that Tenon downloaded"),
    call(Flow::Templates, "POST", "/nodes/{node}/qemu", &[(TemplatePool, "VM.Allocate")], "creates the VM"),
    template_option(&["cores", "sockets", "numa", "cpu"], &[(TemplatePool, "VM.Config.CPU")], "sets the CPUs"),
    template_option(&["memory", "balloon"], &[(TemplatePool, "VM.Config.Memory")], "sets the memory"),
    template_option(
        &["acpi", "machine", "scsihw", "smbios1", "tablet", "vga", "serialN"],
        &[(TemplatePool, "VM.Config.HWType")],
        "sets machine, UUID and display",
    ),
    template_option(
        &["agent", "bios", "description", "name", "onboot", "ostype"],
        &[(TemplatePool, "VM.Config.Options")],
        "sets name and description, which proves whose VM template it is",
    ),
    template_option(&["boot"], &[(TemplatePool, "VM.Config.Options")], "sets the boot order"),
    template_option(
        &["netN"],
        &[(TemplatePool, "VM.Config.Network"), (Bridges, "SDN.Use")],
        "connects the network cards to bridges",
    ),
    template_option(
        &["ipconfigN", "nameserver"],
        &[(TemplatePool, "VM.Config.Network")],
        "sets addresses and DNS servers",
    ),
    template_option(
        &["scsiN", "efidiskN", "tpmstateN"],
        &[(TemplatePool, "VM.Config.Disk"), (Disks, "Datastore.AllocateSpace"), (Images, "Datastore.Audit")],
        "copies the image to a disk",
    ),
    call(Flow::Templates, "GET", CONFIG, &[(TemplatePool, "VM.Audit")], "proves that the VM template is Tenon's own"),
    template_change(
        &["tags", "agent", "bios", "description", "name", "onboot", "ostype"],
        &[(TemplatePool, "VM.Config.Options")],
        "sets tags and what changed in the ProxmoxTemplate; marks the VM template just before the destroy",
    ),
    template_change(
        &["cores", "sockets", "numa", "cpu"],
        &[(TemplatePool, "VM.Config.CPU")],
        "sets the CPUs if the ProxmoxTemplate changed",
    ),
    template_change(
        &["memory", "balloon"],
        &[(TemplatePool, "VM.Config.Memory")],
        "sets the memory if the ProxmoxTemplate changed",
    ),
    template_change(
        &["acpi", "machine", "scsihw", "smbios1", "tablet", "vga", "serialN"],
        &[(TemplatePool, "VM.Config.HWType")],
        "sets machine and display if the ProxmoxTemplate changed",
    ),
    template_change(
        &["netN"],
        &[(TemplatePool, "VM.Config.Network"), (Bridges, "SDN.Use")],
        "connects the network cards to other bridges if the ProxmoxTemplate changed",
    ),
    template_change(
        &["ipconfigN", "nameserver"],
        &[(TemplatePool, "VM.Config.Network")],
        "sets addresses and DNS servers if the ProxmoxTemplate changed",
    ),
    call(
        Flow::Templates,
        "GET",
        "/nodes/{node}/qemu/{vmid}/pending",
        &[(TemplatePool, "VM.Audit")],
        "what a failed write left",
    ),
    call(
        Flow::Templates,
        "POST",
        "/nodes/{node}/qemu/{vmid}/template",
        &[(TemplatePool, "VM.Allocate")],
        "converts the VM to a VM template",
    ),
    call(Flow::Templates, "DELETE", VM, &[(TemplatePool, "VM.Allocate")], "destroys a VM template that nothing needs"),
    call(Flow::Templates, "GET", NEXT_ID, &[], "whether a VM ID is free"),
    call(Flow::Templates, "GET", TASKS, &[], "finds a task whose reply was lost"),
    call(Flow::Templates, "GET", TASK_STATUS, &[], "follows its own tasks"),
    call(Flow::Templates, "GET", TASK_LOG, &[], "why one of its own tasks failed"),
    call(Flow::Templates, "DELETE", TASK, &[], "stops a download of its own that is not wanted any more"),
    call(
        Flow::TemplatePools,
        "PUT",
        POOLS,
        &[(TemplatePool, "Pool.Allocate"), (TemplatePool, "VM.Allocate")],
        "moves VM templates to the new pool. Grant it on both pools",
    ),
    PveCall {
        keys: &["hostpciN"],
        ..call(
            Flow::PciDevices,
            "POST",
            "/nodes/{node}/qemu",
            &[(PciMappings, "Mapping.Use"), (TemplatePool, "VM.Config.HWType")],
            "gives a VM template PCI devices",
        )
    },
    PveCall {
        keys: &["hostpciN"],
        ..call(
            Flow::PciDevices,
            "PUT",
            CONFIG,
            &[(PciMappings, "Mapping.Use"), (TemplatePool, "VM.Config.HWType")],
            "gives an existing VM template PCI devices",
        )
    },
    // Guest agent
    call(
        Flow::KubeletCertificates,
        "GET",
        "/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces",
        &[(NodePool, "VM.GuestAgent.Audit")],
        "which addresses the guest has",
    ),
    call(
        Flow::Diagnosis,
        "POST",
        "/nodes/{node}/qemu/{vmid}/agent/ping",
        &[(NodePool, "VM.GuestAgent.Audit")],
        "whether the guest agent answers",
    ),
    call(
        Flow::Diagnosis,
        "GET",
        "/nodes/{node}/qemu/{vmid}/agent/file-read",
        &[(NodePool, "VM.GuestAgent.FileRead")],
        "the last lines of `/var/log/cloud-init-output.log`",
    ),
    // The whole cluster
    call(
        Flow::ClusterState,
        "GET",
        "/cluster/ha/status/manager_status",
        &[(Cluster, "Sys.Audit")],
        "hosts in maintenance mode",
    ),
    call(Flow::ClusterState, "GET", CLUSTER_STATUS, &[(Cluster, "Sys.Audit")], "whether there is quorum"),
    seen(
        Flow::OtherGuests,
        RESOURCES,
        &[(Guests, "VM.Audit")],
        "guests that others created; clones that were interrupted",
    ),
    call(
        Flow::OtherGuests,
        "GET",
        CONFIG,
        &[(Guests, "VM.Audit")],
        "whether a stopped VM starts with its host; its addresses",
    ),
    call(Flow::OtherGuests, "GET", CONTAINER, &[(Guests, "VM.Audit")], "the same of a container"),
    // What the client can do beyond that
    never("GET", "/cluster/ha/status/current"),
    never("GET", "/cluster/options"),
    never("GET", "/cluster/firewall/groups"),
    never("GET", POOLS),
    never("POST", POOLS),
    never("DELETE", POOLS),
    never("GET", "/storage"),
    never("GET", "/storage/{storage}"),
    never("GET", "/nodes/{node}/network/{iface}"),
    never("GET", "/nodes/{node}/hardware/pci"),
    never("GET", "/nodes/{node}/capabilities/qemu/cpu"),
    never("GET", "/nodes/{node}/storage"),
    never("GET", "/nodes/{node}/qemu"),
    never("GET", "/nodes/{node}/qemu/{vmid}/feature"),
    never("GET", "/nodes/{node}/qemu/{vmid}/cloudinit"),
    never("PUT", "/nodes/{node}/qemu/{vmid}/cloudinit"),
    never("GET", "/nodes/{node}/qemu/{vmid}/cloudinit/dump"),
    never("POST", CONFIG),
    never("POST", "/nodes/{node}/qemu/{vmid}/status/suspend"),
    never("POST", "/nodes/{node}/qemu/{vmid}/status/resume"),
    never("GET", "/nodes/{node}/qemu/{vmid}/firewall/options"),
    never("GET", RULE),
    never("GET", "/nodes/{node}/qemu/{vmid}/agent/get-osinfo"),
    never("GET", "/nodes/{node}/qemu/{vmid}/agent/get-host-name"),
    never("POST", "/nodes/{node}/qemu/{vmid}/agent/exec"),
    never("GET", "/nodes/{node}/qemu/{vmid}/agent/exec-status"),
];
