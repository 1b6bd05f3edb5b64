//! VM templates of ProxmoxTemplates against the simulated estate and API server, with a controller that may die at every
//! single request.

#![expect(clippy::unwrap_used, reason = "a site of the test's own that does not work is a failed test")]

mod adoption;
mod changes;
mod crash;
mod creation;
mod rights;
mod site;
