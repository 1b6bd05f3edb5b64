//! Which nodes count? Of a spread, those the pod could go to, as far as it says so; of affinity, all of them.

use tenon_model::{NodeState, Requirements, Taint, Toleration};

use crate::index::{DemandIx, Table, TolerationsIx};

/// Nodes that count for a group. Part of what makes two groups one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct NodeFilter {
    /// Nodes must meet one of these demands; any node does where there are none.
    pub(crate) demands: Option<Vec<DemandIx>>,
    /// Taints of the nodes must be tolerated.
    pub(crate) tolerations: Option<TolerationsIx>,
    /// Only domains that new nodes with tolerated taints can be in are domains. Nodes that are there are not asked.
    pub(crate) domains_tolerated: Option<TolerationsIx>,
}

/// What the numbers of a filter mean.
#[derive(Clone, Copy)]
pub(crate) struct Meanings<'m> {
    pub(crate) demands: &'m Table<DemandIx, Requirements>,
    pub(crate) tolerations: &'m Table<TolerationsIx, Vec<Toleration>>,
}

/// What a label means that a node does not speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsaid {
    /// The node does not have it.
    IsMissing,
    /// The node may still come by it.
    IsOpen,
}

impl NodeFilter {
    /// Whether a node with these labels and taints counts. What it does not say of itself it does not have, unless that is open.
    pub(crate) fn admits<'t>(
        &self,
        meanings: Meanings<'_>,
        (labels, unsaid): (&Requirements, Unsaid),
        mut taints: impl Iterator<Item = &'t Taint>,
    ) -> bool {
        let may_be = |_: &str| unsaid == Unsaid::IsOpen;
        let meets = |demand: &DemandIx| labels.can_meet(&meanings.demands[*demand], may_be);
        let is_wanted = self.demands.as_ref().is_none_or(|demands| demands.iter().any(meets));
        let is_tolerated = self.tolerations.is_none_or(|tolerations| {
            let tolerations = &meanings.tolerations[tolerations];
            taints.all(|taint| taint.is_tolerated_by(tolerations))
        });
        is_wanted && is_tolerated
    }

    /// The same of a node that is there.
    pub(crate) fn admits_node(&self, meanings: Meanings<'_>, labels: &Requirements, node: &NodeState) -> bool {
        self.admits(meanings, (labels, Unsaid::IsMissing), node.lasting_taints())
    }

    /// What the pods tolerate, if domains depend on it.
    pub(crate) fn tolerated<'m>(&self, meanings: Meanings<'m>) -> Option<&'m [Toleration]> {
        self.domains_tolerated.map(|number| meanings.tolerations[number].as_slice())
    }

    /// Whether every node counts.
    pub(crate) fn is_open(&self) -> bool {
        self.demands.is_none() && self.tolerations.is_none()
    }
}
