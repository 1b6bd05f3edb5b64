//! How many nodes can be deleted at once, or replaced by a single one? Of the nodes that save most for what they cost: the whole
//! row if that works, otherwise a shorter one that is found by halving. A shorter one is taken, too, if it saves more.

use tenon_model::Price;

use super::candidates::Node;
use super::command::{Command, Method};
use super::consolidation::Search;
use super::prices::{Certainty, nanos};
use super::scan::Scan;

/// More nodes than this are never disrupted by one command.
const MOST: usize = 100;

/// One node is the business of the next method.
const LEAST: usize = 2;

impl<'s> Scan<'s> {
    /// One command, or none. Why single nodes stay, the next method says.
    pub(super) fn multi_node(&mut self) -> Vec<Command> {
        let mut budgets = self.budgets(Method::MultiNode.reason());
        let mut row = self.those(|node| !node.is_empty() && !node.is_static());
        row.retain(|number| self.consolidatable(&self.nodes[*number]).is_ok());
        self.by_savings(&mut row);
        row.retain(|number| budgets.spend(self.nodes[*number].pool_name()));
        row.truncate(MOST);
        let mut best = None;
        let (mut least, mut most) = (LEAST, row.len());
        // Two nodes may be no cheaper as one while all of them are: halving alone would give up at the two.
        let mut length = most;
        while least <= most {
            match self.of_a_row(&row[..length]) {
                Some(command) => {
                    best = Some((command, length));
                    least = length + 1;
                }
                None => most = length - 1,
            }
            length = usize::midpoint(least, most);
        }
        let Some(longest) = best else { return Vec::new() };
        let (command, length) = self.dearest_left_out(&row, longest);
        self.take(command, &row[..length]).into_iter().collect()
    }

    /// What becomes of a row, if that is cheaper whatever is launched. One by one its nodes may become much cheaper than together.
    fn of_a_row(&mut self, row: &[usize]) -> Option<Command> {
        let (command, certainty) = self.consolidate(Search::Row, row).ok()?;
        (certainty == Certainty::Whatever).then_some(command)
    }

    /// The last node of a row may need a replacement so large that the others would save more without it. Only some shorter rows
    /// are tried. A row that is only deleted saves more the longer it is.
    fn dearest_left_out(&mut self, row: &[usize], longest: (Command, usize)) -> (Command, usize) {
        let most = longest.1;
        let mut best = longest;
        if best.0.replacements.is_empty() {
            return best;
        }
        let mut shorter: Vec<usize> = vec![most - 1, most * 3 / 4, most / 2, most / 4, LEAST];
        shorter.retain(|length| (LEAST..most).contains(length));
        shorter.dedup();
        for length in shorter {
            if let Some(command) = self.of_a_row(&row[..length])
                && nanos(Price::new(command.savings)) > nanos(Price::new(best.0.savings))
            {
                best = (command, length);
            }
        }
        best
    }

    /// Nodes of all pools in turn, each pool in its own order, so that no pool waits for another.
    pub(super) fn interleaved(&self, nodes: Vec<usize>) -> Vec<usize> {
        let mut pools: Vec<(&str, Vec<usize>)> = Vec::new();
        for number in nodes {
            let pool = Node::pool_name(&self.nodes[number]);
            match pools.iter_mut().find(|(name, _)| *name == pool) {
                Some((_, of_pool)) => of_pool.push(number),
                None => pools.push((pool, vec![number])),
            }
        }
        let longest = pools.iter().map(|(_, of_pool)| of_pool.len()).max().unwrap_or_default();
        let turns = (0..longest).flat_map(|turn| pools.iter().filter_map(move |(_, of_pool)| of_pool.get(turn)));
        turns.copied().collect()
    }
}
