//! What does each size of a pool leave to pods, and which daemons run there? Found once for all new nodes that list it.

use std::collections::BTreeMap;

use tenon_model::labels::NODEPOOL;
use tenon_model::{AllocatableGroup, CatalogType, NewNode, Pod, Pool, Requirement, Requirements, Resources};

use super::{Checker, is_let_in};

/// Labels that daemons may ask for and that every node has once it takes pods.
const LATER: [&str; 2] = ["karpenter.sh/registered", "karpenter.sh/initialized"];

/// The sizes of a pool, in the order of its catalogue.
pub(super) struct Sizes<'a> {
    sizes: Vec<Size<'a>>,
}

/// A size as a new node of the pool.
pub(super) struct Size<'a> {
    pub(super) size: &'a CatalogType,
    pub(super) daemons: Vec<&'a Pod>,
    /// What the daemons need together.
    pub(super) overhead: Resources,
    /// What pods and daemons can have, and the offerings where they can have it. Where more is kept back than there is, they
    /// can have nothing.
    pub(super) rooms: Vec<AllocatableGroup>,
}

impl<'a> Sizes<'a> {
    /// A size by its name.
    pub(super) fn find(&self, name: &str) -> Option<&Size<'a>> {
        let found = self.sizes.binary_search_by(|known| known.size.name.as_str().cmp(name)).ok()?;
        self.sizes.get(found)
    }
}

impl<'a> Checker<'a> {
    /// The sizes of every pool that the plan makes nodes of.
    pub(super) fn sizes_in_use(&self) -> BTreeMap<&'a str, Sizes<'a>> {
        let mut all = BTreeMap::new();
        for pool in self.plan.new_nodes.iter().filter_map(|node: &NewNode| self.pool(node)) {
            all.entry(pool.name.as_str()).or_insert_with(|| self.sizes_of(pool));
        }
        all
    }

    fn sizes_of(&self, pool: &'a Pool) -> Sizes<'a> {
        let mut own = pool.requirements.clone();
        own.add(NODEPOOL, &Requirement::is(&pool.name));
        LATER.into_iter().for_each(|label| own.add(label, &Requirement::is("true")));
        let may_run = |daemon: &&Pod| self.is_judged(daemon) && is_let_in(daemon, pool.taints.iter());
        let daemons: Vec<&'a Pod> = self.snapshot.daemons.iter().map(AsRef::as_ref).filter(may_run).collect();
        let size = |size: &'a CatalogType| {
            let runs = |wanted: &Requirements| {
                own.meet(wanted, |label| pool.catalog.is_well_known(label)).is_ok()
                    && size.requirements.intersects(wanted)
            };
            let here = daemons.iter().copied().filter(|daemon| daemon.alternatives.iter().any(runs));
            Size::new(size, here.collect())
        };
        Sizes { sizes: pool.catalog.types().iter().map(size).collect() }
    }
}

impl<'a> Size<'a> {
    fn new(size: &'a CatalogType, daemons: Vec<&'a Pod>) -> Size<'a> {
        let mut overhead = Resources::default();
        daemons.iter().for_each(|daemon| overhead.add(&daemon.requests));
        let mut rooms = size.allocatable_groups();
        rooms.retain(|room| room.allocatable.iter().all(|(_, amount)| !amount.is_negative()));
        Size { size, daemons, overhead, rooms }
    }
}
