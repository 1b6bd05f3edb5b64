//! Which planned node takes a pod that cares where others are? Only nodes in domains that are allowed are asked.

use super::Work;
use crate::base::Step;
use crate::index::{AskIx, Bits, Id, NumberMap, OpenIx, PodIx, StateIx, TemplateIx};

/// Planned nodes by pool and by what is demanded of them. All nodes of one kind are allowed the same domains.
#[derive(Debug, Default)]
pub(super) struct ByState {
    numbers: NumberMap<u32>,
    kinds: Vec<NodeKind>,
    of_node: Vec<u32>,
}

#[derive(Debug)]
struct NodeKind {
    template: TemplateIx,
    state: StateIx,
    nodes: Bits<OpenIx>,
}

impl ByState {
    /// A node is of this pool and state now.
    pub(super) fn put(&mut self, node: OpenIx, (template, state): (TemplateIx, StateIx)) {
        let ByState { numbers, kinds, of_node } = self;
        let number = |position: usize| u32::try_from(position).unwrap_or(u32::MAX);
        let kind = numbers.get_or((number(template.position()), number(state.position())), || {
            kinds.push(NodeKind { template, state, nodes: Bits::default() });
            number(kinds.len() - 1)
        });
        match of_node.get(node.position()).copied() {
            Some(before) if before == kind => return,
            Some(before) => kinds[before as usize].nodes.remove(node),
            None => of_node.resize(node.position() + 1, kind),
        }
        of_node[node.position()] = kind;
        kinds[kind as usize].nodes.insert(node);
    }
}

/// What is put to nodes of each kind, in the order it is tried; and nodes that may take the pod.
struct Questions {
    of_kind: Vec<Vec<AskIx>>,
    left: Bits<OpenIx>,
}

impl<'b> Work<'b> {
    /// Puts the pod on the first planned node that every constraint allows and that takes it.
    pub(super) fn place_on_allowed(&mut self, step: &'b Step, pod: PodIx) -> bool {
        let Questions { of_kind, mut left } = self.questions(step);
        self.keep_allowed_open(step, &mut left);
        self.drop_full(pod, &mut left);
        self.effort.passed_by += left.blocks() as u64;
        while let Some(node) = self.open.order.first_of(&left) {
            let kind = self.open.by_state.as_ref().map_or(0, |known| known.of_node[node.position()]);
            for ask in of_kind.get(kind as usize).into_iter().flatten() {
                if self.try_open((step, *ask), pod, node) {
                    return true;
                }
            }
            left.remove(node);
        }
        false
    }

    fn questions(&mut self, step: &'b Step) -> Questions {
        let kinds = self.open.by_state.as_ref().map_or(0, |known| known.kinds.len());
        let (mut of_kind, mut left) = (Vec::with_capacity(kinds), Bits::default());
        for kind in 0..kinds {
            let known = self.open.by_state.as_ref().and_then(|known| known.kinds.get(kind));
            let found = known.filter(|kind| !kind.nodes.is_empty()).map(|kind| (kind.template, kind.state));
            let asks = found.map(|(template, state)| self.effective_asks(step, template, state)).unwrap_or_default();
            for ask in &asks {
                self.refused[*ask].catch_up(&self.open.labelled, self.hosts.releases);
                let known = self.open.by_state.as_ref().and_then(|known| known.kinds.get(kind));
                let mut nodes = known.map(|kind| kind.nodes.clone()).unwrap_or_default();
                self.drop_refused(*ask, &mut nodes);
                left.join(&nodes);
            }
            of_kind.push(asks);
        }
        Questions { of_kind, left }
    }
}
