//! Does everything together stay within limits, hosts and reservations?

use std::collections::BTreeMap;

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{NewNode, Offering, Place, Pool, Quantity, Requirement, ReservedMode, Resources};

use super::Checker;

impl Checker<'_> {
    pub(super) fn hosts_hold_their_vms(&mut self) {
        let mut needed: BTreeMap<&Place, Resources> = BTreeMap::new();
        for node in &self.plan.new_nodes {
            let (Some(place), Some((size, way))) = (&node.chosen.place, self.chosen(node)) else { continue };
            let capacity = size.capacity_with(&way.overrides);
            let vm: Resources = [CPU, MEMORY].into_iter().map(|name| (name, capacity.get(name))).collect();
            needed.entry(place).or_default().add(&vm);
        }
        for (place, needed) in needed {
            let Some(host) = self.snapshot.hosts.iter().find(|host| host.place == *place) else {
                self.expect(false, || format!("host {} is not known", place.host));
                continue;
            };
            self.expect(host.closed.is_none(), || format!("host {} cannot be used", place.host));
            let short = needed.shortage_in(&host.free);
            self.expect(short.is_none(), || format!("host {} is overfull: {short:?}", place.host));
        }
    }

    /// Whatever sizes the new nodes become, their pools stay within limits.
    pub(super) fn limits_hold(&mut self) {
        for pool in &self.snapshot.pools {
            let new: Vec<&NewNode> = self.plan.new_nodes.iter().filter(|node| node.pool == pool.name).collect();
            let mut used = pool.used.clone();
            new.iter().for_each(|node| used.add(&largest(pool, node)));
            let count = Quantity::whole(i64::try_from(new.len()).unwrap_or(i64::MAX));
            used.add(&Resources::default().with("nodes", count));
            let passed = pool.limits.iter().find(|(resource, limit)| used.get(resource) > *limit);
            // A pool that was over its limit before is not the plan's doing.
            self.expect(new.is_empty() || passed.is_none(), || {
                format!("pool {} passes its limit: {passed:?}", pool.name)
            });
        }
    }

    /// No more nodes hold a reservation than it has machines left.
    pub(super) fn reservations_hold(&mut self) {
        if self.snapshot.options.reserved == ReservedMode::Off {
            return;
        }
        let types = self.snapshot.pools.iter().flat_map(|pool| pool.catalog.types());
        let ways = types.flat_map(|size| &size.offerings).filter(|way| way.is_reserved());
        let mut left: BTreeMap<&str, i64> = BTreeMap::new();
        for reservation in ways.filter_map(|way| way.reservation.as_ref()) {
            let known = left.entry(&reservation.id).or_insert(i64::MAX);
            *known = (*known).min(i64::from(reservation.capacity));
        }
        for (id, left) in &mut left {
            *left = left.saturating_add(i64::from(self.snapshot.options.credit(id)));
        }
        let chosen = self.plan.new_nodes.iter().filter_map(|node| Some((node, self.chosen(node)?.1)));
        let reserved = chosen.filter(|(_, way): &(&NewNode, &Offering)| way.is_reserved());
        for (node, reservation) in reserved.filter_map(|(node, way)| Some((node, way.reservation.as_ref()?))) {
            // All that a node may be made from are held for it.
            let held = node.requirements.get(&reservation.label);
            let ids = held.into_iter().flat_map(Requirement::values);
            for id in ids {
                left.entry(id.as_str()).and_modify(|left| *left -= 1);
            }
        }
        let overdrawn: Vec<&str> = left.into_iter().filter(|(_, left)| *left < 0).map(|(id, _)| id).collect();
        self.expect(overdrawn.is_empty(), || format!("more nodes hold reservations than they have: {overdrawn:?}"));
    }
}

/// The most a new node may become.
fn largest(pool: &Pool, node: &NewNode) -> Resources {
    let sizes = node.instance_types.iter().filter_map(|name| pool.catalog.find(name));
    sizes.fold(Resources::default(), |most, size| most.or_larger(&size.capacity))
}
