//! What an estate is made of before anybody calls it: hosts, storages, tokens, pace, seed.
//!
//! Plain values with defaults that suit most tests. Nothing here changes while the estate runs.

use std::fmt;
use std::time::Duration;

use crate::containers::ContainerSpec;
use crate::version::PveVersion;

const GIB: u64 = 1 << 30;

/// Everything an [`Estate`](crate::Estate) is built from.
#[derive(Clone, Debug)]
pub struct EstateConfig {
    /// Name of the cluster in `/cluster/status`.
    pub cluster_name: String,
    /// The machines, in the order of their node ids.
    pub hosts: Vec<HostSpec>,
    /// The storages; a local one exists once on each host.
    pub storages: Vec<StorageSpec>,
    /// The tokens that may call; each belongs to a user who may do everything.
    pub tokens: Vec<TokenSpec>,
    /// The users who may log in with a password.
    pub users: Vec<UserSpec>,
    /// Pools that exist from the start. A clone into another pool is refused.
    pub pools: Vec<String>,
    /// Containers that exist from the start.
    pub containers: Vec<ContainerSpec>,
    /// Bridges every host has; a VM on another bridge fails to start.
    pub bridges: Vec<String>,
    /// What else `GET …/network` shows on every host, and details of bridges.
    pub interfaces: Vec<InterfaceSpec>,
    /// Seed of all randomness: identities, MACs, row order.
    pub seed: u64,
    /// How long things take.
    pub pace: Pace,
    /// Seconds since 1970 at the moment the estate is made.
    pub epoch: u64,
    /// Which release of Proxmox VE it is.
    pub version: PveVersion,
    /// Authorities, in PEM, that the hosts trust when they download from a real `https://` server. Without any they trust none.
    pub download_ca: Option<String>,
}

impl Default for EstateConfig {
    fn default() -> Self {
        Self {
            cluster_name: "lab".into(),
            hosts: ["pve1", "pve2", "pve3"].map(|name| HostSpec::new(name, 16, 64 * GIB)).into(),
            storages: vec![
                StorageSpec::new("shared", &["images", "iso"], 1024 * GIB).shared(),
                StorageSpec::new("local", &["images", "iso", "import", "snippets"], 256 * GIB).at("/var/lib/vz"),
            ],
            tokens: vec![TokenSpec::new("tenon@pve!sim", "11111111-2222-3333-4444-555555555555")],
            users: vec![UserSpec::new("root@pam", "simulated")],
            pools: vec!["tenon".into()],
            containers: Vec::new(),
            bridges: vec!["vmbr0".into()],
            interfaces: vec![InterfaceSpec::new("eth0", "eth")],
            seed: 1,
            pace: Pace::default(),
            epoch: 1_794_700_000,
            version: PveVersion::default(),
            download_ca: None,
        }
    }
}

/// One Proxmox machine.
#[derive(Clone, Debug)]
pub struct HostSpec {
    /// Its node name.
    pub name: String,
    /// Logical processors.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Model of the processor. There are programs that refuse one that names neither Intel nor AMD.
    pub cpu_model: String,
    /// Sockets.
    pub sockets: u32,
    /// Threads of each core.
    pub threads: u32,
    /// NUMA nodes: options of VMs may name those from 0 on.
    pub numa_nodes: u32,
}

impl HostSpec {
    /// A host by name and size.
    pub fn new(name: &str, cpus: u32, memory_bytes: u64) -> Self {
        let cpu_model = "AMD EPYC 9354P 32-Core Processor".into();
        Self { name: name.into(), cpus, memory_bytes, cpu_model, sockets: 1, threads: 1, numa_nodes: 1 }
    }

    /// The same host with another processor.
    #[must_use]
    pub fn cpu_model(mut self, model: &str) -> Self {
        self.cpu_model = model.into();
        self
    }

    /// The same host with so many sockets, each a NUMA node, and threads of each core.
    #[must_use]
    pub fn sockets(mut self, sockets: u32, threads: u32) -> Self {
        (self.sockets, self.threads, self.numa_nodes) = (sockets, threads, sockets);
        self
    }
}

/// One interface as a host's network configuration shows it.
#[derive(Clone, Debug)]
pub struct InterfaceSpec {
    /// Name.
    pub name: String,
    /// `eth`, `bridge`, `bond`, …
    pub kind: String,
    /// Further keys of its row; they win over the usual ones, and `null` takes one away.
    pub row: serde_json::Map<String, serde_json::Value>,
}

impl InterfaceSpec {
    /// An interface that is up and has no address.
    pub fn new(name: &str, kind: &str) -> Self {
        Self { name: name.into(), kind: kind.into(), row: serde_json::Map::new() }
    }
}

/// What lies behind a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageKind {
    /// A directory: images are files of a format, and there may be ISO images and others beside them.
    Dir,
    /// An LVM thin pool: images are raw block devices that take room as they are written.
    Thin,
    /// An LVM volume group: images are raw block devices that take all their room at once, and none can be a linked clone.
    Thick,
}

/// One storage.
#[derive(Clone, Debug)]
pub struct StorageSpec {
    /// Storage id.
    pub id: String,
    /// What it is made of.
    pub kind: StorageKind,
    /// Content kinds it takes: `images`, `iso`, `import`, …
    pub content: Vec<String>,
    /// One storage for all hosts, or one of its own on each.
    pub shared: bool,
    /// Size in bytes (of each copy, when local).
    pub bytes: u64,
    /// Directory it is mounted at.
    pub path: String,
    /// Hosts that have it; empty means all.
    pub hosts: Vec<String>,
    /// Whether drives are made one after the other under the storage's lock, for as long as each takes.
    pub serial: bool,
}

impl StorageSpec {
    /// A local directory storage.
    pub fn new(id: &str, content: &[&str], bytes: u64) -> Self {
        let content = content.iter().map(ToString::to_string).collect();
        let (id, path, kind) = (id.to_string(), format!("/mnt/{id}"), StorageKind::Dir);
        Self { id, kind, content, shared: false, bytes, path, hosts: Vec::new(), serial: false }
    }

    /// A local thin pool for images.
    pub fn thin(id: &str, bytes: u64) -> Self {
        Self { kind: StorageKind::Thin, path: format!("/dev/{id}"), ..Self::new(id, &["images", "rootdir"], bytes) }
    }

    /// A local volume group for images, on which no linked clones can be made.
    pub fn thick(id: &str, bytes: u64) -> Self {
        Self { kind: StorageKind::Thick, ..Self::thin(id, bytes) }
    }

    /// The same storage, on which drives are made one after the other.
    #[must_use]
    pub fn serial(mut self) -> Self {
        self.serial = true;
        self
    }

    /// The same storage, shared between all hosts.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// The same storage at another directory.
    #[must_use]
    pub fn at(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    /// The same storage on these hosts only.
    #[must_use]
    pub fn only_on(mut self, hosts: &[&str]) -> Self {
        self.hosts = hosts.iter().map(ToString::to_string).collect();
        self
    }
}

/// Somebody who may log in. The password is never printed.
#[derive(Clone)]
pub struct UserSpec {
    /// `user@realm`.
    pub id: String,
    /// What the login asks for.
    pub password: String,
}

impl UserSpec {
    /// A user by name and password.
    pub fn new(id: &str, password: &str) -> Self {
        Self { id: id.into(), password: password.into() }
    }
}

impl fmt::Debug for UserSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserSpec").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An API token. Its secret is never printed.
#[derive(Clone)]
pub struct TokenSpec {
    /// `user@realm!name`.
    pub id: String,
    /// The secret after the second `=`.
    pub secret: String,
    /// Seconds since 1970 after which it is refused.
    pub expires: Option<u64>,
}

impl TokenSpec {
    /// A token that never expires.
    pub fn new(id: &str, secret: &str) -> Self {
        Self { id: id.into(), secret: secret.into(), expires: None }
    }
}

impl fmt::Debug for TokenSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSpec").field("id", &self.id).field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// How long things take, on the clock of the runtime.
///
/// The defaults keep the proportions measured on a real machine with file storages.
#[derive(Clone, Debug)]
pub struct Pace {
    /// From a call that starts a worker to its answer. Two calls inside it race.
    pub answer: Duration,
    /// Copying one drive of a linked clone, or a cloud-init drive of any clone.
    pub clone_linked: Duration,
    /// Copying one disk of a full clone.
    pub clone_full: Duration,
    /// Making a VM, and converting one into a template.
    pub create: Duration,
    /// From the start of a VM to the first answer of its guest agent.
    pub agent: Duration,
    /// How long a wait for a storage's lock lasts.
    pub storage_lock_wait: Duration,
    /// Growing a disk.
    pub resize: Duration,
    /// Starting a VM.
    pub start: Duration,
    /// Stopping a VM.
    pub stop: Duration,
    /// From the ACPI signal to a guest that has powered off.
    pub shutdown: Duration,
    /// Destroying a VM.
    pub destroy: Duration,
    /// Applying a config change in a worker.
    pub config: Duration,
    /// Copying an uploaded file into place.
    pub upload: Duration,
    /// Removing a volume.
    pub volume_delete: Duration,
    /// How fast a file is downloaded, in bytes a second.
    pub link_bytes_per_s: u64,
    /// How often hosts broadcast what `/cluster/resources` shows.
    pub resource_tick: Duration,
    /// After a broadcast, how long answers may still alternate with the one before.
    pub resource_flap: Duration,
    /// What every 401 costs.
    pub unauthorized: Duration,
    /// How long a call to a dead host hangs.
    pub dead_host: Duration,
    /// From a host's death to `offline`.
    pub offline_after: Duration,
    /// From a host's death to guests and storages of status `unknown`.
    pub unknown_after: Duration,
    /// How long a wait for a VM's file lock lasts.
    pub lock_wait: Duration,
    /// How long the file lock stays taken when a VM is started within a second of its stop.
    pub restart_trap: Duration,
    /// How long the HA manager takes to stop a VM that it looks after.
    pub ha_manager: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            answer: ms(30),
            clone_linked: ms(150),
            clone_full: ms(5_000),
            create: ms(150),
            agent: ms(3_000),
            storage_lock_wait: ms(60_000),
            resize: ms(100),
            start: ms(1_200),
            stop: ms(600),
            shutdown: ms(5_000),
            destroy: ms(150),
            config: ms(60),
            upload: ms(200),
            volume_delete: ms(50),
            link_bytes_per_s: 100 << 20,
            resource_tick: ms(10_000),
            resource_flap: ms(1_000),
            unauthorized: ms(3_000),
            dead_host: ms(3_000),
            offline_after: ms(8_000),
            unknown_after: ms(300_000),
            lock_wait: ms(10_000),
            restart_trap: ms(30_000),
            ha_manager: ms(12_000),
        }
    }
}
