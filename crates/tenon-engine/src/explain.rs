//! Why did every pool say no? Found out afterwards, for the pods that wait.

use std::collections::BTreeMap;

use tenon_model::{
    Met, NoType, Pool, PoolRefusal, Quantity, Reason, Requirements, ReservedTrouble, Resources, Shortage, Toleration,
    Unplaced,
};

use crate::attempts::Attempt;
use crate::axes::Amounts;
use crate::bits::Bits;
use crate::bug::{found, missing};
use crate::desk::{Ask, Desk, No, offerings};
use crate::open_claim::judge_new;
use crate::packing::{Failure, Packing};
use crate::stock::Stock;
use crate::template::Template;

impl Packing<'_> {
    /// A reason for each pod that was not placed.
    pub(crate) fn reasons(&mut self, failures: BTreeMap<usize, Failure>) -> Vec<Unplaced> {
        let mut known: BTreeMap<usize, Reason> = BTreeMap::new();
        let mut waiting = Vec::new();
        for (pod, failure) in failures {
            let reason = match failure {
                Failure::Reserved(template, why) => self.waits_for_reserved(template, why),
                Failure::Internal(what) => Reason::Internal(what),
                Failure::Nowhere(attempt) => match known.get(&attempt) {
                    Some(reason) => reason.clone(),
                    None => {
                        let reason = self.refusals(pod, attempt);
                        known.insert(attempt, reason.clone());
                        reason
                    }
                },
            };
            let Some(pod) = self.pods.get(pod) else {
                missing("the pod");
                continue;
            };
            waiting.push(Unplaced { pod: pod.key.clone(), reason });
        }
        waiting
    }

    fn waits_for_reserved(&self, template: usize, why: ReservedTrouble) -> Reason {
        match self.desk.templates.get(template) {
            Some(template) => Reason::Reserved { pool: template.pool.name.clone(), why },
            None => Reason::Internal(missing("the template of the NodePool")),
        }
    }

    fn refusals(&mut self, pod: usize, attempt: usize) -> Reason {
        let usable = self.pools.iter().filter(|(pool, _)| !crate::packing::is_out_of_use(pool));
        if usable.clone().next().is_some() && usable.clone().all(|(_, template)| template.is_none()) {
            return Reason::NothingOffered;
        }
        let Packing { pods, attempts, desk, pools, .. } = self;
        let Some(pod) = pods.get(pod) else { return Reason::Internal(missing("the pod")) };
        let Some((attempt, demand, tolerations)) = attempts.open(attempt) else {
            return Reason::Internal(missing("the attempt"));
        };
        let asked = Asked { attempt, demand, tolerations, requests: &pod.requests };
        let refusals =
            pools.iter().map(|(pool, template)| (pool.name.clone(), refusal(desk, (pool, *template), &asked)));
        Reason::Refused(refusals.collect())
    }
}

/// What a pod asked for when it was tried last.
struct Asked<'p> {
    attempt: &'p Attempt<'p>,
    demand: &'p Requirements,
    tolerations: &'p [Toleration],
    requests: &'p Resources,
}

fn refusal(desk: &mut Desk<'_>, (pool, template): (&Pool, Option<usize>), asked: &Asked<'_>) -> PoolRefusal {
    match (&pool.not_ready, pool.replicas) {
        (Some(why), _) => return PoolRefusal::NotReady(why.clone()),
        (None, Some(_)) => return PoolRefusal::Static,
        (None, None) => {}
    }
    let Some(number) = template else { return PoolRefusal::NothingOffered };
    if let Some(taint) = pool.taints.iter().find(|taint| !taint.is_tolerated_by(asked.tolerations)) {
        return PoolRefusal::Taint(taint.clone());
    }
    let Some((stock, template)) = desk.of(number) else { return lost_template() };
    if let Err(resource) = template.affordable(stock) {
        let limit = pool.limits.get(&resource);
        return PoolRefusal::Limit { resource, limit };
    }
    let Some(own) = stock.state(template.state) else { return lost_template() };
    if let Err(why) = own.requirements.meet(asked.demand, |label| stock.catalog.is_well_known(label)) {
        return PoolRefusal::Labels(why);
    }
    let attempt = asked.attempt;
    let (demand, tolerations) = ((attempt.demand, asked.demand), asked.tolerations);
    let ask = Ask { demand, amounts: &attempt.amounts, ports: attempt.ports, tolerations };
    let nothing: Amounts = vec![Quantity::ZERO; attempt.amounts.len()];
    match judge_new(desk, number, &ask, &nothing) {
        Err(Some(No::MinValues(short))) => PoolRefusal::MinValues(short),
        Err(Some(No::Reserved(why))) => PoolRefusal::Reserved(why),
        Err(Some(No::Hosts(state, slots))) => no_host(desk, number, state, &slots),
        Err(Some(No::Internal(what))) => PoolRefusal::Internal(what),
        Ok(_) | Err(Some(No::Labels | No::Types) | None) => no_type(desk, number, asked),
    }
}

fn lost_template() -> PoolRefusal {
    PoolRefusal::Internal(missing("the template of the NodePool"))
}

/// Which of its three conditions the sizes meet. Each is asked of every size, so that the answer names what is in the way.
fn no_type(desk: &mut Desk<'_>, number: usize, asked: &Asked<'_>) -> PoolRefusal {
    let Desk { stocks, templates, .. } = desk;
    let Some(template) = templates.get(number) else { return lost_template() };
    let Some(stock) = stocks.get_mut(template.stock) else { return lost_template() };
    let merged = stock.merge(template.state, (asked.attempt.demand, asked.demand));
    // Whoever gets here meets the labels and the limits of the pool.
    let (Some(state), Ok(slots)) = (merged.and_then(|merged| stock.state(merged)), template.affordable(stock)) else {
        return PoolRefusal::Internal(missing("the sizes of the NodePool"));
    };
    let sizes = stock.sizes_suiting(&state.requirements);
    let mut met = Met::default();
    for (number, slot) in slots.iter().filter_map(|number| Some((number, stock.slot(number)?))) {
        let suits = sizes.has(slot.size);
        let is_large = found(template.rooms.get(number), "the room of the slot")
            .is_some_and(|room| crate::axes::fits(&asked.attempt.amounts, room));
        let is_offered = stock.slot_meets(number, &state.offerings);
        met.requirements |= suits;
        met.resources |= is_large;
        met.offering |= is_offered;
        met.requirements_and_resources |= suits && is_large;
        met.requirements_and_offering |= suits && is_offered;
        met.resources_and_offering |= is_large && is_offered;
    }
    let requirements = shown(&state.requirements);
    let resources = needed(stock, template, &slots, asked.requests);
    let shortage = nearest(stock, template, &slots, asked.requests);
    PoolRefusal::NoType(Box::new(NoType { met, requirements, resources, shortage }))
}

/// Without the labels that only daemons ask for.
fn shown(requirements: &Requirements) -> Requirements {
    let mut shown = requirements.clone();
    crate::template::SIMULATED.into_iter().for_each(|label| drop(shown.remove(label)));
    shown
}

/// What would be needed with the fewest daemons, and with the most.
fn needed(stock: &Stock<'_>, template: &Template<'_>, slots: &Bits, requests: &Resources) -> (Resources, Resources) {
    let sizes = slots.iter().filter_map(|slot| stock.slot(slot)).map(|slot| slot.size);
    let sums = sizes.filter_map(|size| template.daemons.of(size)).map(|group| {
        let mut sum = requests.clone();
        sum.add(&group.requests);
        sum
    });
    let smaller = |a: &Resources, b: &Resources| -> Resources {
        a.iter().map(|(name, amount)| (name.to_owned(), amount.min(b.get(name)))).collect()
    };
    let bounds = sums.map(|sum| (sum.clone(), sum));
    bounds
        .reduce(|(least, most), (sum, _)| (smaller(&least, &sum), most.or_larger(&sum)))
        .unwrap_or_else(|| (requests.clone(), requests.clone()))
}

/// Of what the pod asks for too much, and the most that any size leaves of it.
fn nearest(stock: &Stock<'_>, template: &Template<'_>, slots: &Bits, requests: &Resources) -> Option<Shortage> {
    let rooms = slots.iter().filter_map(|slot| {
        let daemons = template.daemons.of(stock.slot(slot)?.size)?;
        let offered = stock.size_of(slot)?;
        Some(offered.allocatable(&tenon_model::Overrides::default()).without(&daemons.requests))
    });
    let shortages = rooms.filter_map(|room| requests.shortage_in(&room));
    shortages.max_by(|a, b| (&b.resource, a.available).cmp(&(&a.resource, b.available)))
}

/// No host has room: said of the cheapest size that would do.
fn no_host(desk: &Desk<'_>, number: usize, state: usize, slots: &Bits) -> PoolRefusal {
    let Some((stock, template)) = desk.of(number) else { return lost_template() };
    let placed: Vec<_> =
        offerings(stock, state, slots).filter(|(_, offered)| desk.reservations.can_launch(offered.way)).collect();
    let cheapest = placed.iter().min_by_key(|(number, offered)| (offered.way.price, offered.size, *number));
    let Some((_, cheapest)) = cheapest else { return PoolRefusal::NothingOffered };
    let Some(size) = stock.catalog.types().get(cheapest.size) else {
        return PoolRefusal::Internal(missing("the size of the offering"));
    };
    let here = |(_, offered): &(usize, &crate::stock::Offered<'_>)| {
        stock.catalog.types().get(offered.size).is_some_and(|other| other.name == size.name).then_some(offered.host)?
    };
    let hosts: Vec<usize> = placed.iter().filter_map(here).collect();
    let pool = template.pool.name.as_str();
    let open = hosts.iter().copied().filter(|host| !desk.hosts.is_closed_for(*host, pool));
    let (shortage, largest_on) = desk.hosts.largest_gap(open, size);
    let closed = desk.hosts.closed(hosts.into_iter(), pool);
    PoolRefusal::NoHost { instance_type: size.name.clone(), shortage, largest_on, closed }
}
