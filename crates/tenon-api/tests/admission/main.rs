//! The definitions on a real API server: what is accepted, defaulted and refused.

mod definitions;
mod quantities;
