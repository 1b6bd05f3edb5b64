//! A node that is being planned: it holds the cheapest size and host that carry its pods, and may grow or move.

use tenon_model::{
    InstanceType, NewNode, Place, Pod, PodKey, Pool, PoolRefusal, Quantity, Requirements, Resources, Shortage, Snapshot,
};

use crate::eligibility::{barring_taint, joined};
use crate::hosts::HostLedger;
use crate::labels;

/// What every step of a plan works with.
pub(crate) struct Desk<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// Sizes from the cheapest on.
    pub(crate) sizes: Vec<&'a InstanceType>,
    pub(crate) hosts: HostLedger,
}

impl<'a> Desk<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> Desk<'a> {
        let mut sizes: Vec<&InstanceType> = snapshot.types.iter().collect();
        sizes.sort_by(|a, b| a.price_micros().cmp(&b.price_micros()).then_with(|| a.name.cmp(&b.name)));
        Desk { snapshot, sizes, hosts: HostLedger::new(&snapshot.hosts) }
    }
}

/// A node that is being planned.
pub(crate) struct OpenNode<'a> {
    pool: &'a Pool,
    size: &'a InstanceType,
    place: &'a Place,
    requirements: Requirements,
    requests: Resources,
    pods: Vec<PodKey>,
}

/// What a node would be like: demands on its labels, what its pods need, and how large its pool lets it be.
struct Wish<'w> {
    requirements: Requirements,
    requests: Resources,
    allowance: &'w Resources,
}

impl<'a> OpenNode<'a> {
    /// A new node of the pool for this pod, at most as large as `allowance` says where the pool has a limit, or why the
    /// pool makes none.
    pub(crate) fn open(
        desk: &mut Desk<'a>,
        pool: &'a Pool,
        pod: &Pod,
        allowance: &Resources,
    ) -> Result<OpenNode<'a>, PoolRefusal> {
        if let Some(why) = &pool.not_ready {
            return Err(PoolRefusal::NotReady(why.clone()));
        }
        if let Some(taint) = barring_taint(pod, &pool.taints) {
            return Err(PoolRefusal::Taint(taint.clone()));
        }
        let mut own = pool.requirements.clone();
        let (label, value) = labels::of_pool(&pool.name);
        own.add(label, &value);
        let mut requests = daemons(desk.snapshot, pool, &own);
        requests.add(&pod.requests);
        let mut refusal = None;
        for requirements in joined(&own, pod, labels::is_decided_later) {
            let wish = requirements.map(|requirements| Wish { requirements, requests: requests.clone(), allowance });
            let found = wish.map_err(PoolRefusal::Labels).and_then(|wish| Ok((cheapest(desk, pool, &wish)?, wish)));
            match found {
                Ok(((size, place), Wish { requirements, requests, .. })) => {
                    desk.hosts.hold(place, size);
                    return Ok(OpenNode { pool, size, place, requirements, requests, pods: vec![pod.key.clone()] });
                }
                Err(why) => refusal = Some(nearer(refusal, why)),
            }
        }
        Err(refusal.unwrap_or_else(nothing_to_try))
    }

    /// Takes one more pod if a size and a host can be found for all of them together.
    pub(crate) fn try_add(&mut self, desk: &mut Desk<'a>, pod: &Pod, allowance: &Resources) -> bool {
        if barring_taint(pod, &self.pool.taints).is_some() {
            return false;
        }
        let mut requests = self.requests.clone();
        requests.add(&pod.requests);
        desk.hosts.release(self.place, self.size);
        let found = joined(&self.requirements, pod, labels::is_decided_later).flatten().find_map(|requirements| {
            let wish = Wish { requirements, requests: requests.clone(), allowance };
            Some((cheapest(desk, self.pool, &wish).ok()?, wish.requirements))
        });
        let is_found = found.is_some();
        if let Some(((size, place), requirements)) = found {
            (self.size, self.place) = (size, place);
            (self.requirements, self.requests) = (requirements, requests);
            self.pods.push(pod.key.clone());
        }
        desk.hosts.hold(self.place, self.size);
        is_found
    }

    pub(crate) fn pool(&self) -> &'a Pool {
        self.pool
    }

    /// What its VM has.
    pub(crate) fn capacity(&self) -> &Resources {
        &self.size.capacity
    }

    pub(crate) fn close(self) -> NewNode {
        let mut requirements = self.requirements;
        requirements.add_all(&labels::of_type(self.size));
        requirements.add_all(&labels::of_place(self.place));
        NewNode {
            pool: self.pool.name.clone(),
            instance_type: self.size.name.clone(),
            place: self.place.clone(),
            requirements,
            requests: self.requests,
            pods: self.pods,
        }
    }
}

/// What the daemons that will run on every node of the pool need.
fn daemons(snapshot: &Snapshot, pool: &Pool, labels: &Requirements) -> Resources {
    let runs_here = |daemon: &&Pod| {
        barring_taint(daemon, &pool.taints).is_none()
            && joined(labels, daemon, labels::is_decided_later).any(|outcome| outcome.is_ok())
    };
    let mut requests = Resources::default();
    for daemon in snapshot.daemons.iter().filter(runs_here) {
        requests.add(&daemon.requests);
    }
    requests
}

/// The cheapest size, and a host for it, that carry the wish.
fn cheapest<'a>(
    desk: &Desk<'a>,
    pool: &'a Pool,
    wish: &Wish<'_>,
) -> Result<(&'a InstanceType, &'a Place), PoolRefusal> {
    let mut refusal = None;
    for size in &desk.sizes {
        let why = match places_for(pool, size, wish) {
            Ok(places) => match desk.hosts.roomiest(places.iter().copied(), size) {
                Some(place) => return Ok((size, place)),
                None => no_host(&desk.hosts, &places, size),
            },
            Err(why) => why,
        };
        refusal = Some(nearer(refusal, why));
    }
    Err(refusal.unwrap_or_else(nothing_to_try))
}

/// There are no sizes at all.
fn nothing_to_try() -> PoolRefusal {
    let resource = "instance types".to_owned();
    PoolRefusal::NoType(Shortage { resource, wanted: Quantity::whole(1), available: Quantity::ZERO })
}

/// Places where a node of this size would meet the wish, or why there are none.
fn places_for<'a>(pool: &'a Pool, size: &InstanceType, wish: &Wish<'_>) -> Result<Vec<&'a Place>, PoolRefusal> {
    if let Some(shortage) = wish.requests.shortage_in(&size.allocatable()) {
        return Err(PoolRefusal::NoType(shortage));
    }
    labels::of_type(size).intersect(&wish.requirements).map_err(PoolRefusal::Labels)?;
    if let Some((resource, limit)) =
        pool.limits.iter().find(|(name, _)| size.capacity.get(name) > wish.allowance.get(name))
    {
        return Err(PoolRefusal::Limit { resource: resource.to_owned(), limit });
    }
    let outcomes =
        pool.places.iter().map(|place| labels::of_place(place).intersect(&wish.requirements).map(|()| place));
    let (places, mut refusals): (Vec<_>, Vec<_>) = outcomes.partition(Result::is_ok);
    let places: Vec<&Place> = places.into_iter().flatten().collect();
    match refusals.pop() {
        Some(Err(why)) if places.is_empty() => Err(PoolRefusal::Labels(why)),
        _ => Ok(places),
    }
}

fn no_host(hosts: &HostLedger, places: &[&Place], size: &InstanceType) -> PoolRefusal {
    let (shortage, largest_on) = hosts.largest_gap(places.iter().copied(), size);
    let closed = hosts.closed(places.iter().copied());
    PoolRefusal::NoHost { instance_type: size.name.clone(), shortage, largest_on, closed }
}

/// Of two refusals the one that came nearer to a node. Sizes are tried from the cheapest, so the first that only lacked a
/// host or its pool's consent is the smallest that would do; among sizes that are too small the largest is the nearest.
fn nearer(known: Option<PoolRefusal>, next: PoolRefusal) -> PoolRefusal {
    let rank = |refusal: &PoolRefusal| match refusal {
        PoolRefusal::NoHost { .. } => 3,
        PoolRefusal::Limit { .. } => 2,
        PoolRefusal::NoType(_) => 1,
        _ => 0,
    };
    match (known, next) {
        (Some(PoolRefusal::NoType(known)), PoolRefusal::NoType(next)) if known.available <= next.available => {
            PoolRefusal::NoType(next)
        }
        (Some(known), next) if rank(&known) >= rank(&next) => known,
        (_, next) => next,
    }
}
