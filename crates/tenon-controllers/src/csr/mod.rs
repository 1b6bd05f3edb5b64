//! The CSR approver (`--csr-approver`): approves the certificates that kubelets of our NodeClaims ask for, and no others.
//!
//! `request` reads what is asked for and by whom, `known` and `addresses` gather what is true, `judge` decides, `run` watches,
//! acts and reports. `book` keeps what is not decided yet.
//!
//! The signature of a request is not checked here: the API server does that when a request is made, and who asks is its word, not
//! the request's.

mod addresses;
mod book;
mod judge;
#[cfg(test)]
mod judge_tests;
mod known;
mod request;
#[cfg(test)]
mod request_tests;
mod run;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod test_requests;

pub(crate) use run::run;
