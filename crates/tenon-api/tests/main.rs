//! The custom resources and what they mean: on a real control plane, alone, and together.
//!
//! One binary for all of them: each further one would compile the generic code it uses again, and link it again.

mod admission;
mod conversion;
mod planning;
