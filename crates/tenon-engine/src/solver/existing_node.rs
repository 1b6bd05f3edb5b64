//! Which node that is there, or on its way, takes a pod?

use tenon_model::HostPort;

use super::Work;
use super::refused::Trust;
use crate::base::{Ask, Step};
use crate::index::{AskIx, Bits, NodeIx, PodIx};
use crate::resources::{fits, raise, take};

impl<'b> Work<'b> {
    /// Puts the pod on the first node that takes it.
    pub(super) fn place_on_existing(&mut self, step: &'b Step, pod: PodIx) -> bool {
        if self.base.nodes.nodes.is_empty() {
            return false;
        }
        let (ask, asked): (AskIx, &'b Ask) = (step.ask, &self.base.classes.asks[step.ask]);
        if self.trust == Trust::Shadow {
            self.recheck_existing(ask, asked);
        }
        let known = self.refused[ask].nodes_left.take();
        let mut left = known.unwrap_or_else(|| self.nodes_for(ask));
        let allowed = self.allowed_nodes(step);
        let allowed = self.reaching_volumes((step, pod), allowed);
        let allowed = self.without_avoided(pod, allowed);
        let found = self.first_with_room((asked, pod), &mut left, allowed.as_ref());
        self.refused[ask].nodes_left = Some(left);
        let Some(node) = found else { return false };
        self.journal.note_node(node);
        take(self.remaining.row_mut(node), &asked.row);
        if !asked.ports.is_empty() {
            self.ports.entry(node).or_default().extend(&asked.ports);
        }
        self.attach_to_node(node, pod);
        self.placed.push((node, pod));
        self.count_on_node(self.base.pods[pod].1, node);
        true
    }

    /// The first node of these that has room and is allowed. Those before it that are allowed have none, and never will have; or
    /// they do not attach the volumes of this pod, which says nothing about others.
    fn first_with_room(
        &mut self,
        (asked, pod): (&Ask, PodIx),
        left: &mut Bits<NodeIx>,
        allowed: Option<&Bits<NodeIx>>,
    ) -> Option<NodeIx> {
        for block in 0..left.blocks() {
            if self.blocks[block].as_ref().is_some_and(|most| !fits(&asked.row, most)) {
                left.clear_block(block);
                continue;
            }
            for node in left.of_block(block).filter(|node| allowed.is_none_or(|allowed| allowed.has(*node))) {
                self.effort.judgements += 1;
                if !fits(&asked.row, self.remaining.row(node)) || !self.has_free_ports(node, &asked.ports) {
                    left.remove(node);
                } else if self.can_attach(node, pod) {
                    return Some(node);
                }
            }
            self.blocks[block] = Some(self.most_in(block));
        }
        None
    }

    /// Nodes that may take it, as far as is known before anything is placed.
    fn nodes_for(&mut self, ask: AskIx) -> Bits<NodeIx> {
        if !self.journal.is_kept() {
            return self.memo.suiting(self.base, ask).clone();
        }
        let mut nodes = self.memo.with_room(self.base, ask).clone();
        nodes.drop_all(&self.closed);
        nodes
    }

    fn has_free_ports(&self, node: NodeIx, ports: &[HostPort]) -> bool {
        let bound = || self.base.nodes.nodes[node].host_ports.iter().map(|(_, port)| port);
        let planned = || self.ports.get(&node).into_iter().flatten().copied();
        ports.iter().all(|port| !bound().chain(planned()).any(|used| used.conflicts_with(port)))
    }

    /// The most that any node of a block leaves. Less is left later, never more.
    fn most_in(&self, block: usize) -> Vec<i64> {
        let all: Bits<NodeIx> = Bits::all(self.base.nodes.nodes.len());
        let mut rows = all.of_block(block).map(|node| self.remaining.row(node));
        let mut most = rows.next().map(<[i64]>::to_vec).unwrap_or_default();
        rows.for_each(|row| raise(&mut most, row));
        most
    }

    /// In shadow mode: what was refused is refused still.
    fn recheck_existing(&mut self, ask: AskIx, asked: &Ask) {
        let Some(left) = self.refused[ask].nodes_left.clone() else { return };
        let refused: Vec<NodeIx> = self
            .memo
            .suiting(self.base, ask)
            .iter()
            .filter(|node| !left.has(*node) && !self.closed.has(*node))
            .collect();
        for node in refused {
            let takes = fits(&asked.row, self.remaining.row(node)) && self.has_free_ports(node, &asked.ports);
            assert!(!takes, "node {} refused a pod before and takes it now", self.base.nodes.nodes[node].name);
            self.effort.repeated += 1;
        }
    }
}
