//! Why did every pool say no? Found out afterwards, for the pods that wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{
    Met, NoType, Pod, Pool, PoolRefusal, Reason, Requirements, Resources, Shortage, Toleration, Unplaced,
};

use super::no_volumes::place_of_volumes;
use crate::base::{Ask, SIMULATED, Step, Template, is_out_of_use};
use crate::capacity::{Held, VolumeCount};
use crate::index::{Bits, PodClassIx, PodIx, SlotIx, TemplateIx};
use crate::instance_types::CatalogIndex;
use crate::resources::fits;
use crate::solver::{Accepted, Failure, No, Work};

impl Work<'_> {
    /// A reason for each pod that was not placed.
    pub(super) fn reasons(&mut self, failures: BTreeMap<PodIx, Failure>) -> Vec<Unplaced> {
        let mut known: BTreeMap<(PodClassIx, Vec<VolumeCount>), Reason> = BTreeMap::new();
        let mut waiting = Vec::new();
        for (number, failure) in failures {
            let (pod, _) = &self.base.pods[number];
            let reason = match failure {
                Failure::NoPools => Reason::NoPools,
                Failure::Reserved(template, why) => {
                    Reason::Reserved { pool: self.base.templates[template].pool.name.clone(), why }
                }
                Failure::Nowhere(class) => {
                    // A new node attaches nothing yet, so how many volumes a pod has is all that matters of them.
                    let alike = (class, self.volumes_of(number));
                    known.entry(alike).or_insert_with_key(|(_, volumes)| self.refusals(pod, class, volumes)).clone()
                }
            };
            waiting.push(Unplaced { pod: pod.key.clone(), reason });
        }
        waiting
    }

    fn refusals(&mut self, pod: &Pod, class: PodClassIx, counts: &[VolumeCount]) -> Reason {
        let base = self.base;
        let mut usable = base.pools.iter().filter(|(pool, _)| !is_out_of_use(pool)).peekable();
        if usable.peek().is_some() && usable.all(|(_, template)| template.is_none()) {
            return Reason::NothingOffered;
        }
        let Some(step) = base.classes.classes[class].steps.last() else {
            return Reason::Internal("a way to try the pod");
        };
        let ask = &*base.classes.asks[step.ask];
        let demand = &base.classes.demands[ask.demand];
        let tolerations = &base.classes.tolerations[ask.tolerations];
        let places = pod.storage.volumes().map(|known| known.alternatives.as_slice()).unwrap_or_default();
        let asked = Asked { step, ask, demand, tolerations, requests: &pod.requests, places, counts };
        let refusals = base.pools.iter().map(|(pool, template)| {
            let refusal = self.refusal(pool, *template, &asked);
            (pool.name.clone(), refusal)
        });
        Reason::Refused(refusals.collect())
    }

    fn refusal(&mut self, pool: &Arc<Pool>, template: Option<TemplateIx>, asked: &Asked<'_>) -> PoolRefusal {
        match (&pool.not_ready, pool.replicas) {
            (Some(why), _) => return PoolRefusal::NotReady(why.clone()),
            (None, Some(_)) => return PoolRefusal::Static,
            (None, None) => {}
        }
        let Some(number) = template else { return PoolRefusal::NothingOffered };
        if let Some(taint) = pool.taints.iter().find(|taint| !taint.is_tolerated_by(asked.tolerations)) {
            return PoolRefusal::Taint(taint.clone());
        }
        let (template, index) = (&self.base.templates[number], self.base.catalog_of(number));
        let slots = match self.allowances[number].affordable() {
            Ok(slots) => slots.clone(),
            Err(resource) => {
                return PoolRefusal::Limit { resource: resource.to_owned(), limit: pool.limits.get(resource) };
            }
        };
        if let Err(why) = template.demands.meet(asked.demand, |label| index.catalog.is_well_known(label)) {
            return PoolRefusal::Labels(why);
        }
        let place = match place_of_volumes(template, index, asked) {
            Ok(place) => place,
            Err(why) => return PoolRefusal::Volumes(Box::new(why)),
        };
        let effective = self.effective_asks(asked.step, number, self.memo.own_state(number));
        if effective.is_empty() || self.host_in_the_way(asked.step).is_some() {
            return self.no_domain(number, asked.step, asked.places);
        }
        let (mut becomes, mut secured) = (Accepted::default(), Err(No::Labels));
        for ask in effective {
            let ask = self.memo.ask(self.base, ask);
            let narrowed = self.narrow_new(number, (&ask, asked.counts), &mut becomes);
            secured = narrowed.and_then(|()| self.secure(&self.empty(number, &Held::new()), &mut becomes));
            if secured != Err(No::Labels) {
                break;
            }
        }
        match secured {
            Err(No::Volumes) => self.no_place_for_volumes(number, &slots, asked),
            Err(No::MinValues(short)) => PoolRefusal::MinValues(short),
            Err(No::Reserved(why)) => PoolRefusal::Reserved(why),
            Err(No::Hosts) => self.no_host(number, becomes.state, &becomes.slots),
            _ => self.no_type(number, &slots, (asked, place)),
        }
    }

    /// Which of its three conditions the sizes meet. Each is asked of every size, so that the answer names what is in the way.
    fn no_type(
        &mut self,
        number: TemplateIx,
        slots: &Bits<SlotIx>,
        (asked, place): (&Asked<'_>, Option<&Requirements>),
    ) -> PoolRefusal {
        let (template, index) = (&self.base.templates[number], self.base.catalog_of(number));
        // Whoever gets here meets the labels and the limits of the pool.
        let mut requirements = template.demands.clone();
        requirements.add_all(asked.demand);
        place.into_iter().for_each(|place| requirements.add_all(place));
        let types = index.types_suiting(&requirements);
        let (_, offerings) = index.left_by(&requirements);
        let mut met = Met::default();
        for slot in slots.iter() {
            let suits = types.has(index.slots[slot].type_ix);
            let is_large = fits(&asked.ask.row, template.room(slot));
            let is_offered = index.slot_meets(slot, &offerings);
            met.requirements |= suits;
            met.resources |= is_large;
            met.offering |= is_offered;
            met.requirements_and_resources |= suits && is_large;
            met.requirements_and_offering |= suits && is_offered;
            met.resources_and_offering |= is_large && is_offered;
        }
        let resources = needed(index, template, slots, asked.requests);
        let shortage = nearest(index, template, slots, asked.requests);
        // Without the labels that only daemons ask for.
        SIMULATED.into_iter().for_each(|label| drop(requirements.remove(label)));
        let volumes = place.cloned().unwrap_or_default();
        let no_type = NoType { met, requirements: requirements.clone(), volumes, resources, shortage };
        self.unless_offered(number, &requirements, PoolRefusal::NoType(Box::new(no_type)))
    }
}

/// What a pod asked for when it was tried last.
pub(super) struct Asked<'p> {
    step: &'p Step,
    ask: &'p Ask,
    pub(super) demand: &'p Requirements,
    tolerations: &'p [Toleration],
    requests: &'p Resources,
    /// Where its volumes can be used.
    pub(super) places: &'p [Requirements],
    /// How many it has of each driver.
    pub(super) counts: &'p [VolumeCount],
}

/// What would be needed with the fewest daemons, and with the most.
fn needed(
    index: &CatalogIndex,
    template: &Template,
    slots: &Bits<SlotIx>,
    requests: &Resources,
) -> (Resources, Resources) {
    let sums = slots.iter().map(|slot| {
        let mut sum = requests.clone();
        sum.add(&template.daemons.of(index.slots[slot].type_ix).requests);
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
fn nearest(index: &CatalogIndex, template: &Template, slots: &Bits<SlotIx>, requests: &Resources) -> Option<Shortage> {
    let rooms = slots.iter().map(|slot| {
        let daemons = template.daemons.of(index.slots[slot].type_ix);
        index.size_of(slot).allocatable(&tenon_model::Overrides::default()).without(&daemons.requests)
    });
    let shortages = rooms.filter_map(|room| requests.shortage_in(&room));
    shortages.max_by(|a, b| (&b.resource, a.available).cmp(&(&a.resource, b.available)))
}
