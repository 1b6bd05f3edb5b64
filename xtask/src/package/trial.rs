//! Do the packages hold what they should, and do they run? Unpacked into folders of their own; nothing is installed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use testbed::{Program, proof};

use super::Release;
use super::archives::{debian_path, has_dpkg, tarball_path};
use super::contents::Contents;
use super::image::{Builder, tag};
use super::name_server;
use crate::run::{first_line, run as run_command};

pub(super) fn run(release: &Release, out: &Path) -> anyhow::Result<()> {
    let contents = Contents { folder: out.join("contents") };
    let files = contents.files()?;
    every_verb_has_a_page(&contents, &files)?;
    tarball(release, out, &files)?;
    debian_package(release, out, &files)?;
    plugin(release, &contents)?;
    materials(release, out)
}

/// What a command prints; an error if it fails.
fn said(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn says_its_version(release: &Release, command: &mut Command) -> anyhow::Result<()> {
    let text = said(command)?;
    ensure!(text.contains(release.version) && text.contains("without simulator"), "{command:?} says: {text}");
    Ok(())
}

/// Every verb of the help has a manual page.
fn every_verb_has_a_page(contents: &Contents, files: &[String]) -> anyhow::Result<()> {
    let help = said(Command::new(contents.program()).arg("--help"))?;
    let verbs = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).context("no verbs")?;
    // A line that is further in goes on with the text of a verb.
    let verb = |line: &'_ str| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')).map(str::to_owned);
    let verbs = verbs.lines().filter_map(verb).filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    let verbs: Vec<String> = verbs.collect();
    ensure!(verbs.len() > 5, "{verbs:?}");
    for verb in verbs.iter().filter(|verb| *verb != "help") {
        let page = format!("share/man/man1/tenon-{verb}.1");
        ensure!(files.contains(&page), "`tenon {verb}` has no manual page; there are {files:?}");
    }
    Ok(())
}

fn tarball(release: &Release, out: &Path, files: &[String]) -> anyhow::Result<()> {
    let folder = out.join("unpacked");
    fs::create_dir_all(&folder)?;
    let mut tar = Command::new("tar");
    run_command(
        tar.arg("--extract").arg("--file").arg(tarball_path(release, out)).arg("--directory").arg(&folder),
        "see above",
    )?;
    let top = Contents { folder: folder.join(format!("tenon-{}", release.version)) };
    ensure!(top.files()? == files, "the tarball holds {:?}", top.files()?);
    // With nothing of this machine.
    says_its_version(release, Command::new(top.program()).arg("version").env_clear())
}

fn debian_package(release: &Release, out: &Path, files: &[String]) -> anyhow::Result<()> {
    if !has_dpkg() {
        ensure!(!proof::is_required("dpkg-deb"), "dpkg-deb is required, and missing");
        return Ok(());
    }
    let (package, root) = (debian_path(release, out), out.join("root"));
    let listed = said(Command::new("dpkg-deb").arg("--contents").arg(&package))?;
    ensure!(listed.lines().all(|line| line.contains(" root/root ")), "a file belongs to somebody: {listed}");
    let place = |line: &str| line.split_whitespace().nth(5)?.strip_prefix("./usr/").map(str::to_owned);
    let listed: BTreeSet<String> =
        listed.lines().filter_map(place).filter(|path| !path.ends_with('/') && !path.is_empty()).collect();
    ensure!(listed == files.iter().cloned().collect(), "the Debian package holds {listed:?}");
    let database = root.join("var/lib/dpkg");
    for folder in ["updates", "info", "triggers"] {
        fs::create_dir_all(database.join(folder))?;
    }
    fs::write(database.join("status"), "")?;
    let mut install = Command::new("dpkg");
    install.arg("--root").arg(&root).args([
        "--force-not-root",
        "--force-script-chrootless",
        "--log=/dev/null",
        "--install",
    ]);
    said(install.arg(&package))?;
    let state = said(Command::new("dpkg-query").arg(format!("--admindir={}", database.display())).args([
        "--show",
        "--showformat=${Status} ${Version}",
        "tenon",
    ]))?;
    ensure!(state == format!("install ok installed {}", release.version), "dpkg says: {state}");
    says_its_version(release, Command::new(root.join("usr/bin/tenon")).arg("version").env_clear())
}

/// `kubectl tenon` starts the plugin.
fn plugin(release: &Release, contents: &Contents) -> anyhow::Result<()> {
    let Some(found) = proof::with_programs(&[Program::Kubectl])? else { return Ok(()) };
    let kubectl = &found.first().context("no program")?.path;
    let path = contents.folder.join("bin");
    says_its_version(release, Command::new(kubectl).args(["tenon", "version"]).env("PATH", &path))?;
    let plugins = said(Command::new(kubectl).args(["plugin", "list"]).env("PATH", &path))?;
    ensure!(plugins.contains("kubectl-tenon"), "{plugins}");
    Ok(())
}

fn materials(release: &Release, out: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(out.join(format!("tenon-{}.cdx.json", release.version)))?;
    let bill: serde_json::Value = serde_json::from_str(&text).context("the bill of materials is no JSON")?;
    let has = |name: &str| bill["components"].as_array().into_iter().flatten().any(|part| part["name"] == name);
    for name in ["kube-client", "rustls", "tenon-engine"] {
        ensure!(has(name), "the bill of materials does not list {name}");
    }
    for name in ["tenon-sim", "rcgen", "proptest"] {
        ensure!(!has(name), "the bill of materials lists {name}, which is not shipped");
    }
    Ok(())
}

/// The image starts as its user, over a root file system that cannot be written.
pub(super) fn image(release: &Release, out: &Path) -> anyhow::Result<()> {
    let Some(builder) = Builder::find(&out.join("buildah"))? else { return Ok(()) };
    let user = builder.run(&[
        "inspect",
        "--type",
        "image",
        "--format",
        "{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}",
        &tag(release),
    ])?;
    ensure!(user == "65532:65532 [/tenon]", "the image says: {user}");
    let container = builder.run(&["from", "--pull-never", &tag(release)])?;
    let tried = builder.run(&["mount", &container]).and_then(|root| start(release, Path::new(&root)));
    builder.run(&["rm", &container])?;
    tried
}

/// What a container runtime does, as far as it needs no control groups: its own mounts, the image as root, the image's user.
fn start(release: &Release, root: &Path) -> anyhow::Result<()> {
    let files = Contents { folder: root.to_owned() }.files()?;
    let is_ours = |file: &String| matches!(file.as_str(), "tenon" | "etc/ssl/certs/ca-certificates.crt");
    ensure!(files.iter().all(is_ours), "the image holds {files:?}");
    if first_line(Command::new("unshare").args(["--mount", "echo", "yes"])).is_none() {
        ensure!(!proof::is_required("buildah"), "the image cannot be started here: unshare is not permitted");
        eprintln!("   not proved here: the image was built, and not started, because unshare is not permitted");
        return Ok(());
    }
    // Every runtime has devices in a container; a leader reads random bytes.
    let script = r#"mkdir -p "$0/dev" && : >> "$0/dev/random" && : >> "$0/dev/urandom" && mount --bind "$0" "$0" \
        && mount --bind /dev/random "$0/dev/random" && mount --bind /dev/urandom "$0/dev/urandom" \
        && mount -o remount,ro,bind "$0" \
        && exec chroot --userspec=65532:65532 "$0" /tenon "$@""#;
    let container = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(root);
        command
    };
    says_its_version(release, container().arg("version"))?;
    name_server::is_asked(root, container)?;
    let output = container().args(["controller", "--cloud-config", "/none.yaml"]).stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(!output.status.success() && text.contains("/none.yaml"), "the controller in the image says: {text}");
    Ok(())
}
