//! Programs that read what the product writes for a guest, or serves for Prometheus: found on this machine, or in packages of Debian that
//! `cargo xtask tools` unpacks into the cache.
//!
//! Unpacked packages are not installed: no script of theirs runs, and nothing outside the cache changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::Cache;
use crate::error::Result;

/// A program and the package it comes from. It is not pinned: any release that a distribution ships must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DebianTool {
    /// The name that tests ask for.
    pub name: &'static str,
    /// The package of Debian and Ubuntu.
    pub package: &'static str,
    /// What is started: [`PYTHON`] for a tool that is a library of Python.
    program: &'static str,
    /// Arguments with which it only says that it is there.
    probe: &'static [&'static str],
}

const PYTHON: &str = "python3";

/// Lists and extracts the files of a CD-ROM image.
pub const ISOINFO: DebianTool =
    DebianTool { name: "isoinfo", package: "genisoimage", program: "isoinfo", probe: &["-version"] };

/// The same, by other authors.
pub const XORRISO: DebianTool =
    DebianTool { name: "xorriso", package: "xorriso", program: "xorriso", probe: &["-version"] };

/// Tells the label of a drive; udev asks it, and so cloud-init finds its seed.
pub const BLKID: DebianTool = DebianTool { name: "blkid", package: "util-linux", program: "blkid", probe: &["-V"] };

/// Reads the seed in the guest. Tests use its modules too, so what is started is a Python that can import it.
pub const CLOUD_INIT: DebianTool = DebianTool {
    name: "cloud-init",
    package: "cloud-init",
    program: PYTHON,
    probe: &["-c", "import cloudinit.cmd.main, cloudinit.config.schema, jsonschema"],
};

/// Checks metrics and alert rules.
pub const PROMTOOL: DebianTool =
    DebianTool { name: "promtool", package: "prometheus", program: "promtool", probe: &["--version"] };

/// Collects metrics and answers queries.
pub const PROMETHEUS: DebianTool =
    DebianTool { name: "prometheus", package: "prometheus", program: "prometheus", probe: &["--version"] };

/// Builds container images without a daemon.
pub const BUILDAH: DebianTool =
    DebianTool { name: "buildah", package: "buildah", program: "buildah", probe: &["--version"] };

/// How a tool is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    /// The program; a bare name is looked up on `PATH`.
    pub program: PathBuf,
    /// The folder that packages were unpacked into, if it needs something from there.
    tree: Option<PathBuf>,
}

impl DebianTool {
    /// Every such tool.
    pub const ALL: [DebianTool; 7] = [ISOINFO, XORRISO, BLKID, CLOUD_INIT, PROMTOOL, PROMETHEUS, BUILDAH];

    /// The folder of the cache that packages are unpacked into.
    pub fn home() -> Result<PathBuf> {
        Ok(Cache::from_env()?.root().join("tools").join("debian-packages"))
    }

    /// What this machine has of it, else what the cache has.
    pub fn find(&self) -> Result<Option<Runner>> {
        Ok(self.on_machine().or(self.below(&DebianTool::home()?)))
    }

    /// The unpacked one, if it runs.
    pub fn below(&self, tree: &Path) -> Option<Runner> {
        if !tree.is_dir() {
            return None;
        }
        let folders = ["usr/bin", "usr/sbin", "bin", "sbin"];
        let unpacked = folders.map(|folder| tree.join(folder).join(self.program)).into_iter();
        // Packages of Python are made for the distribution's own Python, which is there already as a rule.
        let own = (self.program == PYTHON).then(|| Path::new("/usr/bin").join(PYTHON));
        let found = unpacked.chain(own).filter(|program| program.is_file());
        found.map(|program| Runner { program, tree: Some(tree.to_owned()) }).find(|runner| self.answers(runner))
    }

    /// The one of this machine, if it runs.
    pub fn on_machine(&self) -> Option<Runner> {
        // Administrators' folders are not on everybody's PATH.
        let folders = ["", "/usr/sbin", "/sbin", "/usr/bin"].map(Path::new);
        let programs = folders.map(|folder| folder.join(self.program)).into_iter();
        programs.map(|program| Runner { program, tree: None }).find(|runner| self.answers(runner))
    }

    fn answers(&self, runner: &Runner) -> bool {
        let mut probe = runner.command();
        let status = probe.args(self.probe).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }
}

impl Runner {
    /// A command that has only its environment yet.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("LC_ALL", "C.UTF-8");
        if let Some(tree) = &self.tree {
            command.env("PYTHONPATH", tree.join("usr/lib/python3/dist-packages"));
            command.env("LD_LIBRARY_PATH", library_folders(tree));
        }
        command
    }
}

/// `usr/lib/x86_64-linux-gnu` and its like, divided by colons.
fn library_folders(tree: &Path) -> String {
    let mut folders = Vec::new();
    for parent in ["usr/lib", "lib"] {
        let entries = fs::read_dir(tree.join(parent)).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path().display().to_string());
        folders.extend(paths.filter(|path| path.contains("-linux-gnu")));
    }
    folders.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_without_a_program_anywhere_is_not_found() {
        let none = DebianTool { name: "none", package: "none", program: "tenon-no-such-tool", probe: &[] };
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(none.on_machine(), None);
        assert_eq!(none.below(dir.path()), None);
        assert_eq!(none.below(&dir.path().join("absent")), None);
    }

    #[test]
    fn an_unpacked_program_runs_with_the_libraries_that_came_with_it() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["usr/bin", "usr/lib/x86_64-linux-gnu", "usr/lib/python3"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        // A link to a program that every machine has stands for the unpacked one.
        std::os::unix::fs::symlink("/bin/sh", dir.path().join("usr/bin/shell")).unwrap();
        let shell = DebianTool { name: "shell", package: "x", program: "shell", probe: &["-c", "exit 0"] };
        let mut command = shell.below(dir.path()).unwrap().command();
        let output = command.args(["-c", "echo $LD_LIBRARY_PATH"]).output().unwrap();
        let expected = format!("{}\n", dir.path().join("usr/lib/x86_64-linux-gnu").display());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}
