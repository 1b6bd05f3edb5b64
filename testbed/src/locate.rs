//! Finds each program on its own: a folder the user names, then the cache, then a build.
//!
//! PATH is never searched: an old etcd from a distribution breaks streaming lists, and a kubectl of another release
//! formats its output in another way.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::gobuild::{self, Progress};
use crate::programs::Program;
use crate::version::Version;

const TESTBED_BIN: &str = "TENON_TESTBED_BIN";
const KUBEBUILDER_ASSETS: &str = "KUBEBUILDER_ASSETS";

/// Where a program came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The folder in `TENON_TESTBED_BIN`.
    TestbedBin,
    /// The folder in `KUBEBUILDER_ASSETS`.
    KubebuilderAssets,
    /// Built earlier.
    Cache,
    /// Built just now.
    Built,
}

/// A program that runs and is of the pinned minor release.
#[derive(Debug, Clone)]
pub struct Found {
    /// Which program.
    pub program: Program,
    /// Its file.
    pub path: PathBuf,
    /// What it says it is.
    pub version: Version,
    /// Where it came from.
    pub source: Source,
}

/// The places to look, read from the environment once.
#[derive(Debug, Clone)]
pub struct Lookup {
    /// `TENON_TESTBED_BIN`: may hold all programs.
    pub testbed_bin: Option<PathBuf>,
    /// `KUBEBUILDER_ASSETS`: often holds etcd, kube-apiserver and kubectl only.
    pub kubebuilder_assets: Option<PathBuf>,
    /// The cache.
    pub cache: Cache,
    /// `PATH`, for finding `go` when something must be built.
    pub path: OsString,
}

impl Lookup {
    /// The places the environment names.
    pub fn from_env() -> Result<Lookup> {
        Ok(Lookup {
            testbed_bin: named_folder(TESTBED_BIN)?,
            kubebuilder_assets: named_folder(KUBEBUILDER_ASSETS)?,
            cache: Cache::from_env()?,
            path: std::env::var_os("PATH").unwrap_or_default(),
        })
    }

    /// The program, if it is somewhere already. Builds nothing.
    pub fn locate(&self, program: Program) -> Result<Option<Found>> {
        let named = [
            (&self.testbed_bin, Source::TestbedBin, TESTBED_BIN),
            (&self.kubebuilder_assets, Source::KubebuilderAssets, KUBEBUILDER_ASSETS),
        ];
        for (folder, source, name) in named {
            let Some(path) = folder.as_ref().map(|folder| folder.join(program.name())) else { continue };
            // What the user names must run: passing over it in silence would test another program than the one named.
            if path.exists() {
                return check(program, path, source, name).map(Some);
            }
        }
        let path = self.cache.program(program);
        if path.exists() {
            return check(program, path, Source::Cache, "the cache").map(Some);
        }
        Ok(None)
    }

    /// The program, built if it is nowhere yet.
    pub fn obtain(&self, program: Program, progress: &mut dyn Progress) -> Result<Found> {
        match self.locate(program) {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => {}
            // The cache is ours to mend; a folder the user named is not.
            Err(error @ (Error::DoesNotRun { .. } | Error::WrongVersion { .. }))
                if error.is_about(&self.cache.program(program)) =>
            {
                progress.note(&format!("{error}; building {program} again"));
            }
            Err(error) => return Err(error),
        }
        gobuild::build(program, self, progress)
    }

    /// The program, which must be there: tests never start a build of ten minutes behind their reader's back.
    pub fn require(&self, program: Program) -> Result<Found> {
        self.locate(program)?.ok_or_else(|| Error::NotFound {
            program,
            version: program.version(),
            cache: self.cache.root().to_owned(),
        })
    }

    /// `go`, if PATH has it.
    pub(crate) fn go(&self) -> Option<PathBuf> {
        std::env::split_paths(&self.path).map(|folder| folder.join("go")).find(|path| path.is_file())
    }
}

/// The variables that name folders, absolute: for a child that works in another folder than we do.
pub fn folder_variables() -> impl Iterator<Item = (&'static str, PathBuf)> {
    let names = [TESTBED_BIN, KUBEBUILDER_ASSETS, crate::cluster::DIR_VARIABLE];
    names.into_iter().filter_map(|name| Some((name, absolute(name)?)))
}

/// The folder a variable names, absolute; empty is as good as unset.
pub(crate) fn absolute(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable).filter(|value| !value.is_empty())?;
    std::path::absolute(value).ok()
}

/// A folder that is named must be there: passing over it in silence would start a build of ten minutes.
fn named_folder(variable: &'static str) -> Result<Option<PathBuf>> {
    match absolute(variable) {
        Some(folder) if !folder.is_dir() => Err(Error::NoFolder { variable, folder }),
        folder => Ok(folder),
    }
}

pub(crate) fn check(program: Program, path: PathBuf, source: Source, source_name: &str) -> Result<Found> {
    let version = ask_version(program, &path)?;
    let wanted = program.version();
    if !version.same_minor(wanted) {
        let source_name = source_name.to_owned();
        return Err(Error::WrongVersion { program, path, found: version, wanted, source_name });
    }
    Ok(Found { program, path, version, source })
}

/// Runs the file and reads the version it prints.
fn ask_version(program: Program, path: &Path) -> Result<Version> {
    let fail = |reason: String| Error::DoesNotRun { program, path: path.to_owned(), reason };
    let output = Command::new(path)
        .args(program.version_args())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| fail(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
        return Err(fail(format!("{} {said}", output.status)));
    }
    let first = text.lines().next().unwrap_or_default();
    let found = Version::find_in(&text).or_else(|| module_version(path, program.family().module()));
    found.ok_or_else(|| fail(format!("no version in its output: `{first}`")))
}

/// The version of a module in the list of modules that Go writes into every program, a line for each, divided by tabs.
fn module_version(path: &Path, module: &str) -> Option<Version> {
    let bytes = std::fs::read(path).ok()?;
    // As text, because searching text is compiled with the standard library, and fast in every build of ours.
    let text = String::from_utf8_lossy(&bytes);
    let (_, rest) = text.split_once(&format!("\t{module}\tv"))?;
    Version::find_in(rest.split_ascii_whitespace().next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_the_modules_that_go_writes_into_a_program() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        let list =
            "\0\u{1}path\texample.org/a/cmd\nmod\texample.org/a\tv0.12.3\th1:x=\ndep\texample.org/ab\tv9.9.9\th1:y=\n";
        std::fs::write(&path, [b"\xff\xfe".as_slice(), list.as_bytes()].concat()).unwrap();
        assert_eq!(module_version(&path, "example.org/a"), Some(Version { major: 0, minor: 12, patch: 3 }));
        assert_eq!(module_version(&path, "example.org/b"), None);
    }
}
