//! What is built to be measured, with which profile and features, and whether a checkout has all that.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;

/// The package with the binary, and the binary's name.
pub(crate) const BINARY: &str = "tenon";

/// Profiles that cargo knows without being told.
const BUILT_IN: [&str; 4] = ["dev", "release", "test", "bench"];

/// What is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// The binary with the features it has by default.
    Binary,
    /// The binary without default features.
    LeanBinary,
    /// Every test binary of the workspace.
    Tests,
}

/// What is built, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Goal {
    pub(crate) subject: Subject,
    pub(crate) profile: String,
    /// The crate that is compiled again in a second build, if there is one.
    pub(crate) rebuild: Option<String>,
}

impl Goal {
    /// Arguments of the cargo command that builds it, without the target folder.
    pub(crate) fn build_arguments(&self) -> Vec<&str> {
        let mut arguments = match self.subject {
            Subject::Binary | Subject::LeanBinary => vec!["build", "--package", BINARY, "--bin", BINARY],
            Subject::Tests => vec!["test", "--workspace", "--no-run"],
        };
        arguments.extend(self.feature_arguments());
        // Measured is what was committed, so the lock file stays as it is.
        arguments.extend(["--profile", &self.profile, "--locked"]);
        arguments
    }

    /// Arguments of `cargo tree` that list the packages it consists of.
    pub(crate) fn tree_arguments(&self) -> Vec<&str> {
        let mut arguments = vec!["tree", "--locked", "--prefix", "none", "--format", "{p}"];
        match self.subject {
            Subject::Binary | Subject::LeanBinary => arguments.extend(["--package", BINARY, "--edges", "normal"]),
            Subject::Tests => arguments.extend(["--workspace", "--edges", "normal,build,dev"]),
        }
        arguments.extend(self.feature_arguments());
        arguments
    }

    fn feature_arguments(&self) -> Option<&'static str> {
        // A package that has no features accepts this, too.
        (self.subject == Subject::LeanBinary).then_some("--no-default-features")
    }

    /// The file that stands for a change in the crate to compile again.
    pub(crate) fn changed_file(&self, root: &Path) -> Option<PathBuf> {
        Some(root.join("crates").join(self.rebuild.as_deref()?).join("src/lib.rs"))
    }

    /// Fails if a checkout lacks something, which cargo would say only after minutes. `option` is how to name another
    /// profile.
    pub(crate) fn check(&self, root: &Path, option: &str) -> anyhow::Result<()> {
        let manifest = root.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
        let table: toml::Table =
            toml::from_str(&text).with_context(|| format!("cannot read {}", manifest.display()))?;
        let profiles = table.get("profile").and_then(toml::Value::as_table);
        let is_known = BUILT_IN.contains(&self.profile.as_str())
            || profiles.is_some_and(|profiles| profiles.contains_key(&self.profile));
        if !is_known {
            bail!("{} has no profile `{}`; name another one with {option}", manifest.display(), self.profile);
        }
        match self.changed_file(root).filter(|file| !file.exists()) {
            Some(file) => {
                bail!("{} does not exist; name another crate with --rebuild, or use --no-rebuild", file.display())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(subject: Subject, profile: &str) -> Goal {
        Goal { subject, profile: profile.to_owned(), rebuild: None }
    }

    #[test]
    fn features_are_left_out_of_the_build_and_of_the_list_of_dependencies() {
        let lean = goal(Subject::LeanBinary, "dist");
        assert_eq!(
            lean.build_arguments().join(" "),
            "build --package tenon --bin tenon --no-default-features --profile dist --locked"
        );
        assert!(lean.tree_arguments().contains(&"--no-default-features"));
        let full = goal(Subject::Binary, "release");
        assert!(!full.build_arguments().contains(&"--no-default-features"));
        assert!(!full.tree_arguments().contains(&"--no-default-features"));
    }

    #[test]
    fn tests_are_built_and_not_run() {
        let tests = goal(Subject::Tests, "dev");
        assert_eq!(tests.build_arguments().join(" "), "test --workspace --no-run --profile dev --locked");
    }

    #[test]
    fn a_profile_or_a_crate_that_a_checkout_lacks_is_an_error_with_the_next_step() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::write(root.join("Cargo.toml"), "[profile.dist]\ninherits = \"release\"\n").unwrap();
        goal(Subject::Binary, "dist").check(root, "--profile").unwrap();
        goal(Subject::Binary, "release").check(root, "--profile").unwrap();
        let error = goal(Subject::Binary, "small").check(root, "--against-profile").unwrap_err().to_string();
        assert!(error.ends_with("has no profile `small`; name another one with --against-profile"), "{error}");
        let rebuild = Some("tenon-engine".to_owned());
        let error = Goal { rebuild, ..goal(Subject::Binary, "dist") }.check(root, "--profile").unwrap_err().to_string();
        assert!(error.contains("crates/tenon-engine/src/lib.rs does not exist; name another crate"), "{error}");
    }
}
