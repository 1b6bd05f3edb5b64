//! Table: metrics of conditions and deletions that Karpenter's library has for each kind of object by itself. Those for all kinds
//! together (`operator_status_condition_…`) are deprecated there, and dashboards read either.

use tenon_api::names;

use super::Origin::KarpenterLibrary;
use super::labels::{
    CONDITION_REASON, CONDITION_STATUS, CONDITION_TYPE, NODE_INITIALIZED, OBJECT, OBJECT_NAMESPACE, OF_CLASS, OF_POOL,
    TO_STATUS,
};
use super::{DOUBLING_15, Kind, Metric, Unit, metric};

/// The metrics of a kind.
#[derive(Debug, PartialEq)]
pub(crate) struct ByKind {
    /// The kind.
    pub(crate) kind: &'static str,
    /// Labels of the object that are labels of its metrics, too, in their order.
    pub(crate) object_labels: &'static [&'static str],
    pub(crate) count: Metric,
    pub(crate) seconds: Metric,
    pub(crate) transition: Metric,
    pub(crate) transitions: Metric,
    pub(crate) terminating: Metric,
    pub(crate) termination: Metric,
}

macro_rules! by_kind {
    ($($id:ident = $kind:literal, $prefix:literal, [$($label:expr => $of:expr),*];)+) => {
        $(pub(crate) static $id: ByKind = ByKind {
            kind: $kind,
            object_labels: &[$($of),*],
            count: metric(concat!($prefix, "_status_condition_count"), Kind::Gauge,
                &[OBJECT_NAMESPACE, OBJECT, CONDITION_TYPE, CONDITION_STATUS, CONDITION_REASON, $($label),*],
                concat!("1 for every condition of a ", $kind)).by(KarpenterLibrary).cluster_state(),
            seconds: metric(concat!($prefix, "_status_condition_current_status_seconds"), Kind::Gauge,
                &[OBJECT_NAMESPACE, OBJECT, CONDITION_TYPE, CONDITION_STATUS, CONDITION_REASON, $($label),*],
                concat!("Time since a condition of a ", $kind, " has its status"))
                .unit(Unit::Seconds).by(KarpenterLibrary).cluster_state(),
            transition: metric(concat!($prefix, "_status_condition_transition_seconds"), Kind::Histogram(DOUBLING_15),
                &[CONDITION_TYPE, CONDITION_STATUS, TO_STATUS, $($label),*],
                concat!("Time for which a condition of a ", $kind, " had the status it left"))
                .unit(Unit::Seconds).by(KarpenterLibrary).cluster_state(),
            transitions: metric(concat!($prefix, "_status_condition_transitions_total"), Kind::Counter,
                &[CONDITION_TYPE, CONDITION_STATUS, CONDITION_REASON, $($label),*],
                concat!("Conditions of a ", $kind, " that got another status")).by(KarpenterLibrary).cluster_state(),
            terminating: metric(concat!($prefix, "_termination_current_time_seconds"), Kind::Gauge,
                &[OBJECT_NAMESPACE, OBJECT, $($label),*],
                concat!("Time since a ", $kind, " that still exists was deleted"))
                .unit(Unit::Seconds).by(KarpenterLibrary).cluster_state(),
            termination: metric(concat!($prefix, "_termination_duration_seconds"), Kind::Histogram(DOUBLING_15),
                &[$($label),*], concat!("Time from the deletion of a ", $kind, " until it no longer exists"))
                .unit(Unit::Seconds).by(KarpenterLibrary).cluster_state(),
        };)+

        /// Every kind of this table.
        pub(crate) static KINDS: &[&ByKind] = &[$(&$id),+];
    };
}

by_kind! {
    NODECLAIM = "NodeClaim", "operator_nodeclaim",
        [OF_CLASS => names::LABEL_NODECLASS, OF_POOL => names::LABEL_NODEPOOL];
    NODEPOOL = "NodePool", "operator_nodepool", [];
    NODE = "Node", "operator_node",
        [OF_CLASS => names::LABEL_NODECLASS, OF_POOL => names::LABEL_NODEPOOL, NODE_INITIALIZED => names::LABEL_INITIALIZED];
}

impl ByKind {
    /// Every metric of the kind.
    pub(crate) fn metrics(&'static self) -> [&'static Metric; 6] {
        [&self.count, &self.seconds, &self.transition, &self.transitions, &self.terminating, &self.termination]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_of_an_object_is_spelled_as_the_library_spells_it() {
        for kind in KINDS {
            let spelled = kind.object_labels.iter().map(|label| label.replace(['/', '.', '-'], "_"));
            assert!(kind.termination.labels.iter().map(|label| label.name.to_owned()).eq(spelled), "{}", kind.kind);
            let metrics = kind.metrics();
            assert!(metrics.iter().all(|metric| metric.labels.ends_with(kind.termination.labels)), "{}", kind.kind);
        }
    }
}
