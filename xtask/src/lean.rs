//! `cargo xtask lean`: builds Tenon without the simulator, as it is shipped, and checks what is in that build and what it says.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::artifacts::STATIC;
use crate::run::cargo;
use crate::tree::workspace_root;

/// Crates that only the simulator needs. What they bring along is not in the build either, then.
const LEFT_OUT: [&str; 3] = ["kube_cel", "rcgen", "tenon_sim"];

/// A crate, and a feature of it that only the simulator and tests need.
const FEATURE_LEFT_OUT: (&str, &str) = ("tokio", "test-util");

/// A command line, and what must come of it.
struct Trial {
    args: &'static [&'static str],
    code: i32,
    says: &'static str,
}

const TRIALS: [Trial; 8] = [
    Trial { args: &["version"], code: 0, says: ", without simulator\n" },
    Trial { args: &["version", "-o", "json"], code: 0, says: "\"simulator\":false" },
    Trial { args: &["crds"], code: 0, says: "kind: CustomResourceDefinition\n" },
    Trial { args: &["--help"], code: 0, says: "\n  controller " },
    Trial { args: &["controller", "--help"], code: 0, says: "--cloud-config <FILE>" },
    // Flags of the full build are not what is wrong with these command lines.
    Trial { args: &["demo", "--headless", "-o", "json"], code: 1, says: "error: cannot run `tenon demo`: this build" },
    Trial { args: &["demo", "--help"], code: 0, says: "`cargo run --release -- demo`" },
    Trial { args: &["pve-sim", "--hosts", "2"], code: 1, says: "`cargo run --release -- pve-sim`" },
];

/// Where cargo puts compiled crates, and binaries.
#[derive(Debug, Deserialize)]
struct Folders {
    build_directory: PathBuf,
    target_directory: PathBuf,
}

/// What cargo says while it builds, one message a line. Messages of other kinds have other fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    reason: String,
    target: Target,
    features: Vec<String>,
    executable: Option<PathBuf>,
    message: Option<Diagnostic>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Target {
    name: String,
}

/// A warning or an error of the compiler, as it would print it.
#[derive(Debug, Deserialize)]
struct Diagnostic {
    rendered: Option<String>,
}

/// Builds and checks, and says where the binary is.
pub(crate) fn check() -> anyhow::Result<PathBuf> {
    let messages = build(&workspace_root())?;
    let problems = problems(&messages);
    if !problems.is_empty() {
        bail!("{}", problems.join("; "));
    }
    let executable = messages.into_iter().find_map(|message| message.executable);
    let executable = executable.context("cannot find the tenon binary in the output of cargo")?;
    try_out(&executable)?;
    Ok(executable)
}

/// Builds, shows what the compiler says, and returns what cargo says.
///
/// Compiled crates lie beside those of other builds, because half of them are the same. The binary does not: at its usual
/// place, tests would find it instead of the full one.
fn build(root: &Path) -> anyhow::Result<Vec<Message>> {
    let metadata = cargo(root).args(["metadata", "--format-version=1", "--no-deps"]).stderr(Stdio::inherit()).output();
    let metadata = metadata.context("cannot run cargo metadata")?;
    let folders: Folders =
        serde_json::from_slice(&metadata.stdout).context("cannot read the output of cargo metadata")?;
    let mut build = cargo(root);
    build.args(["rustc", "--package", "tenon", "--bin", "tenon", "--no-default-features", "--message-format", "json"]);
    build.args(["--", "-C", STATIC]);
    build.env("CARGO_BUILD_BUILD_DIR", folders.build_directory);
    build.env("CARGO_TARGET_DIR", folders.target_directory.join("lean"));
    let output = build.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot run cargo")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let messages = said.lines().map(|line| serde_json::from_str(line).context("cannot read a message of cargo"));
    let messages = messages.collect::<anyhow::Result<Vec<Message>>>()?;
    for text in messages.iter().filter_map(|message| message.message.as_ref()?.rendered.as_deref()) {
        eprintln!("{}", text.trim_end());
    }
    if !output.status.success() {
        bail!("cannot build tenon without the simulator: cargo ended with {}", output.status);
    }
    Ok(messages)
}

/// What is in the build and should not be.
fn problems(messages: &[Message]) -> Vec<String> {
    let mut problems = Vec::new();
    for message in messages {
        let name = message.target.name.as_str();
        let is_built = message.reason == "compiler-artifact";
        if is_built && LEFT_OUT.contains(&name) {
            problems.push(format!("the build has crate `{name}`, which only the simulator needs"));
        }
        let (owner, feature) = FEATURE_LEFT_OUT;
        if is_built && name == owner && message.features.iter().any(|other| other == feature) {
            problems
                .push(format!("the build has feature `{feature}` of crate `{name}`, which only the simulator needs"));
        }
        if message.message.is_some() {
            problems.push(format!("the compiler warns of `{name}`: fix the warnings above"));
        }
    }
    problems.dedup();
    problems
}

/// Runs the binary as people would.
fn try_out(tenon: &Path) -> anyhow::Result<()> {
    for Trial { args, code, says } in &TRIALS {
        let output = Command::new(tenon).args(*args).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("cannot run {}", tenon.display()))?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let said = if *code == 0 { &out } else { &err };
        let shown = args.join(" ");
        if output.status.code() != Some(*code) {
            bail!("`tenon {shown}` ended with {}, not with code {code}: {}", output.status, err.trim());
        }
        if !said.contains(says) {
            bail!("`tenon {shown}` does not say `{says}`, but: {}", said.trim());
        }
        if *args == ["--help"] && said.contains("demo") {
            bail!("`tenon --help` lists `demo`, which this build leaves out");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: &[&str]) -> Vec<String> {
        let messages: Vec<Message> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        problems(&messages)
    }

    #[test]
    fn a_crate_or_feature_of_the_simulator_in_the_build_is_found() {
        let tokio = r#"{"reason":"compiler-artifact","target":{"name":"tokio"},"features":["rt","test-util"]}"#;
        let sim = r#"{"reason":"compiler-artifact","target":{"name":"tenon_sim"},"features":[],"executable":null}"#;
        assert_eq!(
            found(&[tokio, sim]),
            [
                "the build has feature `test-util` of crate `tokio`, which only the simulator needs",
                "the build has crate `tenon_sim`, which only the simulator needs",
            ]
        );
    }

    #[test]
    fn a_warning_of_the_compiler_is_a_problem() {
        let warning = r#"{"reason":"compiler-message","target":{"name":"tenon_cli"},
            "message":{"level":"warning","rendered":"warning: function `f` is never used\n"}}"#;
        assert_eq!(found(&[warning, warning]), ["the compiler warns of `tenon_cli`: fix the warnings above"]);
    }

    #[test]
    fn a_build_without_the_simulator_is_fine() {
        let tokio = r#"{"reason":"compiler-artifact","target":{"name":"tokio"},"features":["rt","time"],"fresh":true}"#;
        let script = r#"{"reason":"build-script-executed","linked_libs":[]}"#;
        let tenon = r#"{"reason":"compiler-artifact","target":{"name":"tenon"},"executable":"/t/lean/debug/tenon"}"#;
        assert!(found(&[tokio, script, tenon, r#"{"reason":"build-finished","success":true}"#]).is_empty());
    }
}
