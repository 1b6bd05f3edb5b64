//! What the controllers decide, and what they do to a simulated estate.
//!
//! One binary for all of them: each further one would compile the generic code it uses again, and link it again.

mod claim;
mod decisions;
mod role;
mod templates;
