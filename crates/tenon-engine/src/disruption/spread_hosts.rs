//! Which node moves, so that the nodes of its NodePool are spread more evenly over hosts? One at a time, from a host that has at
//! least two more than the other.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use tenon_model::{HostGoal, Place};

use super::candidates::Node;
use super::command::Command;
use super::host_goal::{GOAL, Layout, MOST_ASKED, Moving};
use super::host_stay::HostStay;
use super::kept::Kept;
use super::scan::Scan;

/// So many nodes fewer another host has to have: only then is the difference smaller after a move.
const LEAST_DIFFERENCE: usize = 2;

impl<'s> Scan<'s> {
    /// A move with which the nodes of a pool are spread more evenly, and its node.
    pub(super) fn spread_hosts(&mut self, layout: &Layout<'s>) -> Option<(Command, Vec<usize>)> {
        let pools = self.nodes.iter().enumerate().filter(|(number, _)| self.goal_of(*number) == Some(HostGoal::Spread));
        let pools: BTreeSet<&'s str> = pools.map(|(_, node)| Node::pool_name(node)).collect();
        let (budgets, mut asked) = (self.budgets(GOAL.reason()), 0);
        for pool in pools {
            for (place, numbers) in self.fullest_first(layout, pool) {
                let targets = self.emptier(layout, place, pool);
                for number in numbers {
                    let before = self.simulated;
                    let judged = match &targets {
                        Err(why) => Err(Kept::Host(why.clone())),
                        Ok(_) if asked >= MOST_ASKED => Err(Kept::Host(HostStay::NotAsked)),
                        Ok(_) if budgets.left(pool) == 0 => Err(self.budget_limit(&budgets, &self.nodes[number])),
                        Ok(targets) => self.spread_to(targets, number),
                    };
                    asked += self.simulated - before;
                    match judged {
                        Ok(command) => return Some((command, vec![number])),
                        Err(why) => self.keep(GOAL, number, why),
                    }
                }
            }
        }
        None
    }

    /// The nodes of a pool by host: the host with the most first, on each those first that cost their pods least.
    fn fullest_first(&self, layout: &Layout<'s>, pool: &str) -> Vec<(&'s Place, Vec<usize>)> {
        let here = |place: &&'s Place| {
            let mut numbers = self.of_pool(layout, place, pool);
            numbers.sort_by(|a, b| self.nodes[*a].cost.total_cmp(&self.nodes[*b].cost).then(a.cmp(b)));
            (*place, numbers)
        };
        let mut hosts: Vec<(&'s Place, Vec<usize>)> = layout.on.keys().map(here).collect();
        hosts.sort_by_key(|(place, numbers)| (Reverse(numbers.len()), *place));
        hosts
    }

    /// The nodes of a pool on a host.
    fn of_pool(&self, layout: &Layout<'s>, place: &Place, pool: &str) -> Vec<usize> {
        let here = layout.on.get(place).into_iter().flatten().copied();
        here.filter(|number| self.nodes[*number].pool_name() == pool).collect()
    }

    /// Hosts with so few nodes of a pool that one from this host may move there.
    fn emptier(&self, layout: &Layout<'s>, place: &Place, pool: &str) -> Result<Vec<&'s Place>, HostStay> {
        let host = || place.host.to_string();
        if !layout.is_open(place) {
            return Err(HostStay::HostClosed { host: Some(host()) });
        }
        let here = self.of_pool(layout, place, pool).len();
        let has_few = |other: &&Place| self.of_pool(layout, other, pool).len() + LEAST_DIFFERENCE <= here;
        let hosts: Vec<&'s Place> = layout.usable(self, pool).into_iter().filter(has_few).collect();
        if hosts.is_empty() { Err(HostStay::Even { host: host(), pool: pool.to_owned() }) } else { Ok(hosts) }
    }

    fn spread_to(&mut self, hosts: &[&Place], number: usize) -> Result<Command, Kept> {
        self.movable(number)?;
        let pool = self.nodes[number].pool_name();
        self.moved(&Moving { nodes: &[number], cordon: &[], hosts }, |other| other == pool)
    }

    /// The move of a node to a host with fewer nodes of its pool.
    pub(super) fn spread_from(&mut self, layout: &Layout<'s>, place: &Place, number: usize) -> Result<Command, Kept> {
        let hosts = self.emptier(layout, place, self.nodes[number].pool_name()).map_err(Kept::Host)?;
        self.spread_to(&hosts, number)
    }
}
