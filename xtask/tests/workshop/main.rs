//! The workshop as a newcomer meets it: `cargo xtask` with good and bad input.

mod clippy_bans;
mod diff;
mod fixture;
mod programs;
mod size_command;
mod sizes;
mod testbed_commands;
mod tidy;
