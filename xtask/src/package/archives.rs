//! The tarball and the Debian package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::contents::Contents;
use super::{ARCHITECTURE, Release};
use crate::run::{first_line, run};

/// The same sources give the same archive: names in order, no times and no users of this machine.
const SAME: [&str; 5] = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];

pub(super) fn tarball_path(release: &Release, out: &Path) -> PathBuf {
    out.join(format!("tenon-{}-linux-{ARCHITECTURE}.tar.gz", release.version))
}

pub(super) fn tarball(release: &Release, contents: &Contents, out: &Path) -> anyhow::Result<String> {
    let path = tarball_path(release, out);
    let top = format!("s,^\\.,tenon-{},", release.version);
    let mut tar = Command::new("tar");
    tar.args(SAME).arg("--transform").arg(&top).args(["--create", "--file"]).arg(&path);
    // gzip writes the time otherwise.
    tar.args(["--use-compress-program", "gzip -n"]).arg("--directory").arg(&contents.folder).arg(".");
    run(&mut tar, "install tar")?;
    Ok(format!("wrote {}", path.display()))
}

pub(super) fn debian_path(release: &Release, out: &Path) -> PathBuf {
    out.join(format!("tenon_{}_{ARCHITECTURE}.deb", release.version))
}

/// Whether this machine makes and unpacks Debian packages.
pub(super) fn has_dpkg() -> bool {
    first_line(Command::new("dpkg-deb").arg("--version")).is_some()
}

pub(super) fn debian_package(release: &Release, contents: &Contents, out: &Path) -> anyhow::Result<String> {
    if !has_dpkg() {
        return Ok("not made here: the Debian package (dpkg-deb is missing)".to_owned());
    }
    let (path, tree) = (debian_path(release, out), out.join("debian"));
    if tree.exists() {
        fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    }
    fs::create_dir_all(tree.join("DEBIAN")).with_context(|| format!("cannot create {}", tree.display()))?;
    let mut copy = Command::new("cp");
    run(copy.args(["--recursive", "--no-dereference"]).arg(&contents.folder).arg(tree.join("usr")), "make room")?;
    fs::write(tree.join("DEBIAN/control"), control(release)).context("cannot write the control file")?;
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Zgzip", "--build"]).arg(&tree).arg(&path).env("SOURCE_DATE_EPOCH", "0");
    build.stdout(std::process::Stdio::null());
    run(&mut build, "see the message above")?;
    fs::remove_dir_all(&tree).with_context(|| format!("cannot remove {}", tree.display()))?;
    Ok(format!("wrote {}", path.display()))
}

/// It needs nothing: the program is static.
fn control(release: &Release) -> String {
    let Release { version, .. } = release;
    format!(
        "Package: tenon\nVersion: {version}\nArchitecture: {ARCHITECTURE}\nMaintainer: The Tenon authors <tenon@tenon.invalid>\n\
         Section: admin\nPriority: optional\nEnhances: kubectl\nDescription: Kubernetes node autoscaler for Proxmox VE\n \
         The commands of Tenon: plan, explain, render, and the controller itself.\n Also a plugin of kubectl: kubectl tenon.\n"
    )
}
