//! The client against what a real Proxmox VE 9.2 said, and against the simulator.

#![expect(clippy::unwrap_used, reason = "a recording or constant that does not read is a failed test")]

mod estate;
mod recorded;
mod tls;
