//! What a plan is like: cases in words, and laws over random clusters.

#![expect(clippy::unwrap_used, reason = "a cluster of the test's own that does not read is a failed test")]

mod cases;
mod checker;
mod cluster;
mod laws;
