//! Table: which privileges there are, and which roles PVE brings along.

use crate::version::PveVersion;

const PRIVILEGES: &[&str] = &[
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "Datastore.Audit",
    "Group.Allocate",
    "Mapping.Audit",
    "Mapping.Modify",
    "Mapping.Use",
    "Permissions.Modify",
    "Pool.Allocate",
    "Pool.Audit",
    "Realm.Allocate",
    "Realm.AllocateUser",
    "SDN.Allocate",
    "SDN.Audit",
    "SDN.Use",
    "Sys.AccessNetwork",
    "Sys.Audit",
    "Sys.Console",
    "Sys.Incoming",
    "Sys.Modify",
    "Sys.PowerMgmt",
    "Sys.Syslog",
    "User.Modify",
    "VM.Allocate",
    "VM.Audit",
    "VM.Backup",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.Console",
    "VM.GuestAgent.Audit",
    "VM.GuestAgent.FileRead",
    "VM.GuestAgent.FileSystemMgmt",
    "VM.GuestAgent.FileWrite",
    "VM.GuestAgent.Unrestricted",
    "VM.Migrate",
    "VM.PowerMgmt",
    "VM.Replicate",
    "VM.Snapshot",
    "VM.Snapshot.Rollback",
];

/// What only an administrator of the whole may do.
const SYSTEM: &[&str] = &[
    "Mapping.Modify",
    "Permissions.Modify",
    "Realm.Allocate",
    "Sys.AccessNetwork",
    "Sys.Incoming",
    "Sys.Modify",
    "Sys.PowerMgmt",
];

const SPECIAL: &[(&str, &[&str])] = &[
    ("NoAccess", &[]),
    (
        "PVEAuditor",
        &[
            "Datastore.Audit",
            "Mapping.Audit",
            "Pool.Audit",
            "SDN.Audit",
            "Sys.Audit",
            "VM.Audit",
            "VM.GuestAgent.Audit",
        ],
    ),
    (
        "PVEDatastoreAdmin",
        &["Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Datastore.Audit"],
    ),
    ("PVEDatastoreUser", &["Datastore.AllocateSpace", "Datastore.Audit"]),
    ("PVEMappingAdmin", &["Mapping.Audit", "Mapping.Modify", "Mapping.Use"]),
    ("PVEMappingUser", &["Mapping.Audit", "Mapping.Use"]),
    ("PVEPoolAdmin", &["Pool.Allocate", "Pool.Audit"]),
    ("PVEPoolUser", &["Pool.Audit"]),
    ("PVESDNAdmin", &["SDN.Allocate", "SDN.Audit", "SDN.Use"]),
    ("PVESDNUser", &["SDN.Audit", "SDN.Use"]),
    ("PVESysAdmin", &["Sys.Audit", "Sys.Console", "Sys.Syslog"]),
    ("PVETemplateUser", &["VM.Audit", "VM.Clone"]),
    ("PVEUserAdmin", &["Group.Allocate", "Realm.AllocateUser", "User.Modify"]),
    (
        "PVEVMUser",
        &[
            "VM.Audit",
            "VM.Backup",
            "VM.Config.CDROM",
            "VM.Config.Cloudinit",
            "VM.Console",
            "VM.GuestAgent.Audit",
            "VM.GuestAgent.FileRead",
            "VM.GuestAgent.FileSystemMgmt",
            "VM.GuestAgent.FileWrite",
            "VM.PowerMgmt",
        ],
    ),
];

/// What 8.4 has where 9.0 brought the privileges for guest agents.
const MONITOR: &str = "VM.Monitor";

/// Whether a privilege came with 9.0.
fn is_new(privilege: &str) -> bool {
    privilege.starts_with("VM.GuestAgent.") || privilege == "VM.Replicate"
}

pub(crate) fn is_privilege(version: PveVersion, text: &str) -> bool {
    all_privileges(version).any(|privilege| privilege == text)
}

pub(crate) fn all_privileges(version: PveVersion) -> impl Iterator<Item = &'static str> {
    let old = version == PveVersion::V8_4;
    PRIVILEGES.iter().copied().filter(move |name| !(old && is_new(name))).chain(old.then_some(MONITOR))
}

/// The roles every installation has, with their privileges.
pub(crate) fn special_roles(version: PveVersion) -> Vec<(&'static str, Vec<&'static str>)> {
    let all = || all_privileges(version);
    let known = |privileges: &[&'static str]| {
        privileges.iter().copied().filter(|name| is_privilege(version, name)).collect::<Vec<_>>()
    };
    let listed = SPECIAL.iter().map(|(name, privileges)| (*name, known(privileges)));
    let composed = [
        ("Administrator", all().collect()),
        ("PVEAdmin", all().filter(|p| !SYSTEM.contains(p)).collect()),
        ("PVEVMAdmin", all().filter(|p| p.starts_with("VM.")).collect()),
    ];
    listed.chain(composed).collect()
}
