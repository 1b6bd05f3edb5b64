//! What a test run could prove on this machine, and what it could not for want of a tool.
//!
//! A test that needs an outside tool asks here for it. A tool that is missing fails the test if it is required, and is
//! written down if not: `cargo xtask test` closes with the list.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::debian::{DebianTool, Runner};
use crate::error::{Error, Result};
use crate::locate::{Found, Lookup};
use crate::programs::Program;
use crate::python::Package;

/// `all`, `none`, or names divided by commas. Unset, the control plane is required and other tools are not.
pub const REQUIRE_VARIABLE: &str = "TENON_REQUIRE";

/// The file that collects one line for each tool a test asked for.
pub const FILE_VARIABLE: &str = "TENON_PROOF_FILE";

/// The name under which tests ask for a [`crate::Testbed`].
pub const CONTROL_PLANE: &str = "control-plane";

/// The name under which tests ask for Go itself, to compare with what it prints.
const GO: &str = "go";

/// Every name a test may ask for.
pub const TOOLS: [&str; 14] = [
    CONTROL_PLANE,
    "blkid",
    "buildah",
    "cloud-init",
    "dpkg-deb",
    GO,
    "helm",
    "isoinfo",
    "karpenter-provider-proxmox",
    "kubectl",
    "prometheus",
    "promtool",
    "proxmoxer",
    "xorriso",
];

/// Whether this run must have the tool.
pub fn is_required(tool: &str) -> bool {
    is_required_by(std::env::var(REQUIRE_VARIABLE).ok().as_deref(), tool)
}

fn is_required_by(setting: Option<&str>, tool: &str) -> bool {
    match setting.map(str::trim) {
        None | Some("") => tool == CONTROL_PLANE,
        Some("all") => true,
        Some("none") => false,
        Some(names) => names.split(',').any(|name| name.trim() == tool),
    }
}

/// The first name in `TENON_REQUIRE` that no test knows: it would require nothing and say nothing.
pub fn unknown_requirement() -> Option<String> {
    unknown_in(&std::env::var(REQUIRE_VARIABLE).unwrap_or_default())
}

fn unknown_in(setting: &str) -> Option<String> {
    let names = setting.split(',').map(str::trim).filter(|name| !name.is_empty() && !["all", "none"].contains(name));
    names.into_iter().find(|name| !TOOLS.contains(name)).map(str::to_owned)
}

/// The name under which tests ask for a program.
pub fn tool_of(program: Program) -> &'static str {
    if Program::CONTROL_PLANE.contains(&program) { CONTROL_PLANE } else { program.name() }
}

/// Where the programs of a tool are, for a test that needs them. A tool that is not there ends the test quietly
/// (`None`) unless it is required; one that is there but wrong is always an error.
pub fn with_programs(programs: &[Program]) -> Result<Option<Vec<Found>>> {
    let lookup = Lookup::from_env()?;
    let mut found = Vec::new();
    for program in programs {
        match lookup.require(*program) {
            Ok(program) => found.push(program),
            Err(error @ Error::NotFound { .. }) if !is_required(tool_of(*program)) => {
                record(&format!("missing {}: {error}", tool_of(*program)));
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    for program in programs {
        record(&format!("proved {}", tool_of(*program)));
    }
    Ok(Some(found))
}

/// The folder Python finds a package in, for a test that needs it; empty where Python has it by itself. A package that is
/// not there ends the test quietly (`None`) unless it is required.
pub fn with_package(package: &Package) -> Result<Option<PathBuf>> {
    let Some(folder) = package.find()? else {
        let error = Error::NoPackage { package: package.name, version: package.version };
        if is_required(package.name) {
            return Err(error);
        }
        record(&format!("missing {}: {error}", package.name));
        return Ok(None);
    };
    record(&format!("proved {}", package.name));
    Ok(Some(folder))
}

/// The file of `go`, for a test that compares with it. Where there is none, the test ends quietly (`None`) unless Go is
/// required.
pub fn with_go() -> Result<Option<PathBuf>> {
    let found = Lookup::from_env()?.go();
    match &found {
        Some(_) => record(&format!("proved {GO}")),
        None if is_required(GO) => return Err(Error::NothingToCompareWith),
        None => record(&format!("missing {GO}: {}", Error::NothingToCompareWith)),
    }
    Ok(found)
}

/// How to start a tool of the distribution, for a test that needs it. A tool that is not there ends the test quietly
/// (`None`) unless it is required.
pub fn with_tool(tool: &DebianTool) -> Result<Option<Runner>> {
    let Some(runner) = tool.find()? else {
        let error = Error::NoTool { tool: tool.name, package: tool.package };
        if is_required(tool.name) {
            return Err(error);
        }
        record(&format!("missing {}: {error}", tool.name));
        return Ok(None);
    };
    record(&format!("proved {}", tool.name));
    Ok(Some(runner))
}

/// Appends one line; lines this short are written whole.
fn record(line: &str) {
    let Some(path) = std::env::var_os(FILE_VARIABLE) else { return };
    let line = format!("{}\n", line.replace('\n', " "));
    // The list informs; a run whose list cannot be written is still a run.
    let _ = File::options().create(true).append(true).open(path).and_then(|mut file| file.write_all(line.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_plane_is_required_unless_someone_says_none() {
        assert!(is_required_by(None, CONTROL_PLANE));
        assert!(!is_required_by(None, "helm"));
        assert!(is_required_by(Some("all"), "helm"));
        assert!(!is_required_by(Some("none"), CONTROL_PLANE));
        assert!(is_required_by(Some("helm, chromium"), "chromium"));
        assert!(!is_required_by(Some("helm, chromium"), CONTROL_PLANE));
    }

    #[test]
    fn every_program_can_be_required() {
        assert!(Program::ALL.iter().all(|program| TOOLS.contains(&tool_of(*program))));
    }

    #[test]
    fn every_tool_of_the_distribution_can_be_required() {
        assert!(DebianTool::ALL.iter().all(|tool| TOOLS.contains(&tool.name)));
    }

    #[test]
    fn a_requirement_nobody_knows_is_named() {
        assert_eq!(unknown_in("all"), None);
        assert_eq!(unknown_in(""), None);
        assert_eq!(unknown_in("helm,control-plane"), None);
        assert_eq!(unknown_in("helm, helmm").as_deref(), Some("helmm"));
    }
}
