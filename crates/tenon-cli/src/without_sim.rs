//! In place of the commands that need the simulator, in a build without it: each says which build has the command.
//!
//! The names are those of `sim.rs`, so that nobody else asks which build this is.

/// Whether this build has the simulator.
pub const IS_INCLUDED: bool = false;

/// A command of the full build. It takes every flag it has there, and answers each with the same sentence.
macro_rules! left_out {
    ($module:ident, $args:ident, $verb:literal) => {
        #[doc = concat!("`tenon ", $verb, "`, which this build leaves out.")]
        pub mod $module {
            use std::ffi::OsString;
            use std::io::Write;

            use clap::Args;

            const SENTENCE: &str = concat!(
                "cannot run `tenon ",
                $verb,
                "`: this build of Tenon has no simulator (built without cargo feature `sim`); use a build with the ",
                "default features, for example `cargo run --release -- ",
                $verb,
                "` in a checkout of Tenon"
            );

            // Not in the list of commands: what is listed there can be run.
            #[doc = concat!("The command line of `tenon ", $verb, "`, whatever is on it.")]
            #[derive(Debug, Args)]
            #[command(about = SENTENCE, hide = true)]
            pub struct $args {
                #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
                _given: Vec<OsString>,
            }

            /// Fails, and says which build has the command.
            pub fn run(_: &$args, _: &mut dyn Write) -> anyhow::Result<()> {
                anyhow::bail!(SENTENCE)
            }
        }
    };
}

left_out!(demo, Demo, "demo");
left_out!(pve_sim, PveSim, "pve-sim");
