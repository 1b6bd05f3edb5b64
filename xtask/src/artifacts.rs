//! What cargo builds for us: the program `tenon`, and all test binaries of the workspace in one call.
//!
//! `cargo test --workspace` and `cargo build -p tenon` are two builds: cargo gives a library the features that all
//! selected packages and their tests ask for together. So whoever has built the tests uses the `tenon` built with them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use crate::run::cargo;

/// The program this project is about.
const PROGRAM: &str = "tenon";

/// Names the `tenon` that was built with the tests, for tests that would build it themselves.
pub(crate) const BUILT_VARIABLE: &str = "TENON_BUILT";

/// A test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suite {
    /// Its package and what it tests: `tenon-api suite`, `tenon-api unit tests`.
    pub(crate) name: String,
    /// The folder of its package.
    pub(crate) folder: PathBuf,
    pub(crate) executable: PathBuf,
}

/// Everything the tests need.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Built {
    pub(crate) suites: Vec<Suite>,
    /// The `tenon` that tests run.
    pub(crate) tenon: PathBuf,
}

/// A line of cargo's output that tells of something built. All other lines lack these fields.
#[derive(Debug, Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// Builds all tests, and the `tenon` they run.
pub(crate) fn build_tests(root: &Path) -> anyhow::Result<Built> {
    Built::read(&cargo_output(root, &["test", "--workspace", "--no-run"])?)
}

/// Builds `tenon` alone.
pub(crate) fn build_tenon(root: &Path) -> anyhow::Result<PathBuf> {
    let args = ["build", "--quiet", "--package", PROGRAM, "--bin", PROGRAM];
    program(&artifacts(&cargo_output(root, &args)?))
}

/// Builds `tenon` as people run it.
pub(crate) fn build_release_tenon(root: &Path) -> anyhow::Result<PathBuf> {
    let args = ["build", "--release", "--quiet", "--package", PROGRAM, "--bin", PROGRAM];
    program(&artifacts(&cargo_output(root, &args)?))
}

/// A codegen option with which the program needs no shared library. Given for the last step alone, it changes how `tenon` is linked,
/// and no other crate has to be compiled for it. glibc resolves host names by files and DNS without its plugins.
pub(crate) const STATIC: &str = "target-feature=+crt-static";

/// Builds `tenon` as it is shipped: static, and without the simulator.
pub(crate) fn build_static_tenon(root: &Path, profile: &[&str]) -> anyhow::Result<PathBuf> {
    let mut args = vec!["rustc", "--quiet", "--package", PROGRAM, "--bin", PROGRAM, "--no-default-features"];
    args.extend(profile);
    // Behind `--` only the compiler reads.
    let output = cargo_output_with(root, &args, &["--", "-C", STATIC])?;
    program(&artifacts(&output))
}

fn cargo_output(root: &Path, args: &[&str]) -> anyhow::Result<String> {
    cargo_output_with(root, args, &[])
}

fn cargo_output_with(root: &Path, args: &[&str], last: &[&str]) -> anyhow::Result<String> {
    let mut command = cargo(root);
    command
        .args(args)
        .arg("--message-format=json-render-diagnostics")
        .args(last)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = command.output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("`cargo {}` ended with {}; correct the errors above", args.join(" "), output.status);
    }
    String::from_utf8(output.stdout).context("cannot read the output of cargo: it is not UTF-8 text")
}

impl Built {
    fn read(output: &str) -> anyhow::Result<Built> {
        let artifacts = artifacts(output);
        let tests = artifacts.iter().filter(|artifact| artifact.profile.test);
        let suites: Vec<Suite> = tests.filter_map(Artifact::suite).collect();
        if suites.is_empty() {
            bail!("cannot find a test binary in the output of cargo");
        }
        Ok(Built { suites, tenon: program(&artifacts)? })
    }
}

impl Artifact {
    fn suite(&self) -> Option<Suite> {
        let folder = self.manifest_path.parent()?.to_owned();
        let package = folder.file_name()?.to_string_lossy();
        let tested = if self.is("test") { self.target.name.as_str() } else { "unit tests" };
        Some(Suite { name: format!("{package} {tested}"), executable: self.executable.clone()?, folder })
    }

    fn is(&self, kind: &str) -> bool {
        self.target.kind.iter().any(|known| known == kind)
    }
}

fn artifacts(output: &str) -> Vec<Artifact> {
    output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn program(artifacts: &[Artifact]) -> anyhow::Result<PathBuf> {
    let mut programs = artifacts.iter().filter(|artifact| artifact.is("bin") && !artifact.profile.test);
    let found = programs.find(|artifact| artifact.target.name == PROGRAM);
    found.and_then(|artifact| artifact.executable.clone()).context("cannot find `tenon` in the output of cargo")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(package: &str, target: (&str, &str), is_test: bool) -> String {
        let (name, kind) = target;
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"x","manifest_path":"/w/{package}/Cargo.toml","fresh":true,
                "target":{{"name":"{name}","kind":["{kind}"],"src_path":"x"}},
                "profile":{{"test":{is_test},"opt_level":"0"}},"executable":"/t/{name}-{kind}-{is_test}"}}"#
        )
        .replace('\n', "")
    }

    fn suite(name: &str, folder: &str, executable: &str) -> Suite {
        Suite { name: name.into(), folder: folder.into(), executable: executable.into() }
    }

    #[test]
    fn test_binaries_are_told_from_programs_and_libraries() {
        let library = line("tenon-api", ("tenon_api", "lib"), false).replace("\"/t/tenon_api-lib-false\"", "null");
        let output = [
            r#"{"reason":"build-script-executed","package_id":"x"}"#.to_owned(),
            library,
            line("tenon-api", ("tenon_api", "lib"), true),
            line("tenon-api", ("suite", "test"), true),
            line("tenon", ("tenon", "bin"), false),
            line("xtask", ("xtask", "bin"), true),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let built = Built::read(&output.join("\n")).unwrap();
        assert_eq!(built.tenon, Path::new("/t/tenon-bin-false"));
        let wanted = [
            suite("tenon-api unit tests", "/w/tenon-api", "/t/tenon_api-lib-true"),
            suite("tenon-api suite", "/w/tenon-api", "/t/suite-test-true"),
            suite("xtask unit tests", "/w/xtask", "/t/xtask-bin-true"),
        ];
        assert_eq!(built.suites, wanted);
    }

    #[test]
    fn a_build_without_tests_or_without_tenon_is_an_error() {
        let without_tests = Built::read(&line("tenon", ("tenon", "bin"), false)).unwrap_err();
        assert!(without_tests.to_string().contains("cannot find a test binary"), "{without_tests}");
        let without_tenon = Built::read(&line("tenon", ("cli", "test"), true)).unwrap_err();
        assert!(without_tenon.to_string().contains("cannot find `tenon`"), "{without_tenon}");
    }
}
