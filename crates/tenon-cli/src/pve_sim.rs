//! `tenon pve-sim`: a Proxmox cluster to try things on, with nothing behind it that could break.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use clap::Args;
use tenon_sim::{Estate, EstateConfig, GuestConfig, Guests, HostSpec, TemplateSpec, Tls};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// More hosts than any cluster of this kind has.
const HOSTS_MAX: u32 = 64;

/// Templates are found under these ids: the first host's is 9001.
const FIRST_TEMPLATE: u32 = 9001;

/// Serve a simulated Proxmox VE cluster over HTTPS until interrupted.
#[derive(Debug, Args)]
pub struct PveSim {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8006")]
    listen: SocketAddr,
    /// How many hosts, each with 16 cores, 64 GiB and a template.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    hosts: u32,
    /// Seed of everything that is random: uuids, MAC addresses, the order of rows.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Write the certificate of the cluster's authority to this file, for clients that check it.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Let guests boot: started VMs read their seed and join the Kubernetes API server at this address.
    #[arg(long, value_name = "URL")]
    guest_api: Option<String>,
}

/// Serves until the process is interrupted or told to end.
pub fn run(args: &PveSim, out: &mut dyn Write) -> anyhow::Result<()> {
    if !(1..=HOSTS_MAX).contains(&args.hosts) {
        bail!("cannot make {} hosts: give a number from 1 to {HOSTS_MAX}", args.hosts);
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(serve(args, out))
}

async fn serve(args: &PveSim, out: &mut dyn Write) -> anyhow::Result<()> {
    // From here on a request to end is heard, also one that comes before anything is printed.
    let mut end = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let estate = estate(args)?;
    let tls = Tls::self_signed().context("cannot make a certificate")?;
    if let Some(path) = &args.ca_file {
        fs::write(path, tls.ca_pem()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let fingerprint = tls.fingerprint().to_owned();
    let listener = TcpListener::bind(args.listen).await.with_context(|| format!("cannot listen on {}", args.listen))?;
    let server = estate.serve(listener, tls);
    let guest_config = GuestConfig { guest_api: args.guest_api.clone(), ..GuestConfig::default() };
    let guests = args.guest_api.is_some().then(|| Guests::start(&estate, guest_config));
    introduce(args, server.local_addr(), &fingerprint, out)?;
    let ended = tokio::select! {
        outcome = tokio::signal::ctrl_c() => outcome.context("cannot listen for Ctrl-C"),
        _ = end.recv() => Ok(()),
    };
    if let Some(guests) = guests {
        guests.shutdown().await;
    }
    server.shutdown().await;
    ended
}

fn estate(args: &PveSim) -> anyhow::Result<Estate> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    let names: Vec<String> = (1..=args.hosts).map(|number| format!("pve{number}")).collect();
    let hosts = names.iter().map(|name| HostSpec::new(name, 16, 64 << 30)).collect();
    let estate = Estate::new(EstateConfig { hosts, seed: args.seed, epoch: now.as_secs(), ..EstateConfig::default() });
    for (vmid, host) in (FIRST_TEMPLATE..).zip(names) {
        let template = TemplateSpec { host, vmid, name: "debian-13".to_owned(), ..TemplateSpec::default() };
        estate.add_template(&template).with_context(|| format!("cannot add template {vmid}"))?;
    }
    Ok(estate)
}

fn introduce(args: &PveSim, address: SocketAddr, fingerprint: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    let token = EstateConfig::default().tokens.into_iter().next().context("the simulator has no token")?;
    let header = format!("Authorization: PVEAPIToken={}={}", token.id, token.secret);
    let last = FIRST_TEMPLATE + args.hosts - 1;
    let text = format!(
        "simulated Proxmox VE at https://{address}/api2/json\n\
         token        {} with secret {}\n\
         fingerprint  {fingerprint}\n\
         hosts        pve1 to pve{}, storages shared and local\n\
         templates    debian-13, ids {FIRST_TEMPLATE} to {last}, one on each host\n\
         try          curl -k -H '{header}' https://{address}/api2/json/version\n",
        token.id, token.secret, args.hosts
    );
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot print the address")
}
