//! Runs outside commands, shown to the user as they are.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail};

/// Says which step begins, runs it, and says how long it took.
pub(crate) fn step<T>(name: &str, f: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    eprintln!("== {name}");
    let start = Instant::now();
    let made = f().with_context(|| format!("{name} failed"))?;
    eprintln!("== {name}: ok in {:.1} s", start.elapsed().as_secs_f64());
    Ok(made)
}

/// Cargo at work in `root`, as if started from a shell.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root);
    forget_package(&mut command);
    command
}

/// `cargo run` tells its child about the package it runs, which is xtask.
///
/// Passed on to cargo, those variables make build scripts of our dependencies run again, and half the tree is compiled
/// anew on every change of door. Passed on to a test, they are those of another package.
pub(crate) fn forget_package(command: &mut Command) {
    let told = ["CARGO_BIN_", "CARGO_CRATE_", "CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_PRIMARY_"];
    for (name, _) in std::env::vars_os() {
        if told.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
}

/// Runs a command to its end; anything but success is an error with `hint` as the next move.
pub(crate) fn run(command: &mut Command, hint: &str) -> anyhow::Result<()> {
    let shown = shown(command);
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}; {hint}");
    }
    Ok(())
}

/// The first line a command prints, or `None` if it cannot run or fails.
pub(crate) fn first_line(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
