//! `tenon version`: version and build information.

use std::io::Write;

use anyhow::Context as _;
use clap::ValueEnum;
use serde::Serialize;

use crate::sim;

/// Output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One line of text.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// What is known about this build.
#[derive(Debug, Serialize)]
struct Build {
    version: &'static str,
    /// Set at build time by `TENON_COMMIT`; a build from a plain checkout does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'static str>,
    os: &'static str,
    arch: &'static str,
    /// Whether `tenon demo` and `tenon pve-sim` are in it.
    simulator: bool,
}

const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: option_env!("TENON_COMMIT"),
    os: std::env::consts::OS,
    arch: std::env::consts::ARCH,
    simulator: sim::IS_INCLUDED,
};

/// Prints the version.
pub fn print(format: Format, out: &mut dyn Write) -> anyhow::Result<()> {
    let line = match format {
        Format::Json => serde_json::to_string(&BUILD).context("cannot encode the version")?,
        Format::Text => {
            let commit = BUILD.commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
            let simulator = if BUILD.simulator { "with simulator" } else { "without simulator" };
            format!("tenon {}{commit} {}/{}, {simulator}", BUILD.version, BUILD.os, BUILD.arch)
        }
    };
    writeln!(out, "{line}").context("cannot print the version")
}
