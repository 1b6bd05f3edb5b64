//! Which domains are asked for on a node, and where is a pod counted? Constraints of the pod, and of pods that must not be with
//! it, all have a say.

use super::Work;
use crate::base::Step;
use crate::index::{AskIx, Bits, CatalogIx, GroupIx, KeyIx, NodeIx, OpenIx, PodClassIx, StateIx, TemplateIx, ViewIx};
use crate::topology::{Allowed, Kind, Picked, Spot, combined, of_key, valid};

impl Work<'_> {
    /// What is put to nodes of a state, in the order it is tried. Nothing if no domain is left, or labels do not fit.
    pub(crate) fn effective_asks(&mut self, step: &Step, template: TemplateIx, state: StateIx) -> Vec<AskIx> {
        if step.keys.is_empty() {
            return step.asks().to_vec();
        }
        let asks = step.asks().iter().flat_map(|ask| self.in_domains(step, *ask, (template, state))).collect();
        self.refused.grow(self.memo.asks_known(self.base));
        asks
    }

    /// An ask in every way to take domains.
    fn in_domains(&mut self, step: &Step, ask: AskIx, (template, state): (TemplateIx, StateIx)) -> Vec<AskIx> {
        let catalog = self.base.templates[template].catalog;
        let demand = self.base.classes.asks[ask].demand;
        let Some(merged) = self.memo.merge(self.base, catalog, state, demand) else { return Vec::new() };
        let mut ways = Vec::with_capacity(step.keys.len());
        for (key, views) in &step.keys {
            let of_key = self.ways(views, (catalog, *key), merged);
            if of_key.is_empty() {
                return Vec::new();
            }
            ways.push((*key, of_key));
        }
        let picked = combined(ways).into_iter();
        picked.map(|picked| self.effective_ask(ask, (catalog, merged), picked)).collect()
    }

    /// Ways to take domains of one label on nodes of a state.
    fn ways(&mut self, views: &[ViewIx], at: (CatalogIx, KeyIx), state: StateIx) -> Vec<Bits<crate::index::DomainIx>> {
        views.iter().for_each(|view| self.refresh(*view));
        let left = &self.memo.domains_left(self.base, at, state).left;
        let topology = &self.base.topology;
        let allowed = views.iter().filter_map(|view| {
            let group = topology.views[*view].group;
            let (_, valid) = self.valid[*view].as_ref()?;
            Some(Allowed { kind: topology.groups[group].kind, count: &self.counts.groups[group], valid })
        });
        let mut ways = of_key(&allowed.collect::<Vec<_>>(), left);
        if ways.len() > 1 {
            let first = self.ties.first_of(ways.len(), self.choices);
            ways.rotate_left(first);
            self.choices += 1;
        }
        ways
    }

    /// Finds out anew what a constraint allows, if anything was counted since.
    fn refresh(&mut self, view: ViewIx) {
        let seen = &self.base.topology.views[view];
        let (group, count) = (&self.base.topology.groups[seen.group], &self.counts.groups[seen.group]);
        if self.valid[view].as_ref().is_none_or(|(version, _)| *version != count.version) {
            self.valid[view] = Some((count.version, valid(group.kind, seen, count)));
        }
    }

    /// The ask with these domains. What the state demands anyway need not be asked for.
    fn effective_ask(&mut self, ask: AskIx, (catalog, state): (CatalogIx, StateIx), picked: Picked) -> AskIx {
        let mut is_new = |(key, domains): &(KeyIx, Bits<_>)| {
            let known = self.memo.domains_left(self.base, (catalog, *key), state);
            !known.is_listed || known.left != *domains
        };
        let mut narrowing: Picked = Vec::with_capacity(picked.len());
        for pick in picked {
            if is_new(&pick) {
                narrowing.push(pick);
            }
        }
        if narrowing.is_empty() { ask } else { self.memo.with_domains(self.base, ask, narrowing) }
    }

    /// Nodes that are there which every constraint allows. All of them, if there is no constraint.
    pub(super) fn allowed_nodes(&mut self, step: &Step) -> Option<Bits<NodeIx>> {
        if step.keys.is_empty() && step.hosts.is_empty() {
            return None;
        }
        let mut nodes: Bits<NodeIx> = Bits::all(self.base.nodes.nodes.len());
        for (key, views) in &step.keys {
            for view in views {
                self.refresh(*view);
                let valid = self.valid[*view].as_ref().map(|(_, valid)| &valid.domains);
                let allowed = valid.map(|domains| self.base.topology.keys[*key].nodes_in(domains));
                nodes.keep(&allowed.unwrap_or_default());
            }
        }
        for view in &step.hosts {
            let seen = &self.base.topology.views[*view];
            let by_node = &self.counts.groups[seen.group].nodes;
            match self.of_hosts(*view) {
                OfHosts::Anywhere => {}
                OfHosts::Nowhere => return Some(Bits::none(self.base.nodes.nodes.len())),
                OfHosts::WithPods => nodes.keep(&by_node.hit),
                OfHosts::WithoutPods => nodes.drop_all(&by_node.hit),
                OfHosts::NotFull => nodes.drop_all(if seen.selects_self { &by_node.full } else { &by_node.over }),
            }
        }
        Some(nodes)
    }

    /// Takes planned nodes out that constraints on host names do not allow.
    pub(super) fn keep_allowed_open(&self, step: &Step, nodes: &mut Bits<OpenIx>) {
        for view in &step.hosts {
            let seen = &self.base.topology.views[*view];
            let by_node = &self.counts.groups[seen.group].open;
            match self.of_hosts(*view) {
                OfHosts::Anywhere => {}
                OfHosts::Nowhere => *nodes = Bits::default(),
                OfHosts::WithPods => nodes.keep(&by_node.hit),
                OfHosts::WithoutPods => nodes.drop_all(&by_node.hit),
                OfHosts::NotFull => nodes.drop_all(if seen.selects_self { &by_node.full } else { &by_node.over }),
            }
        }
    }

    /// Whether constraints on host names allow a node without pods. One that does not is returned.
    pub(crate) fn host_in_the_way(&self, step: &Step) -> Option<ViewIx> {
        let is_in_the_way = |view: &ViewIx| matches!(self.of_hosts(*view), OfHosts::WithPods | OfHosts::Nowhere);
        step.hosts.iter().copied().find(is_in_the_way)
    }

    /// What a constraint on host names allows.
    fn of_hosts(&self, view: ViewIx) -> OfHosts {
        let seen = &self.base.topology.views[view];
        let count = &self.counts.groups[seen.group];
        match self.base.topology.groups[seen.group].kind {
            Kind::Spread { .. } => OfHosts::NotFull,
            Kind::AntiAffinity | Kind::Inverse => OfHosts::WithoutPods,
            Kind::Affinity if count.is_on_some_host() => OfHosts::WithPods,
            Kind::Affinity if seen.selects_self => OfHosts::Anywhere,
            Kind::Affinity => OfHosts::Nowhere,
        }
    }

    /// Counts a pod that was put on a node that is there.
    pub(super) fn count_on_node(&mut self, class: PodClassIx, node: NodeIx) {
        let (class, topology) = (&self.base.classes.classes[class], &self.base.topology);
        for group in class.counted_in.iter().chain(&class.repels) {
            let key = &topology.keys[topology.groups[*group].key];
            if !topology.counts_node(*group, node) {
                continue;
            }
            let count = &mut self.counts.groups[*group];
            if key.is_hostname {
                count.add_on_node(node);
                self.journal.note(*group, Spot::Node(node));
            } else if let Some(domain) = key.of_node(node) {
                count.add(domain);
                self.journal.note(*group, Spot::Domain(domain));
            }
        }
    }

    /// Counts a pod that was put on a planned node: where only one domain is left to it; pods that keep others away, or are kept
    /// away from, in every domain that is left.
    pub(super) fn count_on_open(&mut self, class: PodClassIx, node: OpenIx) {
        let class = &self.base.classes.classes[class];
        for group in class.counted_in.iter().chain(&class.repels) {
            self.count_one(*group, node);
        }
    }

    fn count_one(&mut self, number: GroupIx, node: OpenIx) {
        let base = self.base;
        let group = &base.topology.groups[number];
        let (template, state) = self.open.state_of(node);
        if !self.memo.counts_open(base, number, (template, state)) {
            return;
        }
        let count = &mut self.counts.groups[number];
        if base.topology.keys[group.key].is_hostname {
            count.add_on_open(node);
            self.journal.note(number, Spot::Open);
            return;
        }
        let known = self.memo.domains_left(base, (base.templates[template].catalog, group.key), state);
        let is_one = known.left.iter().nth(1).is_none();
        if known.is_listed && (is_one || matches!(group.kind, Kind::AntiAffinity | Kind::Inverse)) {
            for domain in known.left.iter() {
                count.add(domain);
                self.journal.note(number, Spot::Domain(domain));
            }
        }
    }
}

/// What a constraint on host names allows.
enum OfHosts {
    Anywhere,
    Nowhere,
    /// Only nodes with pods of the group.
    WithPods,
    /// Only nodes without.
    WithoutPods,
    /// Only nodes that have fewer than they may have.
    NotFull,
}
