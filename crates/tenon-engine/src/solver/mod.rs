//! Places pods on nodes that are there, nodes that are planned, and new ones, in that order.
//!
//! `queue` says which pod is next; `existing_node`, `open_nodes` and `new_node` who takes it; `admission` whether a planned node
//! can, and what it becomes; `volumes` whether it attaches those of the pod; `order` which of them is asked first; `refused` what need not be asked again.

mod admission;
mod allowed_nodes;
mod domains;
mod effective_asks;
mod existing_node;
mod journal;
mod memo;
mod new_node;
mod open_nodes;
mod order;
mod order_buckets;
mod order_chains;
mod queue;
mod refused;
mod volumes;
mod what_if;

pub(crate) use admission::{Accepted, No, Remaining};
pub(crate) use memo::{Memo, SlotsLeft};
pub(crate) use open_nodes::OpenNode;
pub(crate) use order::{MOST_IMPROVED, Ties};
pub(crate) use queue::Failure;
pub use refused::Effort;
pub(crate) use refused::Trust;
pub(crate) use what_if::Removal;

use std::collections::BTreeMap;

use tenon_model::HostPort;

use self::journal::Journal;
use self::open_nodes::OpenNodes;
use self::refused::Refusals;
use self::volumes::FullNodes;
use crate::base::Base;
use crate::capacity::{Allowance, Attached, HostRoom, Reservations, Reserved, Turns};
use crate::index::{Bits, HostIx, NodeIx, PodIx, Table, TemplateIx, ViewIx};
use crate::resources::Rows;
use crate::topology::{Counts, Valid};

/// One solve: what is left of everything while pods are placed.
pub(crate) struct Work<'b> {
    pub(crate) base: &'b Base,
    pub(crate) memo: Memo,
    remaining: Rows<NodeIx>,
    /// The most that any node of a block leaves, or more.
    blocks: Vec<Option<Vec<i64>>>,
    /// Ports that pods of this plan take on nodes that are there.
    ports: BTreeMap<NodeIx, Vec<&'b HostPort>>,
    /// Volumes of nodes that are there and got more of them in this plan.
    attached: BTreeMap<NodeIx, Vec<Attached>>,
    full: FullNodes,
    pub(crate) placed: Vec<(NodeIx, PodIx)>,
    /// Pods that nothing took, once all were tried.
    pub(crate) failures: BTreeMap<PodIx, Failure>,
    pub(crate) open: OpenNodes<'b>,
    pub(crate) hosts: HostRoom,
    /// Which host is next for each pool, where that depends on what was planned before.
    turns: Turns,
    /// What was set aside before anything is planned.
    reserved: &'b Reserved,
    pub(crate) reservations: Reservations<'b>,
    pub(crate) allowances: Table<TemplateIx, Allowance<'b>>,
    refused: Refusals,
    /// Pods by domain, and what constraints allow by that, with the version of the count it was found for.
    pub(crate) counts: Counts,
    valid: Table<ViewIx, Option<(u32, Valid)>>,
    /// What the node that was asked last would become.
    judged: Accepted,
    trust: Trust,
    ties: Ties,
    /// How often one of several equally good domains was chosen.
    choices: usize,
    /// Pods to be placed, in the order they are tried.
    tried: Vec<PodIx>,
    /// Nodes that are taken away, and with them those that no pod is put on.
    gone: Bits<NodeIx>,
    closed: Bits<NodeIx>,
    /// Pods of nodes that are taken away, and nodes that take none of them.
    moved: Bits<PodIx>,
    avoided: Bits<NodeIx>,
    /// Hosts that nothing is planned on.
    pub(crate) shut: Bits<HostIx>,
    /// The most nodes that may be planned, and whether more were needed: then the solve was given up.
    most_new_nodes: Option<usize>,
    pub(crate) needs_too_many: bool,
    journal: Journal,
    pub(crate) effort: Effort,
}

impl<'b> Work<'b> {
    /// Nothing is placed yet. What was found out in another solve of the base is good for this one.
    pub(crate) fn new(base: &'b Base, memo: Memo, (ties, trust): (Ties, Trust)) -> Work<'b> {
        let nodes = base.nodes.nodes.len();
        let mut refused = Refusals::default();
        refused.grow(base.classes.asks.len());
        Work {
            remaining: base.nodes.remaining.clone(),
            blocks: vec![None; nodes.div_ceil(64)],
            ports: BTreeMap::new(),
            attached: BTreeMap::new(),
            full: FullNodes::new(base),
            placed: Vec::new(),
            failures: BTreeMap::new(),
            open: OpenNodes::new(ties, base.topology.is_used()),
            hosts: base.hosts.room(),
            turns: base.turns(),
            reserved: &base.reserved,
            reservations: Reservations::new(&base.reserved),
            allowances: base.templates.iter().map(|template| Allowance::of(&template.limits)).collect(),
            refused,
            counts: base.topology.counts.clone(),
            valid: base.topology.views.iter().map(|_| None).collect(),
            judged: Accepted::default(),
            effort: Effort::default(),
            tried: base.waiting.clone(),
            gone: Bits::default(),
            closed: Bits::default(),
            moved: Bits::default(),
            avoided: Bits::default(),
            shut: Bits::default(),
            most_new_nodes: None,
            needs_too_many: false,
            journal: Journal::default(),
            base,
            memo,
            trust,
            ties,
            choices: 0,
        }
    }

    /// Whether what is remembered is believed.
    pub(crate) fn trust(&self) -> Trust {
        self.trust
    }

    /// Supposes that something else is set aside than the snapshot says. Asked before anything is placed, and of a memory of its own.
    pub(crate) fn suppose(&mut self, reserved: &'b Reserved) {
        self.reserved = reserved;
        self.reservations = Reservations::new(reserved);
    }
}
