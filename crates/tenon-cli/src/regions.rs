//! `tenon regions`: each Proxmox cluster of the cloud config with its endpoints, how fast each answers, version, quorum and the
//! privileges that its API token lacks. All are asked at once, so one that is silent delays no other.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use serde::Serialize;
use tenon_controllers::Clock;
use tenon_controllers::election::Fence;
use tenon_pve::pve_rights::{self, REQUIRED};
use tenon_pve::{Client, Permissions};
use tokio::task::JoinSet;

use crate::cloud_config::Region;
use crate::controller::cloud;
use crate::plan::table_text::lay_out;

/// A healthy endpoint answers in milliseconds, and refuses a wrong token after three seconds.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// What no node can be created or removed without. Where each is needed is in SECURITY.md; here it counts that it is held
/// on any path of its kind, since a token may have its rights on a resource pool or a storage only.
fn needed() -> BTreeSet<&'static str> {
    pve_rights::privileges(&REQUIRED).into_values().flatten().collect()
}

/// List the Proxmox clusters of the cloud config: whether each endpoint answers and how fast, the version, whether there is
/// quorum, and which privileges the API token lacks.
#[derive(Debug, Args)]
pub struct RegionsArgs {
    /// File with the address and the credentials of each Proxmox cluster.
    #[arg(long, value_name = "FILE", env = "CLOUD_CONFIG", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    cloud_config: PathBuf,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Output,
}

/// How the list is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
}

/// One region.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    region: String,
    endpoints: Vec<ShownEndpoint>,
    version: Option<String>,
    quorate: Option<bool>,
    /// Privileges that are held nowhere; unknown if Proxmox did not say.
    missing_privileges: Option<Vec<String>>,
    /// What went wrong first.
    error: Option<String>,
}

/// One endpoint.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownEndpoint {
    url: String,
    latency_ms: Option<u64>,
    error: Option<String>,
}

/// Asks and prints. A region that cannot be used is an error, once all are printed.
pub fn run(args: &RegionsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let config = cloud(&args.cloud_config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let shown = runtime.context("cannot start the runtime")?.block_on(look(config.regions))?;
    let text = match args.output {
        Output::Json => serde_json::to_string_pretty(&shown).context("cannot encode the regions")? + "\n",
        Output::Table => table(&shown),
    };
    out.write_all(text.as_bytes()).context("cannot print the regions")?;
    let broken: Vec<&str> =
        shown.iter().filter(|region| region.error.is_some()).map(|region| region.region.as_str()).collect();
    if !broken.is_empty() {
        bail!("cannot use region {}; see above", broken.join(", "));
    }
    Ok(())
}

/// Every region at once, in the order of the cloud config.
async fn look(regions: Vec<Region>) -> anyhow::Result<Vec<Shown>> {
    let mut asked = JoinSet::new();
    for (number, region) in regions.into_iter().enumerate() {
        asked.spawn(async move { (number, ask(&region).await) });
    }
    let mut shown = asked.join_all().await;
    shown.sort_by_key(|(number, _)| *number);
    shown.into_iter().map(|(_, region)| region).collect()
}

async fn ask(region: &Region) -> anyhow::Result<Shown> {
    // It never opens: nothing is changed in Proxmox.
    let fence = Fence::closed(Clock::Wall);
    let client = |region: &Region| {
        let client = region.client(&fence);
        client.with_context(|| format!("cannot create the Proxmox client of region {}", region.name))
    };
    let mut each = JoinSet::new();
    for (number, endpoint) in region.endpoints.iter().enumerate() {
        let alone = client(&Region { endpoints: vec![endpoint.clone()], ..region.clone() })?;
        let url = endpoint.to_string();
        each.spawn(async move { (number, time(&alone.within(ANSWER_WITHIN), url).await) });
    }
    let mut endpoints = each.join_all().await;
    endpoints.sort_by_key(|(number, _)| *number);
    let (endpoints, versions): (Vec<_>, Vec<_>) = endpoints.into_iter().map(|(_, found)| found).unzip();
    let mut shown = Shown {
        region: region.name.clone(),
        error: endpoints.iter().find_map(|endpoint| endpoint.error.clone()),
        endpoints,
        version: versions.into_iter().flatten().next(),
        quorate: None,
        missing_privileges: None,
    };
    if shown.version.is_some() {
        let pve = client(region)?.within(ANSWER_WITHIN);
        let (quorate, held) = tokio::join!(pve.is_quorate(), pve.permissions(None));
        // To a token without Sys.Audit Proxmox does not tell; that is in the missing privileges.
        shown.quorate = quorate.ok();
        shown.missing_privileges = held.ok().map(|held| missing(&held));
        // One endpoint of several may be away.
        shown.error = None;
    }
    Ok(shown)
}

async fn time(pve: &Client, url: String) -> (ShownEndpoint, Option<String>) {
    let begun = Instant::now();
    match pve.version().await {
        Ok(version) => {
            let latency_ms = u64::try_from(begun.elapsed().as_millis()).ok();
            (ShownEndpoint { url, latency_ms, error: None }, Some(version))
        }
        Err(error) => (ShownEndpoint { url, latency_ms: None, error: Some(error.full_message()) }, None),
    }
}

fn missing(held: &Permissions) -> Vec<String> {
    let is_held = |privilege: &str| {
        let mut paths = held.iter().filter_map(|(path, privileges)| Some((path, *privileges.get(privilege)?)));
        paths.any(|(path, reaches_down)| counts(privilege, path, reaches_down))
    };
    needed().into_iter().filter(|privilege| !is_held(privilege)).map(str::to_owned).collect()
}

/// Whether a privilege on a path is one on anything that Tenon works with. Proxmox takes any privilege on any path: one for VMs
/// on a storage gives nothing. A resource pool gives its privileges to its VMs and storages.
fn counts(privilege: &str, path: &str, reaches_down: bool) -> bool {
    let kinds: &[&str] = match privilege.split('.').next() {
        Some("VM") => &["vms", "pool"],
        Some("Datastore") => &["storage", "pool"],
        Some("Sys") => &["nodes"],
        Some("SDN") => &["sdn"],
        Some("Mapping") => &["mapping"],
        Some("Pool") => &["pool"],
        _ => &[],
    };
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match (parts.next(), parts.next()) {
        // `/`, and all of a kind: nothing below has it unless it reaches down.
        (None, _) => reaches_down,
        (Some(kind), None) => kinds.contains(&kind) && reaches_down,
        (Some(kind), Some(_)) => kinds.contains(&kind),
    }
}

fn table(regions: &[Shown]) -> String {
    let heads = ["REGION", "ENDPOINT", "LATENCY", "VERSION", "QUORUM", "MISSING PRIVILEGES"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    let unknown = || "unknown".to_owned();
    for region in regions {
        for endpoint in &region.endpoints {
            let latency = endpoint.latency_ms.map_or_else(|| "no answer".to_owned(), |millis| format!("{millis} ms"));
            let quorum = region.quorate.map_or_else(unknown, |quorate| if quorate { "yes" } else { "no" }.to_owned());
            let lacking = region.missing_privileges.as_ref().map_or_else(unknown, |lacking| match lacking.as_slice() {
                [] => "none".to_owned(),
                lacking => lacking.join(","),
            });
            let version = region.version.clone().unwrap_or_else(unknown);
            lines.push(vec![region.region.clone(), endpoint.url.clone(), latency, version, quorum, lacking]);
        }
    }
    let mut text = lay_out(&lines).join("\n");
    text.push('\n');
    for (region, endpoint) in regions.iter().flat_map(|region| region.endpoints.iter().map(move |one| (region, one))) {
        if let Some(error) = &endpoint.error {
            text.push_str(&format!("\nregion {}, {}: {error}\n", region.region, endpoint.url));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use tenon_pve::Token;
    use tenon_sim::{Estate, EstateConfig, Tls};
    use tokio::net::TcpListener;

    use super::*;

    const TOKEN: (&str, &str) = ("tenon@pve!sim", "11111111-2222-3333-4444-555555555555");

    fn region(name: &str, urls: &[String], authority: &str) -> Region {
        let text = format!(
            "clusters: [{{region: {name}, urls: [{}], ca_file: /ca, token_id: \"{}\", token_secret: {}}}]",
            urls.iter().map(|url| format!("\"{url}\"")).collect::<Vec<_>>().join(", "),
            TOKEN.0,
            TOKEN.1,
        );
        assert!(Token::new(TOKEN.0, TOKEN.1).is_ok());
        let read = |_: &std::path::Path| Ok(authority.as_bytes().to_vec());
        crate::cloud_config::parse(&text, &read).unwrap().regions.remove(0)
    }

    #[tokio::test]
    async fn each_region_is_shown_and_a_silent_one_delays_no_other() {
        let (estate, tls) = (Estate::new(EstateConfig::default()), Tls::self_signed().unwrap());
        let authority = tls.ca_pem().to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let server = estate.serve(listener, tls);
        let answering = format!("https://localhost:{}", server.local_addr().port());
        // It takes connections and never says a word.
        let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let silent_url = format!("https://localhost:{}", silent.local_addr().unwrap().port());
        let regions = vec![
            region("away", std::slice::from_ref(&silent_url), &authority),
            region("lab", &[silent_url, answering], &authority),
        ];
        let begun = Instant::now();
        let shown = look(regions).await.unwrap();
        assert!(begun.elapsed() < ANSWER_WITHIN * 4, "{:?}", begun.elapsed());
        let [away, lab] = shown.as_slice() else { panic!("{shown:?}") };
        assert!(away.error.is_some() && away.version.is_none() && away.quorate.is_none(), "{away:?}");
        assert_eq!((lab.error.as_ref(), lab.quorate), (None, Some(true)), "{lab:?}");
        assert!(lab.version.is_some() && lab.missing_privileges.as_ref().is_some_and(Vec::is_empty), "{lab:?}");
        let answers: Vec<bool> = lab.endpoints.iter().map(|endpoint| endpoint.latency_ms.is_some()).collect();
        assert_eq!(answers, [false, true]);
        let text = table(&shown);
        assert!(text.contains("no answer") && text.contains("REGION") && text.contains("unknown"), "{text}");
        server.shutdown().await;
    }

    #[test]
    fn a_privilege_counts_where_tenon_can_use_it() {
        let none = missing(&Permissions::default());
        assert_eq!(none.len(), needed().len());
        assert!(none.contains(&"VM.Clone".to_owned()) && !none.contains(&"Pool.Audit".to_owned()), "{none:?}");
        for (privilege, path, reaches_down, is_of_use) in [
            ("VM.Allocate", "/", true, true),
            ("VM.Allocate", "/", false, false),
            ("VM.Allocate", "/vms", true, true),
            ("VM.Allocate", "/vms", false, false),
            ("VM.Clone", "/vms/9000", false, true),
            ("VM.Allocate", "/pool/k8s/blue", true, true),
            ("VM.Allocate", "/storage/local", true, false),
            ("Datastore.AllocateSpace", "/storage/local", false, true),
            ("Datastore.AllocateSpace", "/pool/k8s", true, true),
            ("Datastore.AllocateSpace", "/vms", true, false),
            ("Sys.Audit", "/nodes", true, true),
            ("Sys.Audit", "/nodes/pve1", false, true),
            ("Sys.Audit", "/pool/k8s", true, false),
            ("SDN.Use", "/sdn/zones/localnetwork/vmbr0", true, true),
            ("SDN.Use", "/nodes", true, false),
        ] {
            assert_eq!(counts(privilege, path, reaches_down), is_of_use, "{privilege} on {path}");
        }
    }
}
