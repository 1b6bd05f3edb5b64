//! What need not be asked again? Where a way to try pods failed for good: what is left there only becomes less.
//!
//! Only labels may become more: what one pod says of a label that nobody had heard of is known to the next. And hosts are
//! asked again once somebody gave something back.

use std::ops::{Index, IndexMut};

use super::admission::Accepted;
use crate::index::{AskIx, Bits, NodeIx, OpenIx, Table, TemplateIx};

/// Where one way to try pods need not be tried again.
#[derive(Debug, Default)]
pub(super) struct Refused {
    /// Nodes that are there which may still take it; unset before the first try.
    pub(super) nodes_left: Option<Bits<NodeIx>>,
    /// Planned nodes.
    pub(super) open: Bits<OpenIx>,
    /// How many of the labels that planned nodes came by were looked at since.
    pub(super) labels_seen: usize,
    /// Pools, for new nodes.
    pub(super) templates: Bits<TemplateIx>,
    /// Planned nodes and pools that no host had room for, while nobody gave anything back.
    pub(super) without_host: (Bits<OpenIx>, Bits<TemplateIx>),
    /// How often something had been given back by then.
    pub(super) releases_seen: u64,
    /// The last new node that was made for it, where an equal one can be made again.
    pub(super) made: Option<Made>,
    /// Whether anything of this may be set.
    is_used: bool,
}

/// Where each way to try pods need not be tried again.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    asks: Table<AskIx, Refused>,
    used: Vec<AskIx>,
}

impl Refusals {
    /// There are so many ways now.
    pub(super) fn grow(&mut self, asks: usize) {
        while self.asks.len() < asks {
            self.asks.push(Refused::default());
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        for ask in self.used.drain(..) {
            self.asks[ask] = Refused::default();
        }
    }
}

impl Index<AskIx> for Refusals {
    type Output = Refused;

    fn index(&self, ask: AskIx) -> &Refused {
        &self.asks[ask]
    }
}

impl IndexMut<AskIx> for Refusals {
    fn index_mut(&mut self, ask: AskIx) -> &mut Refused {
        let refused = &mut self.asks[ask];
        if !std::mem::replace(&mut refused.is_used, true) {
            self.used.push(ask);
        }
        refused
    }
}

/// A new node, and what it depends on.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) template: TemplateIx,
    /// How often less was left of the limits by then.
    pub(super) changes: u64,
    pub(super) node: Accepted,
}

impl Refused {
    /// Whether a planned node refused.
    pub(super) fn has_refused(&self, node: OpenIx) -> bool {
        self.open.has(node) || self.without_host.0.has(node)
    }

    /// Forgets what may have changed since it was last tried.
    pub(super) fn catch_up(&mut self, labelled: &[OpenIx], releases: u64) {
        for node in labelled.iter().skip(self.labels_seen) {
            self.open.remove(*node);
            self.without_host.0.remove(*node);
        }
        self.labels_seen = labelled.len();
        if self.releases_seen != releases {
            self.without_host = (Bits::default(), Bits::default());
            self.releases_seen = releases;
        }
    }
}

/// Whether what is remembered is believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Trust {
    /// What was refused is not asked again.
    #[default]
    Remembered,
    /// It is asked again, and must be refused again. For tests.
    Shadow,
}

/// How much was done for a plan. The same for the same snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// How often a node or pool was asked whether it takes a pod.
    pub judgements: u64,
    /// How often that was answered from memory instead, and asked again in vain. Only in shadow mode.
    pub repeated: u64,
    /// Planned nodes that were passed by.
    pub passed_by: u64,
    /// Nodes and counts that were put back once a what-if was answered.
    pub put_back: u64,
}
