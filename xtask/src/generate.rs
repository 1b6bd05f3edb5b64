//! The files in the repository that a program writes: which, and from what.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::run::cargo;
use crate::tree::Tree;

/// A file that is the output of one of our binaries.
pub(crate) struct Generated {
    path: &'static str,
    /// The crate whose binary writes it. A tree without the crate has no such file.
    package: &'static str,
    args: &'static [&'static str],
}

const FILES: [Generated; 1] = [Generated { path: "docs/reference/cli.md", package: "tenon", args: &["reference"] }];

/// The generated files this tree should have.
pub(crate) fn files_of(tree: &Tree) -> impl Iterator<Item = &'static Generated> {
    FILES.iter().filter(|file| tree.crates.iter().any(|package| package.name == file.package))
}

/// Whether a program writes this file.
pub(crate) fn is_generated(path: &Path) -> bool {
    FILES.iter().any(|file| Path::new(file.path) == path)
}

/// Writes every generated file anew.
pub(crate) fn write_all(root: &Path) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    for file in files_of(&tree) {
        let path = tree.root.join(file.path);
        let content = file.content(&tree.root)?;
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

    /// What it should hold today.
    pub(crate) fn content(&self, root: &Path) -> anyhow::Result<String> {
        let output = cargo(root)
            .args(["run", "--quiet", "--package", self.package, "--"])
            .args(self.args)
            .output()
            .context("cannot run cargo")?;
        if !output.status.success() {
            bail!("cannot generate {}: {}", self.path, String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout).with_context(|| format!("the generator of {} printed no text", self.path))
    }
}
