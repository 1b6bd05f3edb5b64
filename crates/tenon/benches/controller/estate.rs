//! A simulated Proxmox cluster with a VM for every node, served over HTTPS.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tenon_model::VmId;
use tenon_pve::OwnerMark;
use tenon_sim::{Estate, EstateConfig, HostSpec, Server, TemplateSpec, Tls, VmSpec};
use tokio::net::TcpListener;

/// What the controller marks its VMs with.
pub(crate) const CLUSTER_ID: &str = "bench";

/// The machines the VMs are spread over.
pub(crate) const HOSTS: usize = 20;

/// The estate's usual token.
const TOKEN: (&str, &str) = ("tenon@pve!sim", "11111111-2222-3333-4444-555555555555");

pub(crate) struct Lab {
    estate: Estate,
    dir: TempDir,
    /// It answers while it is there.
    _server: Server,
}

impl Lab {
    pub(crate) async fn serve() -> anyhow::Result<Lab> {
        let hosts = (0..HOSTS).map(|number| HostSpec::new(&host(number), 512, 4 << 40)).collect();
        let estate = Estate::new(EstateConfig { hosts, ..EstateConfig::default() });
        estate.add_template(&TemplateSpec { vmid: 9001, name: "debian-13".into(), ..TemplateSpec::default() })?;
        let (dir, tls) = (tempfile::tempdir()?, Tls::self_signed()?);
        fs::write(dir.path().join("ca.pem"), tls.ca_pem())?;
        let server = estate.serve(TcpListener::bind(("127.0.0.1", 0)).await?, tls);
        let config = format!(
            "clusters:\n- region: lab\n  url: https://localhost:{}/api2/json\n  ca_file: {}\n  token_id: {}\n  token_secret: {}\n",
            server.local_addr().port(),
            dir.path().join("ca.pem").display(),
            TOKEN.0,
            TOKEN.1,
        );
        fs::write(dir.path().join("cloud.yaml"), config)?;
        Ok(Lab { estate, dir, _server: server })
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn cloud_config(&self) -> String {
        self.dir.path().join("cloud.yaml").display().to_string()
    }

    /// The running VM of a claim, with everything by which the controller knows its own.
    pub(crate) fn add_vm(&self, number: usize, name: &str, claim_uid: &str) -> anyhow::Result<()> {
        let mark =
            OwnerMark { cluster: CLUSTER_ID.into(), claim: claim_uid.into(), vmid: VmId::try_from(vmid(number))? };
        let config = [
            ("description", mark.to_string()),
            ("cores", "16".to_owned()),
            ("memory", (64 << 10).to_string()),
            ("smbios1", format!("uuid={}", uuid(number))),
        ];
        let config: BTreeMap<String, String> = config.map(|(key, value)| (key.to_owned(), value)).into();
        let base = TemplateSpec {
            host: host(number % HOSTS),
            vmid: vmid(number),
            name: name.to_owned(),
            cloudinit_drive: false,
            // A thousand disks have to find room.
            disk_bytes: 1 << 20,
            config,
            ..TemplateSpec::default()
        };
        Ok(self.estate.add_vm(&VmSpec { base, running: true })?)
    }
}

pub(crate) fn host(number: usize) -> String {
    format!("pve{}", number + 1)
}

pub(crate) fn vmid(number: usize) -> u32 {
    u32::try_from(number).map_or(u32::MAX, |number| 20_000 + number)
}

pub(crate) fn uuid(number: usize) -> String {
    format!("1f0a2b3c-0000-4000-8000-{number:012x}")
}
