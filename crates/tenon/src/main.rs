//! The `tenon` binary: reads the command line, runs the verb, prints the error. It decides nothing.

mod args;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tenon_cli::go_flags;
use tenon_cli::plan::solve::solve;

use crate::args::{Args, Verb};

fn main() -> ExitCode {
    // A wrong command line ends here, with a usage message and exit code 2.
    let args = Args::parse_from(go_flags::rewrite(env::args_os(), &Args::command(), "controller"));
    match run(&args.verb) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // The whole chain on one line, outermost first. Nobody is left to tell if this fails.
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: &Verb) -> anyhow::Result<()> {
    // Not locked: the controller logs there from many threads.
    let mut out = io::stdout();
    match verb {
        Verb::Controller(args) => tenon_cli::controller::run(args)?,
        Verb::Version { output } => tenon_cli::version::print(*output, &mut out)?,
        Verb::Completions { shell } => tenon_cli::completions::print(*shell, &mut Args::command(), &mut out)?,
        Verb::Demo(args) => tenon_cli::sim::demo::run(args, &mut out)?,
        Verb::Plan(args) => tenon_cli::plan::run(args, &mut out, &mut io::stderr(), solve)?,
        Verb::InstanceTypes(args) => tenon_cli::instance_types::run(args, &mut out)?,
        Verb::Render(args) => tenon_cli::render::run(args, &mut out, &mut io::stderr())?,
        Verb::Regions(args) => tenon_cli::regions::run(args, &mut out)?,
        Verb::Adopt(args) => tenon_cli::adopt::run(args, &mut out)?,
        Verb::Crds => tenon_cli::crds::print(&mut out)?,
        Verb::PveSim(args) => tenon_cli::sim::pve_sim::run(args, &mut out)?,
        Verb::Reference { name } => {
            out.write_all(tenon_cli::reference::generated(name.as_deref(), &Args::command())?.as_bytes())?;
        }
    }
    Ok(out.flush()?)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
