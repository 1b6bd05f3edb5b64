//! The launch of a VM as a machine: what it does next, and that it always ends.

#![expect(clippy::unwrap_used, reason = "a record of the test's own that does not read is a failed test")]

mod launch;
mod life;
mod world;
