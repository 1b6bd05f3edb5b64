//! How is a solve undone? Where something changed is written down; what was there before, the base still knows.

use super::Work;
use super::open_nodes::OpenNodes;
use super::order::Ties;
use crate::capacity::{Allowance, Reservations};
use crate::index::{GroupIx, Id, NodeIx};
use crate::topology::Spot;

/// Where something differs from the base. Nothing is written down unless it is kept.
#[derive(Debug, Default)]
pub(super) struct Journal {
    is_kept: bool,
    nodes: Vec<NodeIx>,
    counts: Vec<(GroupIx, Spot)>,
}

impl Journal {
    /// Whether changes are written down.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// A pod is put on a node that is there.
    pub(super) fn note_node(&mut self, node: NodeIx) {
        if self.is_kept {
            self.nodes.push(node);
        }
    }

    /// A count changed.
    pub(super) fn note(&mut self, group: GroupIx, spot: Spot) {
        if self.is_kept {
            self.counts.push((group, spot));
        }
    }
}

impl Work<'_> {
    /// Writes down what changes from now on, so that it can be undone.
    pub(crate) fn keep_journal(&mut self) {
        self.journal.is_kept = true;
    }

    /// Everything is as it was before the first pod was placed. The cost is that of what was changed.
    pub(crate) fn roll_back(&mut self) {
        let base = self.base;
        let nodes = std::mem::take(&mut self.journal.nodes);
        self.effort.put_back += (nodes.len() + self.journal.counts.len()) as u64;
        for node in &nodes {
            self.remaining.row_mut(*node).copy_from_slice(base.nodes.remaining.row(*node));
            self.blocks[node.position() / 64] = None;
            self.ports.remove(node);
        }
        let attached = std::mem::take(&mut self.attached);
        self.full.restore(base, attached.into_keys());
        for (group, spot) in std::mem::take(&mut self.journal.counts) {
            self.counts.groups[group].restore(spot, &base.topology.counts.groups[group]);
        }
        self.refused.clear();
        self.placed.clear();
        self.failures.clear();
        self.gone.clear();
        self.closed.clear();
        self.moved.clear();
        self.avoided.clear();
        self.shut.clear();
        self.tried.clone_from(&base.waiting);
        (self.most_new_nodes, self.needs_too_many) = (None, false);
        self.open = OpenNodes::new(Ties::usual(base), base.topology.is_used());
        self.hosts = base.hosts.room();
        self.turns = base.turns();
        self.reservations = Reservations::new(self.reserved);
        self.allowances = base.templates.iter().map(|template| Allowance::of(&template.limits)).collect();
    }
}
