//! Does everything together stay within limits, hosts and reservations?

use std::collections::BTreeMap;

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{NewNode, Offering, Place, Pool, Quantity, Requirement, ReservedMode, Resources};

use super::violation::missing;
use super::{Checker, Subject, Violation};

impl Checker<'_> {
    pub(super) fn hosts_hold_their_vms(&mut self) {
        let mut needed: BTreeMap<&Place, Resources> = BTreeMap::new();
        for node in &self.plan.new_nodes {
            let (Some(place), Some((size, way))) = (&node.chosen.place, self.chosen(node)) else { continue };
            let capacity = size.capacity_with(&way.overrides);
            let vm: Resources = [CPU, MEMORY].into_iter().map(|name| (name, capacity.get(name))).collect();
            needed.entry(place).or_default().add(&vm);
            let host = self.snapshot.hosts.iter().find(|host| host.place == *place);
            let closed = host.and_then(|host| host.closed_for.get(&node.pool));
            self.expect(closed.is_none(), || {
                let why = closed.map(String::as_str).unwrap_or_default();
                let rule = format!("host {} cannot be used for NodePool {}: {why}", place.host, node.pool);
                (Subject::Host(place.clone()), rule)
            });
        }
        for (place, needed) in needed {
            let of_host = |rule: &str| (Subject::Host(place.clone()), format!("host {} {rule}", place.host));
            let Some(host) = self.snapshot.hosts.iter().find(|host| host.place == *place) else {
                self.expect(false, || of_host("does not exist"));
                continue;
            };
            self.expect(host.closed.is_none(), || {
                of_host(&format!("cannot be used: {}", host.closed.as_deref().unwrap_or_default()))
            });
            let short = needed.shortage_in(&host.free);
            self.expect(short.is_none(), || {
                of_host(&format!("is too small for its new VMs: {}", short.as_ref().map(missing).unwrap_or_default()))
            });
        }
    }

    /// Whatever sizes the new nodes become, their pools stay within limits.
    pub(super) fn limits_hold(&mut self) {
        for pool in self.snapshot.pools.iter().filter(|pool| pool.limits.iter().next().is_some()) {
            let new: Vec<&NewNode> = self.plan.new_nodes.iter().filter(|node| node.pool == pool.name).collect();
            let mut used = pool.used.clone();
            // Equal lists of sizes are often one.
            let mut known: BTreeMap<*const String, Resources> = BTreeMap::new();
            for node in &new {
                used.add(known.entry(node.instance_types.as_ptr()).or_insert_with(|| largest(pool, node)));
            }
            let count = Quantity::whole(i64::try_from(new.len()).unwrap_or(i64::MAX));
            used.add(&Resources::default().with("nodes", count));
            let passed = pool.limits.iter().find(|(resource, limit)| used.get(resource) > *limit);
            // A pool that was over its limit before is not the plan's doing.
            self.expect(new.is_empty() || passed.is_none(), || {
                let resource = passed.map(|(resource, _)| resource).unwrap_or_default();
                (
                    Subject::NodePool(pool.name.clone()),
                    format!("NodePool {} exceeds its limit of {resource}", pool.name),
                )
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
        let mut holders: BTreeMap<&str, Vec<Subject>> = BTreeMap::new();
        for (number, node) in self.plan.new_nodes.iter().enumerate() {
            let way = self.chosen(node).map(|(_, way)| way).filter(|way: &&Offering| way.is_reserved());
            let Some(reservation) = way.and_then(|way| way.reservation.as_ref()) else { continue };
            // All that a node may be made from are held for it.
            let held = node.requirements.get(&reservation.label);
            for id in held.into_iter().flat_map(Requirement::values) {
                left.entry(id.as_str()).and_modify(|left| *left -= 1);
                holders.entry(id.as_str()).or_default().push(Subject::NewNode(number));
            }
        }
        for (id, _) in left.into_iter().filter(|(_, left)| *left < 0) {
            let rule = format!("reservation {id} is used by more new nodes than it has capacity for");
            self.violations.push(Violation::new(holders.remove(id).unwrap_or_default(), rule));
        }
    }
}

/// The most a new node may become, of all that is limited.
fn largest(pool: &Pool, node: &NewNode) -> Resources {
    let sizes: Vec<_> = node.instance_types.iter().filter_map(|name| pool.catalog.find(name)).collect();
    let most = |resource: &str| sizes.iter().map(|size| size.capacity.get(resource)).max().unwrap_or_default();
    pool.limits.iter().map(|(resource, _)| (resource, most(resource))).collect()
}
