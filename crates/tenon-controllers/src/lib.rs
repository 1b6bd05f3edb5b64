//! Gathers, acts, reports. What the engine decided becomes true here, one outside change at a time.

pub mod claim;
pub mod provision;
pub mod status;
