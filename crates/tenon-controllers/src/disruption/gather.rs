//! What does a decision about disruption rest on? All that a plan for pods rests on, and what only a running controller knows.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use tenon_api::timestamp;
use tenon_model::{Snapshot, Timestamp};

use super::candidate::is_reachable;
use super::offline_hosts::claims_on_offline_hosts;
use super::queue::Queue;
use super::undone_drift::forget_undone_drift;
use crate::context::Context;
use crate::provision::{Gathered, Lookout, gather_for_disruption};

/// The time as the engine counts it.
pub(crate) fn model_time(now: jiff::Timestamp) -> Timestamp {
    timestamp(&Time(now))
}

/// Everything a decision rests on.
pub(super) struct Look {
    /// What was gathered.
    pub(super) gathered: Gathered,
    /// The engine's view of it.
    pub(super) snapshot: Snapshot,
}

/// Looks at the cluster and at Proxmox.
pub(super) async fn look(context: &Context, lookout: &mut Lookout, queue: &mut Queue) -> Look {
    let gathered = gather_for_disruption(context).await;
    let mut snapshot = lookout.look_for_disruption(&gathered, &context.settings.types);
    let now = context.clock.now();
    let nominated = snapshot.nodes.iter().filter(|node| context.memory.is_nominated(&node.name, now));
    snapshot.disruption.nominated = nominated.map(|node| node.name.clone()).collect();
    snapshot.disruption.in_progress.extend(queue.in_progress());
    snapshot.disruption.failed = queue.failed(now);
    snapshot.disruption.on_offline_hosts = claims_on_offline_hosts(context, &gathered.claims).await;
    keep_unreachable(context, &gathered, &mut snapshot);
    forget_undone_drift(context, &gathered.claims, &mut snapshot);
    Look { gathered, snapshot }
}

/// A VM in a region that was taken out of the cloud config is nobody's to destroy, as one that another controller created.
fn keep_unreachable(context: &Context, gathered: &Gathered, snapshot: &mut Snapshot) {
    let out_of_reach = gathered.claims.iter().filter(|claim| !is_reachable(context, claim));
    for name in out_of_reach.map(|claim| claim.name_any()) {
        for node in &mut snapshot.nodes {
            if node.disruption.as_ref().is_some_and(|facts| facts.claim.name == name)
                && let Some(facts) = &mut Arc::make_mut(node).disruption
            {
                Arc::make_mut(facts).claim.has_foreign_vm = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_counts_time_as_the_clock_does() {
        for text in ["2026-03-11T10:10:01Z", "2026-03-11T10:10:01.000000001Z", "1969-12-31T23:59:59.5Z"] {
            let now: jiff::Timestamp = text.parse().unwrap();
            assert_eq!(
                (model_time(now).as_nanos(), model_time(now).to_string()),
                (now.as_nanosecond(), text.to_owned())
            );
        }
        assert_eq!(model_time(jiff::Timestamp::MAX), Timestamp::MAX, "spans are cut where the clock ends");
    }
}
