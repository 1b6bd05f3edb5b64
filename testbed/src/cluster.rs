//! A whole control plane: made in seconds, gone without a trace.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::audit::AuditReader;
use crate::component::{Component, Ready, Recipe};
use crate::error::{Error, Result};
use crate::first_objects;
use crate::flags::{self, Ports};
use crate::keeper::Keeper;
use crate::kubeconfig::{self, Credential};
use crate::locate::{Lookup, absolute};
use crate::pki::{Authority, write_private};
use crate::ports::free_ports;
use crate::programs::Program;
use crate::wire::Wire;

/// Starts with ports taken by someone else in the meantime are tried again this often.
const START_TRIES: usize = 3;

/// The controller manager is healthy seconds before it has a single controller, and ends if the API server goes away
/// in between. The checks of its controllers are listed all at once when it has them; one stands for all.
const CONTROLLERS_READY: Ready = Ready { path: "/healthz?verbose", word: "[+]serviceaccount-controller ok" };

/// The others are ready when they say so.
const SAYS_READY: Ready = Ready { path: "/readyz", word: "ok" };

/// Names the folder that testbeds are made in; the system's temp folder unless it is set.
pub const DIR_VARIABLE: &str = "TENON_TESTBED_DIR";

/// How every testbed's folder is called, up to its random part.
pub const DIR_PREFIX: &str = "tenon-testbed-";

/// A running control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.
///
/// Dropping it ends the processes and removes their folder. If its owner is killed instead, the keeper does.
pub struct Testbed {
    // Declared first, so dropped first: the keeper then finds nothing left to end.
    components: Mutex<BTreeMap<Program, Component>>,
    pub(crate) authority: Authority,
    server: String,
    keeper: Keeper,
}

impl Testbed {
    /// Starts a control plane from programs that are there already, and returns when all four are ready.
    pub fn start() -> Result<Testbed> {
        Testbed::start_with(&Lookup::from_env()?)
    }

    /// As [`Testbed::start`], with programs from the given places.
    pub fn start_with(lookup: &Lookup) -> Result<Testbed> {
        let mut tries = 1;
        loop {
            match Testbed::try_start(lookup) {
                Err(Error::Ended { tail, .. }) if tail.contains("address already in use") && tries < START_TRIES => {
                    tries += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn try_start(lookup: &Lookup) -> Result<Testbed> {
        let keeper = Keeper::start(&new_dir())?;
        let dir = keeper.dir().to_owned();
        let [etcd, etcd_peer, apiserver, controller_manager, scheduler] = free_ports()?;
        let ports = Ports { etcd, etcd_peer, apiserver, controller_manager, scheduler };
        let server = format!("https://127.0.0.1:{apiserver}");
        let authority = Authority::create(&dir)?;
        authority.server("server")?;
        write_private(&dir.join("audit-policy.json"), flags::AUDIT_POLICY)?;
        write_kubeconfigs(&authority, &dir, &server)?;
        let testbed = Testbed { components: Mutex::default(), authority, server, keeper };
        testbed.start_components(lookup, &ports)?;
        Ok(testbed)
    }

    fn start_components(&self, lookup: &Lookup, ports: &Ports) -> Result<()> {
        let dir = self.dir();
        let admin = self.authority.client("probe", "testbed-admin", Some("system:masters"))?;
        let wire = Wire::secure(ports.apiserver, &dir.join("ca.crt"), &admin)?;
        let start = |program: Program, args, wire, ready| {
            let name = program.name();
            let recipe = Recipe {
                program,
                binary: lookup.require(program)?.path,
                args,
                pid_file: self.keeper.pid_file(name),
                log: dir.join(format!("{name}.log")),
                wire,
                ready,
            };
            Component::start(recipe)
        };
        let mut etcd = start(Program::Etcd, flags::etcd(dir, ports), wire.at(ports.etcd), SAYS_READY)?;
        etcd.await_ready()?;
        self.components().insert(Program::Etcd, etcd);
        let mut apiserver = start(Program::KubeApiserver, flags::apiserver(dir, ports), wire.clone(), SAYS_READY)?;
        apiserver.await_ready()?;
        self.components().insert(Program::KubeApiserver, apiserver);

        let log = dir.join("kube-apiserver.log");
        first_objects::create(&wire, &log)?;
        first_objects::await_rights(&wire, &log)?;
        // These two only need the API server, so they come up together.
        let manager_wire = wire.at(ports.controller_manager);
        let manager_args = flags::controller_manager(dir, ports);
        let mut manager = start(Program::KubeControllerManager, manager_args, manager_wire, CONTROLLERS_READY)?;
        let scheduler_args = flags::scheduler(dir, ports);
        let mut scheduler = start(Program::KubeScheduler, scheduler_args, wire.at(ports.scheduler), SAYS_READY)?;
        manager.await_ready()?;
        scheduler.await_ready()?;
        let mut components = self.components();
        components.insert(Program::KubeControllerManager, manager);
        components.insert(Program::KubeScheduler, scheduler);
        Ok(())
    }

    /// Stops a component without ending it, as a machine that hangs does.
    pub fn pause(&self, program: Program) -> Result<()> {
        self.with("pause", program, Component::pause)
    }

    /// Lets a paused component run on.
    pub fn resume(&self, program: Program) -> Result<()> {
        self.with("resume", program, Component::resume)
    }

    /// Ends a component as kill -9 does. Its data stays.
    pub fn kill(&self, program: Program) -> Result<()> {
        self.with("kill", program, Component::kill)
    }

    /// Kills a component if it runs, starts it again on the same port and data, and waits until it is ready.
    pub fn restart(&self, program: Program) -> Result<()> {
        self.with("restart", program, Component::restart)
    }

    /// The process of a component, while it runs.
    pub fn pid(&self, program: Program) -> Option<u32> {
        self.components().get(&program).and_then(Component::pid)
    }

    /// The log file of a component.
    pub fn log(&self, program: Program) -> Option<PathBuf> {
        self.components().get(&program).map(|component| component.log().to_owned())
    }

    /// The kubeconfig of a cluster administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir().join("admin.kubeconfig")
    }

    /// Variables that point kubectl and helm here, with their caches: those are kept by port, and ports come again.
    pub fn environment(&self) -> [(&'static str, PathBuf); 5] {
        environment(self.dir())
    }

    /// The API server's address.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The certificate authority that signed the API server's certificate, in PEM.
    pub fn ca_pem(&self) -> String {
        self.authority.certificate_pem()
    }

    /// The folder that holds everything of this testbed.
    pub fn dir(&self) -> &Path {
        self.keeper.dir()
    }

    /// Reads the audit log from its beginning.
    pub fn audit(&self) -> AuditReader {
        AuditReader::new(self.dir().join("audit.log"))
    }

    fn with<T>(
        &self,
        action: &'static str,
        program: Program,
        f: impl FnOnce(&mut Component) -> Result<T>,
    ) -> Result<T> {
        let mut components = self.components();
        f(components.get_mut(&program).ok_or(Error::NotRunning { action, component: program })?)
    }

    fn components(&self) -> MutexGuard<'_, BTreeMap<Program, Component>> {
        // A test that panicked while it held this leaves a map that is still whole.
        self.components.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same for a testbed that another process owns, by its folder.
pub fn environment(dir: &Path) -> [(&'static str, PathBuf); 5] {
    [
        ("KUBECONFIG", dir.join("admin.kubeconfig")),
        ("KUBECACHEDIR", dir.join("kubectl-cache")),
        ("HELM_CACHE_HOME", dir.join("helm-cache")),
        ("HELM_CONFIG_HOME", dir.join("helm-config")),
        ("HELM_DATA_HOME", dir.join("helm-data")),
    ]
}

fn write_kubeconfigs(authority: &Authority, dir: &Path, server: &str) -> Result<()> {
    let users = [
        ("admin", "testbed-admin", Some("system:masters")),
        ("controller-manager", "system:kube-controller-manager", None),
        ("scheduler", "system:kube-scheduler", None),
    ];
    for (name, user, group) in users {
        let identity = authority.client(name, user, group)?;
        kubeconfig::write(dir, name, server, &Credential::Certificate(&identity))?;
    }
    Ok(())
}

/// A folder name nobody has; the keeper refuses to take one that exists.
fn new_dir() -> PathBuf {
    let base = absolute(DIR_VARIABLE).unwrap_or_else(std::env::temp_dir);
    base.join(random_name(DIR_PREFIX))
}

/// A name nobody has. Each `RandomState` has keys of its own, which is all the randomness this needs.
pub(crate) fn random_name(prefix: &str) -> String {
    format!("{prefix}{:016x}", RandomState::new().hash_one(std::process::id()))
}
