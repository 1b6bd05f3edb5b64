//! Which nodes are moved to other hosts because their ProxmoxNodeClass wants it so?
//!
//! Karpenter knows no hosts. So this comes last, where no other method finds anything, and never costs more. Each move makes a
//! measure smaller that no other move makes larger without saving something: what all nodes cost, then how many there are, then how
//! unevenly pools with goal SpreadHosts are spread, then how many hosts are in use, then how evenly they are. So moves end, and none
//! is taken back by another.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::labels::{CAPACITY_TYPE, HOST, REGION, ZONE};
use tenon_model::{Host, HostGoal, NewNode, NodeStage, Place, Plan, PodKey};

use super::candidates::Node;
use super::command::{Command, Method};
use super::confirmation::Rejection;
use super::host_stay::HostStay;
use super::kept::Kept;
use super::prices::{SPOT, nanos, no_dearer, sum};
use super::scan::Scan;
use crate::what_ifs::{Change, Destinations, MovedPods};

pub(super) const GOAL: Method = Method::HostGoal;

/// So many plans are made for one goal in one look. Each takes about as long as that of a single node.
pub(super) const MOST_ASKED: usize = 32;

/// Where the nodes with a NodeClaim are.
pub(super) struct Layout<'s> {
    /// Nodes by host, in the order of their names.
    pub(super) on: BTreeMap<&'s Place, Vec<usize>>,
    hosts: BTreeMap<&'s Place, &'s Host>,
    /// Nodes whose host is not known.
    lost: Vec<usize>,
}

impl<'s> Layout<'s> {
    fn of(scan: &Scan<'s>) -> Layout<'s> {
        let hosts: BTreeMap<&Place, &Host> = scan.snapshot.hosts.iter().map(|host| (&host.place, host)).collect();
        let mut layout = Layout { on: BTreeMap::new(), hosts, lost: Vec::new() };
        for (number, node) in scan.nodes.iter().enumerate() {
            match layout.place_of(node) {
                Some(place) => layout.on.entry(place).or_default().push(number),
                None => layout.lost.push(number),
            }
        }
        layout
    }

    /// The host of a node: where its VM is now, or else where it was made.
    fn place_of(&self, node: &Node<'s>) -> Option<&'s Place> {
        let labels = &node.state.labels;
        let (host, region) = (labels.get(HOST).or_else(|| labels.get(ZONE))?, labels.get(REGION));
        let is_its =
            |place: &&&Place| place.host.as_str() == host && region.is_none_or(|region| region == place.region);
        self.hosts.keys().find(is_its).copied()
    }

    /// Whether nothing is in the way of new VMs on a host, whoever makes them.
    pub(super) fn is_open(&self, place: &Place) -> bool {
        self.hosts.get(place).is_some_and(|host| host.closed.is_none())
    }

    /// Hosts on which a pool may make nodes, as far as that does not depend on room.
    pub(super) fn usable(&self, scan: &Scan<'s>, pool: &str) -> Vec<&'s Place> {
        let Some(found) = scan.snapshot.pools.iter().find(|found| found.name == pool) else { return Vec::new() };
        let ways = found.catalog.types().iter().flat_map(|size| &size.offerings).filter(|way| way.is_launchable());
        let offered: BTreeSet<&Place> = ways.filter_map(|way| way.place.as_ref()).collect();
        let rules = scan.snapshot.host_rules.get(pool);
        let is_usable = |(place, host): &(&&'s Place, &&Host)| {
            host.closed.is_none()
                && !host.closed_for.contains_key(pool)
                && offered.contains(**place)
                && !rules.is_some_and(|rules| rules.excluded.contains(**place))
        };
        self.hosts.iter().filter(is_usable).map(|(place, _)| *place).collect()
    }
}

/// Nodes that are moved together, and where to.
pub(super) struct Moving<'m> {
    pub(super) nodes: &'m [usize],
    /// Nodes that take no pods.
    pub(super) cordon: &'m [usize],
    /// Hosts on which replacements are made.
    pub(super) hosts: &'m [&'m Place],
}

impl<'s> Scan<'s> {
    /// One move, or none.
    pub(super) fn host_goals(&mut self) -> Vec<Command> {
        let nodes = self.those(|_| true);
        let nodes: Vec<usize> = nodes.into_iter().filter(|number| self.goal_of(*number).is_some()).collect();
        if nodes.is_empty() {
            return Vec::new();
        }
        if let Some(busy) = self.busy() {
            nodes.iter().for_each(|number| self.keep(GOAL, *number, Kept::Host(busy.clone())));
            return Vec::new();
        }
        let layout = Layout::of(self);
        for number in layout.lost.iter().filter(|number| nodes.contains(number)) {
            self.keep(GOAL, *number, Kept::Host(HostStay::HostClosed { host: None }));
        }
        let found = self.spread_hosts(&layout).or_else(|| self.pack_hosts(&layout));
        found.and_then(|(command, numbers)| self.take(command, &numbers)).into_iter().collect()
    }

    /// The goal of the pool of a node, unless that is static.
    pub(super) fn goal_of(&self, number: usize) -> Option<HostGoal> {
        let node = &self.nodes[number];
        self.goal_of_pool(node.pool_name()).filter(|_| !node.is_static())
    }

    pub(super) fn goal_of_pool(&self, pool: &str) -> Option<HostGoal> {
        self.snapshot.host_rules.get(pool).and_then(|rules| rules.goal)
    }

    /// What else happens to nodes. Where they will be is known only once that is over.
    fn busy(&self) -> Option<HostStay> {
        let in_progress = &self.snapshot.disruption.in_progress;
        let managed = self.snapshot.nodes.iter().filter(|node| node.is_managed);
        let is_busy = |node: &&std::sync::Arc<tenon_model::NodeState>| {
            node.is_leaving || node.stage != NodeStage::Initialized || in_progress.contains(&node.name)
        };
        let going = self.nodes.iter().filter(|node| node.is_going()).map(Node::name);
        let first = managed.filter(is_busy).map(|node| node.name.as_str()).chain(going).min();
        first.map(|node| HostStay::Busy { node: node.to_owned() })
    }

    /// Whether a node may be moved.
    pub(super) fn movable(&self, number: usize) -> Result<(), Kept> {
        let node = &self.nodes[number];
        self.consolidatable(node)?;
        if node.is_empty() {
            return Err(Kept::Host(HostStay::Empty { node: node.name().to_owned() }));
        }
        Ok(())
    }

    /// The move of nodes to other hosts: with no more new nodes, which cost no more, of pools that are meant.
    pub(super) fn moved(&mut self, moving: &Moving<'_>, is_meant: impl Fn(&str) -> bool) -> Result<Command, Kept> {
        let names = |numbers: &[usize]| numbers.iter().map(|number| self.nodes[*number].name()).collect::<Vec<_>>();
        let (remove, cordon) = (names(moving.nodes), names(moving.cordon));
        let change = Change {
            remove: &remove,
            cordon: &cordon,
            most_new_nodes: Some(moving.nodes.len()),
            pods: MovedPods::Free,
            destinations: Destinations::Settled,
            hosts: Some(moving.hosts),
        };
        self.simulated += 1;
        let plan = self.what_ifs.plan(&change).ok_or(Kept::NeedsSeveral)?;
        self.all_placed(moving.nodes, &plan)?;
        let planned = self.no_worse(moving.nodes, &plan, is_meant)?;
        let command = self.command(GOAL, moving.nodes, (&plan, planned));
        if self.has_failed(&command) { Err(Kept::ReplacementFailed) } else { Ok(command) }
    }

    /// The new nodes of a plan as they are made on its hosts and nowhere else, if they cost no more.
    fn no_worse(&self, numbers: &[usize], plan: &Plan, is_meant: impl Fn(&str) -> bool) -> Result<Vec<NewNode>, Kept> {
        let going: Vec<&Node<'s>> = numbers.iter().map(|number| &self.nodes[*number]).collect();
        let moved: BTreeSet<&PodKey> =
            going.iter().flat_map(|node| node.state.pods.iter().map(|pod| &*pod.key)).collect();
        let is_spot = going.iter().all(|node| node.is_of_capacity_type(SPOT));
        let mut planned = Vec::new();
        for new in &plan.new_nodes {
            let pool = self.snapshot.pools.iter().find(|pool| pool.name == new.pool);
            let Some(pool) = pool.filter(|pool| is_meant(&pool.name)) else {
                return Err(Kept::Host(HostStay::NodeOfOtherPool { pool: new.pool.clone() }));
            };
            // A node for other pods is planned by who plans for them, and comes first.
            if let Some(other) = new.pods.iter().find(|pod| !moved.contains(&***pod)) {
                return Err(Kept::Host(HostStay::Busy { node: format!("of pod {other}") }));
            }
            if is_spot && new.requirements.admit(CAPACITY_TYPE, SPOT) && !self.snapshot.disruption.gates.spot_to_spot {
                return Err(Kept::SpotToSpotOff);
            }
            planned.push(no_dearer(new, pool)?);
        }
        let current = sum(going.iter().filter_map(|node| node.price));
        let price = sum(planned.iter().map(|new| new.chosen.price));
        if nanos(price) > nanos(current) {
            return Err(Kept::Host(HostStay::Dearer { price, current }));
        }
        Ok(planned)
    }

    /// The same move, decided again.
    pub(super) fn still_meant(&mut self, command: &Command, going: &[usize]) -> Result<Command, Rejection> {
        let churn = |why| {
            let node = command.names().first().map(|node| (*node).to_owned()).unwrap_or_default();
            Rejection::Churn { node, why }
        };
        if let Some(busy) = self.busy() {
            return Err(churn(Some(Kept::Host(busy))));
        }
        let layout = Layout::of(self);
        let place = going.first().and_then(|first| layout.place_of(&self.nodes[*first]));
        let (Some(place), [first, ..]) = (place, going) else { return Err(churn(None)) };
        let again = match self.goal_of(*first) {
            Some(HostGoal::Pack) => self.freed_by(&layout, place, going),
            Some(HostGoal::Spread) if going.len() == 1 => self.spread_from(&layout, place, *first),
            _ => return Err(churn(None)),
        };
        match again {
            Ok(again) if again.fingerprint == command.fingerprint => Ok(again),
            Ok(_) => Err(Rejection::Scheduling { why: None }),
            Err(why) => Err(Rejection::Scheduling { why: Some(why) }),
        }
    }
}
