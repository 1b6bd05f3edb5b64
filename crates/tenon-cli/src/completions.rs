//! `tenon completions SHELL`: a shell completion script.

use std::io::Write;

use anyhow::Context as _;
use clap::Command;
pub use clap_complete::Shell;

/// Prints the script for one shell.
pub fn print(shell: Shell, command: &mut Command, out: &mut dyn Write) -> anyhow::Result<()> {
    // The generator panics when its writer fails (a closed pipe, say), so it writes to memory.
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, command, name, &mut script);
    out.write_all(&script).with_context(|| format!("cannot print the completions for {shell}"))
}
