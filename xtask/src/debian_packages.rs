//! Tools that come as packages of Debian or Ubuntu: downloaded with apt and unpacked into the cache.
//!
//! Nothing is installed: apt keeps its lists and its files in a folder of ours, so that it needs no root and changes
//! nothing on this machine. Packages that the machine has already are not downloaded.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use testbed::{Cache, DebianTool, Runner, proof};

use crate::tools::remove;

/// Finds every tool, getting those that are missing, and says where each one is.
pub(crate) fn obtain_all() -> anyhow::Result<Vec<String>> {
    if missing()?.is_empty() {
        return told();
    }
    let cache = Cache::from_env()?;
    let _lock = cache.lock(&cache.root().join("tools"), || {
        eprintln!("   waiting for another installation to finish");
    })?;
    let missing = missing()?;
    if !missing.is_empty() {
        let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
        install().with_context(|| {
            format!("cannot get {}; install them with the package manager of this machine", packages.join(", "))
        })?;
    }
    told()
}

/// The same for a test run: what cannot be had and is not required is passed over, with a word.
pub(crate) fn obtain_required() -> anyhow::Result<()> {
    match obtain_all() {
        Ok(lines) => lines.iter().for_each(|line| eprintln!("   {line}")),
        Err(error) => {
            let required = missing()?.into_iter().find(|tool| proof::is_required(tool.name));
            if let Some(tool) = required {
                return Err(error.context(format!("{} is required", tool.name)));
            }
            eprintln!("   continuing without some tools that read first-boot data or metrics: {error:#}");
        }
    }
    Ok(())
}

fn missing() -> anyhow::Result<Vec<DebianTool>> {
    let mut missing = Vec::new();
    for tool in DebianTool::ALL {
        if tool.find()?.is_none() {
            missing.push(tool);
        }
    }
    Ok(missing)
}

fn told() -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for tool in DebianTool::ALL {
        match tool.find()? {
            Some(Runner { program, .. }) => lines.push(format!("{} with {}", tool.name, program.display())),
            None => bail!("package {} was unpacked, but {} does not run", tool.package, tool.name),
        }
    }
    Ok(lines)
}

/// Unpacks beside the final place and renames: a folder in the cache is whole.
fn install() -> anyhow::Result<()> {
    let home = DebianTool::home()?;
    let partial = home.with_extension("partial");
    let needed = DebianTool::ALL.into_iter().filter(|tool| tool.on_machine().is_none());
    // A package may have several tools.
    let packages: BTreeSet<&str> = needed.map(|tool| tool.package).collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    eprintln!("   downloading packages {} with apt-get", packages.join(", "));
    remove(&partial)?;
    let (download, tree) = (partial.join("download"), partial.join("tree"));
    for folder in ["lists/partial", "archives/partial"] {
        let folder = download.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    // A source of packages that is out of order matters only if a package was in it, which the next command tells.
    let _ = quiet(apt(&download).arg("update"));
    let options = ["--yes", "--download-only", "--no-install-recommends", "install"];
    quiet(apt(&download).args(options).args(&packages))?;
    fs::create_dir_all(&tree).with_context(|| format!("cannot create {}", tree.display()))?;
    unpack(&download.join("archives"), &tree)?;
    remove(&home)?;
    fs::rename(&tree, &home).with_context(|| format!("cannot rename {}", tree.display()))?;
    remove(&partial)
}

/// apt with its state in `folder`; only which packages are installed it reads from the machine.
fn apt(folder: &Path) -> Command {
    let mut command = Command::new("apt-get");
    for (option, place) in [
        ("Dir::State::Lists", folder.join("lists")),
        ("Dir::Cache", folder.to_owned()),
        ("Dir::Cache::Archives", folder.join("archives")),
    ] {
        command.arg("-o").arg(format!("{option}={}", place.display()));
    }
    // The machine's own locks guard what is not touched here, and the folder may be closed to apt's own user.
    command.args(["-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=root", "-qq"]);
    command
}

fn unpack(archives: &Path, tree: &Path) -> anyhow::Result<()> {
    let entries = fs::read_dir(archives).with_context(|| format!("cannot list {}", archives.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            quiet(Command::new("dpkg-deb").arg("--extract").arg(&path).arg(tree))?;
        }
    }
    Ok(())
}

/// Runs a command; what it says is shown only if it fails.
fn quiet(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        bail!("{name} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
