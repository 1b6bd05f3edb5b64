//! The real ground: a control plane of its own, the estate over HTTPS, and the controller as a process that can be killed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tenon_sim::{Estate, Server, Tls};
use testbed::{Testbed, own_testbed};
use tokio::net::TcpListener;

use crate::world::TOKEN;
use crate::{rights, rights_audit};

pub(crate) struct Real {
    pub(crate) testbed: Testbed,
    server: Option<Server>,
    /// What the estate is served with unless a test wants otherwise.
    pub(crate) tls: Tls,
    port: u16,
    /// A second Proxmox cluster, and its port.
    beside: Option<(Server, u16)>,
    /// Whether the cloud config has the region of every world.
    has_lab: bool,
    dir: TempDir,
    controller: Option<Child>,
    /// What the next controller has switched on.
    pub(crate) gates: String,
    /// How long a launch of the next controller may stand still.
    pub(crate) launch_timeout: Option<Duration>,
    /// What the next controller gets for `--ccm`.
    pub(crate) ccm: &'static str,
    /// What the next controller gets for `--node-policy`.
    pub(crate) node_policy: &'static str,
    /// Whether the next controller approves certificates.
    pub(crate) csr_approver: &'static str,
    /// How the next controller reaches the API server; unset: as an administrator.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Hosts that the cloud config excludes.
    pub(crate) excluded: Vec<String>,
    /// Whether the next controller is told where nodes find the API server.
    pub(crate) knows_endpoint: bool,
    /// Further arguments of the next controller.
    pub(crate) more_args: Vec<String>,
    /// The file of instance types that the next controller has, if not the built-in ones.
    types: Option<PathBuf>,
}

impl Real {
    /// A control plane and an estate that is served; `None` where there are no programs for it.
    pub(crate) async fn new(estate: &Estate) -> anyhow::Result<Option<Real>> {
        let Some(testbed) = own_testbed()? else { return Ok(None) };
        let (dir, tls) = (tempfile::tempdir()?, Tls::self_signed()?);
        let gates = String::new();
        let mut real = Real {
            testbed,
            server: None,
            tls,
            port: 0,
            beside: None,
            has_lab: true,
            dir,
            controller: None,
            gates,
            launch_timeout: None,
            ccm: "external",
            node_policy: "simple",
            csr_approver: "false",
            kubeconfig: None,
            excluded: Vec::new(),
            knows_endpoint: true,
            more_args: Vec::new(),
            types: None,
        };
        real.serve(estate, real.tls.clone()).await?;
        real.configure(TOKEN)?;
        real.grant("false").await?;
        Ok(Some(real))
    }

    /// Gives controllers the rights that the chart gives them.
    pub(crate) async fn grant(&mut self, csr_approver: &'static str) -> anyhow::Result<()> {
        self.kubeconfig = rights::grant(&self.testbed, csr_approver).await?;
        Ok(())
    }

    /// Serves the estate, on the port it had before if it had one.
    pub(crate) async fn serve(&mut self, estate: &Estate, tls: Tls) -> anyhow::Result<()> {
        fs::write(self.dir.path().join("ca.pem"), tls.ca_pem())?;
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await?;
        let server = estate.serve(listener, tls);
        self.port = server.local_addr().port();
        self.server = Some(server);
        Ok(())
    }

    /// Serves a second Proxmox cluster, region `attic` of the next controllers.
    pub(crate) async fn serve_beside(&mut self, estate: &Estate) -> anyhow::Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let server = estate.serve(listener, self.tls.clone());
        let port = server.local_addr().port();
        self.beside = Some((server, port));
        self.configure(TOKEN)
    }

    /// Proxmox answers nobody any more.
    pub(crate) async fn stop_serving(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown().await;
        }
    }

    /// Writes the cloud config with the token, and with the region of every world or without it.
    pub(crate) fn reconfigure(&mut self, token: (&str, &str), has_lab: bool) -> anyhow::Result<()> {
        self.has_lab = has_lab;
        self.configure(token)
    }

    /// Writes the cloud config, with this token.
    pub(crate) fn configure(&self, (id, secret): (&str, &str)) -> anyhow::Result<()> {
        let path = self.dir.path();
        let ca = path.join("ca.pem");
        let cluster = |(region, port): (&str, u16)| {
            format!(
                "- region: {region}\n  url: https://localhost:{port}/api2/json\n  ca_file: {}\n  token_id: {id}\n  token_secret: {secret}\n",
                ca.display(),
            )
        };
        let beside = self.beside.as_ref().map(|(_, port)| cluster(("attic", *port)));
        let mut lab = if self.has_lab { cluster(("lab", self.port)) } else { String::new() };
        if self.has_lab && !self.excluded.is_empty() {
            let hosts = self.excluded.iter().map(|host| format!("    {host}: {{excluded: true}}\n"));
            lab.push_str(&format!("  hosts:\n{}", hosts.collect::<String>()));
        }
        let config = format!("clusters:\n{lab}{}", beside.unwrap_or_default());
        Ok(fs::write(path.join("cloud.yaml"), config)?)
    }

    /// Writes the file of instance types of the next controller.
    pub(crate) fn use_instance_types(&mut self, text: &str) -> anyhow::Result<()> {
        let path = self.dir.path().join("types.json");
        fs::write(&path, text)?;
        self.types = Some(path);
        Ok(())
    }

    pub(crate) fn log_path(&self, log: &str) -> PathBuf {
        self.dir.path().join(format!("{log}.log"))
    }

    /// What a controller said so far.
    pub(crate) fn log(&self, log: &str) -> String {
        fs::read_to_string(self.log_path(log)).unwrap_or_default()
    }

    /// Starts the controller, as a user would.
    pub(crate) fn start_controller(&mut self) -> anyhow::Result<()> {
        let mut command = self.controller_command("controller")?;
        // A world has one controller, and one that is killed and started again should not wait for its own old lease.
        let child = command.arg("-disable-leader-election").spawn().context("cannot start the controller")?;
        self.controller = Some(child);
        Ok(())
    }

    /// Starts the controller with the arguments and variables of a Deployment. Behind them comes what no chart can know: where this
    /// world has its cloud config and its API server, and ports that are free.
    pub(crate) fn start_deployed(
        &mut self,
        args: &[String],
        variables: &[(String, String)],
        kubeconfig: &Path,
    ) -> anyhow::Result<()> {
        let log = File::options().create(true).append(true).open(self.log_path("controller"))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
        command
            .args(args)
            .args(["-metrics-port=0", "-health-probe-port=0", "--cluster-endpoint", self.testbed.server()])
            .arg("-cloud-config")
            .arg(self.cloud_config())
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        self.controller = Some(command.spawn().context("cannot start the controller")?);
        Ok(())
    }

    /// Where the cloud config is.
    pub(crate) fn cloud_config(&self) -> PathBuf {
        self.dir.path().join("cloud.yaml")
    }

    /// The command that starts a controller, which writes its log into a file of this name.
    pub(crate) fn controller_command(&self, log: &str) -> anyhow::Result<Command> {
        let log = File::options().create(true).append(true).open(self.log_path(log))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
        command
            .args(["controller", "-metrics-port=0", "-health-probe-port=0"])
            .args(["--batch-idle-duration=300ms", "--batch-max-duration=1s"])
            .arg("--kubeconfig")
            .arg(self.kubeconfig.clone().unwrap_or_else(|| self.testbed.kubeconfig()))
            .arg("--cloud-config")
            .arg(self.cloud_config())
            .args(["--cluster-endpoint", if self.knows_endpoint { self.testbed.server() } else { "" }])
            .args(["--feature-gates", &self.gates])
            .args(["--ccm", self.ccm])
            .args(["--node-policy", self.node_policy])
            .arg(format!("--csr-approver={}", self.csr_approver))
            .args(self.types.iter().flat_map(|path| [OsStr::new("--instance-types-file"), path.as_os_str()]))
            .args(&self.more_args)
            .args(self.launch_timeout.map(|limit| format!("--launch-timeout={}s", limit.as_secs())))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command)
    }

    /// kill -9.
    pub(crate) fn kill_controller(&mut self) -> anyhow::Result<()> {
        let mut child = self.controller.take().context("no controller runs")?;
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// Whether the controller that was started last still runs.
    pub(crate) fn is_controller_running(&mut self) -> anyhow::Result<bool> {
        let child = self.controller.as_mut().context("no controller was started")?;
        Ok(child.try_wait()?.is_none())
    }

    /// Ends the controller, politely.
    pub(crate) fn stop_controller(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.controller.take() {
            Command::new("kill").arg(child.id().to_string()).status()?;
            let status = child.wait()?;
            assert!(status.success(), "the controller ended with {status}\n{}", self.log("controller"));
        }
        Ok(())
    }

    /// Ends everything, controller first, politely.
    pub(crate) async fn end(&mut self) -> anyhow::Result<()> {
        self.stop_controller()?;
        rights_audit::keeps_to_the_table(&self.testbed)?;
        self.stop_serving().await;
        if let Some((server, _)) = self.beside.take() {
            server.shutdown().await;
        }
        Ok(())
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        if let Some(mut child) = self.controller.take() {
            // A test that failed must not leave a controller behind.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
