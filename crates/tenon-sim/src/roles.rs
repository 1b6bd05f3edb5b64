//! Table: which privileges there are, and which roles PVE brings along.

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

pub(crate) fn is_privilege(text: &str) -> bool {
    PRIVILEGES.contains(&text)
}

pub(crate) fn all_privileges() -> impl Iterator<Item = &'static str> {
    PRIVILEGES.iter().copied()
}

/// The roles every installation has, with their privileges.
pub(crate) fn special_roles() -> Vec<(&'static str, Vec<&'static str>)> {
    let listed = SPECIAL.iter().map(|(name, privileges)| (*name, privileges.to_vec()));
    let composed = [
        ("Administrator", all_privileges().collect()),
        ("PVEAdmin", all_privileges().filter(|p| !SYSTEM.contains(p)).collect()),
        ("PVEVMAdmin", all_privileges().filter(|p| p.starts_with("VM.")).collect()),
    ];
    listed.chain(composed).collect()
}
