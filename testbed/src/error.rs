//! What can go wrong between "give me a control plane" and having one.

use std::io;
use std::path::{Path, PathBuf};

use crate::programs::Program;
use crate::version::Version;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Each message names the thing and, where there is one, the next move.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {path}")]
    File {
        /// What was tried, as a verb: `create`, `read`, `rename`.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Neither `XDG_CACHE_HOME` nor `HOME` is set.
    #[error("cannot choose a cache folder: set HOME or XDG_CACHE_HOME")]
    NoCacheFolder,
    /// Python does not have a package.
    #[error("python3 cannot import {package} {version}; install it with `cargo xtask tools`")]
    NoPackage {
        /// Its name.
        package: &'static str,
        /// The pinned version.
        version: &'static str,
    },
    /// A tool of the distribution is neither installed nor in the cache.
    #[error("{tool} was not found; install it with `cargo xtask tools`, or install package {package} yourself")]
    NoTool {
        /// Its name.
        tool: &'static str,
        /// The package of Debian and Ubuntu that has it.
        package: &'static str,
    },
    /// A variable names a folder that is not there.
    #[error("{variable} names {folder}, which is not a folder; correct or unset it")]
    NoFolder {
        /// The variable.
        variable: &'static str,
        /// What it names.
        folder: PathBuf,
    },
    /// A program was found that is not of the pinned minor release.
    #[error(
        "{path} is {program} {found}, but the testbed needs {wanted}; \
         replace it with {program} {}.{}.x or remove it from {source_name}",
        wanted.major, wanted.minor
    )]
    WrongVersion {
        /// Which program.
        program: Program,
        /// Its file.
        path: PathBuf,
        /// What it says it is.
        found: Version,
        /// What the testbed is pinned to.
        wanted: Version,
        /// Where the file was found, as the user would name it.
        source_name: String,
    },
    /// A program is there but does not tell its version.
    #[error("{path} does not run as {program}: {reason}; replace or remove it")]
    DoesNotRun {
        /// Which program.
        program: Program,
        /// Its file.
        path: PathBuf,
        /// What happened instead.
        reason: String,
    },
    /// A program is nowhere and was not to be built.
    #[error(
        "{program} {version} was not found in TENON_TESTBED_BIN, KUBEBUILDER_ASSETS or {cache}; \
         run `cargo xtask testbed build`"
    )]
    NotFound {
        /// Which program.
        program: Program,
        /// The pinned version.
        version: Version,
        /// The cache that was looked in.
        cache: PathBuf,
    },
    /// A program must be built, but there is no Go.
    #[error(
        "cannot build {program} {version}: no `go` on PATH; install Go 1.21 or newer (it fetches the release it needs), \
         or set TENON_TESTBED_BIN to a folder that holds {program}"
    )]
    NoGo {
        /// Which program.
        program: Program,
        /// The pinned version.
        version: Version,
    },
    /// A test compares with Go, and there is none.
    #[error("cannot compare with Go: no `go` on PATH; install Go 1.26 or newer")]
    NothingToCompareWith,
    /// The Go build ended with an error.
    #[error("cannot build {program}: {reason}\n{output}")]
    Build {
        /// Which program.
        program: Program,
        /// The cause in our words, with the next move.
        reason: String,
        /// The last lines Go printed.
        output: String,
    },
    /// A component ended although nobody asked it to.
    #[error("{component} exited unexpectedly ({status}); from its log:\n{tail}")]
    Ended {
        /// Which component.
        component: Program,
        /// Its exit status.
        status: String,
        /// Lines of the log that name a known cause, then its last lines.
        tail: String,
    },
    /// A component did not become healthy in time.
    #[error("{component} was not ready within {seconds} s; from its log:\n{tail}")]
    NotReady {
        /// Which component.
        component: Program,
        /// How long it was given.
        seconds: u64,
        /// Lines of the log that name a known cause, then its last lines.
        tail: String,
    },
    /// A component was asked to do what it cannot do in its state.
    #[error("cannot {action} {component}: it is not running")]
    NotRunning {
        /// What was asked.
        action: &'static str,
        /// Of which component.
        component: Program,
    },
    /// A signal could not be sent.
    #[error("cannot signal {component}")]
    Signal {
        /// Which component.
        component: Program,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The keeper did not start.
    #[error("cannot start the shell that cleans up after a testbed: {reason}")]
    Keeper {
        /// What it said.
        reason: String,
    },
    /// Every random port that was tried was taken.
    #[error("cannot find a free loopback port: all {tried} ports tried were in use")]
    NoPort {
        /// How many ports were tried.
        tried: usize,
    },
    /// A certificate could not be made.
    #[error("cannot create the certificate for {subject}")]
    Certificate {
        /// Whose certificate.
        subject: String,
        /// What the library said.
        #[source]
        source: rcgen::Error,
    },
    /// A line of the audit log is not an event.
    #[error("cannot read line {line} of {path} as an audit event")]
    Audit {
        /// The log.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What the parser said.
        #[source]
        source: serde_json::Error,
    },
    /// The control plane that tests share did not start for the first of them.
    #[cfg(feature = "client")]
    #[error("the shared control plane did not start: {reason}")]
    Shared {
        /// What the first one was told.
        reason: String,
    },
    /// A Kubernetes client could not be made or used.
    #[cfg(feature = "client")]
    #[error("cannot create a Kubernetes client for {who}")]
    Client {
        /// For whom.
        who: String,
        /// What the client library said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Whether it speaks of this file.
    pub(crate) fn is_about(&self, file: &Path) -> bool {
        matches!(self, Error::DoesNotRun { path, .. } | Error::WrongVersion { path, .. } if path == file)
    }
}

/// Turns an [`io::Error`] into one that names the file: `fs::read(p).map_err(file("read", p))`.
pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { action, path, source }
}
