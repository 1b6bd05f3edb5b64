//! The demo that stays up: both APIs on ports, for kubectl and curl.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use tempfile::TempDir;
use tenon_sim::{EstateConfig, Tls};
use tokio::net::TcpListener;

use super::site::Site;

/// What is needed to stay up, taken before the demo begins: what cannot be had is said at once.
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
        let taken = |flag: &str, address: SocketAddr| {
            format!("cannot listen on {address}; is something else there? choose another address with {flag}")
        };
        let kubernetes =
            TcpListener::bind(kubernetes).await.with_context(|| taken("--kubernetes-listen", kubernetes))?;
        let proxmox = TcpListener::bind(proxmox).await.with_context(|| taken("--proxmox-listen", proxmox))?;
        let folder = tempfile::Builder::new().prefix("tenon-demo-").tempdir();
        let folder =
            folder.context("cannot make a folder for the kubeconfig; set TMPDIR to one that can be written")?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, "").context("cannot write the kubeconfig; set TMPDIR to a folder with room")?;
        Ok(Kept { kubernetes, proxmox, _folder: folder, kubeconfig })
    }

    /// Serves until interrupted. From here on time passes as it does outside.
    pub(crate) async fn serve(self, site: &Site, out: &mut dyn Write) -> anyhow::Result<()> {
        tokio::time::resume();
        let (cluster, estate) = site.parts();
        let address = self.kubernetes.local_addr().context("cannot listen")?;
        std::fs::write(&self.kubeconfig, cluster.kubeconfig(&format!("https://{address}")))
            .context("cannot write the kubeconfig")?;
        let kubernetes = cluster.serve(self.kubernetes, cluster.tls().context("cannot make a certificate")?);
        let proxmox = estate.serve(self.proxmox, Tls::self_signed().context("cannot make a certificate")?);
        let token = EstateConfig::default().tokens.into_iter().next().context("the estate has no token")?;
        writeln!(out, "\nstill up, until Ctrl-C; pods you create get nodes, too:")?;
        writeln!(out, "  export KUBECONFIG={}", self.kubeconfig.display())?;
        writeln!(out, "  kubectl scale deployment api --replicas=4")?;
        writeln!(out, "  kubectl get nodeclaims,nodes,pods")?;
        let header = format!("Authorization: PVEAPIToken={}={}", token.id, token.secret);
        writeln!(out, "  curl -k -H '{header}' https://{}/api2/json/cluster/resources", proxmox.local_addr())?;
        out.flush()?;
        tokio::signal::ctrl_c().await.context("cannot listen for Ctrl-C")?;
        kubernetes.shutdown().await;
        proxmox.shutdown().await;
        Ok(())
    }
}
