//! One controller process: when it is ready, and how much memory it holds then and later.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use testbed::Testbed;

use crate::estate::{CLUSTER_ID, Lab};

/// It is ready in seconds; this is for a machine under load.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// What was measured of one process. Memory in kilobytes of 1,024 bytes, as the kernel counts.
pub(crate) struct Measured {
    pub(crate) ready: Duration,
    pub(crate) at_ready: u64,
    pub(crate) settled: u64,
    pub(crate) peak: u64,
}

/// Starts a controller, waits until it has read everything and then for `settling`, and ends it.
pub(crate) async fn measure(testbed: &Testbed, lab: &Lab, settling: Duration) -> anyhow::Result<Measured> {
    let mut running = Running::start(testbed, lab)?;
    let ready = running.until_ready().await?;
    let (at_ready, _) = running.memory()?;
    tokio::time::sleep(settling).await;
    let (settled, peak) = running.memory()?;
    running.end()?;
    Ok(Measured { ready, at_ready, settled, peak })
}

struct Running {
    child: Child,
    begun: Instant,
    log: std::path::PathBuf,
}

impl Running {
    fn start(testbed: &Testbed, lab: &Lab) -> anyhow::Result<Running> {
        let log = lab.dir().join("controller.log");
        let file = File::create(&log)?;
        let begun = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_tenon"))
            .args(["controller", "-metrics-port=0", "-health-probe-port=0", "-disable-leader-election"])
            .args(["--cluster-id", CLUSTER_ID, "--cluster-endpoint", testbed.server()])
            .arg("--kubeconfig")
            .arg(testbed.kubeconfig())
            .args(["--cloud-config", &lab.cloud_config()])
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("cannot start the controller")?;
        Ok(Running { child, begun, log })
    }

    async fn until_ready(&mut self) -> anyhow::Result<Duration> {
        loop {
            let log = fs::read_to_string(&self.log)?;
            if log.contains("caches synced") {
                return Ok(self.begun.elapsed());
            }
            if self.begun.elapsed() > READY_WITHIN || self.child.try_wait()?.is_some() {
                bail!("the controller is not ready; it says:\n{log}");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// What it holds now, and what it held at most.
    fn memory(&self) -> anyhow::Result<(u64, u64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kilobytes = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let both = kilobytes("VmRSS:").zip(kilobytes("VmHWM:"));
        both.with_context(|| format!("cannot read the memory of process {}", self.child.id()))
    }

    fn end(mut self) -> anyhow::Result<()> {
        Command::new("kill").arg(self.child.id().to_string()).status()?;
        let status = self.child.wait()?;
        let log = fs::read_to_string(&self.log)?;
        for line in log.lines().filter(|line| line.contains("\"WARN\"") || line.contains("\"ERROR\"")).take(5) {
            println!("  the controller says: {line}");
        }
        if !status.success() {
            bail!("the controller ended with {status}; it says:\n{log}");
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A run that failed must not leave a controller behind; one that ended is not there to be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
