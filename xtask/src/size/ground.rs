//! Where a measurement builds: a folder of its own in the cache, empty at the start and gone at the end, and a checkout
//! of an older revision in it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use testbed::Cache;

/// The folder of one measurement. It removes itself; what a killed run left behind, the next one removes.
pub(crate) struct Ground {
    folder: PathBuf,
    /// Two measurements at once would slow each other down, so the second one waits.
    _lock: File,
}

impl Ground {
    pub(crate) fn new() -> anyhow::Result<Ground> {
        let cache = Cache::from_env()?;
        let home = cache.root().join("size");
        let lock = cache.lock(&home, || eprintln!("waiting for another `cargo xtask size` to finish"))?;
        let ground = Ground { folder: home.join("run"), _lock: lock };
        ground.clear("")?;
        fs::create_dir_all(&ground.folder).with_context(|| format!("cannot create {}", ground.folder.display()))?;
        Ok(ground)
    }

    /// A place in the folder.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Removes a folder in the folder, if it is there.
    pub(crate) fn clear(&self, name: &str) -> anyhow::Result<()> {
        let place = self.place(name);
        match fs::remove_dir_all(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", place.display()))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        if let Err(error) = self.clear("") {
            eprintln!("warning: {error:#}; remove the folder yourself");
        }
    }
}

/// A revision of the project, checked out beside the user's checkout.
pub(crate) struct Checkout {
    repository: PathBuf,
    folder: PathBuf,
}

impl Checkout {
    pub(crate) fn new(repository: &Path, folder: PathBuf, revision: &str) -> anyhow::Result<Checkout> {
        if git(repository, &["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")]).is_err() {
            bail!("revision `{revision}` does not exist in {}; name a commit, branch or tag", repository.display());
        }
        // Git remembers the checkout of a run that was killed; its folder is gone by now.
        git(repository, &["worktree", "prune"])?;
        let path = folder.to_string_lossy().into_owned();
        git(repository, &["worktree", "add", "--quiet", "--detach", &path, revision])?;
        Ok(Checkout { repository: repository.to_owned(), folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let path = self.folder.to_string_lossy().into_owned();
        if let Err(error) = git(&self.repository, &["worktree", "remove", "--force", &path]) {
            eprintln!("warning: {error:#}; run `git worktree prune`");
        }
    }
}

/// Which revision a checkout is at, with a word if files differ from it.
pub(crate) fn revision(root: &Path) -> anyhow::Result<String> {
    let described = git(root, &["describe", "--always", "--exclude=*", "--dirty= with changes"])?;
    Ok(described.trim().to_owned())
}

fn git(root: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(args).current_dir(root).output().context("cannot run git")?;
    if !output.status.success() {
        bail!("`git {}` failed: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).context("cannot read the output of git: it is not UTF-8 text")
}
