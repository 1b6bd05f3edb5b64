//! What a test run could prove on this machine, and what it could not for want of a tool.
//!
//! A test that needs an outside tool asks here for it. A tool that is missing fails the test if it is required, and is
//! written down if not: `cargo xtask test` closes with the list.

use std::fs::File;
use std::io::Write;

/// `all`, `none`, or names divided by commas. Unset, the control plane is required and other tools are not.
pub const REQUIRE_VARIABLE: &str = "TENON_REQUIRE";

/// The file that collects one line for each tool a test asked for.
pub const FILE_VARIABLE: &str = "TENON_PROOF_FILE";

/// The name under which tests ask for a [`crate::Testbed`].
pub const CONTROL_PLANE: &str = "control-plane";

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

/// Turns "is the tool there?" into what a test should do: go on with it, stop quietly, or fail.
pub fn with_tool<T, E: std::fmt::Display>(tool: &str, found: Result<T, E>) -> Result<Option<T>, E> {
    match found {
        Ok(found) => {
            record(&format!("proved {tool}"));
            Ok(Some(found))
        }
        Err(error) if is_required(tool) => Err(error),
        Err(error) => {
            record(&format!("missing {tool}: {error}"));
            Ok(None)
        }
    }
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
}
