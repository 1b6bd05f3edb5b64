//! What does a NodeOverlay say of itself?

use tenon_api::condition_reasons::{OVERLAY_CONFLICT, RUNTIME_VALIDATION, VALIDATION_SUCCEEDED};
use tenon_api::planning::OverlayFault;

use crate::status::Verdict;

/// The condition of an overlay.
pub(super) const VALIDATION: &str = VALIDATION_SUCCEEDED.name();
/// Those that make it ready.
pub(super) const OVERLAY_CONDITIONS: &[&str] = &[VALIDATION];

/// Whether it is applied, or why not.
pub(super) fn verdict(fault: Option<&OverlayFault>) -> Verdict {
    match fault {
        None => Verdict::holds(&VALIDATION_SUCCEEDED),
        Some(fault @ OverlayFault::Invalid(_)) => Verdict::fails(&RUNTIME_VALIDATION, fault.to_string()),
        Some(fault @ OverlayFault::Conflict(_)) => Verdict::fails(&OVERLAY_CONFLICT, fault.to_string()),
    }
}
