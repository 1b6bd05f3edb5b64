//! The client against what a real Proxmox VE 9.2 said, and against the simulator.

#![expect(clippy::unwrap_used, reason = "a recording or constant that does not read is a failed test")]

mod calls;
mod door;
mod endpoints;
mod error_table;
mod estate;
mod following;
mod fuzz;
mod grammar;
mod matrix;
mod observed;
mod recorded;
mod recordings;
mod redaction;
mod rights;
mod site;
mod tickets;
mod tls;
