//! `cargo xtask test`: every check, then every test, in the order that fails fastest.

use std::process::Command;

use crate::diff::DiffVerb;
use crate::run::{cargo, run, step};
use crate::tree::workspace_root;
use crate::{diff, lean, tests_run, tidy, tools};

pub(crate) fn run_all() -> anyhow::Result<()> {
    let root = workspace_root();
    step("fmt", || run(cargo(&root).args(["fmt", "--all", "--check"]), "run `cargo fmt --all`"))?;
    step("clippy", || {
        let args = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        run(cargo(&root).args(args), "fix the warnings above")
    })?;
    step("tidy", || tidy::run(&root))?;
    step("typos", || {
        let mut typos = Command::new(tools::TYPOS.obtain()?);
        run(typos.current_dir(&root), "correct the words above, or add them to typos.toml")
    })?;
    step("deny", || {
        let mut deny = Command::new(tools::DENY.obtain()?);
        deny.args(["--locked", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"]).current_dir(&root);
        run(&mut deny, "remove the dependencies refused above, or allow them in deny.toml")
    })?;
    step("tools", tools::obtain_required_programs)?;
    step("lean", lean::check)?;
    step("diff", || diff::run(DiffVerb::Recorded { tenon: None }))?;
    tests_run::run_all(&root)
}
