//! The Go provider's own controller as a process: started as its chart starts it, on the control plane and the estate of a world.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tenon_sim::TokenSpec;

use crate::request_audit::GO_PROVIDER;
use crate::world::{TOKEN, World};

/// It hands back its work in a second or two; after that it is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

/// A controller that runs, and the folder with its cloud config, its log and its temporary files.
pub(crate) struct GoController {
    child: Option<Child>,
    dir: TempDir,
}

impl GoController {
    pub(crate) fn start(world: &World, program: &Path) -> anyhow::Result<GoController> {
        let dir = tempfile::tempdir()?;
        let (config, log) = (dir.path().join("cloud.yaml"), File::create(dir.path().join("log"))?);
        // It has no key for an authority: people switch the check off.
        let ours = fs::read_to_string(world.cloud_config()?)?;
        let (id, secret) = GO_PROVIDER;
        world.estate.grant_token(TokenSpec::new(id, secret));
        let theirs =
            ours.replace("  ca_file:", "  insecure: true\n  ca_file:").replace(TOKEN.0, id).replace(TOKEN.1, secret);
        fs::write(&config, theirs)?;
        let mut command = Command::new(program);
        command
            .arg("-cloud-config")
            .arg(&config)
            // Without an election it works at once; the two never run at the same time here.
            .args(["-log-level=debug", "-metrics-port=0", "-health-probe-port=0", "-disable-leader-election"])
            .envs([("SYSTEM_NAMESPACE", "kube-system"), ("BATCH_IDLE_DURATION", "300ms"), ("BATCH_MAX_DURATION", "1s")])
            .env("KUBECONFIG", world.testbed()?.kubeconfig())
            .env("TMPDIR", dir.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = command.spawn().context("cannot start the controller of the Go provider")?;
        Ok(GoController { child: Some(child), dir })
    }

    /// What it said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// What it said last, each line cut.
    pub(crate) fn tail(&self) -> String {
        let log = self.log();
        let lines: Vec<String> = log.lines().map(|line| line.chars().take(600).collect()).collect();
        format!("the Go provider says:\n{}", lines[lines.len().saturating_sub(25)..].join("\n"))
    }

    /// Ends it as Kubernetes does.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        Command::new("kill").arg(child.id().to_string()).status()?;
        let ended = tokio::time::timeout(ENDS_WITHIN, async {
            while child.try_wait()?.is_none() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            anyhow::Ok(())
        })
        .await;
        if ended.is_err() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for GoController {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A test that failed must not leave a controller behind.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
