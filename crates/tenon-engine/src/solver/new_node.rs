//! Which pool makes a new node for a pod?

use tenon_model::{Price, ReservedTrouble};

use super::Work;
use super::admission::{Accepted, Candidate, No, Remaining};
use super::refused::{Made, Trust};
use crate::base::{Ask, Step};
use crate::capacity::{Held, VolumeCount};
use crate::index::{AskIx, PodIx, TemplateIx};

impl<'b> Work<'b> {
    /// Plans a node for the pod, in the first pool that makes one. The pool and the trouble, if the pod has to wait for
    /// capacity that was set aside: then no other pool is asked, but other domains that are as good are.
    pub(super) fn place_on_new(&mut self, step: &'b Step, pod: PodIx) -> Result<bool, (TemplateIx, ReservedTrouble)> {
        if self.host_in_the_way(step).is_some() {
            return Ok(false);
        }
        if self.most_new_nodes.is_some_and(|most| self.open.nodes.len() >= most) {
            self.needs_too_many = true;
            return Ok(false);
        }
        for template in self.base.templates.ids() {
            let mut waits = None;
            let asks = self.effective_asks(step, template, self.memo.own_state(template));
            // Places of volumes are tried in the order they are written.
            let is_written = step.at_volumes.len() > 1 || !self.ties.prefers_cheap();
            let asks = if is_written { asks } else { self.cheapest_first(template, asks, pod) };
            for ask in asks {
                match self.make_new(template, (step, ask), pod) {
                    Ok(false) => {}
                    Ok(true) => return Ok(true),
                    Err(trouble) => waits = waits.or(Some(trouble)),
                }
            }
            if let Some(trouble) = waits {
                return Err(trouble);
            }
        }
        Ok(false)
    }

    /// Ways to ask for a new node that are as good as each other, the cheapest first.
    fn cheapest_first(&mut self, template: TemplateIx, asks: Vec<AskIx>, pod: PodIx) -> Vec<AskIx> {
        if asks.len() < 2 {
            return asks;
        }
        let price = |ask: AskIx| (self.price_of_new(template, ask, pod), ask);
        let mut priced: Vec<(Price, AskIx)> = asks.into_iter().map(price).collect();
        priced.sort_by_key(|(price, _)| *price);
        priced.into_iter().map(|(_, ask)| ask).collect()
    }

    fn price_of_new(&mut self, template: TemplateIx, ask: AskIx, pod: PodIx) -> Price {
        if self.refused[ask].templates.has(template) {
            return Price::OUT_OF_REACH;
        }
        let (asked, volumes) = (self.memo.ask(self.base, ask), self.volumes_of(pod));
        if self.judge_new(template, (ask, &asked), &volumes).is_err() {
            return Price::OUT_OF_REACH;
        }
        let Accepted { state, slots, held, .. } = &self.judged;
        let left = Remaining { state: *state, slots, held };
        let cheapest = self.cheapest(template, left, None);
        cheapest.map_or(Price::OUT_OF_REACH, |offering| self.base.catalog_of(template).way(offering).price)
    }

    /// Plans a node of a pool, if it can make one.
    fn make_new(
        &mut self,
        template: TemplateIx,
        (step, ask): (&'b Step, AskIx),
        pod: PodIx,
    ) -> Result<bool, (TemplateIx, ReservedTrouble)> {
        let refused = &self.refused[ask];
        let is_known = refused.templates.has(template) || refused.without_host.1.has(template);
        if is_known && self.trust == Trust::Remembered {
            return Ok(false);
        }
        self.effort.judgements += 1;
        let asked = self.memo.ask(self.base, ask);
        let volumes = self.volumes_of(pod);
        let judged = self.judge_new(template, (ask, &asked), &volumes);
        if is_known {
            assert!(judged.is_err(), "a pool refused a pod before and takes it now");
            self.effort.repeated += 1;
            return Ok(false);
        }
        match judged {
            Ok(()) => {
                self.allowances[template].charge(&self.judged.slots);
                self.open_node(template, (step, pod));
                return Ok(true);
            }
            Err(No::Reserved(trouble)) if self.reservations.are_strict() => return Err((template, trouble)),
            Err(no) => self.remember_closed(ask, template, &no),
        }
        Ok(false)
    }

    fn remember_closed(&mut self, ask: AskIx, template: TemplateIx, no: &No) {
        match no {
            No::Reserved(_) | No::Volumes => {}
            No::Hosts | No::MinValues(_) if self.judged.is_cut_by_volumes => {}
            No::Hosts if self.base.catalog_of(template).has_reserved => {}
            No::Hosts => self.refused[ask].without_host.1.insert(template),
            _ => self.refused[ask].templates.insert(template),
        }
    }

    /// A new node of a pool for the pod. Where nothing that it depends on changes, an equal one is a copy.
    fn judge_new(
        &mut self,
        template: TemplateIx,
        (ask, asked): (AskIx, &Ask),
        volumes: &[VolumeCount],
    ) -> Result<(), No> {
        let index = self.base.catalog_of(template);
        let is_constant = !index.has_places && !index.has_reserved && volumes.is_empty();
        let changes = self.allowances[template].changes;
        let is_equal = |made: &&Made| is_constant && made.template == template && made.changes == changes;
        if let Some(made) = self.refused[ask].made.as_ref().filter(is_equal) {
            self.judged = made.node.clone();
            return Ok(());
        }
        let mut becomes = std::mem::take(&mut self.judged);
        let judged = self.narrow_new(template, (asked, volumes), &mut becomes);
        let judged = judged.and_then(|()| self.secure(&self.empty(template, &Held::new()), &mut becomes));
        self.judged = becomes;
        if is_constant && judged.is_ok() {
            self.refused[ask].made = Some(Made { template, changes, node: self.judged.clone() });
        }
        judged
    }

    /// What taints, limits, labels and resources leave of a new node.
    pub(crate) fn narrow_new(
        &mut self,
        template: TemplateIx,
        (asked, volumes): (&Ask, &[VolumeCount]),
        becomes: &mut Accepted,
    ) -> Result<(), No> {
        if !self.memo.is_tolerated(asked.tolerations, template) {
            return Err(No::Closed);
        }
        let slots = self.allowances[template].affordable().map_err(|_| No::Closed)?.clone();
        let (held, requests) = (Held::new(), self.base.columns.nothing());
        let candidate = Candidate { slots: &slots, requests: &requests, volumes, ..self.empty(template, &held) };
        self.narrow(&candidate, asked, becomes)
    }

    /// A node of a pool that nothing is planned for yet.
    pub(crate) fn empty<'c>(&self, template: TemplateIx, held: &'c Held) -> Candidate<'c>
    where
        'b: 'c,
    {
        let (state, slots) = (self.memo.own_state(template), &self.base.templates[template].slots);
        Candidate { template, state, slots, requests: &[], held, hold: None, pinning: None, volumes: &[], is_new: true }
    }
}
