//! The image, built by buildah: it needs no daemon, and for an empty base no network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use testbed::{BUILDAH, Runner, proof};

use super::Release;
use super::contents::Contents;

/// The certificates of public authorities, as this machine has them.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// buildah with everything it keeps in one folder, which goes with it.
pub(super) struct Builder {
    runner: Runner,
    home: PathBuf,
}

impl Builder {
    /// `None` where there is no buildah, unless it is required.
    pub(super) fn find(home: &Path) -> anyhow::Result<Option<Builder>> {
        let runner = proof::with_tool(&BUILDAH)?;
        Ok(runner.map(|runner| Builder { runner, home: home.to_owned() }))
    }

    /// The last line that buildah prints.
    pub(super) fn run(&self, args: &[&str]) -> anyhow::Result<String> {
        let mut command: Command = self.runner.command();
        command.arg("--root").arg(self.home.join("store")).arg("--runroot").arg(self.home.join("run"));
        // The one storage that needs nothing of the kernel.
        let output = command.args(["--storage-driver", "vfs"]).args(args).stdin(Stdio::null()).output();
        let output = output.context("cannot run buildah")?;
        if !output.status.success() {
            bail!(
                "`buildah {}` ended with {}: {}",
                args.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned())
    }

    pub(super) fn build(&self, tag: &str, context: &Path) -> anyhow::Result<()> {
        let policy = self.home.join("policy.json");
        fs::create_dir_all(&self.home)?;
        // Nothing is pulled, so there is no signature to check.
        fs::write(&policy, r#"{"default":[{"type":"insecureAcceptAnything"}]}"#)?;
        let (policy, context) = (policy.display().to_string(), context.display().to_string());
        self.run(&[
            "bud",
            "--pull-never",
            "--isolation",
            "chroot",
            "--signature-policy",
            &policy,
            "--tag",
            tag,
            &context,
        ])
        .map(drop)
    }
}

/// The name of the image.
pub(super) fn tag(release: &Release) -> String {
    format!("tenon:{}", release.version)
}

/// Writes the folder that the image is built from, and builds it. Says whether there is an image, and what was done. An ordinary user may
/// not be allowed to build one: that is an error only where buildah is required.
pub(super) fn build(release: &Release, contents: &Contents, out: &Path) -> anyhow::Result<(bool, String)> {
    if !Path::new(AUTHORITIES).is_file() && !proof::is_required(BUILDAH.name) {
        return Ok((false, format!("not built here: the image ({AUTHORITIES} is missing; install ca-certificates)")));
    }
    let context = out.join("image");
    fs::create_dir_all(&context).with_context(|| format!("cannot create {}", context.display()))?;
    for (from, name) in [
        (release.root.join("Containerfile"), "Containerfile"),
        (contents.program(), "tenon"),
        (PathBuf::from(AUTHORITIES), "ca-certificates.crt"),
    ] {
        fs::copy(&from, context.join(name))
            .with_context(|| format!("cannot copy {} into the image", from.display()))?;
    }
    let home = out.join("buildah");
    let Some(builder) = Builder::find(&home)? else {
        return Ok((false, format!("wrote {}; the image is not built here: buildah is missing", context.display())));
    };
    match builder.build(&tag(release), &context) {
        Ok(()) => Ok((true, format!("built image {} in {}", tag(release), home.join("store").display()))),
        Err(error) if !proof::is_required(BUILDAH.name) => {
            Ok((false, format!("wrote {}; the image is not built here: {error:#}", context.display())))
        }
        Err(error) => Err(error),
    }
}
