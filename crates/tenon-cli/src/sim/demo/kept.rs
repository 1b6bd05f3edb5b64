//! The demo that stays up: both APIs on ports, for kubectl and curl.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow};
use tempfile::TempDir;
use tenon_sim::{EstateConfig, Tls};
use tokio::net::TcpListener;

use super::site::Site;

/// What is needed to keep running, taken before the demo begins, so that an error is reported at once.
pub(crate) struct Kept {
    kubernetes: TcpListener,
    proxmox: TcpListener,
    /// Removed with everything in it at the end.
    _folder: TempDir,
    kubeconfig: PathBuf,
}

impl Kept {
    /// Takes the ports, and a place for the kubeconfig.
    pub(crate) async fn prepare(kubernetes: SocketAddr, proxmox: SocketAddr) -> anyhow::Result<Kept> {
        let kubernetes = listen(kubernetes, "--kubernetes-listen").await?;
        let proxmox = listen(proxmox, "--proxmox-listen").await?;
        let cannot =
            |what: &str, error: &io::Error| anyhow!("cannot {what}: {error}; set TMPDIR to a writable directory");
        let folder = tempfile::Builder::new().prefix("tenon-demo-").tempdir();
        let folder = folder.map_err(|error| cannot("create a directory for the kubeconfig", &error))?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, "").map_err(|error| cannot("write the kubeconfig", &error))?;
        Ok(Kept { kubernetes, proxmox, _folder: folder, kubeconfig })
    }

    /// Serves until interrupted. From here on time passes as it does outside.
    pub(crate) async fn serve(self, site: &Site, out: &mut dyn Write) -> anyhow::Result<()> {
        tokio::time::resume();
        let (cluster, estate) = site.parts();
        let address = self.kubernetes.local_addr().context("cannot read the address of the Kubernetes API")?;
        std::fs::write(&self.kubeconfig, cluster.kubeconfig(&format!("https://{address}")))
            .context("cannot write the kubeconfig")?;
        let kubernetes = cluster.serve(self.kubernetes, cluster.tls().context("cannot create a certificate")?);
        let proxmox = estate.serve(self.proxmox, Tls::self_signed().context("cannot create a certificate")?);
        let token =
            EstateConfig::default().tokens.into_iter().next().context("the simulated Proxmox has no API token")?;
        writeln!(out, "\nThe demo keeps running until Ctrl-C. Pods that you create get nodes, too:")?;
        writeln!(out, "  export KUBECONFIG={}", self.kubeconfig.display())?;
        writeln!(out, "  kubectl scale deployment api --replicas=4")?;
        writeln!(out, "  kubectl get nodeclaims,nodes,pods")?;
        let header = format!("Authorization: PVEAPIToken={}={}", token.id, token.secret);
        writeln!(out, "  curl -k -H '{header}' https://{}/api2/json/cluster/resources", proxmox.local_addr())?;
        out.flush()?;
        tokio::signal::ctrl_c().await.context("cannot handle Ctrl-C")?;
        kubernetes.shutdown().await;
        proxmox.shutdown().await;
        Ok(())
    }
}

async fn listen(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| anyhow!("cannot listen on {address}: {error}; choose another address with {flag}"))
}
