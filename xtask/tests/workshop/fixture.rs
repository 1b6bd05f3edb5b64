//! Small trees to feed to `cargo xtask tidy`, and the command itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context as _, ensure};
use tempfile::TempDir;

/// A `clippy.toml` that satisfies the rule for pure crates: the real one.
pub(crate) const PURE_CLIPPY: &str = include_str!("../../../crates/tenon-model/clippy.toml");
/// The real root's.
const ROOT_CLIPPY: &str = include_str!("../../../clippy.toml");

/// A git checkout with one tidy crate, `tenon-model`.
pub(crate) struct Fixture {
    dir: TempDir,
}

impl Fixture {
    pub(crate) fn new() -> anyhow::Result<Fixture> {
        let fixture = Fixture { dir: tempfile::tempdir()? };
        fixture.git(&["init", "--quiet"])?;
        fixture.write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n")?;
        fixture.write(".gitignore", "/target\nCargo.lock\n")?;
        fixture.write("clippy.toml", ROOT_CLIPPY)?;
        fixture.add_crate("tenon-model", "")?;
        fixture.write("crates/tenon-model/clippy.toml", PURE_CLIPPY)?;
        Ok(fixture)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Adds a library crate with these lines after its `[package]` table.
    pub(crate) fn add_crate(&self, name: &str, manifest: &str) -> anyhow::Result<()> {
        let head = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n");
        self.write(&format!("crates/{name}/Cargo.toml"), &format!("{head}{manifest}"))?;
        self.write(&format!("crates/{name}/src/lib.rs"), "//! Nothing yet.\n")
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)?;
        Ok(fs::write(path, text)?)
    }

    pub(crate) fn git(&self, args: &[&str]) -> anyhow::Result<()> {
        let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"];
        let output = Command::new("git").args(identity).args(args).current_dir(self.dir.path()).output()?;
        ensure!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    pub(crate) fn commit(&self) -> anyhow::Result<()> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", "fixture"])
    }

    pub(crate) fn tidy(&self) -> anyhow::Result<Output> {
        // Build results of a fixture stay in the fixture: it has crates of the same names as ours.
        Ok(tidy_command(self.dir.path()).env("CARGO_TARGET_DIR", self.dir.path().join("target")).output()?)
    }

    /// Makes sure tidy passes.
    pub(crate) fn expect_tidy(&self) -> anyhow::Result<()> {
        let output = self.tidy()?;
        ensure!(output.status.success(), "tidy refused: {}", text(&output));
        Ok(())
    }

    /// Makes sure tidy fails with one problem, at this place and in these words.
    pub(crate) fn expect_problem(&self, place: &str, words: &str) -> anyhow::Result<()> {
        let output = self.tidy()?;
        let said = text(&output);
        ensure!(output.status.code() == Some(1), "tidy did not refuse: {said}");
        let found = said.lines().any(|line| line.starts_with(place) && line.contains(words));
        ensure!(found, "expected `{place}` … `{words}`, got: {said}");
        ensure!(said.contains("tidy found 1 problem"), "expected one problem, got: {said}");
        Ok(())
    }
}

/// Runs `cargo xtask tidy` on a tree.
pub(crate) fn tidy(root: &Path) -> anyhow::Result<Output> {
    Ok(tidy_command(root).output()?)
}

/// The command that checks a tree.
pub(crate) fn tidy_command(root: &Path) -> Command {
    let mut command = xtask();
    command.args(["tidy", "--root"]).arg(root);
    command
}

/// The built xtask.
pub(crate) fn xtask() -> Command {
    Command::new(env!("CARGO_BIN_EXE_xtask"))
}

/// Everything a command said.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Writes a shell script that can be run.
pub(crate) fn script(path: &Path, body: &str) -> anyhow::Result<()> {
    fs::write(path, format!("#!/bin/sh\n{body}\n"))?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}
