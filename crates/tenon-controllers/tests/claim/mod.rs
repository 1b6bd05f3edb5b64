//! A claim's VM against the simulated estate, with a controller that may die at every single request.

#![expect(clippy::unwrap_used, reason = "an order of the test's own that does not work is a failed test")]

mod crash;
mod faults;
mod hidden;
mod launch;
mod rights;
pub(crate) mod site;
