//! VM templates of ProxmoxTemplates against the simulated estate and API server, with a controller that may die at every
//! single request.

#![expect(clippy::unwrap_used, reason = "a site of the test's own that does not work is a failed test")]

mod adoption;
mod bounds;
mod changes;
mod checksums;
mod crash;
mod creation;
mod killed;
mod members;
mod pools;
mod regions;
mod rights;
mod site;
mod veil;
