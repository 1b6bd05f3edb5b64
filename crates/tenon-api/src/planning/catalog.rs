//! The entries of an instance-types file as a catalogue.

use tenon_model::{Catalog, CatalogType, Offering, Overrides, Price, Reservation};

use crate::instance_types_file::{CatalogEntry, OfferingEntry};

/// How the label of a reservation ends.
const RESERVATION_ID: &str = "reservation-id";

/// Everything the file offers.
pub fn catalog(entries: &[CatalogEntry]) -> Catalog {
    let offered = |entry: &CatalogEntry| CatalogType {
        name: entry.name.clone(),
        requirements: entry.requirements.clone(),
        capacity: entry.capacity.clone(),
        overhead: entry.overhead.clone(),
        offerings: entry.offerings.iter().map(offering).collect(),
        volume_attachment_limits: entry.volume_attachment_limits.clone(),
        ..CatalogType::default()
    };
    Catalog::new(entries.iter().map(offered).collect())
}

fn offering(entry: &OfferingEntry) -> Offering {
    let label = entry.requirements.iter().map(|(label, _)| label).find(|label| label.ends_with(RESERVATION_ID));
    let reservation = label.zip(entry.reservation_id()).map(|(label, id)| Reservation {
        label: label.to_owned(),
        id: id.to_owned(),
        capacity: entry.reservation_capacity.unwrap_or_default(),
    });
    Offering {
        requirements: entry.requirements.clone(),
        price: Price::new(entry.price),
        available: entry.available,
        reservation,
        place: None,
        overrides: Overrides::default(),
    }
}
