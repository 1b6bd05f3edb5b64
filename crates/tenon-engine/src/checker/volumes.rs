//! Can each pod use its volumes where the plan puts it, and does its node attach them?

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::{Attachment, NewNode, NodeState, Pod, PodVolumes, Pool, Requirements};

use super::nodes::of_new;
use super::{Checker, of_node, of_pod};

impl Checker<'_> {
    /// Expects that the volumes of a pod can be used from a node, of which it is known what it suits.
    pub(super) fn volumes_are_near(&mut self, pod: &Pod, suits: impl Fn(&Requirements) -> bool, node: &str) {
        let places = volumes(pod).map(|known| known.alternatives.as_slice()).unwrap_or_default();
        self.expect(places.is_empty() || places.iter().any(suits), || {
            of_pod(&pod.key, &format!("has a volume that cannot be used from {node}"))
        });
    }

    /// Expects that a node that is there attaches the volumes of its pods and of these.
    pub(super) fn node_attaches(&mut self, node: &NodeState, pods: &[&Pod]) {
        for (driver, count) in counts(&node.attachments, pods) {
            let limit = node.attach_limits.get(driver).copied();
            self.expect(limit.is_none_or(|limit| count <= limit as usize), || {
                let limit = limit.unwrap_or_default();
                of_node(
                    &node.name,
                    &format!("attaches {count} volumes of CSI driver {driver}, and its limit is {limit}"),
                )
            });
        }
    }

    /// Expects that a new node attaches the volumes of its pods, whatever size it becomes.
    pub(super) fn every_size_attaches(&mut self, number: usize, node: &NewNode, (pool, pods): (&Pool, &[&Pod])) {
        let counts = counts(&[], pods);
        if counts.is_empty() {
            return;
        }
        for size in node.instance_types.iter().filter_map(|name| pool.catalog.find(name)) {
            for (driver, count) in &counts {
                let limit = size.volume_attachment_limits.get(*driver).copied();
                self.expect(limit.is_none_or(|limit| *count <= limit as usize), || {
                    let (name, limit) = (&size.name, limit.unwrap_or_default());
                    let rule = format!(
                        "attaches {count} volumes of CSI driver {driver}, and the limit of instance type {name} is {limit}"
                    );
                    of_new(number, node, &rule)
                });
            }
        }
    }
}

/// How many volumes there are of each driver that these pods need. What several pods share counts once.
fn counts<'v>(there: &'v [Attachment], pods: &[&'v Pod]) -> BTreeMap<&'v str, usize> {
    let added: BTreeSet<&Attachment> =
        pods.iter().filter_map(|pod| volumes(pod)).flat_map(|known| &known.attachments).collect();
    let mut counts: BTreeMap<&str, usize> = added.iter().map(|one| (one.driver.as_str(), 0)).collect();
    if counts.is_empty() {
        return counts;
    }
    let all: BTreeSet<&Attachment> = added.into_iter().chain(there).collect();
    for one in all {
        counts.entry(&one.driver).and_modify(|count| *count += 1);
    }
    counts
}

fn volumes(pod: &Pod) -> Option<&PodVolumes> {
    pod.storage.volumes()
}
