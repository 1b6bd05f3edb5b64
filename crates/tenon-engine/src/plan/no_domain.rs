//! Which constraint on other pods leaves no domain to make a node in?

use tenon_model::{PoolRefusal, Requirements, TopologyConstraint, TopologyRefusal};

use crate::base::Step;
use crate::index::{Bits, DomainIx, TemplateIx, ViewIx};
use crate::solver::Work;
use crate::topology::{Kind, valid};

impl Work<'_> {
    /// The first constraint that leaves a pool nothing, or else the first that leaves nothing together with others.
    pub(super) fn no_domain(&mut self, template: TemplateIx, step: &Step, places: &[Requirements]) -> PoolRefusal {
        if let Some(view) = self.host_in_the_way(step) {
            return self.refused_by(view, &Bits::default());
        }
        let reach: Vec<(ViewIx, Bits<DomainIx>)> = step
            .keys
            .iter()
            .flat_map(|(key, views)| {
                let own = &self.base.templates[template].demands;
                let key = &self.base.topology.keys[*key];
                let mut left = key.left_by(own);
                left.keep(&key.provided(None));
                // Volumes leave no more than this.
                let mut near = Bits::none(key.values.len());
                places.iter().for_each(|place| near.join(&key.left_by(place)));
                if !places.is_empty() {
                    left.keep(&near);
                }
                views.iter().map(move |view| (*view, left.clone()))
            })
            .collect();
        let is_alone_in_the_way = |(view, left): &&(ViewIx, Bits<DomainIx>)| {
            let seen = &self.base.topology.views[*view];
            let kind = self.base.topology.groups[seen.group].kind;
            let mut allowed = valid(kind, seen, &self.counts.groups[seen.group]).domains;
            allowed.keep(left);
            allowed.is_empty()
        };
        match reach.iter().find(is_alone_in_the_way).or(reach.first()) {
            Some((view, left)) => self.refused_by(*view, left),
            None => PoolRefusal::NothingOffered,
        }
    }

    fn refused_by(&self, view: ViewIx, reach: &Bits<DomainIx>) -> PoolRefusal {
        let topology = &self.base.topology;
        let group = topology.views[view].group;
        let (key, count) = (&topology.keys[topology.groups[group].key], &self.counts.groups[group]);
        let constraint = match topology.groups[group].kind {
            Kind::Spread { max_skew, .. } => TopologyConstraint::Spread { max_skew },
            Kind::Affinity => TopologyConstraint::Affinity,
            Kind::AntiAffinity => TopologyConstraint::AntiAffinity,
            Kind::Inverse => TopologyConstraint::Inverse,
        };
        let domains = reach.iter().map(|domain| (key.values[domain].clone(), count.of(domain))).collect();
        PoolRefusal::Topology(Box::new(TopologyRefusal { constraint, label: key.label.clone(), domains }))
    }
}
