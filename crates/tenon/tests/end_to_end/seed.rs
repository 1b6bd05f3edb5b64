//! A guest reads from its seed image exactly what was rendered into it. No control plane is needed for that.

use std::sync::{Arc, Mutex, PoisonError};

use tenon_cloudinit::Bootstrap;
use tenon_sim::{ApiAccess, Connect, ConnectError, Credential, Estate, EstateConfig, GuestConfig, Guests};

use crate::bench::{add_running_vm, eventually, plain_seed, quick_guests};

const TOKEN: &str = "abc123.0123456789abcdef";

/// Remembers with what guests would have connected, and lets none.
#[derive(Debug, Default)]
struct Recorder {
    seen: Mutex<Vec<ApiAccess>>,
}

impl Connect for Recorder {
    fn connect(&self, access: &ApiAccess) -> Result<kube::Client, ConnectError> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(access.clone());
        Err(ConnectError::Other("nobody is there".into()))
    }
}

#[tokio::test]
async fn a_guest_finds_server_authority_and_token_in_its_seed() -> anyhow::Result<()> {
    // Longer than a sector, so that the image holds files of more than one.
    let body = "MIIB0123456789\n".repeat(300);
    let ca_pem = format!("-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n");
    let bootstrap = Bootstrap { api_server: "https://10.0.0.1:6443".into(), ca_pem, token: TOKEN.parse()? };
    let (server, ca_pem) = (bootstrap.api_server.clone(), bootstrap.ca_pem.clone());
    let recorder = Arc::new(Recorder::default());
    let estate = Estate::new(EstateConfig::default());
    let guests = Guests::start(&estate, GuestConfig { connect: recorder.clone(), ..quick_guests() });
    add_running_vm(&estate, 20_001, "default-7f2c", Some(&plain_seed(20_001, "default-7f2c", bootstrap)?))?;

    let seen = eventually("the guest tries to connect", async || {
        Ok(recorder.seen.lock().unwrap_or_else(PoisonError::into_inner).first().cloned())
    })
    .await?;
    assert_eq!(seen, ApiAccess { server, ca_pem, credential: Credential::Token(TOKEN.into()) });
    eventually("its log says that nobody was there", async || {
        Ok(guests.guest_log(20_001).iter().any(|line| line.contains("nobody is there")).then_some(()))
    })
    .await?;
    guests.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_vm_without_a_seed_idles_and_says_so() -> anyhow::Result<()> {
    let estate = Estate::new(EstateConfig::default());
    let guests = Guests::start(&estate, quick_guests());
    add_running_vm(&estate, 20_002, "idle", None)?;
    eventually("the guest says that it has no seed", async || {
        Ok(guests
            .guest_log(20_002)
            .iter()
            .any(|line| line.contains("no drive contains a cloud-init seed"))
            .then_some(()))
    })
    .await?;
    assert_eq!(guests.running(), [20_002]);
    guests.shutdown().await;
    Ok(())
}
