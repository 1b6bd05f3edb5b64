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
    /// Why the VM is left alone; empty if it is not.
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
    /// Proxmox did not answer.
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
        rows.extend(row(&regions, &owner, claimed).await?);
    }
    Ok(rows)
}

/// Nothing for a NodeClaim that Tenon created, or whose VM nobody created yet.
async fn row(regions: &Regions, owner: &Owner, claimed: Claimed<'_>) -> anyhow::Result<Option<Row>> {
    let status = claimed.claim.status.as_ref();
    let Some(provider_id) = status.and_then(|status| status.provider_id.clone()) else { return Ok(None) };
    let row = |state, reason| Row { node_claim: claimed.claim.name_any(), provider_id, state, reason };
    if claimed.claim.annotations().contains_key(names::ANNOTATION_LAUNCH) {
        let mut told = status.iter().flat_map(|status| status.conditions.iter().flatten());
        let is_adopted = told.any(|told| told.type_ == ADOPTED.name());
        return Ok(is_adopted.then(|| row(State::Adopted, String::new())));
    }
    let look = look_for_adoption(regions, owner, claimed).await;
    Ok(Some(match look.map_err(|error| anyhow!("{}", error.full_message()))? {
        AdoptionLook::NotConfigured(why) => row(State::LeftAlone, why),
        AdoptionLook::NotNow(why) => row(State::Unknown, why),
        AdoptionLook::Seen(sighting) => match next_step(&sighting.marks) {
            Ok(_) => row(State::Adopts, String::new()),
            Err(refusal) => row(State::LeftAlone, refusal.to_string()),
        },
    }))
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
}
