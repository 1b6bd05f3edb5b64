//! Managed templates: every ProxmoxTemplate gets a VM template on each host, made from an image, and keeps it as it is
//! described.
//!
//! Read in this order: `run` (the loop), `pass` (one look at all objects), `one` (one object: what it should have, round by
//! round) with `begin`, `targets`, `members` and `existing` (where there should be one, and what is there already), `sight` with `observe`,
//! `image_book` and `users` (what is seen of each build), the engine's `template` and `template_set` (what is done about it),
//! `turns` and `image_guard` (whether a change may be made now), `act` with `desired` (the change, and what a VM is to be) and `failure` (what a refusal means), `report` (status and events).

mod act;
mod adoption;
mod begin;
mod desired;
#[cfg(test)]
mod desired_tests;
mod existing;
mod failure;
mod image_book;
mod image_guard;
mod members;
mod observe;
mod one;
mod pass;
mod report;
mod run;
mod sight;
mod targets;
mod turns;
mod users;
mod work;

pub use pass::{TemplateContext, TemplateMemory, TemplateReport, pass};
pub(crate) use run::run;
