//! `tenon adopt --dry-run`: which VMs of the Go provider the controller adopts, which it leaves alone, and why. Nothing is written.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, ValueEnum};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde::Serialize;
use tenon_api::condition_reasons::ADOPTED;
use tenon_api::kube_objects::Node;
use tenon_api::{NodeClaim, names};
use tenon_controllers::claim::{AdoptionLook, Claimed, Owner, look_for_adoption};
use tenon_controllers::election::Fence;
use tenon_controllers::{Clock, Regions};
use tenon_engine::adoption::next_step;

use crate::controller::{clients, cloud};
use crate::plan::table_text::lay_out;

/// List the NodeClaims whose VMs were created by the Go provider: which of these VMs the controller adopts, which it leaves
/// alone, and why. The controller adopts by itself; this command changes nothing.
#[derive(Debug, Args)]
pub struct Adopt {
    /// Only look. Without this flag, the command explains how VMs are adopted.
    #[arg(long)]
    dry_run: bool,
    /// Kubeconfig of the cluster; unset: the in-cluster config, or else the user's kubeconfig.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", value_parser = OsStringValueParser::new())]
    kubeconfig: Option<OsString>,
    /// File with the address and the credentials of each Proxmox cluster, as the controller has it.
    #[arg(long, value_name = "FILE", env = "CLOUD_CONFIG", value_parser = OsStringValueParser::new().map(PathBuf::from))]
    cloud_config: Option<PathBuf>,
    /// ID of the Kubernetes cluster, as the controller has it; unset: the uid of the namespace kube-system.
    #[arg(long, value_name = "TEXT", env = "CLUSTER_ID")]
    cluster_id: Option<String>,
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

/// What is said where nobody asks for a look.
const EXPLANATION: &str = "\
The controller adopts VMs of the Go provider by itself: `tenon controller` takes over each VM whose name, SMBIOS serial,
description, SMBIOS UUID and host match its NodeClaim and its Node. It adds one line to the description of the VM and an
annotation to the NodeClaim; nothing is restarted. VMs that miss a mark are left alone, and the condition Adopted of the
NodeClaim says why.

To see what it adopts, before it runs: tenon adopt --dry-run
";

/// A NodeClaim that Tenon did not create.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    node_claim: String,
    provider_id: String,
    state: State,
    /// Why the VM is left alone, or why nothing is known of it; empty otherwise.
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum State {
    /// Tenon manages the VM already.
    Adopted,
    /// The controller adopts the VM as soon as it runs.
    Adopts,
    /// The VM misses a mark.
    LeftAlone,
    /// Proxmox did not answer, or did not show the VM.
    Unknown,
}

/// Looks and prints.
pub fn run(args: &Adopt, out: &mut dyn Write) -> anyhow::Result<()> {
    if !args.dry_run {
        return out.write_all(EXPLANATION.as_bytes()).context("cannot print the explanation");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let rows = runtime.context("cannot start the runtime")?.block_on(gather(args))?;
    let text = match args.output {
        Output::Json => serde_json::to_string_pretty(&rows).context("cannot encode the NodeClaims")? + "\n",
        Output::Table => table(&rows),
    };
    out.write_all(text.as_bytes()).context("cannot print the NodeClaims")
}

async fn gather(args: &Adopt) -> anyhow::Result<Vec<Row>> {
    let Some(path) = &args.cloud_config else {
        bail!("no cloud config is given; give the one of the controller with --cloud-config");
    };
    // It never opens: nothing is changed, in Kubernetes or in Proxmox.
    let fence = Fence::closed(Clock::Wall);
    let setup = |region: &crate::cloud_config::Region| {
        let setup = region.setup(&fence);
        let setup = setup.with_context(|| format!("cannot create the Proxmox client of region {}", region.name))?;
        Ok((region.name.clone(), setup))
    };
    let regions: Regions = cloud(path)?.regions.iter().map(setup).collect::<anyhow::Result<BTreeMap<_, _>>>()?.into();
    let client = clients::cluster(args.kubeconfig.as_deref(), "--kubeconfig", "adopt").await?.fenced(&fence)?;
    let cluster = cluster_id(args, &client).await?;
    let claims = Api::<NodeClaim>::all(client.clone()).list(&ListParams::default()).await;
    let claims = claims.map_err(|error| unread("the NodeClaims", &error))?.items;
    let nodes = Api::<Node>::all(client).list(&ListParams::default()).await;
    let nodes = nodes.map_err(|error| unread("the Nodes", &error))?.items;
    let nodes: BTreeMap<String, Node> = nodes.into_iter().map(|node| (node.name_any(), node)).collect();
    let mut rows = Vec::new();
    for claim in claims.iter().filter(|claim| claim.spec.node_class_ref.group == names::PROXMOX) {
        let claimed = Claimed { claim, node: nodes.get(&claim.name_any()) };
        let owner = Owner { cluster: cluster.clone(), claim_uid: claim.uid().unwrap_or_default() };
        rows.extend(row(&regions, &owner, claimed).await);
    }
    Ok(rows)
}

/// Nothing for a NodeClaim that Tenon created, or whose VM nobody created yet.
async fn row(regions: &Regions, owner: &Owner, claimed: Claimed<'_>) -> Option<Row> {
    let status = claimed.claim.status.as_ref();
    let provider_id = status.and_then(|status| status.provider_id.clone())?;
    let row = |state, reason| Row { node_claim: claimed.claim.name_any(), provider_id, state, reason };
    if claimed.claim.annotations().contains_key(names::ANNOTATION_LAUNCH) {
        let mut told = status.iter().flat_map(|status| status.conditions.iter().flatten());
        let is_adopted = told.any(|told| told.type_ == ADOPTED.name());
        return is_adopted.then(|| row(State::Adopted, String::new()));
    }
    Some(match look_for_adoption(regions, owner, claimed).await {
        // One VM that cannot be read says nothing about the others.
        Err(error) => row(State::Unknown, error.full_message()),
        Ok(AdoptionLook::NotConfigured(why)) => row(State::LeftAlone, why),
        Ok(AdoptionLook::NotNow(why)) => row(State::Unknown, why),
        Ok(AdoptionLook::Seen(sighting)) => match next_step(&sighting.marks) {
            Ok(_) => row(State::Adopts, String::new()),
            Err(refusal) => row(State::LeftAlone, refusal.to_string()),
        },
    })
}

async fn cluster_id(args: &Adopt, client: &Client) -> anyhow::Result<String> {
    if let Some(id) = args.cluster_id.clone().filter(|id| !id.is_empty()) {
        return Ok(id);
    }
    let namespace = Api::<Namespace>::all(client.clone()).get("kube-system").await;
    let namespace = namespace.map_err(|error| unread("namespace kube-system", &error))?;
    namespace.uid().context("namespace kube-system has no uid; set --cluster-id")
}

fn unread(what: &str, error: &kube::Error) -> anyhow::Error {
    anyhow!("cannot read {what}: {}", tenon_model::full_message(error))
}

fn table(rows: &[Row]) -> String {
    if rows.is_empty() {
        return "No NodeClaim has a VM that another controller created.\n".to_owned();
    }
    let mut lines = vec![["NODECLAIM", "PROVIDER ID", "STATE"].map(str::to_owned).to_vec()];
    lines.extend(
        rows.iter().map(|row| vec![row.node_claim.clone(), row.provider_id.clone(), format!("{:?}", row.state)]),
    );
    let mut text = lay_out(&lines).join("\n");
    text.push('\n');
    let reasons: Vec<String> = rows
        .iter()
        .filter(|row| !row.reason.is_empty())
        .map(|row| format!("NodeClaim {}: {}\n", row.node_claim, row.reason))
        .collect();
    if !reasons.is_empty() {
        text.push('\n');
        text.extend(reasons);
    }
    text
}

#[cfg(test)]
mod tests {
    use tenon_sim::{Estate, EstateConfig, FaultEffect, FaultMatch, FaultRule, TemplateSpec, Tls, VmSpec};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_claim_and_the_reasons_below() {
        let row = |name: &str, state, reason: &str| Row {
            node_claim: name.to_owned(),
            provider_id: "proxmox://lab/20000".to_owned(),
            state,
            reason: reason.to_owned(),
        };
        let text = table(&[row("a", State::Adopts, ""), row("b", State::LeftAlone, "VM 20000 has moved")]);
        assert!(text.contains("STATE") && text.contains("Adopts") && text.contains("LeftAlone"), "{text}");
        assert!(text.ends_with("\nNodeClaim b: VM 20000 has moved\n"), "{text}");
        assert!(table(&[]).starts_with("No NodeClaim"));
    }

    const DESCRIPTION: &str = "Karpenter managed instance, class=default, capacity-type=on-demand";

    /// A region with VMs 20000 and 20001, of which the first cannot be read.
    fn regions(estate: &Estate, url: &str, authority: &str) -> Regions {
        for vmid in [20_000, 20_001] {
            let config = [("description".to_owned(), DESCRIPTION.to_owned())].into();
            let base = TemplateSpec { vmid, name: format!("n{vmid}"), config, ..TemplateSpec::default() };
            estate.add_vm(&VmSpec { base, running: true }).unwrap();
        }
        let broken = FaultEffect::Refuse { status: 500, text: "got timeout".to_owned() };
        let config = "/nodes/*/qemu/20000/config";
        estate.add_fault(FaultRule::new(FaultMatch::call("GET", config), broken));
        let text = format!(
            "clusters: [{{region: lab, url: \"{url}\", ca_file: /ca, token_id: \"tenon@pve!sim\", \
             token_secret: 11111111-2222-3333-4444-555555555555}}]"
        );
        let read = |_: &std::path::Path| Ok(authority.as_bytes().to_vec());
        let lab = crate::cloud_config::parse(&text, &read).unwrap().regions.remove(0);
        BTreeMap::from([(lab.name.clone(), lab.setup(&Fence::closed(Clock::Wall)).unwrap())]).into()
    }

    #[tokio::test]
    async fn a_vm_that_cannot_be_read_is_unknown_and_hides_no_other() {
        let (estate, tls) = (Estate::new(EstateConfig::default()), Tls::self_signed().unwrap());
        let authority = tls.ca_pem().to_owned();
        let server = estate.serve(TcpListener::bind(("127.0.0.1", 0)).await.unwrap(), tls);
        let regions = regions(&estate, &format!("https://localhost:{}", server.local_addr().port()), &authority);
        let owner = Owner { cluster: "c".to_owned(), claim_uid: "u".to_owned() };
        let mut rows = Vec::new();
        for vmid in [20_000, 20_001] {
            let claim: NodeClaim = serde_json::from_value(serde_json::json!({
                "metadata": { "name": format!("n{vmid}") },
                "spec": { "requirements": [],
                    "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" } },
                "status": { "providerID": format!("proxmox://lab/{vmid}") },
            }))
            .unwrap();
            rows.extend(row(&regions, &owner, Claimed { claim: &claim, node: None }).await);
        }
        let states: Vec<State> = rows.iter().map(|row| row.state).collect();
        assert_eq!(states, [State::Unknown, State::LeftAlone], "{rows:?}");
        assert!(rows[0].reason.contains("got timeout"), "{rows:?}");
        let text = table(&rows);
        assert!(
            text.contains("Unknown") && text.contains("NodeClaim n20000: ") && text.contains("NodeClaim n20001: "),
            "{text}"
        );
        server.shutdown().await;
    }
}
