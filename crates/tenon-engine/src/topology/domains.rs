//! What are pods spread over? The values of a label that nodes have or can be made with.

use tenon_model::{Operator, Requirement, Requirements, Taint, Toleration};

use crate::index::{Bits, DomainIx, NodeIx, Table};

/// A label whose values are domains, and where they are. Of host names nothing is kept: every node is a domain of its own.
#[derive(Debug, Default)]
pub(crate) struct Key {
    pub(crate) label: String,
    pub(crate) is_hostname: bool,
    /// The values, in order: a domain with a lower number comes first by name.
    pub(crate) values: Table<DomainIx, String>,
    /// Values that new nodes can have, by the taints they have then.
    provided: Vec<(Vec<Taint>, Bits<DomainIx>)>,
    /// The value of each node that is there.
    of_node: Table<NodeIx, Option<DomainIx>>,
    /// The nodes of each value.
    nodes: Table<DomainIx, Bits<NodeIx>>,
}

/// What new nodes of a pool can be: its taints, its demands, and the demands of each of its instance types with them.
pub(crate) struct Provider<'p> {
    pub(crate) taints: &'p [Taint],
    pub(crate) demands: &'p Requirements,
    pub(crate) types: Vec<&'p Requirements>,
}

impl Provider<'_> {
    /// Values of a label that its nodes can have.
    fn values(&self, label: &str) -> Vec<String> {
        let listed = |demand: Option<&Requirement>| -> Vec<String> {
            let demand = demand.filter(|demand| demand.operator() == Operator::In);
            demand.map(|demand| demand.values().iter().cloned().collect()).unwrap_or_default()
        };
        let own = self.demands.get(label);
        let mut values = listed(own);
        for of_type in self.types.iter().filter_map(|size| size.get(label)) {
            values.extend(listed(Some(&own.map_or_else(|| of_type.clone(), |own| own.and(of_type)))));
        }
        values.sort_unstable();
        values.dedup();
        values
    }
}

impl Key {
    /// A label that names the node itself.
    pub(crate) fn hostname(label: &str) -> Key {
        Key { label: label.to_owned(), is_hostname: true, ..Key::default() }
    }

    /// The values of a label: of nodes that are there, in their order, and of nodes that can be made.
    pub(crate) fn new<'n>(
        label: &str,
        nodes: impl Iterator<Item = Option<&'n str>> + Clone,
        providers: &[Provider<'_>],
        others: impl Iterator<Item = &'n str>,
    ) -> Key {
        let provided: Vec<(&[Taint], Vec<String>)> =
            providers.iter().map(|provider| (provider.taints, provider.values(label))).collect();
        let mut values: Vec<String> = nodes.clone().flatten().chain(others).map(str::to_owned).collect();
        values.extend(provided.iter().flat_map(|(_, values)| values.iter().cloned()));
        values.sort_unstable();
        values.dedup();
        let values: Table<DomainIx, String> = values.into_iter().collect();
        let mut key = Key { label: label.to_owned(), values, ..Key::default() };
        key.of_node = nodes.map(|value| key.domain(value?)).collect();
        key.nodes = key.values.ids().map(|_| Bits::none(key.of_node.len())).collect();
        for (node, domain) in key.of_node.pairs() {
            domain.iter().for_each(|domain| key.nodes[*domain].insert(node));
        }
        key.provided = provided.into_iter().map(|(taints, values)| (taints.to_vec(), key.bits(&values))).collect();
        key
    }

    fn bits(&self, values: &[String]) -> Bits<DomainIx> {
        let mut bits = Bits::none(self.values.len());
        values.iter().filter_map(|value| self.domain(value)).for_each(|domain| bits.insert(domain));
        bits
    }

    /// The domain of a value.
    pub(crate) fn domain(&self, value: &str) -> Option<DomainIx> {
        self.values.search_by(|known| known.as_str().cmp(value))
    }

    /// The domain of a node that is there.
    pub(crate) fn of_node(&self, node: NodeIx) -> Option<DomainIx> {
        self.of_node[node]
    }

    /// The nodes that are there in a domain.
    pub(crate) fn nodes_of(&self, domain: DomainIx) -> &Bits<NodeIx> {
        &self.nodes[domain]
    }

    /// The nodes that are there in these domains.
    pub(crate) fn nodes_in(&self, domains: &Bits<DomainIx>) -> Bits<NodeIx> {
        let mut nodes = Bits::none(self.of_node.len());
        domains.iter().for_each(|domain| nodes.join(&self.nodes[domain]));
        nodes
    }

    /// Domains that new nodes can be in: all of them, or those of nodes whose taints are tolerated.
    pub(crate) fn provided(&self, tolerations: Option<&[Toleration]>) -> Bits<DomainIx> {
        let mut domains = Bits::none(self.values.len());
        let is_open = |taints: &[Taint]| {
            tolerations.is_none_or(|tolerations| taints.iter().all(|taint| taint.is_tolerated_by(tolerations)))
        };
        self.provided.iter().filter(|(taints, _)| is_open(taints)).for_each(|(_, provided)| domains.join(provided));
        domains
    }

    /// Domains that demands leave: all of them where they do not speak of the label.
    pub(crate) fn left_by(&self, demands: &Requirements) -> Bits<DomainIx> {
        match demands.get(&self.label) {
            None => Bits::all(self.values.len()),
            Some(demand) => Bits::those(self.values.len(), |domain: DomainIx| demand.has(&self.values[domain])),
        }
    }

    /// Domains that a demand names one by one, if it does.
    pub(crate) fn listed_by(&self, demands: &Requirements) -> Option<Bits<DomainIx>> {
        let demand = demands.get(&self.label).filter(|demand| demand.operator() == Operator::In)?;
        let mut listed = Bits::none(self.values.len());
        demand.values().iter().filter_map(|value| self.domain(value)).for_each(|domain| listed.insert(domain));
        Some(listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Id;

    fn values(key: &Key, domains: &Bits<DomainIx>) -> Vec<String> {
        domains.iter().map(|domain| key.values[domain].clone()).collect()
    }

    fn demands(list: &[(&str, Operator, &[&str])]) -> Requirements {
        list.iter()
            .map(|(label, operator, values)| {
                let values = values.iter().map(ToString::to_string);
                ((*label).to_owned(), Requirement::new(*operator, values).unwrap())
            })
            .collect()
    }

    #[test]
    fn domains_come_from_nodes_and_from_what_pools_can_make() {
        let own = demands(&[("zone", Operator::NotIn, &["c"])]);
        let size = demands(&[("zone", Operator::In, &["b", "c", "a"])]);
        let taint = Taint { key: "gpu".to_owned(), value: String::new(), effect: tenon_model::Effect::NoSchedule };
        let tainted = demands(&[("zone", Operator::In, &["d"])]);
        let providers = [
            Provider { taints: &[], demands: &own, types: vec![&size] },
            Provider { taints: &[taint], demands: &tainted, types: Vec::new() },
        ];
        let key = Key::new("zone", [Some("z"), None, Some("a")].into_iter(), &providers, ["gone"].into_iter());
        assert_eq!(values(&key, &Bits::all(5)), ["a", "b", "d", "gone", "z"]);
        assert_eq!(values(&key, &key.provided(None)), ["a", "b", "d"]);
        assert_eq!(values(&key, &key.provided(Some(&[]))), ["a", "b"], "nobody tolerates the taint of d");
        assert_eq!(key.of_node(NodeIx::of(1)), None);
        assert_eq!(key.nodes_in(&Bits::all(5)).iter().count(), 2);
        assert_eq!(values(&key, &key.left_by(&demands(&[("zone", Operator::NotIn, &["a", "z"])]))), ["b", "d", "gone"]);
        assert_eq!(key.listed_by(&own), None);
        assert_eq!(values(&key, &key.listed_by(&tainted).unwrap()), ["d"]);
    }
}
