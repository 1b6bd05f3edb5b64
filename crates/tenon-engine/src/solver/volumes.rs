//! Where can the volumes of a pod be used, and can they be attached there? Which volumes a pod has is no part of its ask: pods of
//! a StatefulSet differ in nothing else. So what is refused for volumes is not remembered.

use super::Work;
use crate::base::Step;
use crate::capacity::{VolumeCount, attach, counted};
use crate::index::{Bits, NodeIx, OpenIx, PodIx};

impl Work<'_> {
    /// Of nodes that are there, those from which the volumes can be used in one place or another. `None` is all of them.
    pub(super) fn reaching_volumes(&mut self, step: &Step, allowed: Option<Bits<NodeIx>>) -> Option<Bits<NodeIx>> {
        if step.at_volumes.is_empty() {
            return allowed;
        }
        let mut reaching = Bits::none(self.base.nodes.nodes.len());
        for ask in &step.at_volumes {
            reaching.join(self.memo.suiting(self.base, *ask));
        }
        allowed.iter().for_each(|allowed| reaching.keep(allowed));
        Some(reaching)
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
        }
    }

    /// A pod was put on a planned node.
    pub(super) fn attach_to_open(&mut self, node: OpenIx, pod: PodIx) {
        let of_pod = self.base.attachments.of(pod);
        if !of_pod.is_empty() {
            attach(&mut self.open.nodes[node].attached, of_pod);
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
