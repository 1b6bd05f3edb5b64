//! The simulated Proxmox and the embedded API server, held to what the real ones answer.
//!
//! One binary for all of them: each further one would compile the generic code it uses again, and link it again.

mod cluster;
mod estate;
mod guests;
mod replay;
mod schema;
