//! Which nodes are deleted because no pod needs them?

use super::blocked::DisruptionBlocked;
use super::candidates::{Class, Node};
use super::command::{Command, Method};
use super::kept::Kept;
use super::scan::Scan;

impl<'s> Scan<'s> {
    /// All empty nodes that budgets allow, in one command. Which policy a pool has does not matter.
    pub(super) fn empty_nodes(&mut self) -> Vec<Command> {
        let mut budgets = self.budgets(Method::Emptiness.reason());
        let mut ready = Vec::new();
        for number in self.those(Node::is_empty) {
            match self.removable_when_empty(&self.nodes[number]) {
                Ok(()) => ready.push(number),
                Err(why) => self.keep(Method::Emptiness, number, why),
            }
        }
        self.by_savings(&mut ready);
        let mut taken = Vec::new();
        for number in ready {
            if budgets.spend(self.nodes[number].pool_name()) {
                taken.push(number);
            } else {
                let why = self.budget_limit(&budgets, &self.nodes[number]);
                self.keep(Method::Emptiness, number, why);
            }
        }
        if taken.is_empty() {
            return Vec::new();
        }
        let command = self.command(Method::Emptiness, &taken, (&tenon_model::Plan::default(), Vec::new()));
        self.take(command, &taken).into_iter().collect()
    }

    /// Whether a node without pods may be deleted.
    pub(super) fn removable_when_empty(&self, node: &Node<'s>) -> Result<(), Kept> {
        let rules = node.eligible(Class::Graceful, self.snapshot)?;
        if rules.is_static {
            return Err(Kept::Blocked(DisruptionBlocked::StaticPool { pool: rules.name.clone() }));
        }
        self.waited(node)?
    }

    /// What saves most for what it costs the pods comes first; of equal nodes the first by name.
    pub(super) fn by_savings(&self, nodes: &mut [usize]) {
        let ratio = |number: &usize| self.nodes[*number].savings_ratio();
        nodes.sort_by(|a, b| ratio(b).total_cmp(&ratio(a)).then(a.cmp(b)));
    }
}
