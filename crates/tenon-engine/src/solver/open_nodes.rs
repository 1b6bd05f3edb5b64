//! Which planned node takes a pod, and what does it become by it?

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tenon_model::HostPort;

use super::Work;
use super::admission::{Accepted, Candidate, No};
use super::allowed_nodes::ByState;
use super::order::{Order, Ties};
use super::refused::Trust;
use crate::base::{Ask, Step};
use crate::capacity::{Attached, HeldSize, VolumeCount};
use crate::index::{AskIx, Bits, Id, OpenIx, PodIx, StateIx, Table, TemplateIx};
use crate::resources::Row;

/// So many nodes are asked one after the other. If none of them takes the pod, those that may are looked for at once.
const WALKED: usize = 48;

/// A node that is being planned.
pub(crate) struct OpenNode<'b> {
    pub(crate) template: TemplateIx,
    pub(crate) now: Accepted,
    pub(crate) pods: Vec<PodIx>,
    /// The most that any size it may still become leaves to pods: what is larger need not be tried.
    reach: Row,
    ports: Vec<&'b HostPort>,
    /// Volumes of its pods that count.
    pub(super) attached: Vec<Attached>,
    /// Whether it makes do with fewer values of a label than its pool asks for.
    pub(crate) is_relaxed: bool,
}

/// All nodes that are being planned.
pub(crate) struct OpenNodes<'b> {
    pub(crate) nodes: Table<OpenIx, OpenNode<'b>>,
    pub(super) order: Order,
    /// Each time a planned node came by a label that its pool does not speak of: that node.
    pub(super) labelled: Vec<OpenIx>,
    /// Nodes by what is demanded of them, where somebody asks for that.
    pub(super) by_state: Option<ByState>,
}

impl OpenNodes<'_> {
    pub(super) fn new(ties: Ties, has_topology: bool) -> Self {
        let by_state = has_topology.then(ByState::default);
        OpenNodes { nodes: Table::default(), order: Order::new(ties), labelled: Vec::new(), by_state }
    }

    /// The pool of a planned node, and what is demanded of it.
    pub(super) fn state_of(&self, node: OpenIx) -> (TemplateIx, StateIx) {
        let OpenNode { template, now, .. } = &self.nodes[node];
        (*template, now.state)
    }
}

impl<'b> Work<'b> {
    /// Puts the pod on the first planned node that takes it.
    pub(super) fn place_on_open(&mut self, step: &'b Step, pod: PodIx) -> bool {
        if !step.keys.is_empty() || !step.hosts.is_empty() {
            return self.place_on_allowed(step, pod);
        }
        for ask in step.asks() {
            self.refused[*ask].catch_up(&self.open.labelled, self.hosts.releases);
        }
        let mut next = self.open.order.first();
        let mut walked = 0;
        while let Some(node) = next {
            if walked == WALKED && self.open.order.is_ranked() {
                return self.place_on_ranked(step, pod, node);
            }
            walked += 1;
            if self.try_each(step, pod, node) {
                return true;
            }
            next = self.open.order.next(node);
        }
        false
    }

    /// Whether a planned node took the pod, in the first way that it was not known to refuse.
    fn try_each(&mut self, step: &'b Step, pod: PodIx, node: OpenIx) -> bool {
        for ask in step.asks() {
            if self.is_passed_by(*ask, node) || self.is_full(pod, node) {
                self.effort.passed_by += 1;
            } else if self.try_open((step, *ask), pod, node) {
                return true;
            }
        }
        false
    }

    /// Whether a planned node refused before, and that is believed.
    fn is_passed_by(&self, ask: AskIx, node: OpenIx) -> bool {
        self.trust == Trust::Remembered && self.refused[ask].has_refused(node)
    }

    /// The same from a node on, if it takes long: of all that may take the pod, the one that is asked first.
    fn place_on_ranked(&mut self, step: &'b Step, pod: PodIx, from: OpenIx) -> bool {
        let from = self.open.order.rank(from);
        let mut left: Bits<OpenIx> = Bits::none(self.open.nodes.len());
        for ask in step.asks() {
            let mut not_refused = Bits::all(self.open.nodes.len());
            self.drop_refused(*ask, &mut not_refused);
            left.join(&not_refused);
        }
        self.drop_full(pod, &mut left);
        self.effort.passed_by += left.blocks() as u64;
        let ranked = left.iter().map(|node| Reverse((self.open.order.rank(node), node)));
        let mut ranked: BinaryHeap<_> = ranked.filter(|Reverse((rank, _))| *rank >= from).collect();
        while let Some(Reverse((_, node))) = ranked.pop() {
            if self.try_each(step, pod, node) {
                return true;
            }
        }
        false
    }

    /// Takes planned nodes out that refused before, if that is believed.
    pub(super) fn drop_refused(&self, ask: AskIx, nodes: &mut Bits<OpenIx>) {
        if self.trust == Trust::Remembered {
            nodes.drop_all(&self.refused[ask].open);
            nodes.drop_all(&self.refused[ask].without_host.0);
        }
    }

    /// Whether a planned node took the pod.
    pub(super) fn try_open(&mut self, (step, ask): (&'b Step, AskIx), pod: PodIx, node: OpenIx) -> bool {
        let is_known = self.refused[ask].has_refused(node);
        self.effort.judgements += 1;
        let asked = self.memo.ask(self.base, ask);
        let volumes = self.volumes_with(node, pod);
        let judged = self.judge_open(node, &asked, &volumes);
        if is_known {
            assert!(judged.is_err(), "a planned node refused a pod before and takes it now");
            self.effort.repeated += 1;
            return false;
        }
        match judged {
            Ok(()) => {
                if self.adds_label(node, self.judged.state) {
                    self.open.labelled.push(node);
                }
                self.accept(node, (step, pod));
                self.open.order.advance(node);
                true
            }
            Err(no) => {
                self.remember_refusal(ask, node, &no);
                false
            }
        }
    }

    fn judge_open(&mut self, node: OpenIx, asked: &Ask, volumes: &[VolumeCount]) -> Result<(), No> {
        let open = &self.open.nodes[node];
        let needed = open.now.requests.iter().zip(&asked.row).map(|(now, more)| now.saturating_add(*more));
        if needed.zip(&open.reach).any(|(needed, reach)| needed > *reach) {
            return Err(No::Room);
        }
        let is_free = |port: &HostPort| !open.ports.iter().any(|used| used.conflicts_with(port));
        if !self.memo.is_tolerated(asked.tolerations, open.template) || !asked.ports.iter().all(is_free) {
            return Err(No::Closed);
        }
        // Both are lent out, since asking adds to what is remembered.
        let mut becomes = std::mem::take(&mut self.judged);
        let now = std::mem::take(&mut self.open.nodes[node].now);
        let Accepted { state, slots, requests, held, hold, pinning, .. } = &now;
        let pinning = pinning.as_deref();
        let (template, state, hold) = (self.open.nodes[node].template, *state, *hold);
        let candidate = Candidate { template, state, slots, requests, held, hold, pinning, volumes, is_new: false };
        let judged = self.judge(&candidate, asked, &mut becomes);
        self.open.nodes[node].now = now;
        self.judged = becomes;
        judged
    }

    /// What others give back may help only where reservations or hosts are in the way.
    fn remember_refusal(&mut self, ask: AskIx, node: OpenIx, no: &No) {
        let has_reserved = self.base.catalog_of(self.open.nodes[node].template).has_reserved;
        match no {
            No::Reserved(_) | No::Volumes => {}
            No::Hosts | No::MinValues(_) if self.judged.is_cut_by_volumes => {}
            No::Hosts if has_reserved => {}
            No::Hosts => self.refused[ask].without_host.0.insert(node),
            _ => self.refused[ask].open.insert(node),
        }
    }

    /// Whether a planned node speaks of more labels after a change than before.
    fn adds_label(&self, node: OpenIx, after: StateIx) -> bool {
        let OpenNode { template, now, .. } = &self.open.nodes[node];
        if now.state == after {
            return false;
        }
        let catalog = self.base.templates[*template].catalog;
        let (before, after) = (self.memo.state(catalog, now.state), self.memo.state(catalog, after));
        let index = &self.base.catalogs[catalog].catalog;
        let is_new = |label: &str| before.requirements.get(label).is_none() && !index.is_well_known(label);
        after.requirements.iter().any(|(label, _)| is_new(label))
    }

    /// Plans a node with its first pod.
    pub(super) fn open_node(&mut self, template: TemplateIx, (step, pod): (&'b Step, PodIx)) {
        let (is_relaxed, now) = (self.judged.is_relaxed, Accepted::default());
        let (pods, reach, ports, attached) = (Vec::new(), Row::new(), Vec::new(), Vec::new());
        let node = self.open.nodes.push(OpenNode { template, now, pods, reach, ports, attached, is_relaxed });
        self.accept(node, (step, pod));
        self.open.order.add();
        debug_assert_eq!(node.position() + 1, self.open.nodes.len());
    }

    /// Becomes what was judged, and holds what that takes.
    fn accept(&mut self, node: OpenIx, (step, pod): (&'b Step, PodIx)) {
        let OpenNode { template, now, .. } = &self.open.nodes[node];
        let template = *template;
        let pinning = now.pinning.clone();
        self.judged.pinning = if now.hold == self.judged.hold {
            pinning
        } else {
            let before = now.hold.and_then(|hold| self.footprint(template, hold));
            let after = self.judged.hold.and_then(|hold| self.footprint(template, hold));
            let pinning = pinning.as_deref();
            before.into_iter().for_each(|(host, size)| self.hosts.release(HeldSize { host, size, pinning }));
            let pinning = after.and_then(|(host, size)| self.hosts.hold(host, size));
            self.turns[template].change(before.map(|(host, _)| host), after.map(|(host, _)| host));
            pinning
        };
        let (open, judged) = (&mut self.open.nodes[node], &mut self.judged);
        self.reservations.change(&open.now.held, &judged.held);
        if open.now.slots != judged.slots {
            self.base.templates[template].reach(&judged.slots, &mut open.reach);
        }
        // What it was before is overwritten by the next one that is judged.
        std::mem::swap(&mut open.now, judged);
        open.ports.extend(&self.base.classes.asks[step.ask].ports);
        open.pods.push(pod);
        self.attach_to_open(node, pod);
        if let Some(by_state) = &mut self.open.by_state {
            by_state.put(node, (template, self.open.nodes[node].now.state));
            self.count_on_open(self.base.pods[pod].1, node);
        }
    }
}
