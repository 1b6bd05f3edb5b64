//! What would be planned if nodes were gone? Asked many times of one snapshot: each answer costs what it touches.

use std::collections::BTreeMap;

use tenon_model::{Place, Plan, PodKey};

use crate::base::Base;
use crate::capacity::Reserved;
use crate::index::{Bits, NodeIx, PodIx};
use crate::plan::finished;
use crate::solver::{Effort, Memo, Removal, Ties, Trust, Work};

/// What is tried. Names that no node has, or only one that leaves anyway, change nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Change<'c> {
    /// Nodes that go: their pods are placed again, and what they have no longer counts for their pool.
    pub remove: &'c [&'c str],
    /// Nodes that stay and get no pods.
    pub cordon: &'c [&'c str],
    /// More new nodes than this are not wanted.
    pub most_new_nodes: Option<usize>,
    /// Which pods of nodes that go need another one.
    pub pods: MovedPods,
    /// Where pods of nodes that go are put.
    pub destinations: Destinations,
    /// The only hosts that new nodes are planned on; unset: any.
    pub hosts: Option<&'c [&'c Place]>,
}

/// Which pods of nodes that go need another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MovedPods {
    /// All of them.
    #[default]
    All,
    /// Those that nothing keeps on their node.
    Free,
}

/// Where pods of nodes that go are put. Pods that wait anyway may go everywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Destinations {
    /// On any node.
    #[default]
    Any,
    /// Not on nodes that had pod events a moment ago.
    Settled,
}

/// A snapshot that is asked what would be planned if something changed.
pub struct WhatIfs<'e> {
    work: Work<'e>,
    nodes: BTreeMap<&'e str, NodeIx>,
    /// Pods that stay where they are.
    kept: Bits<PodIx>,
    /// Nodes that had pod events a moment ago.
    unsettled: Bits<NodeIx>,
}

impl<'e> WhatIfs<'e> {
    pub(crate) fn new(base: &'e Base, trust: Trust) -> WhatIfs<'e> {
        let mut work = Work::new(base, Memo::new(base), (Ties::usual(base), trust));
        work.keep_journal();
        let nodes = base.nodes.nodes.pairs().map(|(number, node)| (node.name.as_str(), number)).collect();
        WhatIfs { work, nodes, kept: Bits::default(), unsettled: Bits::default() }
    }

    /// Says which pods nothing moves, and which nodes had pod events a moment ago, for changes that ask for it.
    pub fn knowing(mut self, is_kept: impl Fn(&PodKey) -> bool, unsettled: &[&str]) -> WhatIfs<'e> {
        let base = self.work.base;
        self.kept = Bits::those(base.pods.len(), |pod: PodIx| is_kept(&base.pods[pod].0.key));
        self.unsettled = Bits::default();
        for node in unsettled.iter().filter_map(|name| self.nodes.get(name)) {
            self.unsettled.insert(*node);
        }
        self
    }

    /// The same where something else is set aside. It shares everything that was read.
    pub(crate) fn supposing<'c>(&self, reserved: &'c Reserved) -> WhatIfs<'c>
    where
        'e: 'c,
    {
        let base: &'c Base = self.work.base;
        let mut what_ifs = WhatIfs::new(base, self.work.trust());
        what_ifs.work.suppose(reserved);
        WhatIfs { kept: self.kept.clone(), unsettled: self.unsettled.clone(), ..what_ifs }
    }

    /// How much was done for all answers so far.
    pub fn effort(&self) -> Effort {
        self.work.effort
    }

    /// The plan that would be made then, if it needs no more new nodes than may be. Nothing of it stays.
    pub fn plan(&mut self, change: &Change<'_>) -> Option<Plan> {
        let numbers = |names: &[&str]| {
            let mut numbers: Vec<NodeIx> = names.iter().filter_map(|name| self.nodes.get(name).copied()).collect();
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        };
        let (gone, closed) = (numbers(change.remove), numbers(change.cordon));
        let kept = (change.pods == MovedPods::Free).then_some(&self.kept);
        let is_choosy = change.destinations == Destinations::Settled;
        let avoided = if is_choosy { self.unsettled.clone() } else { Bits::default() };
        let most_new_nodes = change.most_new_nodes;
        let shut = change.hosts.map(|open| self.work.base.hosts.all_but(open)).unwrap_or_default();
        self.work.remove(Removal { gone, closed, most_new_nodes, kept, avoided, shut });
        self.work.solve();
        let plan = (!self.work.needs_too_many).then(|| finished(&mut self.work));
        self.work.roll_back();
        plan
    }
}

impl std::fmt::Debug for WhatIfs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WhatIfs").field("nodes", &self.nodes.len()).finish_non_exhaustive()
    }
}
