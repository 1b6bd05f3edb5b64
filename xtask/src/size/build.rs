//! Runs cargo with `xtask` in the place of the compiler, and reads what was noted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::goal::{BINARY, Goal, Subject};
use super::ground::Ground;
use super::timeline::Build;
use super::{cpu, unit, wrapper};
use crate::run::cargo;

/// What is built, from where and into what.
pub(crate) struct Builder<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) root: &'a Path,
    pub(crate) goal: &'a Goal,
}

/// A build, and the program it made.
pub(crate) struct Built {
    pub(crate) build: Build,
    /// None for tests.
    pub(crate) program: Option<PathBuf>,
}

impl Builder<'_> {
    /// Removes what earlier builds left, so that the next one starts from nothing.
    pub(crate) fn start_over(&self) -> anyhow::Result<()> {
        self.ground.clear("target")
    }

    pub(crate) fn build(&self) -> anyhow::Result<Built> {
        let log = self.ground.place("log");
        if log.exists() {
            fs::remove_file(&log).with_context(|| format!("cannot remove {}", log.display()))?;
        }
        let mut cargo = cargo(self.root);
        cargo.args(self.goal.build_arguments());
        cargo.arg("--message-format=json-render-diagnostics").arg("--target-dir").arg(self.ground.place("target"));
        cargo.env("RUSTC_WRAPPER", self.wrapper()?).env(wrapper::LOG_VARIABLE, &log);
        if self.goal.subject != Subject::Tests {
            cargo.env(strip_variable(&self.goal.profile), "none");
        }
        let (begin, cpu_before) = (Instant::now(), cpu::of_children()?);
        let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot run cargo")?;
        let (cpu_s, wall_s) = (cpu::of_children()? - cpu_before, begin.elapsed().as_secs_f64());
        if !output.status.success() {
            let command = self.goal.build_arguments().join(" ");
            bail!("cannot build {}: `cargo {command}` failed; see its output above", self.root.display());
        }
        let build = Build { cpu_s, wall_s, units: unit::read_log(&log)? };
        let program = program(&String::from_utf8_lossy(&output.stdout));
        Ok(Built { build, program: program.filter(|_| self.goal.subject != Subject::Tests) })
    }

    /// A copy of this program: the file it was started from may be built again while a measurement runs.
    fn wrapper(&self) -> anyhow::Result<PathBuf> {
        let copy = self.ground.place("wrapper");
        if !copy.exists() {
            let own = std::env::current_exe().context("cannot find the file of xtask")?;
            fs::copy(&own, &copy).with_context(|| format!("cannot copy {} to {}", own.display(), copy.display()))?;
        }
        Ok(copy)
    }
}

/// Cargo's variable for what is removed from programs of a profile. Without symbols, nobody can say whose code is whose.
fn strip_variable(profile: &str) -> String {
    format!("CARGO_PROFILE_{}_STRIP", profile.to_uppercase().replace('-', "_"))
}

/// The file of the binary, as cargo's messages name it.
fn program(messages: &str) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Message {
        target: Option<Target>,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    let message = |line| serde_json::from_str::<Message>(line).ok();
    let is_ours = |message: &Message| message.target.as_ref().is_some_and(|target| target.name == BINARY);
    messages.lines().filter_map(message).filter(is_ours).find_map(|message| message.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_where_cargo_says() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"tenon-engine"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"build-script-build"},"executable":"/t/build"}
{"reason":"build-script-executed","env":[]}
{"reason":"compiler-artifact","target":{"name":"tenon"},"executable":"/t/release/tenon"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(program(messages), Some(PathBuf::from("/t/release/tenon")));
        assert_eq!(program("not JSON"), None);
    }

    #[test]
    fn the_variable_for_a_profile_is_spelt_as_cargo_reads_it() {
        assert_eq!(strip_variable("release"), "CARGO_PROFILE_RELEASE_STRIP");
        assert_eq!(strip_variable("dist-small"), "CARGO_PROFILE_DIST_SMALL_STRIP");
    }
}
