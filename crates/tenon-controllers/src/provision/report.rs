//! Events on pods: where they are expected, or why no node can be created for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tenon_api::kube_objects::Pod;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use tenon_api::pod;
use tenon_model::{Plan, PodKey, Unplaced};

use super::gather::Gathered;
use crate::context::Context;
use crate::events::{Event, Published};
use crate::moments::after;

/// Pods that are told in one pass why they wait; the others hear it in the next ones.
const TOLD: usize = 100;

/// Speaks to the pods of one pass.
pub(super) struct Report<'a> {
    context: &'a Context,
    pods: BTreeMap<&'a str, &'a Arc<Pod>>,
    /// How many may still be told.
    left: usize,
}

impl<'a> Report<'a> {
    /// Nothing was told yet.
    pub(super) fn new(context: &'a Context, gathered: &'a Gathered) -> Report<'a> {
        let pods = gathered.pods.iter().map(|pod| (pod.uid(), pod)).collect();
        Report { context, pods, left: TOLD }
    }

    /// References to pods, as far as they are known.
    pub(super) fn references(&self, keys: &[Arc<PodKey>]) -> Vec<ObjectReference> {
        keys.iter().filter_map(|key| self.reference(key)).collect()
    }

    fn reference(&self, key: &PodKey) -> Option<ObjectReference> {
        self.pods.get(&*key.uid).map(|pod| pod.reference())
    }

    /// Tells every pod the same. Who heard it before does not count, and once no more is said, nobody is asked any more.
    pub(super) async fn publish(&mut self, pods: &[Arc<PodKey>], event: &Event) {
        for key in pods {
            if self.left == 0 {
                return;
            }
            let Some(reference) = self.reference(key) else { continue };
            match self.context.events.publish_for(&reference, event).await {
                Published::Sent => self.left -= 1,
                Published::Duplicate => {}
                Published::RateLimited => return,
            }
        }
    }

    /// Tells pods of nodes that are there already, and pods that wait.
    pub(super) async fn of(&mut self, plan: &Plan, gathered: &Gathered) {
        for placement in &plan.placements {
            nominate(self.context, &placement.node);
        }
        let nodes: BTreeSet<String> = gathered.nodes.iter().map(|node| node.name_any()).collect();
        for placement in &plan.placements {
            let name = &placement.node;
            let note = if nodes.contains(name) {
                format!("Pod fits on existing Node {name}")
            } else {
                format!("Pod is expected on NodeClaim {name}, whose Node is not ready yet")
            };
            let event = Event::nominated(note);
            self.publish(std::slice::from_ref(&placement.pod), &event).await;
        }
        let is_for_others = |key: &PodKey| self.pods.get(&*key.uid).is_some_and(|found| pod::is_for_others(found));
        // Who only waits for the next plan is not told that it cannot be helped, nor who never asked for help.
        let refused = plan.unplaced.iter().filter(|unplaced| !unplaced.reason.is_deferred());
        let refused: Vec<&Unplaced> = refused.filter(|unplaced| !is_for_others(&unplaced.pod)).collect();
        for unplaced in refused {
            let event = Event::failed_scheduling(unplaced.reason.to_string());
            self.publish(std::slice::from_ref(&unplaced.pod), &event).await;
        }
    }
}

/// Pods are expected there, so it is not taken away for being empty. Every plan that puts a pod there says so anew.
pub(crate) fn nominate(context: &Context, name: &str) {
    let until = SignedDuration::try_from(context.settings.nomination()).unwrap_or(SignedDuration::from_secs(20));
    context.memory.nominate(name, after(context.clock.now(), until));
}
