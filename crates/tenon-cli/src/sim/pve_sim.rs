//! `tenon pve-sim`: a simulated Proxmox cluster to try things on.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use tenon_sim::{
    Estate, EstateConfig, FaultPlan, GuestConfig, Guests, HostSpec, ImageSpec, PveVersion, StorageSpec, TemplateSpec,
    Tls, UserSpec,
};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// More hosts than any cluster of this kind has.
const HOSTS_MAX: u32 = 64;

/// What a directory of a fresh installation holds.
const DIRECTORY: [&str; 7] = ["backup", "images", "import", "iso", "rootdir", "snippets", "vztmpl"];

/// Templates are found under these ids: the first host's is 9001.
const FIRST_TEMPLATE: u32 = 9001;

/// Serve a simulated Proxmox VE cluster over HTTPS until interrupted.
#[derive(Debug, Args)]
pub struct PveSim {
    /// Address to listen on; port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8006")]
    listen: SocketAddr,
    /// Number of hosts, each with a template.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    hosts: u32,
    /// CPU cores of each host.
    #[arg(long, value_name = "COUNT", default_value_t = 16)]
    cores: u32,
    /// Memory of each host in GiB.
    #[arg(long, value_name = "GIB", default_value_t = 64)]
    memory: u32,
    /// Processor of the hosts. Some programs require that it names Intel or AMD.
    #[arg(long, value_name = "TEXT", default_value = "AMD EPYC 9354P 32-Core Processor")]
    cpu_model: String,
    /// Release of Proxmox VE to simulate: 8.4 or 9.2.
    #[arg(long, value_name = "RELEASE", default_value_t = PveVersion::V9_2)]
    pve_version: PveVersion,
    /// Start without templates and images.
    #[arg(long)]
    empty: bool,
    /// Storages, separated by commas: NAME:KIND[:GIB[:CONTENT+CONTENT]]. KIND is dir (local), shared, thin or lvm; with `+serial`
    /// after KIND, disks are created one at a time. Templates are on the first storage.
    #[arg(long, value_name = "LIST", default_value = "shared:shared:1024,local:dir:256", value_delimiter = ',')]
    storages: Vec<String>,
    /// Password of root@pam, for clients that log in instead of using a token.
    #[arg(long, value_name = "TEXT", default_value = "simulated")]
    password: String,
    /// Print the API calls that are implemented and their parameters, one JSON object per line, and exit.
    #[arg(long)]
    schema: bool,
    /// Seed of all random values: uuids, MAC addresses, the order of rows.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Write the CA certificate of the simulated cluster to this file, for clients that verify it.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Simulate guests: started VMs read their seed image and join the Kubernetes API server at this address.
    #[arg(long, value_name = "URL")]
    guest_api: Option<String>,
    /// Inject faults as described in this YAML file: failing calls and tasks, events such as a host that dies, failing guests.
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
}

/// Serves until SIGINT or SIGTERM.
pub fn run(args: &PveSim, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.schema {
        let lines: String = tenon_sim::schema_lines(args.pve_version).iter().map(|line| format!("{line}\n")).collect();
        return out.write_all(lines.as_bytes()).context("cannot print the schema");
    }
    if !(1..=HOSTS_MAX).contains(&args.hosts) {
        bail!("cannot simulate {} hosts; give --hosts a number from 1 to {HOSTS_MAX}", args.hosts);
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(serve(args, out))
}

async fn serve(args: &PveSim, out: &mut dyn Write) -> anyhow::Result<()> {
    // From here on a signal to stop is handled, also one that comes before anything is printed.
    let mut end = signal(SignalKind::terminate()).context("cannot handle SIGTERM")?;
    let faults = fault_plan(args)?;
    let estate = estate(args)?;
    if let Some(path) = &args.faults {
        estate.add_faults(&faults).with_context(|| format!("cannot use {}", path.display()))?;
    }
    let tls = Tls::self_signed().context("cannot create a certificate")?;
    if let Some(path) = &args.ca_file {
        fs::write(path, tls.ca_pem()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let fingerprint = tls.fingerprint().to_owned();
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|error| anyhow!("cannot listen on {}: {error}; choose another address with --listen", args.listen))?;
    let server = estate.serve(listener, tls);
    let guest_config =
        GuestConfig { guest_api: args.guest_api.clone(), faults: faults.guests, ..GuestConfig::default() };
    let guests = args.guest_api.is_some().then(|| Guests::start(&estate, guest_config));
    introduce(args, server.local_addr(), &fingerprint, out)?;
    let ended = tokio::select! {
        outcome = tokio::signal::ctrl_c() => outcome.context("cannot handle Ctrl-C"),
        _ = end.recv() => Ok(()),
    };
    if let Some(guests) = guests {
        guests.shutdown().await;
    }
    server.shutdown().await;
    ended
}

fn fault_plan(args: &PveSim) -> anyhow::Result<FaultPlan> {
    let Some(path) = &args.faults else { return Ok(FaultPlan::default()) };
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let plan = FaultPlan::from_yaml(&text).with_context(|| format!("cannot use {}", path.display()))?;
    if !plan.guests.is_empty() && args.guest_api.is_none() {
        bail!("cannot use {}: it has faults of guests, but no guests are simulated; add --guest-api", path.display());
    }
    Ok(plan)
}

fn estate(args: &PveSim) -> anyhow::Result<Estate> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the system clock is before 1970")?;
    let names: Vec<String> = (1..=args.hosts).map(|number| format!("pve{number}")).collect();
    let host = |name: &String| HostSpec::new(name, args.cores, u64::from(args.memory) << 30).cpu_model(&args.cpu_model);
    let hosts = names.iter().map(host).collect();
    let storages = args.storages.iter().map(|text| storage(text)).collect::<anyhow::Result<Vec<_>>>()?;
    let (images, epoch) = (storages.clone(), now.as_secs());
    let users = vec![UserSpec::new("root@pam", &args.password)];
    let (seed, version) = (args.seed, args.pve_version);
    let estate = Estate::new(EstateConfig { hosts, storages, users, seed, epoch, version, ..EstateConfig::default() });
    if !args.empty {
        furnish(&estate, &names, &images)?;
    }
    Ok(estate)
}

/// Puts a template onto every host, and an image wherever one can be imported from.
fn furnish(estate: &Estate, hosts: &[String], storages: &[StorageSpec]) -> anyhow::Result<()> {
    let first = storages.first().context("no storage is given; give one with --storages")?;
    for (vmid, host) in (FIRST_TEMPLATE..).zip(hosts) {
        let (host, storage, name) = (host.clone(), first.id.clone(), "debian-13".to_owned());
        let template = TemplateSpec { host, vmid, name, storage, ..TemplateSpec::default() };
        estate.add_template(&template).with_context(|| format!("cannot create template {vmid}"))?;
    }
    let image = ImageSpec { disk_bytes: 3 << 30, file_bytes: 330 << 20, bootable: true };
    for spec in storages.iter().filter(|spec| spec.content.iter().any(|kind| kind == "import")) {
        let hosts = if spec.shared { &hosts[..1] } else { hosts };
        for host in hosts {
            let volid = format!("{}:import/debian-13.qcow2", spec.id);
            estate
                .put_image(host, &volid, &image)
                .with_context(|| format!("cannot create image {volid} on host {host}"))?;
        }
    }
    Ok(())
}

/// `NAME:KIND[:GIB[:CONTENT+CONTENT]]`.
fn storage(text: &str) -> anyhow::Result<StorageSpec> {
    let wrong = || {
        format!("invalid storage `{text}`; give NAME:KIND[:GIB[:CONTENT+CONTENT]] with KIND dir, shared, thin or lvm")
    };
    let mut parts = text.trim().splitn(4, ':');
    let (Some(name), Some(kind)) = (parts.next().filter(|name| !name.is_empty()), parts.next()) else { bail!(wrong()) };
    let gib: u64 = parts.next().unwrap_or("256").parse().with_context(wrong)?;
    let (kind, serial) = kind.strip_suffix("+serial").map_or((kind, false), |kind| (kind, true));
    let bytes = gib.checked_mul(1 << 30).with_context(wrong)?;
    let mut spec = match kind {
        "dir" if name == "local" => StorageSpec::new(name, &DIRECTORY, bytes).at("/var/lib/vz"),
        "dir" => StorageSpec::new(name, &DIRECTORY, bytes),
        "shared" => StorageSpec::new(name, &DIRECTORY, bytes).shared(),
        "thin" => StorageSpec::thin(name, bytes),
        "lvm" => StorageSpec::thick(name, bytes),
        _ => bail!(wrong()),
    };
    if let Some(content) = parts.next() {
        spec.content = content.split('+').map(str::to_owned).collect();
        if !spec.content.iter().all(|kind| DIRECTORY.contains(&kind.as_str())) {
            bail!("invalid storage `{text}`: unknown content; known are {}", DIRECTORY.join(", "));
        }
    }
    Ok(if serial { spec.serial() } else { spec })
}

fn introduce(args: &PveSim, address: SocketAddr, fingerprint: &str, out: &mut dyn Write) -> anyhow::Result<()> {
    let token = EstateConfig::default().tokens.into_iter().next().context("the simulator has no token")?;
    let header = format!("Authorization: PVEAPIToken={}={}", token.id, token.secret);
    let last = FIRST_TEMPLATE + args.hosts - 1;
    let templates = match args.empty {
        true => "none".to_owned(),
        false => format!("debian-13, VM IDs {FIRST_TEMPLATE} to {last}, one on each host"),
    };
    let text = format!(
        "simulated Proxmox VE at https://{address}/api2/json\n\
         version      {}\n\
         token        {} with secret {}\n\
         fingerprint  {fingerprint}\n\
         login        root@pam with password {}\n\
         hosts        pve1 to pve{}, storages {}\n\
         templates    {templates}\n\
         try          curl -k -H '{header}' https://{address}/api2/json/version\n",
        args.pve_version,
        token.id,
        token.secret,
        args.password,
        args.hosts,
        args.storages.join(", ")
    );
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot print the address")
}
