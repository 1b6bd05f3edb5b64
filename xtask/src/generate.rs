//! The files in the repository that a program writes: which, and from what.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::artifacts::build_tenon;
use crate::tree::Tree;

/// A file that is the output of `tenon`.
pub(crate) struct Generated {
    path: &'static str,
    /// The crate it is written from. A tree without the crate has no such file.
    source: &'static str,
    args: &'static [&'static str],
    /// The narrowest choice of files it belongs to.
    which: Which,
}

const FILES: [Generated; 20] = [
    Generated { path: "docs/reference/cli.md", source: "tenon", args: &["reference"], which: Which::All },
    of_rights("charts/tenon/templates/roles.yaml", &["reference", "chart-roles"]),
    of_rights("docs/reference/kubernetes-rights.md", &["reference", "kubernetes-rights"]),
    of_metrics("docs/reference/metrics.md", &["reference", "metrics"]),
    of_reasons("docs/reference/conditions.md", &["reference", "conditions"]),
    of_reasons("docs/reference/events.md", &["reference", "events"]),
    of_kind("docs/reference/capacitybuffer.md", &["reference", "capacitybuffer"]),
    of_kind("docs/reference/nodeclaim.md", &["reference", "nodeclaim"]),
    of_kind("docs/reference/nodeoverlay.md", &["reference", "nodeoverlay"]),
    of_kind("docs/reference/nodepool.md", &["reference", "nodepool"]),
    of_kind("docs/reference/proxmoxnodeclass.md", &["reference", "proxmoxnodeclass"]),
    of_kind("docs/reference/proxmoxtemplate.md", &["reference", "proxmoxtemplate"]),
    of_kind("docs/reference/proxmoxunmanagedtemplate.md", &["reference", "proxmoxunmanagedtemplate"]),
    of_kind(
        "charts/tenon-crds/templates/autoscaling.x-k8s.io_capacitybuffers.yaml",
        &["reference", "chart/autoscaling.x-k8s.io_capacitybuffers.yaml"],
    ),
    of_kind(
        "charts/tenon-crds/templates/karpenter.proxmox.sinextra.dev_proxmoxnodeclasses.yaml",
        &["reference", "chart/karpenter.proxmox.sinextra.dev_proxmoxnodeclasses.yaml"],
    ),
    of_kind(
        "charts/tenon-crds/templates/karpenter.proxmox.sinextra.dev_proxmoxtemplates.yaml",
        &["reference", "chart/karpenter.proxmox.sinextra.dev_proxmoxtemplates.yaml"],
    ),
    of_kind(
        "charts/tenon-crds/templates/karpenter.proxmox.sinextra.dev_proxmoxunmanagedtemplates.yaml",
        &["reference", "chart/karpenter.proxmox.sinextra.dev_proxmoxunmanagedtemplates.yaml"],
    ),
    of_kind(
        "charts/tenon-crds/templates/karpenter.sh_nodeclaims.yaml",
        &["reference", "chart/karpenter.sh_nodeclaims.yaml"],
    ),
    of_kind(
        "charts/tenon-crds/templates/karpenter.sh_nodeoverlays.yaml",
        &["reference", "chart/karpenter.sh_nodeoverlays.yaml"],
    ),
    of_kind(
        "charts/tenon-crds/templates/karpenter.sh_nodepools.yaml",
        &["reference", "chart/karpenter.sh_nodepools.yaml"],
    ),
];

/// The crate that defines the custom resources, and the reasons of events and conditions.
const DEFINITIONS: &str = "tenon-api";

/// A file that is written from a definition of a custom resource.
const fn of_kind(path: &'static str, args: &'static [&'static str]) -> Generated {
    Generated { path, source: DEFINITIONS, args, which: Which::Definitions }
}

/// A file that is written from the table of rights on the Kubernetes API.
const fn of_rights(path: &'static str, args: &'static [&'static str]) -> Generated {
    Generated { path, source: "tenon", args, which: Which::All }
}

/// A page that is written from the catalogue of metrics.
const fn of_metrics(path: &'static str, args: &'static [&'static str]) -> Generated {
    Generated { path, source: "tenon", args, which: Which::All }
}

/// A page that is written from a table of reasons.
const fn of_reasons(path: &'static str, args: &'static [&'static str]) -> Generated {
    Generated { path, source: DEFINITIONS, args, which: Which::All }
}

/// The generated files this tree should have.
pub(crate) fn files_of(tree: &Tree) -> impl Iterator<Item = &'static Generated> {
    FILES.iter().filter(|file| tree.crates.iter().any(|package| package.name == file.source))
}

/// Whether a program writes this file.
pub(crate) fn is_generated(path: &Path) -> bool {
    FILES.iter().any(|file| Path::new(file.path) == path)
}

/// Which generated files are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// Those written from the definitions of custom resources.
    Definitions,
}

/// Writes generated files.
pub(crate) fn write(root: &Path, which: Which) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    let tenon = build_tenon(root)?;
    for file in files_of(&tree).filter(|file| which == Which::All || file.which == which) {
        let path = tree.root.join(file.path);
        let content = file.content(&tenon)?;
        let folder = path.parent().unwrap_or(&tree.root);
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("wrote {}", file.path);
    }
    Ok(())
}

impl Generated {
    /// Where it lies, relative to the root.
    pub(crate) fn path(&self) -> &'static Path {
        Path::new(self.path)
    }

    /// What it should hold today, as `tenon` prints it.
    pub(crate) fn content(&self, tenon: &Path) -> anyhow::Result<String> {
        let output = Command::new(tenon)
            .args(self.args)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", tenon.display()))?;
        if !output.status.success() {
            bail!("cannot generate {}: {}", self.path, String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout)
            .with_context(|| format!("cannot generate {}: the output is not UTF-8 text", self.path))
    }
}
