//! Is every new node on a host that its ProxmoxNodeClass allows, and does enough stay free there?

use std::collections::BTreeMap;

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{HostRules, NewNode, Place, Quantity};

use super::nodes::of_new;
use super::{Checker, Subject, Violation};

/// A new VM on a host.
struct Placed<'p> {
    number: usize,
    size: Quantity,
    /// What its class keeps free.
    kept: Quantity,
    pool: &'p str,
}

impl<'a> Checker<'a> {
    pub(super) fn host_rules_hold(&mut self) {
        if self.snapshot.host_rules.is_empty() {
            return;
        }
        self.no_host_is_excluded();
        for resource in [CPU, MEMORY] {
            for (place, placed) in self.placed_on_hosts(resource) {
                self.enough_stays_free(resource, place, &placed);
            }
        }
    }

    fn rules(&self, node: &NewNode) -> Option<&'a HostRules> {
        self.snapshot.host_rules.get(&node.pool)
    }

    fn no_host_is_excluded(&mut self) {
        for (number, node) in self.plan.new_nodes.iter().enumerate() {
            let Some(place) = &node.chosen.place else { continue };
            let is_excluded = self.rules(node).is_some_and(|rules| rules.excluded.contains(place));
            self.expect(!is_excluded, || {
                of_new(number, node, &format!("is on host {}, which its ProxmoxNodeClass excludes", place.host))
            });
        }
    }

    fn placed_on_hosts(&self, resource: &str) -> BTreeMap<&'a Place, Vec<Placed<'a>>> {
        let mut hosts: BTreeMap<&'a Place, Vec<Placed<'a>>> = BTreeMap::new();
        for (number, node) in self.plan.new_nodes.iter().enumerate() {
            let (Some(place), Some((size, way))) = (&node.chosen.place, self.chosen(node)) else { continue };
            let kept = self.rules(node).map(|rules| rules.min_available.get(resource)).unwrap_or_default();
            let size = size.capacity_with(&way.overrides).get(resource);
            hosts.entry(place).or_default().push(Placed { number, size, kept, pool: &node.pool });
        }
        hosts
    }

    /// Whoever was made last of those that keep so much free, left it. Others may have come later and kept less.
    fn enough_stays_free(&mut self, resource: &str, place: &Place, placed: &[Placed<'_>]) {
        let host = self.snapshot.hosts.iter().find(|host| host.place == *place);
        let Some(free) = host.map(|host| host.free.get(resource)) else { return };
        for one in placed.iter().filter(|one| one.kept > Quantity::ZERO) {
            let with_it: Vec<&Placed<'_>> = placed.iter().filter(|other| other.kept >= one.kept).collect();
            let left = free - with_it.iter().map(|other| other.size).sum();
            if left < one.kept {
                let rule = format!(
                    "host {} has {left} {resource} left with the new VMs of NodePool {}, and {} must stay free",
                    place.host, one.pool, one.kept
                );
                let concerned = with_it.iter().map(|other| Subject::NewNode(other.number)).collect();
                self.violations.push(Violation::new(concerned, rule));
                return;
            }
        }
    }
}
