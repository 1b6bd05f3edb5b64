//! Which constraint on other pods leaves no domain to make a node in?

use tenon_model::{PoolRefusal, Requirements, TopologyConstraint, TopologyRefusal};

use crate::base::Step;
use crate::index::{Bits, DomainIx, TemplateIx, ViewIx};
use crate::solver::Work;
use crate::topology::{Kind, valid};

impl Work<'_> {
    /// The first constraint that leaves a pool nothing, or else the first that leaves nothing together with others.
    pub(super) fn no_domain(&self, template: TemplateIx, step: &Step, places: &[Requirements]) -> PoolRefusal {
        if let Some(view) = self.host_in_the_way(step) {
            return self.refused_by(view, &Bits::default(), false);
        }
        let topology = &self.base.topology;
        let views = step.keys.iter().flat_map(|(_, views)| views);
        let reach: Vec<(ViewIx, Bits<DomainIx>)> =
            views.map(|view| (*view, self.reach(template, *view, places))).collect();
        let allowed = |(view, left): &(ViewIx, Bits<DomainIx>)| {
            let seen = &topology.views[*view];
            let mut allowed = valid(topology.groups[seen.group].kind, seen, &self.counts.groups[seen.group]).domains;
            allowed.keep(left);
            allowed
        };
        match (reach.iter().find(|it| allowed(it).is_empty()), reach.first()) {
            (Some((view, left)), _) => self.refused_by(*view, left, false),
            (None, Some(first)) => self.refused_by(first.0, &allowed(first), true),
            (None, None) => PoolRefusal::NothingOffered,
        }
    }

    /// Domains that new nodes of a pool can be in, and the pod wants; all of the former if that leaves none.
    fn reach(&self, template: TemplateIx, view: ViewIx, places: &[Requirements]) -> Bits<DomainIx> {
        let topology = &self.base.topology;
        let seen = &topology.views[view];
        let key = &topology.keys[topology.groups[seen.group].key];
        let mut left = key.left_by(&self.base.templates[template].demands);
        left.keep(&key.provided(None));
        // Volumes leave no more than this.
        let mut near = Bits::none(key.values.len());
        places.iter().for_each(|place| near.join(&key.left_by(place)));
        if !places.is_empty() {
            left.keep(&near);
        }
        let mut wanted = left.clone();
        wanted.keep(&seen.pod_domains);
        if wanted.is_empty() { left } else { wanted }
    }

    fn refused_by(&self, view: ViewIx, reach: &Bits<DomainIx>, is_allowed: bool) -> PoolRefusal {
        let topology = &self.base.topology;
        let group = topology.views[view].group;
        let (key, count) = (&topology.keys[topology.groups[group].key], &self.counts.groups[group]);
        let constraint = match topology.groups[group].kind {
            Kind::Spread { max_skew, .. } => TopologyConstraint::Spread { max_skew },
            Kind::Affinity if topology.groups[group].is_of_several() => TopologyConstraint::AffinityOfSeveralTerms,
            Kind::Affinity => TopologyConstraint::Affinity,
            Kind::AntiAffinity => TopologyConstraint::AntiAffinity,
            Kind::Inverse => TopologyConstraint::Inverse,
        };
        let domains = reach.iter().map(|domain| (key.values[domain].clone(), count.of(domain))).collect();
        PoolRefusal::Topology(Box::new(TopologyRefusal { constraint, label: key.label.clone(), domains, is_allowed }))
    }
}
