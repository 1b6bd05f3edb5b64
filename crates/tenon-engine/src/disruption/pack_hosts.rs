//! Which host can be freed of VMs of ours? Of those with the fewest, the first whose nodes all find a place on hosts in use.
//!
//! All of them are planned at once. Where budgets allow fewer at a time, a part goes, and only to hosts that have as many VMs or
//! more: so the host that is freed is the emptier one by then, and nothing needs to be remembered.

use tenon_model::{HostGoal, Place};

use super::candidates::Node;
use super::command::Command;
use super::host_goal::{GOAL, Layout, MOST_ASKED, Moving};
use super::host_stay::HostStay;
use super::kept::Kept;
use super::scan::Scan;

/// More nodes than this are never moved by one command: each of them is two VMs until its pods have moved.
const MOST_AT_ONCE: usize = 10;

impl<'s> Scan<'s> {
    /// A move with which a host has fewer VMs, or none, and its nodes.
    pub(super) fn pack_hosts(&mut self, layout: &Layout<'s>) -> Option<(Command, Vec<usize>)> {
        let mut asked = 0;
        for place in self.smallest_first(layout) {
            let before = self.simulated;
            let judged =
                if asked < MOST_ASKED { self.freed(layout, place) } else { Err(Kept::Host(HostStay::NotAsked)) };
            asked += self.simulated - before;
            match judged {
                Ok(found) => return Some(found),
                Err(why) => self.all_stay(&layout.on[place], &why),
            }
        }
        None
    }

    fn all_stay(&mut self, numbers: &[usize], why: &Kept) {
        for number in numbers {
            if self.goal_of(*number) == Some(HostGoal::Pack) {
                self.keep(GOAL, *number, why.clone());
            }
        }
    }

    /// Hosts with nodes that may be packed: those with the fewest VMs first, then those that cost the pods least.
    fn smallest_first(&self, layout: &Layout<'s>) -> Vec<&'s Place> {
        let is_meant = |numbers: &[usize]| numbers.iter().any(|number| self.goal_of(*number) == Some(HostGoal::Pack));
        let cost = |numbers: &[usize]| numbers.iter().map(|number| self.nodes[*number].cost).sum::<f64>();
        let hosts = layout.on.iter().filter(|(_, numbers)| is_meant(numbers));
        let mut hosts: Vec<(usize, f64, &Place)> =
            hosts.map(|(place, numbers)| (numbers.len(), cost(numbers), *place)).collect();
        hosts.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(b.2)));
        hosts.into_iter().map(|(.., place)| place).collect()
    }

    /// The move that frees a host, or brings it nearer to that.
    fn freed(&mut self, layout: &Layout<'s>, place: &'s Place) -> Result<(Command, Vec<usize>), Kept> {
        let numbers = &layout.on[place];
        let mut row = numbers.clone();
        row.sort_by(|a, b| self.nodes[*a].cost.total_cmp(&self.nodes[*b].cost).then(a.cmp(b)));
        let mut budgets = self.budgets(GOAL.reason());
        let (mut part, mut limit) = (Vec::new(), None);
        for number in row {
            match part.len() < MOST_AT_ONCE && budgets.spend(self.nodes[number].pool_name()) {
                true => part.push(number),
                false => limit = Some(self.budget_limit(&budgets, &self.nodes[number])),
            }
        }
        if let (true, Some(limit)) = (part.is_empty(), limit) {
            return Err(limit);
        }
        part.sort_unstable();
        Ok((self.freed_by(layout, place, &part)?, part))
    }

    /// The move of these nodes of a host, if all others of it can follow.
    pub(super) fn freed_by(&mut self, layout: &Layout<'s>, place: &'s Place, part: &[usize]) -> Result<Command, Kept> {
        let numbers = &layout.on[place];
        let host = || place.host.to_string();
        if !layout.is_open(place) {
            return Err(Kept::Host(HostStay::HostClosed { host: Some(host()) }));
        }
        let stays = |node: Option<&Node<'_>>, why| {
            let node = node.map(|node| node.name().to_owned());
            Kept::Host(HostStay::NodeStays { host: host(), node, why: Box::new(why) })
        };
        for number in numbers {
            let node = &self.nodes[*number];
            if self.goal_of(*number) != Some(HostGoal::Pack) {
                let (node, pool) = (node.name().to_owned(), node.pool_name().to_owned());
                return Err(Kept::Host(HostStay::OtherPool { host: host(), node, pool }));
            }
            self.movable(*number).map_err(|why| stays(Some(node), why))?;
        }
        let is_target = |other: &&&Place| **other != place && layout.is_open(other);
        let targets: Vec<&Place> = layout.on.keys().filter(is_target).copied().collect();
        if targets.is_empty() {
            return Err(Kept::Host(HostStay::OnlyHost { host: host() }));
        }
        let all =
            self.packed(&Moving { nodes: numbers, cordon: &[], hosts: &targets }).map_err(|why| stays(None, why))?;
        if part.len() == numbers.len() {
            return Ok(all);
        }
        let larger: Vec<&Place> =
            targets.into_iter().filter(|other| layout.on[*other].len() >= numbers.len()).collect();
        let rest: Vec<usize> = numbers.iter().copied().filter(|number| !part.contains(number)).collect();
        self.packed(&Moving { nodes: part, cordon: &rest, hosts: &larger }).map_err(|why| stays(None, why))
    }

    fn packed(&mut self, moving: &Moving<'_>) -> Result<Command, Kept> {
        let rules = &self.snapshot.host_rules;
        self.moved(moving, |pool| rules.get(pool).is_some_and(|rules| rules.goal == Some(HostGoal::Pack)))
    }
}
