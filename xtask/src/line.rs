//! `cargo xtask line`: one scale-up and scale-down, on a control plane and a simulated Proxmox that exist only for it.

use std::io;

use testbed::Program;

use crate::run::{cargo, run};
use crate::{tools, tree};

/// The scenario that is shown. It is one of the tests, so what is shown is what is proved.
const SCENARIO: &str = "line::real::three_pods_become_nodes_and_all_of_it_goes_away_again";

/// Obtains what is missing, then plays the scenario and prints what happens.
pub(crate) fn show() -> anyhow::Result<()> {
    tools::obtain_programs(&Program::CONTROL_PLANE, &mut io::stderr())?;
    let mut command = cargo(&tree::workspace_root());
    command.args([
        "test",
        "--quiet",
        "--package",
        "tenon",
        "--test",
        "end_to_end",
        SCENARIO,
        "--",
        "--exact",
        "--nocapture",
    ]);
    run(&mut command, "see the controller's log above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_that_is_shown_exists() {
        let path = tree::workspace_root().join("crates/tenon/tests/end_to_end/line.rs");
        let text = std::fs::read_to_string(path).unwrap();
        let [file, ground, name] = SCENARIO.split("::").collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((file, ground), ("line", "real"));
        assert!(text.contains(&format!("async fn {name}(kind: Kind)")), "{SCENARIO} is not in it");
    }
}
