//! `tenon instance-types`: writes a file of instance types, and shows those of a file or the built-in ones.

mod generate;
mod list;

use std::io::Write;

use clap::{Args, Subcommand};

/// Generate a file of instance types, or list instance types with what pods can use and what they cost.
#[derive(Debug, Args)]
pub struct InstanceTypes {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Generate(generate::Generate),
    List(list::List),
}

/// Prints what the arguments ask for.
pub fn run(args: &InstanceTypes, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.verb {
        Verb::Generate(args) => generate::run(args, out),
        Verb::List(args) => list::run(args, out),
    }
}
