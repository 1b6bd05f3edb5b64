//! `tenon render`: the first-boot data a node of a ProxmoxNodeClass would get, from files or from a cluster. Nothing is
//! changed anywhere.

mod check;
mod choose;
mod claim;
mod fault;
mod files;
mod live;
#[cfg(test)]
mod live_tests;
mod mask;
mod output;
mod subject;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use clap::builder::OsStringValueParser;
use tenon_cloudinit::{LeftOutReason, Seed, SeedFileName};

use crate::plan::table_text::plain;
use mask::Mask;
use subject::Subject;

/// Show the first-boot data (cloud-init files) that a node of a ProxmoxNodeClass would get, without changing anything.
///
/// Offline, everything that only a cluster knows (bootstrap token, cluster CA, VM ID, host ...) has a sample value. All
/// FILE arguments may name the same file: each takes the objects it needs from it.
///
/// Secrets are masked: the bootstrap token and every value of the values Secret with 4 or more characters, also as Base64,
/// line by line (lines of 8 or more characters) and in parts separated by commas. Values that a template transforms in
/// another way are not recognized, and neither are secrets written into a template. The image of --iso is never masked.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").args(["nodeclass", "nodeclaim"]).required(true).multiple(true))]
pub struct Render {
    /// Name of the NodeClaim whose first-boot data is rendered, read from the cluster of --kubeconfig with its
    /// ProxmoxNodeClass and Secrets. Files that are given as well take precedence over the objects of the cluster.
    #[arg(value_name = "NODECLAIM", requires = "kubeconfig", conflicts_with = "nodepool")]
    nodeclaim: Option<String>,
    /// File with the ProxmoxNodeClass, or - for standard input. It may also hold its NodePool and its Secrets.
    #[arg(long, value_name = "FILE|-")]
    nodeclass: Option<PathBuf>,
    /// File with the NodePool of the node: its labels, taints and requirements. Unset: the NodePool in the file of
    /// --nodeclass, if there is one.
    #[arg(long, value_name = "FILE|-")]
    nodepool: Option<PathBuf>,
    /// File with the Secret of the templates, or a directory with files user-data, meta-data, vendor-data and
    /// network-config. May be given several times.
    #[arg(long, value_name = "FILE|DIR|-")]
    templates: Vec<PathBuf>,
    /// File with the Secret of the values, or a directory with one file per key. May be given several times.
    #[arg(long, value_name = "FILE|DIR|-")]
    values: Vec<PathBuf>,
    /// Instance type of the node. Unset: the type of the NodeClaim, or the first type that the NodePool allows.
    #[arg(long, value_name = "TYPE")]
    instance_type: Option<String>,
    /// The controller's JSON file with instance types; unset: the built-in instance types.
    #[arg(long, value_name = "FILE")]
    instance_types: Option<PathBuf>,
    /// File with the output of `qm config VMID`, for network cards, addresses and DNS servers. Unset: one virtio card with
    /// DHCP, or the VM's own with --cloud-config.
    #[arg(long, value_name = "FILE|-")]
    vm_config: Option<PathBuf>,
    /// Name of the node. Unset: the name of the NodeClaim, or a sample name.
    #[arg(long, value_name = "NAME", conflicts_with = "nodeclaim")]
    name: Option<String>,
    /// Kubeconfig of the cluster that has the NodeClaim.
    #[arg(long, value_name = "FILE", requires = "nodeclaim", value_parser = OsStringValueParser::new())]
    kubeconfig: Option<OsString>,
    /// With --kubeconfig: cloud config of the controller, to read network cards and bridges from Proxmox.
    #[arg(long, value_name = "FILE", requires = "nodeclaim", conflicts_with = "vm_config")]
    cloud_config: Option<PathBuf>,
    /// With --kubeconfig: URL of the API server for nodes. Unset: the URL in ConfigMap kube-public/cluster-info.
    #[arg(long, value_name = "URL", requires = "nodeclaim")]
    cluster_endpoint: Option<String>,
    /// With --kubeconfig: namespace of the ConfigMap kube-root-ca.crt.
    #[arg(long, value_name = "NAME", default_value = "kube-system")]
    system_namespace: String,
    /// Print only this file, without a header line.
    #[arg(long, value_name = "NAME", value_parser = ["user-data", "meta-data", "vendor-data", "network-config"])]
    file: Option<String>,
    /// Also write the CD-ROM image that the VM would get. It holds secrets: only the owner may read the file.
    #[arg(long, value_name = "FILE")]
    iso: Option<PathBuf>,
    /// Print secrets instead of masking them.
    #[arg(long)]
    show_secrets: bool,
    /// Also validate the files with `cloud-init schema`, which must be installed.
    #[arg(long)]
    check: bool,
}

/// Renders what the arguments name to `out`; what a reader should know besides goes to `notes`.
pub fn run(args: &Render, out: &mut dyn Write, notes: &mut dyn Write) -> anyhow::Result<()> {
    let mut remarks = Vec::new();
    let subject = subject::gather(args, &mut remarks)?;
    remarks.iter().try_for_each(|remark| writeln!(notes, "note: {}", plain(remark)))?;
    let mask = if args.show_secrets { Mask::nothing() } else { Mask::of(&subject) };
    let seed = rendered(&subject, &mask)?;
    warn_of_labels(&subject, &seed, notes)?;
    output::print(&seed, args.file.as_deref(), &mask, out)?;
    if let Some(path) = &args.iso {
        output::write_iso(&seed, path)?;
        let shown = path.display();
        writeln!(notes, "note: wrote {shown} with unmasked secrets; only its owner may read the file")?;
    }
    if args.check {
        out.flush()?;
        check::check(&seed, &mask, notes)?;
    }
    Ok(())
}

fn rendered(subject: &Subject, mask: &Mask) -> anyhow::Result<Seed> {
    let input = subject.input();
    tenon_cloudinit::render(&input, &subject.sources.templates).map_err(|error| {
        let unchecked = tenon_cloudinit::render_unchecked(&input, &subject.sources.templates).ok();
        anyhow::Error::msg(fault::explain(&error, &subject.sources, unchecked.as_ref(), mask))
    })
}

/// Only the built-in user-data leaves labels out; a template may do with all of them what it likes.
fn warn_of_labels(subject: &Subject, seed: &Seed, notes: &mut dyn Write) -> std::io::Result<()> {
    if subject.sources.templates.get(SeedFileName::UserData).is_some() {
        return Ok(());
    }
    seed.labels_left_out.iter().try_for_each(|label| {
        let why = match label.reason {
            LeftOutReason::Reserved => "a kubelet may not set it; the controller sets it once the Node is registered",
            LeftOutReason::Malformed => "its key or value breaks the rules for labels",
        };
        writeln!(notes, "warning: left out label {}={}: {why}", plain(&label.key), plain(&label.value))
    })
}
