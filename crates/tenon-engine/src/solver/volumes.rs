//! Where can the volumes of a pod be used, and can they be attached there? Which volumes a pod has is no part of its ask: pods of
//! a StatefulSet differ in nothing else. So what is refused for volumes is not remembered for the ask. What is remembered are
//! nodes that attach no further volume of a driver: a pod with a volume of its own is not tried there.

use super::Work;
use super::open_nodes::OpenNode;
use super::refused::Trust;
use crate::base::{Base, Step};
use crate::capacity::{Attached, VolumeCount, attach, counted, with_one_more};
use crate::index::{Bits, DriverIx, NodeIx, OpenIx, PodIx, Table};

/// Nodes that attach no further volume of a driver, and never will.
#[derive(Debug, Default)]
pub(super) struct FullNodes {
    of_driver: Table<DriverIx, (Bits<NodeIx>, Bits<OpenIx>)>,
}

impl FullNodes {
    pub(super) fn new(base: &Base) -> FullNodes {
        let none = |_| (Bits::default(), Bits::default());
        let mut full = FullNodes { of_driver: (0..base.attachments.drivers()).map(none).collect() };
        base.nodes.nodes.ids().for_each(|node| full.note(base, node, base.attachments.on(node)));
        full
    }

    /// Forgets what planned nodes attach, and what nodes that are there attach by now.
    pub(super) fn restore(&mut self, base: &Base, nodes: impl Iterator<Item = NodeIx>) {
        self.of_driver.iter_mut().for_each(|(_, open)| *open = Bits::default());
        for node in nodes {
            self.of_driver.iter_mut().for_each(|(full, _)| full.remove(node));
            self.note(base, node, base.attachments.on(node));
        }
    }

    /// Takes note of what is attached to a node that is there.
    fn note(&mut self, base: &Base, node: NodeIx, attached: &[Attached]) {
        for count in with_one_more(attached) {
            if !base.attachments.fit_on(node, &[count]) {
                self.of_driver[count.0].0.insert(node);
            }
        }
    }
}

impl<'b> Work<'b> {
    /// Of nodes that are there, those from which the volumes can be used in one place or another, and that are not known to
    /// be full. `None` is all of them.
    pub(super) fn reaching_volumes(
        &mut self,
        (step, pod): (&Step, PodIx),
        allowed: Option<Bits<NodeIx>>,
    ) -> Option<Bits<NodeIx>> {
        let needing = self.needing_a_place(pod);
        if step.at_volumes.is_empty() && needing.is_empty() {
            return allowed;
        }
        let nodes = self.base.nodes.nodes.len();
        let mut reaching = if step.at_volumes.is_empty() { Bits::all(nodes) } else { Bits::none(nodes) };
        for ask in &step.at_volumes {
            reaching.join(self.memo.suiting(self.base, *ask));
        }
        allowed.iter().for_each(|allowed| reaching.keep(allowed));
        needing.iter().for_each(|driver| reaching.drop_all(&self.full.of_driver[*driver].0));
        Some(reaching)
    }

    /// Takes planned nodes out that are known to attach no volume of the pod.
    pub(super) fn drop_full(&self, pod: PodIx, nodes: &mut Bits<OpenIx>) {
        self.needing_a_place(pod).iter().for_each(|driver| nodes.drop_all(&self.full.of_driver[*driver].1));
    }

    /// Whether a planned node is known to attach no volume of the pod.
    pub(super) fn is_full(&self, pod: PodIx, node: OpenIx) -> bool {
        self.needing_a_place(pod).iter().any(|driver| self.full.of_driver[*driver].1.has(node))
    }

    /// Drivers of which the pod needs one more place, if what is remembered of that is believed.
    fn needing_a_place(&self, pod: PodIx) -> &'b [DriverIx] {
        if self.trust == Trust::Shadow { &[] } else { self.base.attachments.needing_a_place(pod) }
    }

    /// Whether a node that is there attaches the volumes of a pod, too.
    pub(super) fn can_attach(&self, node: NodeIx, pod: PodIx) -> bool {
        let of_pod = self.base.attachments.of(pod);
        if of_pod.is_empty() {
            return true;
        }
        let there = self.attached.get(&node).map_or(self.base.attachments.on(node), Vec::as_slice);
        self.base.attachments.fit_on(node, &counted(there, of_pod))
    }

    /// A pod was put on a node that is there.
    pub(super) fn attach_to_node(&mut self, node: NodeIx, pod: PodIx) {
        let of_pod = self.base.attachments.of(pod);
        if !of_pod.is_empty() {
            let there = self.attached.entry(node).or_insert_with(|| self.base.attachments.on(node).to_vec());
            attach(there, of_pod);
            self.full.note(self.base, node, there);
        }
    }

    /// A pod was put on a planned node.
    pub(super) fn attach_to_open(&mut self, node: OpenIx, pod: PodIx) {
        let of_pod = self.base.attachments.of(pod);
        if of_pod.is_empty() {
            return;
        }
        let OpenNode { template, now, attached, .. } = &mut self.open.nodes[node];
        attach(attached, of_pod);
        let catalog = (self.base.templates[*template].catalog, self.base.catalog_of(*template));
        for count in with_one_more(attached) {
            let mut slots = now.slots.clone();
            if self.base.attachments.keep_holding(catalog, &[count], &mut slots) && slots.is_empty() {
                self.full.of_driver[count.0].1.insert(node);
            }
        }
    }

    /// How many volumes a planned node has with the pod, of the drivers that the pod needs.
    pub(super) fn volumes_with(&self, node: OpenIx, pod: PodIx) -> Vec<VolumeCount> {
        let of_pod = self.base.attachments.of(pod);
        if of_pod.is_empty() { Vec::new() } else { counted(&self.open.nodes[node].attached, of_pod) }
    }

    /// How many volumes a new node has with the pod.
    pub(crate) fn volumes_of(&self, pod: PodIx) -> Vec<VolumeCount> {
        counted(&[], self.base.attachments.of(pod))
    }
}
