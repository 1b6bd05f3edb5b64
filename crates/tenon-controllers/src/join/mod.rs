//! What lets nodes join, and what keeps them from it: rights of bootstrap tokens, what a cluster tells new nodes, and what is
//! seen of those that are expected.
//!
//! `rights` asks what bootstrap tokens may do, `checks` looks at all that is needed before a VM is made, `board` at what all
//! expected nodes have in common; `uses` remembers what first-boot data uses of all that.

mod board;
mod checks;
mod requests;
mod rights;
mod uses;

pub(crate) use board::Board;
pub use checks::JoinChecks;
pub(crate) use checks::{JoinLook, JoinUse};
pub(crate) use requests::{Request, RequestState};
pub(crate) use rights::Reviewer;
