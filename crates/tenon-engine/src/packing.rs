//! Packs pods onto nodes that are there, nodes that are planned, and new ones, in that order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{Catalog, Effect, Plan, Pod, PodKey, Pool, Reason, ReservedTrouble, Snapshot, Unplaced};

use crate::attempts::{Attempts, Rules};
use crate::axes::Axes;
use crate::bug::{found, missing};
use crate::catalog_index::{CatalogIndex, Indexes};
use crate::desk::Desk;
use crate::eligibility::refused;
use crate::existing::Existing;
use crate::hosts::HostLedger;
use crate::improve::improved;
use crate::open_claim::{Claims, Ties};
use crate::reservations::Reservations;
use crate::stock::Stock;
use crate::template::{Supplies, Template};

/// Decides what is to be made for the pods that need a node. The order of the snapshot's lists does not matter.
pub fn plan(snapshot: &Snapshot) -> Plan {
    Prepared::new(snapshot, &mut Indexes::default()).solve()
}

/// A snapshot, indexed and ready to be solved.
pub struct Prepared<'a> {
    indexes: &'a Indexes,
    packing: Packing<'a>,
}

/// Everything a plan is made with.
pub(crate) struct Packing<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// Pods to be placed, in the order they are tried.
    pub(crate) pods: Vec<&'a Pod>,
    chains: Vec<usize>,
    pub(crate) attempts: Attempts<'a>,
    pub(crate) existing: Existing<'a>,
    pub(crate) desk: Desk<'a>,
    pub(crate) claims: Claims<'a>,
    /// Every pool, the first to be asked first, and its template if new nodes can be made from it.
    pub(crate) pools: Vec<(&'a Pool, Option<usize>)>,
    pub(crate) unplaced: Vec<Unplaced>,
}

/// Why a pod was not placed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// Nothing took it; the attempt that was tried last.
    Nowhere(usize),
    /// It must wait for capacity that was set aside, in this pool.
    Reserved(usize, ReservedTrouble),
    /// An index is out of range; what was not found.
    Internal(&'static str),
}

impl<'a> Prepared<'a> {
    /// Reads a snapshot. Catalogues that are the same as in the last plan with these indexes are not read again.
    pub fn new(snapshot: &'a Snapshot, indexes: &'a mut Indexes) -> Prepared<'a> {
        indexes.cover(snapshot);
        let indexes: &'a Indexes = indexes;
        Prepared { indexes, packing: Packing::new(snapshot, indexes, Ties::Settled) }
    }

    /// Pools that could make nodes, but what they demand leaves nothing to make them of.
    pub fn pools_without_sizes(&self) -> Vec<&'a str> {
        let is_empty = |(pool, template): &&(&Pool, Option<usize>)| template.is_none() && !is_out_of_use(pool);
        self.packing.pools.iter().filter(is_empty).map(|(pool, _)| pool.name.as_str()).collect()
    }

    /// Places the pods.
    pub fn solve(self) -> Plan {
        let again = (self.packing.snapshot, self.indexes);
        improved(again, self.packing.solve())
    }
}

impl<'a> Packing<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, indexes: &'a Indexes, ties: Ties) -> Packing<'a> {
        let (pods, unplaced) = sorted_out(snapshot);
        let is_judged = |daemon: &&Pod| !snapshot.options.ignore_resource_claims || daemon.resource_claims.is_empty();
        let daemons: Vec<&Pod> = snapshot.daemons.iter().map(AsRef::as_ref).filter(is_judged).collect();
        let requests = pods.iter().chain(&daemons).map(|pod| &pod.requests);
        let axes = Axes::of(requests);
        let supplies = Supplies { daemons: &daemons, axes: &axes, options: &snapshot.options };
        let (pools, desk) = set_up(snapshot, indexes, &supplies);
        // A pool whose demands leave nothing to make nodes of still has nodes that are there.
        let in_use = pools.iter().map(|(pool, _)| *pool).filter(|pool| !is_out_of_use(pool));
        let has_advice = in_use.flat_map(|pool| &pool.taints).any(|taint| taint.effect == Effect::PreferNoSchedule);
        let rules = Rules { axes: &axes, options: &snapshot.options, has_advice };
        let mut attempts = Attempts::default();
        let chains = pods.iter().map(|pod| attempts.chain(pod, &rules)).collect();
        let existing = Existing::new(snapshot, &daemons, &axes);
        let claims = Claims::new(&axes, ties);
        Packing { snapshot, pods, chains, attempts, existing, desk, claims, pools, unplaced }
    }

    /// A pod that fails goes to the end of the queue; when all that are left failed in a row, that is it.
    pub(crate) fn solve(mut self) -> Plan {
        let mut failures: BTreeMap<usize, Failure> = BTreeMap::new();
        if self.pools.iter().all(|(pool, _)| is_out_of_use(pool)) {
            return self.without_pools();
        }
        let mut queue: VecDeque<usize> = (0..self.pods.len()).collect();
        let mut pushed_at: Vec<usize> = vec![0; self.pods.len()];
        while let Some(pod) = queue.front().copied() {
            if pushed_at.get(pod) == Some(&queue.len()) {
                break;
            }
            queue.pop_front();
            match self.place(pod) {
                Ok(()) => drop(failures.remove(&pod)),
                Err(failure) => {
                    failures.insert(pod, failure);
                    queue.push_back(pod);
                    if let Some(length) = pushed_at.get_mut(pod) {
                        *length = queue.len();
                    }
                }
            }
        }
        self.finish(failures)
    }

    /// Tries a pod with all its wishes, and then with fewer and fewer of them.
    fn place(&mut self, pod: usize) -> Result<(), Failure> {
        let chain = self.chains.get(pod).and_then(|chain| self.attempts.of_chain(*chain)).cloned();
        let mut last = Failure::Internal("an attempt to place the pod");
        for attempt in chain.ok_or_else(|| Failure::Internal(missing("the attempts to place the pod")))? {
            last = Failure::Nowhere(attempt);
            if self.try_attempt(pod, attempt)? {
                return Ok(());
            }
        }
        Err(last)
    }

    fn try_attempt(&mut self, pod: usize, number: usize) -> Result<bool, Failure> {
        let Packing { attempts, existing, desk, claims, .. } = self;
        let attempt = attempts.open(number);
        let (attempt, demand, tolerations) = attempt.ok_or_else(|| Failure::Internal(missing("the attempt")))?;
        if existing.place(attempt, (demand, tolerations), pod) || claims.add(desk, attempt, (demand, tolerations), pod)
        {
            return Ok(true);
        }
        claims
            .open(desk, attempt, (demand, tolerations), pod)
            .map_err(|(template, trouble)| Failure::Reserved(template, trouble))
    }

    /// Without a pool that could make nodes nothing is decided, as in Karpenter.
    fn without_pools(mut self) -> Plan {
        let mut failures = BTreeMap::new();
        for (number, chain) in self.chains.iter().enumerate() {
            let last = self.attempts.of_chain(*chain).and_then(|attempts| attempts.last());
            let lost = || Failure::Internal(missing("the attempts to place the pod"));
            failures.insert(number, last.map_or_else(lost, |last| Failure::Nowhere(*last)));
        }
        if self.pools.is_empty() {
            let nobody = |pod: &&Pod| Unplaced { pod: pod.key.clone(), reason: Reason::NoPools };
            let waiting = self.pods.iter().map(nobody).collect::<Vec<_>>();
            self.unplaced.extend(waiting);
            failures.clear();
        }
        self.finish(failures)
    }
}

/// Whether a pool makes no nodes for pods, whatever they ask.
pub(crate) fn is_out_of_use(pool: &Pool) -> bool {
    pool.not_ready.is_some() || pool.replicas.is_some()
}

/// Pods to be placed, in the order they are tried: large ones first, because small ones fit into what they leave; then
/// the oldest. The others with the reason why they are not.
fn sorted_out(snapshot: &Snapshot) -> (Vec<&Pod>, Vec<Unplaced>) {
    let invalid = |(key, why): &(PodKey, String)| Unplaced { pod: key.clone(), reason: Reason::Invalid(why.clone()) };
    let (mut pods, mut unplaced) = (Vec::new(), snapshot.invalid.iter().map(invalid).collect::<Vec<_>>());
    for pod in snapshot.pods.iter().map(AsRef::as_ref) {
        let ignores = || snapshot.options.ignore_resource_claims && !pod.resource_claims.is_empty();
        match refused(snapshot, pod).or_else(|| ignores().then_some(Reason::ResourceClaims)) {
            Some(reason) => unplaced.push(Unplaced { pod: pod.key.clone(), reason }),
            None => pods.push(pod),
        }
    }
    pods.sort_by_cached_key(|pod| {
        let size = (pod.requests.get(CPU), pod.requests.get(MEMORY));
        (Reverse(size), pod.created, pod.key.uid.clone(), pod.key.clone())
    });
    (pods, unplaced)
}

/// Takes each catalogue once, and makes a template of each pool that can be used.
fn set_up<'a>(
    snapshot: &'a Snapshot,
    indexes: &'a Indexes,
    supplies: &Supplies<'_>,
) -> (Vec<(&'a Pool, Option<usize>)>, Desk<'a>) {
    let hosts = HostLedger::new(&snapshot.hosts);
    let mut pools: Vec<&Pool> = snapshot.pools.iter().map(AsRef::as_ref).collect();
    pools.sort_by_key(|pool| Reverse((pool.weight, &pool.name)));
    let stock = |(catalog, index): (&'a Catalog, &'a CatalogIndex)| Stock::new((catalog, index), supplies.axes, &hosts);
    let mut stocks: Vec<Stock<'a>> = indexes.iter().map(stock).collect();
    let (mut numbered, mut templates): (Vec<_>, Vec<Template<'a>>) = (Vec::new(), Vec::new());
    for pool in pools {
        let number = found(indexes.position(&pool.catalog), "the catalogue").filter(|_| !is_out_of_use(pool));
        let stock = number.and_then(|number| Some((number, found(stocks.get_mut(number), "the stock")?)));
        let template = stock.and_then(|stock| Template::new(pool, stock, supplies));
        numbered.push((pool, template.is_some().then_some(templates.len())));
        templates.extend(template);
    }
    let (reservations, min_values) = (Reservations::new(snapshot), snapshot.options.min_values);
    (numbered, Desk { stocks, templates, hosts, reservations, min_values })
}
