//! Which overlays apply, and which of them conflict with one that does?
//!
//! An overlay that conflicts anywhere applies nowhere: whoever wrote it must not find it at work in half of the pools.

use std::collections::BTreeMap;
use std::fmt;

use super::matching::{Facts, Matches};
use super::{CatalogChanges, OverlaidPool, Overlay};
use crate::catalog::Offering;
use crate::labels::{CAPACITY_TYPE, ZONE};

/// Overlays that apply, in the order in which they do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OverlaySet {
    overlays: Vec<Overlay>,
}

/// What two overlays of equal weight both decide about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contested {
    /// The price of an offering: of its zone and capacity type as far as they are known.
    Price(String),
    /// The amount of this resource.
    Capacity(String),
}

/// Why an overlay does not apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayConflict {
    /// The overlay that applies instead.
    pub other: String,
    /// The weight of both.
    pub weight: i32,
    /// What both decide about.
    pub contested: Contested,
    /// Of which size.
    pub instance_type: String,
    /// In which pool.
    pub pool: String,
}

/// The lowest overlay that spoke of each thing so far: it comes next in order to those that are still asked about.
#[derive(Debug, Default)]
struct Spoken<'o> {
    prices: BTreeMap<(usize, usize, usize), &'o Overlay>,
    amounts: BTreeMap<(usize, usize, &'o str), &'o Overlay>,
}

impl OverlaySet {
    /// Those of all overlays that apply to these pools, and why the others do not. The order in which they are told means
    /// nothing.
    pub fn of(
        mut overlays: Vec<Overlay>,
        pools: &[OverlaidPool<'_>],
    ) -> (OverlaySet, BTreeMap<String, OverlayConflict>) {
        let facts: Vec<Facts<'_>> = pools.iter().map(Facts::new).collect();
        overlays.sort_by(|a, b| a.order().cmp(&b.order()));
        let mut conflicts = BTreeMap::new();
        let mut spoken = Spoken::default();
        for overlay in &overlays {
            let matches: Vec<Matches> = facts.iter().map(|pool| pool.matches(overlay)).collect();
            match spoken.conflict(overlay, &facts, &matches) {
                Some(conflict) => drop(conflicts.insert(overlay.name.clone(), conflict)),
                None => spoken.note(overlay, &matches),
            }
        }
        overlays.retain(|overlay| !conflicts.contains_key(&overlay.name));
        (OverlaySet { overlays }, conflicts)
    }

    /// Whether nothing is different.
    pub fn is_empty(&self) -> bool {
        self.overlays.is_empty()
    }

    /// What they make of the catalogue of a pool.
    pub fn changes(&self, pool: &OverlaidPool<'_>) -> CatalogChanges {
        if self.is_empty() {
            return CatalogChanges::default();
        }
        let facts = Facts::new(pool);
        let mut changes = CatalogChanges::default();
        for overlay in &self.overlays {
            for (place, ways) in facts.matches(overlay) {
                if let Some(size) = facts.size(place) {
                    changes.add(overlay, size, &ways);
                }
            }
        }
        changes
    }
}

impl<'o> Spoken<'o> {
    /// The first thing that this overlay and one of equal weight both decide about.
    fn conflict(&self, overlay: &Overlay, facts: &[Facts<'_>], matches: &[Matches]) -> Option<OverlayConflict> {
        for (pool_at, (pool, matches)) in facts.iter().zip(matches).enumerate() {
            for (place, ways) in matches {
                let Some(size) = pool.size(*place) else { continue };
                let of_price = ways.iter().filter(|_| overlay.price.is_some()).find_map(|way| {
                    let other = self.prices.get(&(pool_at, *place, *way))?;
                    Some((*other, Contested::Price(told(&size.offerings[*way]))))
                        .filter(|_| other.weight == overlay.weight)
                });
                let of_capacity = overlay.capacity.iter().find_map(|(resource, _)| {
                    let other = self.amounts.get(&(pool_at, *place, resource))?;
                    Some((*other, Contested::Capacity(resource.to_owned()))).filter(|_| other.weight == overlay.weight)
                });
                if let Some((other, contested)) = of_price.or(of_capacity) {
                    return Some(OverlayConflict {
                        other: other.name.clone(),
                        weight: overlay.weight,
                        contested,
                        instance_type: size.name.clone(),
                        pool: pool.pool.to_owned(),
                    });
                }
            }
        }
        None
    }

    fn note(&mut self, overlay: &'o Overlay, matches: &[Matches]) {
        for (pool_at, matches) in matches.iter().enumerate() {
            for (place, ways) in matches {
                if overlay.price.is_some() {
                    self.prices.extend(ways.iter().map(|way| ((pool_at, *place, *way), overlay)));
                }
                let amounts = overlay.capacity.iter();
                self.amounts.extend(amounts.map(|(resource, _)| ((pool_at, *place, resource), overlay)));
            }
        }
    }
}

/// Where and how an offering can be had, as far as it says so.
fn told(offering: &Offering) -> String {
    let known: Vec<&str> = [ZONE, CAPACITY_TYPE].into_iter().filter_map(|label| offering.label(label)).collect();
    known.join(", ")
}

impl fmt::Display for OverlayConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OverlayConflict { other, weight, contested, instance_type, pool } = self;
        let place = match contested {
            Contested::Price(place) if !place.is_empty() => format!(" ({place})"),
            _ => String::new(),
        };
        let what = match contested {
            Contested::Price(_) => "the price".to_owned(),
            Contested::Capacity(resource) => format!("capacity {resource}"),
        };
        write!(
            f,
            "conflict with NodeOverlay {other} of the same weight {weight}: both change {what} of instance type \
             {instance_type}{place} in NodePool {pool}; set another spec.weight, or change spec.requirements of one of them"
        )
    }
}
