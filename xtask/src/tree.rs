//! What the rules of `tidy` look at: the files git knows, the crates cargo knows, and the parsed Rust sources.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::run::cargo;

/// The root of the workspace this xtask belongs to. Cargo says which that is when it runs us; clones that share a
/// target folder share the file of the binary, so what was true when it was built comes second.
pub(crate) fn workspace_root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let own = own.filter(|folder| folder.ends_with("xtask"));
    let own = own.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    own.parent().unwrap_or(&own).to_owned()
}

/// One look at a whole checkout.
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    /// Text files that are tracked, or would be by `git add`; relative to the root.
    pub(crate) texts: BTreeMap<PathBuf, String>,
    /// The Rust files among them that parse.
    pub(crate) sources: BTreeMap<PathBuf, syn::File>,
    pub(crate) crates: Vec<Crate>,
    /// The `tenon` of this checkout, if it is built already.
    pub(crate) tenon: Option<PathBuf>,
}

/// A member of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Crate {
    pub(crate) name: String,
    manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

/// A dependency as written in a manifest.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal one, else `dev` or `build`.
    pub(crate) kind: Option<String>,
    /// Only with a feature of the crate.
    pub(crate) optional: bool,
    /// Set for our own crates.
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Crate>,
}

impl Tree {
    /// Reads the checkout at `root`.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Tree> {
        let root = fs::canonicalize(root).with_context(|| format!("cannot find {}", root.display()))?;
        let files = list_files(&root)?;
        let crates = read_crates(&root, &files)?;
        let mut texts = BTreeMap::new();
        let mut sources = BTreeMap::new();
        for path in files {
            let bytes = match fs::read(root.join(&path)) {
                Ok(bytes) => bytes,
                // Deleted but still in git's index: it is on its way out. A folder is a link to one, or a repository.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => continue,
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            };
            // Not text: no rule has anything to say about it.
            let Ok(text) = String::from_utf8(bytes) else { continue };
            // A file that does not parse may be meant not to, as a test's food; rustc speaks up if it is not.
            if let Some(source) = is_rust(&path).then(|| syn::parse_file(&text).ok()).flatten() {
                sources.insert(path.clone(), source);
            }
            texts.insert(path, text);
        }
        Ok(Tree { root, texts, sources, crates, tenon: None })
    }

    /// A path as the rest of the tree names it.
    pub(crate) fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.root).unwrap_or(path).to_owned()
    }

    /// What git says, or an error with its words.
    pub(crate) fn git(&self, args: &[&str]) -> anyhow::Result<String> {
        git(&self.root, args)
    }
}

impl Crate {
    /// The crate's folder, absolute.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    /// The files rustc starts from, absolute: libraries, binaries, test binaries, build scripts.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &Path> {
        self.targets.iter().map(|target| target.src_path.as_path())
    }
}

/// The crates of the workspace, and those beside it that are workspaces of their own, such as fuzz targets.
fn read_crates(root: &Path, files: &[PathBuf]) -> anyhow::Result<Vec<Crate>> {
    let mut crates = read_workspace(&root.join("Cargo.toml"))?;
    for manifest in files.iter().filter(|path| path.ends_with("Cargo.toml")).map(|path| root.join(path)) {
        let is_known = crates.iter().any(|package| package.manifest_path == manifest);
        if !is_known && manifest != root.join("Cargo.toml") && manifest.exists() {
            crates.extend(read_workspace(&manifest)?);
        }
    }
    Ok(crates)
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

fn read_workspace(manifest: &Path) -> anyhow::Result<Vec<Crate>> {
    let root = manifest.parent().unwrap_or(manifest);
    let output = cargo(root)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cannot read the workspace at {}: {}", root.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("cannot read the output of cargo metadata")?;
    Ok(metadata.packages)
}

fn list_files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listing = git(root, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    Ok(listing.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

fn git(root: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(args).current_dir(root).output().context("cannot run git")?;
    if !output.status.success() {
        bail!("git {} failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("cannot read the output of git: it is not UTF-8 text")
}
