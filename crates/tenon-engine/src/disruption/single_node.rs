//! Which node can be deleted, or replaced by a cheaper one? Every node is judged, so that each has a reason.
//!
//! Replacements that are only cheaper as they are planned wait until nothing else is found: see `further`.

use super::balanced::Verdict;
use super::command::{Command, Method};
use super::consolidation::Search;
use super::further::worth_it;
use super::prices::Certainty;
use super::scan::Scan;

const SINGLE: Method = Method::SingleNode;

impl Scan<'_> {
    /// One command, or none.
    pub(super) fn single_node(&mut self) -> Vec<Command> {
        let budgets = self.budgets(SINGLE.reason());
        let mut row = Vec::new();
        for number in self.those(|node| !node.is_empty() && !node.is_static()) {
            match self.consolidatable(&self.nodes[number]) {
                Ok(()) => row.push(number),
                Err(why) => self.keep(SINGLE, number, why),
            }
        }
        self.by_savings(&mut row);
        let (mut found, mut further) = (Vec::new(), Vec::new());
        for number in self.interleaved(row) {
            if budgets.left(self.nodes[number].pool_name()) == 0 {
                let why = self.budget_limit(&budgets, &self.nodes[number]);
                self.keep(SINGLE, number, why);
                continue;
            }
            // A deletion saves most: where even that is too little, nothing needs to be simulated.
            let bound = self.nodes[number].price.unwrap_or_default().value();
            let judged = match self.score(&[number], bound) {
                Verdict::Rejected(why) => Err(why),
                Verdict::Approved(_) => self.consolidate(Search::Single, &[number]),
            };
            match judged {
                Ok((command, Certainty::Whatever)) => found.extend(self.take(command, &[number])),
                Ok((command, Certainty::AsPlanned)) => match worth_it(command) {
                    Ok(command) => further.push((number, command)),
                    Err(why) => self.keep(SINGLE, number, why),
                },
                Err(why) => self.keep(SINGLE, number, why),
            }
        }
        for (number, command) in further {
            found.extend(self.take(command, &[number]));
        }
        found
    }
}
