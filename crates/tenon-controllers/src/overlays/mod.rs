//! NodeOverlays: which apply to which pools, told on each of them, and at hand for whoever plans.
//!
//! Read in this order: `run` (when it is looked), `pass` (one look at all overlays and all pools), `verdict` (the condition of
//! each), `book` (what the plans go by). Nothing of it runs while the feature gate NodeOverlay is off.

mod book;
mod pass;
#[cfg(test)]
mod pass_tests;
mod run;
mod verdict;

pub(crate) use book::OverlayBook;
pub(crate) use run::run;
