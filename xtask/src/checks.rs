//! `cargo xtask test`: every check, then every test, in the order that fails fastest.

use std::process::Command;
use std::time::Instant;

use crate::diff::{DiffVerb, Disruption, Golden};
use crate::run::{cargo, run, step};
use crate::tree::workspace_root;
use crate::{artifacts, diff, lean, package, tests_run, tidy, tools};

pub(crate) fn run_all() -> anyhow::Result<()> {
    let root = workspace_root();
    step("fmt", || run(cargo(&root).args(["fmt", "--all", "--check"]), "run `cargo fmt --all`"))?;
    step("typos", || {
        let mut typos = Command::new(tools::TYPOS.obtain()?);
        run(typos.current_dir(&root), "correct the words above, or add them to typos.toml")
    })?;
    step("deny", || {
        let mut deny = Command::new(tools::DENY.obtain()?);
        deny.args(["--locked", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"]).current_dir(&root);
        run(&mut deny, "remove the dependencies refused above, or allow them in deny.toml")
    })?;
    step("clippy", || {
        let args = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        run(cargo(&root).args(args), "fix the warnings above")
    })?;
    let start = Instant::now();
    let built = step("build", || artifacts::build_tests(&root))?;
    let built_in = start.elapsed();
    let tenon = || Some(built.tenon.clone());
    step("tidy", || tidy::run(&root, tenon()))?;
    step("tools", tools::obtain_required_programs)?;
    let lean = step("lean", lean::check)?;
    step("package", || package::check(&lean))?;
    step("diff", || diff::run(DiffVerb::Recorded { tenon: tenon() }))?;
    step("disruption", || Disruption::recorded(tenon()).run())?;
    step("golden", || diff::run(DiffVerb::Golden(Golden::check(tenon()))))?;
    tests_run::run_all(&built, built_in)
}
