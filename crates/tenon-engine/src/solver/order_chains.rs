//! Which of the planned nodes is asked first, if of equal ones it is the one that has had so many pods for the shortest time, or
//! some other?
//!
//! Nodes with equally many pods form a chain. A node that takes a pod goes to the front of the next chain, a new one to the
//! back of the first: that is what a stable sort by number of pods gives.

use std::cmp::Reverse;

use super::order::Ties;
use crate::index::{Bits, Id, OpenIx, PodCountIx, Table};

/// So many nodes are looked at one after the other. If it is none of them, the first is looked for at once.
const WALKED: usize = 48;

/// Nodes in chains, by number of pods.
#[derive(Debug)]
pub(super) struct Chains {
    ties: Ties,
    links: Table<OpenIx, Link>,
    /// The first and the last node with so many pods.
    chains: Vec<Option<(OpenIx, OpenIx)>>,
    /// Numbers of pods that some node has.
    counts: Bits<PodCountIx>,
    foremost: i64,
    hindmost: i64,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    pods: usize,
    /// Of two nodes with equally many pods, the one with the lower number comes first, if ties are not broken otherwise.
    place: i64,
    before: Option<OpenIx>,
    behind: Option<OpenIx>,
}

impl Chains {
    pub(super) fn new(ties: Ties) -> Chains {
        Chains { ties, links: Table::default(), chains: Vec::new(), counts: Bits::default(), foremost: 0, hindmost: 0 }
    }

    /// A new node with one pod.
    pub(super) fn add(&mut self) {
        let node = self.links.push(Link { pods: 1, place: 0, before: None, behind: None });
        let last = self.chain(1).map(|(_, last)| last);
        match self.ties {
            Ties::Newest => self.put(node, None),
            _ => self.put(node, last),
        }
    }

    /// The node took one more pod.
    pub(super) fn advance(&mut self, node: OpenIx) {
        self.take_out(node);
        let pods = self.links[node].pods + 1;
        self.links[node].pods = pods;
        let mut before = None;
        let mut next = self.chain(pods).map(|(first, _)| first);
        while let Some(other) = next.filter(|other| self.ties.puts_first(*other, node)) {
            before = Some(other);
            next = self.links[other].behind;
        }
        self.put(node, before);
    }

    /// The node that is asked first.
    pub(super) fn first(&self) -> Option<OpenIx> {
        let pods = self.counts.next_from(0)?;
        self.chain(pods.position()).map(|(first, _)| first)
    }

    /// The node that is asked after another.
    pub(super) fn next(&self, node: OpenIx) -> Option<OpenIx> {
        let Link { pods, behind, .. } = self.links[node];
        behind.or_else(|| {
            let more = self.counts.next_from(pods + 1)?;
            self.chain(more.position()).map(|(first, _)| first)
        })
    }

    pub(super) fn first_of(&self, nodes: &Bits<OpenIx>) -> Option<OpenIx> {
        let mut next = self.first().filter(|_| !nodes.is_empty());
        let mut walked = 0;
        while let Some(node) = next {
            if nodes.has(node) {
                return Some(node);
            }
            walked += 1;
            if walked == WALKED && self.is_ranked() {
                return nodes.iter().min_by_key(|node| (self.rank(*node), Reverse(*node)));
            }
            next = self.next(node);
        }
        None
    }

    /// Whether the place of a node among all is known without walking there.
    pub(super) fn is_ranked(&self) -> bool {
        self.ties == Ties::Latest
    }

    /// The place of a node among all, if that is known.
    pub(super) fn rank(&self, node: OpenIx) -> (usize, i64) {
        let Link { pods, place, .. } = self.links[node];
        (pods, place)
    }

    fn chain(&self, pods: usize) -> Option<(OpenIx, OpenIx)> {
        self.chains.get(pods).copied().flatten()
    }

    /// Puts a node behind another, or first, into the chain of its number of pods.
    fn put(&mut self, node: OpenIx, before: Option<OpenIx>) {
        let pods = self.links[node].pods;
        let behind = match before {
            Some(before) => self.links[before].behind,
            None => self.chain(pods).map(|(first, _)| first),
        };
        let place = if behind.is_some() || before.is_none() {
            self.foremost -= 1;
            self.foremost
        } else {
            self.hindmost += 1;
            self.hindmost
        };
        self.links[node] = Link { pods, place, before, behind };
        before.into_iter().for_each(|before| self.links[before].behind = Some(node));
        behind.into_iter().for_each(|behind| self.links[behind].before = Some(node));
        if self.chains.len() <= pods {
            self.chains.resize(pods + 1, None);
        }
        let (first, last) = self.chain(pods).unwrap_or((node, node));
        let first = if before.is_none() { node } else { first };
        let last = if behind.is_none() { node } else { last };
        self.chains[pods] = Some((first, last));
        self.counts.insert(PodCountIx::of(pods));
    }

    fn take_out(&mut self, node: OpenIx) {
        let Link { pods, before, behind, .. } = self.links[node];
        before.into_iter().for_each(|before| self.links[before].behind = behind);
        behind.into_iter().for_each(|behind| self.links[behind].before = before);
        let Some((first, last)) = self.chain(pods) else { return };
        let first = if first == node { behind } else { Some(first) };
        let last = if last == node { before } else { Some(last) };
        self.chains[pods] = first.zip(last);
        if self.chains[pods].is_none() {
            self.counts.remove(PodCountIx::of(pods));
        }
    }
}
