//! Which addresses new VMs are given, and which are taken.
//!
//! `survey` (with `reads`) reads what Proxmox says of templates, guests and hosts; `card_wishes` tells what the cards of a class's VMs are
//! given; `book` puts that together with claims and nodes. Nothing is kept that cannot be read again: a restart forgets
//! nothing. Which address is given to whom is decided by the engine, and written into the claim before there is a VM.

mod book;
mod card_wishes;
mod guest_addresses;
mod reads;
mod survey;
#[cfg(test)]
mod survey_tests;

pub use book::{AddressBook, AddressFacts, TemplateKey};
pub use guest_addresses::{of_container, of_vm};
pub(crate) use reads::is_denied;
pub(crate) use survey::{AddressSurvey, Surveyed};
#[cfg(test)]
pub(crate) use survey_tests::client as counted_client;
