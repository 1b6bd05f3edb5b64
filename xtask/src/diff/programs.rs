//! The two programs that plan: Karpenter's scheduler in a program of ours, and `tenon`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use testbed::{Error, Lookup, Program};

use super::outcome::Outcome;
use super::scenario::{OBJECTS, OPTIONS, TYPES};
use crate::artifacts::build_tenon;
use crate::progress::Shown;
use crate::run::run;
use crate::tree::workspace_root;

/// Karpenter, as a program that plans from files.
pub(crate) struct Karpenter {
    path: PathBuf,
}

impl Karpenter {
    /// Finds it in the cache, or builds it from Go modules into it.
    pub(crate) fn obtain() -> anyhow::Result<Karpenter> {
        let mut progress = Shown::new();
        let found = Lookup::from_env()?.obtain(Program::Karpenter, &mut progress);
        progress.finish();
        match found {
            Ok(found) => Ok(Karpenter { path: found.path }),
            Err(error @ Error::NoGo { .. }) => Err(error).context(
                "the comparison runs the real Karpenter, which is built with Go; \
                 without Go, `cargo xtask diff recorded` compares with recorded runs",
            ),
            Err(error) => Err(error.into()),
        }
    }

    /// A call without arguments.
    pub(crate) fn program(&self) -> Command {
        Command::new(&self.path)
    }

    /// The call that plans one scenario.
    pub(crate) fn command(&self, scenario: &Path) -> Command {
        let mut command = Command::new(&self.path);
        command.arg("-f").arg(scenario.join(OBJECTS)).arg("--instance-types").arg(scenario.join(TYPES));
        let options = scenario.join(OPTIONS);
        if options.exists() {
            command.arg("--options").arg(options);
        }
        command
    }

    /// Plans every scenario of a folder `runs` times and writes what came out to `NAME.json` in another.
    pub(super) fn plan_all(&self, scenarios: &Path, runs: u32, to: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
        let mut command = Command::new(&self.path);
        command.arg("--scenarios").arg(scenarios).arg("--out").arg(to).args(["--runs", &runs.to_string()]);
        run(&mut command, "read what Karpenter says above")
    }
}

/// The `tenon` binary.
pub(crate) struct Tenon {
    path: PathBuf,
}

impl Tenon {
    /// The binary that is named, or this tree's own, built first.
    pub(crate) fn obtain(named: Option<PathBuf>) -> anyhow::Result<Tenon> {
        if let Some(path) = named {
            return Ok(Tenon { path });
        }
        Ok(Tenon { path: build_tenon(&workspace_root())? })
    }

    /// The call that plans one scenario.
    pub(crate) fn command(&self, scenario: &Path) -> Command {
        let mut command = Command::new(&self.path);
        command.arg("plan").arg("-f").arg(scenario.join(OBJECTS));
        command.arg("--instance-types").arg(scenario.join(TYPES)).args(["-o", "json"]);
        let options = scenario.join(OPTIONS);
        if options.exists() {
            command.arg("--options").arg(options);
        }
        command
    }

    /// Our plan of a scenario.
    pub(super) fn plan(&self, scenario: &Path) -> anyhow::Result<Outcome> {
        serde_json::from_slice(&self.output(scenario)?).context("cannot read the output of `tenon plan` as a plan")
    }

    /// Our plan of a scenario, as it is printed.
    pub(super) fn output(&self, scenario: &Path) -> anyhow::Result<Vec<u8>> {
        let mut command = self.command(scenario);
        let output =
            command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {}", self.path.display()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`tenon plan` ended with {}: {}", output.status, said.lines().last().unwrap_or_default());
        }
        Ok(output.stdout)
    }
}
