//! Pools with a fixed number of nodes (`spec.replicas`), where the feature gate StaticCapacity is on.
//!
//! `observe` says what a pool has, the engine decides, `provision` makes what is missing (with `claim_template`, a claim as the
//! pool's template says it, for which somebody else chooses size and host), `deprovision` gives away what is too much.
//! `run` says whose turn it is.
//!
//! What a pool has is asked of the API server just before anything is made or given away, not of a store that may be
//! behind: dying or losing an answer between two claims never makes one too many.

mod claim_template;
mod deprovision;
mod observe;
mod provision;
mod run;

pub use claim_template::bare_claim;
pub use observe::{StaticLook, is_static};
pub(crate) use run::run;
