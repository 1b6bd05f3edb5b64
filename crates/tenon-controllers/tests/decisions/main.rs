//! The pure parts of the controllers, without a server.

#![expect(clippy::unwrap_used, reason = "an object of the test's own that does not read is a failed test")]

mod claims;
mod objects;
mod verdicts;
