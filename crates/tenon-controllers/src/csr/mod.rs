//! The CSR approver (`--csr-approver`): approves the certificates that kubelets of our NodeClaims ask for, and no others.
//!
//! `request` reads what is asked for and by whom, `known` and `addresses` gather what is true, `judge` decides, `decide` acts and
//! reports, `run` watches. `book` keeps what is not decided yet, `approvals` counts what was approved, `refusal` has the words.
//!
//! The signature of a request is not checked here: the API server does that when a request is made, and who asks is its word, not
//! the request's.

mod addresses;
mod approvals;
mod asked;
mod book;
mod decide;
mod judge;
#[cfg(test)]
mod judge_tests;
mod known;
mod refusal;
mod request;
#[cfg(test)]
mod request_tests;
mod run;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod test_requests;
#[cfg(test)]
mod test_site;
#[cfg(test)]
mod trouble_tests;
mod undecided;

pub(crate) use asked::Asked;
pub(crate) use run::run;
pub(crate) use undecided::{Undecided, undecided};
