//! What is in a package: the program, the plugin of kubectl, completions and manual pages, all said by the program itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use super::Release;

/// Shells, and where Debian looks for the completions of `tenon`.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/tenon"),
    ("fish", "share/fish/vendor_completions.d/tenon.fish"),
    ("zsh", "share/zsh/vendor-completions/_tenon"),
];

/// A folder laid out like `/usr`.
pub(super) struct Contents {
    pub(super) folder: PathBuf,
}

impl Contents {
    /// Writes the folder anew.
    pub(super) fn write(release: &Release, folder: &Path) -> anyhow::Result<Contents> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        let contents = Contents { folder: folder.to_owned() };
        let program = contents.place("bin/tenon")?;
        fs::copy(&release.binary, &program).with_context(|| format!("cannot copy {}", release.binary.display()))?;
        strip(&program)?;
        // kubectl starts what is called so for `kubectl tenon`.
        std::os::unix::fs::symlink("tenon", contents.place("bin/kubectl-tenon")?)
            .context("cannot link kubectl-tenon")?;
        for (shell, place) in COMPLETIONS {
            fs::write(contents.place(place)?, said(&program, &["completions", shell])?)?;
        }
        for page in said(&program, &["reference", "man"])?.lines() {
            let text = said(&program, &["reference", &format!("man/{page}")])?;
            fs::write(contents.place(&format!("share/man/man1/{page}"))?, text)?;
        }
        for file in ["LICENSE", "CHANGELOG.md"] {
            let place = if file == "LICENSE" { "copyright" } else { file };
            let from = release.root.join(file);
            fs::copy(&from, contents.place(&format!("share/doc/tenon/{place}"))?)
                .with_context(|| format!("cannot copy {}", from.display()))?;
        }
        Ok(contents)
    }

    /// Every file, relative to the folder, sorted.
    pub(super) fn files(&self) -> anyhow::Result<Vec<String>> {
        let mut files = Vec::new();
        list(&self.folder, &self.folder, &mut files)?;
        files.sort();
        Ok(files)
    }

    pub(super) fn program(&self) -> PathBuf {
        self.folder.join("bin/tenon")
    }

    fn place(&self, path: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(path);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(path)
    }
}

fn list(root: &Path, folder: &Path, files: &mut Vec<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else if let Ok(relative) = path.strip_prefix(root) {
            files.push(relative.display().to_string());
        }
    }
    Ok(())
}

/// Without names for debuggers a program is a tenth as large. Where there is no `strip`, it stays as it is.
fn strip(program: &Path) -> anyhow::Result<()> {
    match Command::new("strip").arg(program).stdin(Stdio::null()).status() {
        Ok(status) if !status.success() => bail!("strip ended with {status}"),
        _ => Ok(()),
    }
}

fn said(program: &Path, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        bail!("`tenon {}` ended with {}", args.join(" "), output.status);
    }
    String::from_utf8(output.stdout).context("the output is not UTF-8 text")
}
