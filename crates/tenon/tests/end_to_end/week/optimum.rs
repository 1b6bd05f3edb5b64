//! What would the pods of one moment cost on nodes that were chosen for them alone? The engine's plan from nothing, on hosts without
//! a limit, and a bound that no choice of nodes can go below.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tenon_api::objects::{Kind, Objects};
use tenon_api::plan_options::PlanOptions;
use tenon_api::planning::{Surroundings, to_snapshot};
use tenon_api::{ClassSizes, NodeClaim, NodePool, ProxmoxNodeClass};
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{CapacityType, Catalog, InstanceType, Place, PriceFormula, Quantity, Resources, Seconds};

use super::load::App;

/// What nodes can be made from.
pub(crate) struct Market {
    pools: Vec<Arc<NodePool>>,
    daemons: Value,
    catalog: Arc<Catalog>,
}

/// What pods cost at best.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Optimum {
    /// What the nodes of a plan from nothing cost an hour.
    pub(crate) planned: f64,
    /// What no nodes can go below.
    pub(crate) bound: f64,
    pub(crate) nodes: usize,
}

impl Surroundings for Market {
    fn catalog(&self, _pool: &NodePool) -> Arc<Catalog> {
        self.catalog.clone()
    }

    fn not_ready(&self, _pool: &NodePool) -> Option<String> {
        None
    }

    fn expected(&self, _claim: &NodeClaim) -> Option<(Resources, Resources)> {
        None
    }
}

impl Market {
    /// The pools of a cluster, with the sizes that its only class has on these hosts.
    pub(crate) async fn of(client: &Client, hosts: &[String], daemons: Value) -> anyhow::Result<Market> {
        let pools = Api::<NodePool>::all(client.clone()).list(&ListParams::default()).await?.items;
        let class = Api::<ProxmoxNodeClass>::all(client.clone()).get("default").await?;
        let place = |host: &String| anyhow::Ok(Place { region: "lab".to_owned(), host: host.parse()? });
        let places: Vec<Place> = hosts.iter().map(place).collect::<anyhow::Result<_>>()?;
        let sizes = ClassSizes::of(&class.spec);
        let types = InstanceType::built_in();
        let offered = types.iter().map(|size| {
            let mut offered = sizes.of_type(size).offered_at(&places);
            // A way without a place has no limit.
            offered.offerings.iter_mut().for_each(|way| way.place = None);
            offered
        });
        let catalog = Catalog::new(offered.collect());
        Ok(Market { pools: pools.into_iter().map(Arc::new).collect(), daemons, catalog: Arc::new(catalog) })
    }

    /// What an hour of an instance type costs.
    pub(crate) fn prices() -> BTreeMap<String, f64> {
        InstanceType::built_in().into_iter().map(|size| (size.name.clone(), size.price().value())).collect()
    }

    /// For so many pods of each workload.
    pub(crate) fn optimum(&self, wanted: &[(&App, u64)]) -> anyhow::Result<Optimum> {
        let mut objects = Objects { node_pools: self.pools.clone(), ..Objects::default() };
        objects.add(Kind::DaemonSet.read(self.daemons.clone())?.settled()?);
        for (app, count) in wanted {
            for number in 0..*count {
                objects.add(Kind::Pod.read(pod(app, number))?.settled()?);
            }
        }
        objects.sort();
        let snapshot = to_snapshot(&objects, self, &PlanOptions::default(), Seconds(1_794_700_000));
        let plan = tenon_engine::plan(&snapshot);
        anyhow::ensure!(plan.unplaced.is_empty(), "the plan from nothing leaves out {:?}", plan.unplaced.first());
        let planned = plan.new_nodes.iter().map(|node| node.chosen.price.value()).sum();
        Ok(Optimum { planned, bound: bound(wanted), nodes: plan.new_nodes.len() })
    }
}

/// What all cores and all memory that pods ask for cost together, as if nodes came in every size and kept nothing for themselves.
fn bound(wanted: &[(&App, u64)]) -> f64 {
    let sum = |amount: fn(&App) -> u64| -> i64 {
        wanted.iter().map(|(app, count)| i64::try_from(amount(app) * count).unwrap_or_default()).sum()
    };
    let all = Resources::default()
        .with(CPU, Quantity::milli(sum(|app| app.cpu_m)))
        .with(MEMORY, Quantity::whole(sum(|app| app.memory_mib << 20)));
    PriceFormula::default().price(&all, CapacityType::OnDemand).value()
}

fn pod(app: &App, number: u64) -> Value {
    let name = format!("{}-{number}", app.name);
    let mut spec = app.pod();
    spec["containers"] = json!([{ "name": "c", "image": "i", "resources": app.container()["resources"] }]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "work", "uid": name, "labels": { "app": app.name },
            "creationTimestamp": "2026-11-01T00:00:00Z",
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app.name, "uid": app.name, "controller": true }],
        },
        "spec": spec,
        "status": { "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" },
        ] },
    })
}
