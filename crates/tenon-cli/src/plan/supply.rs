//! What new nodes are created from: the instance types of a file, the built-in ones, or what the controller itself would
//! choose from.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use kube::Client;
use kube::api::{Api, ListParams};
use tenon_api::instance_types_file::{self, CatalogEntry, OfferingEntry};
use tenon_api::objects::Objects;
use tenon_api::plan_options::PlanOptions;
use tenon_api::planning::EvaluatedOverlays;
use tenon_api::{ProxmoxNodeClass, names, planning};
use tenon_controllers::election::Fence;
use tenon_controllers::provision::{self, Gathered};
use tenon_controllers::status::Estate;
use tenon_model::{InstanceType, Operator, PriceFormula, Requirement, Requirements, Seconds, Snapshot};

use super::collect::Collector;
use super::solve::Files;
use super::{Plan, live, overlays, text};
use crate::cloud_config::CloudConfig;
use crate::controller::{cloud, instance_types};

/// What the arguments say about instance types.
#[derive(Debug)]
pub enum TypeSource {
    /// The instance types of a file, with their offerings.
    File(Vec<CatalogEntry>),
    /// The built-in instance types, in any zone.
    BuiltIn(Vec<InstanceType>),
    /// Instance types, and the Proxmox clusters to create them in.
    Controller(CloudConfig, Vec<InstanceType>),
}

/// What new nodes are created from.
#[derive(Debug)]
pub enum Supply {
    /// One catalogue for every NodePool.
    Catalog(Vec<CatalogEntry>),
    /// What the controller would choose from.
    Proxmox(Proxmox),
}

/// What the controller knows besides objects.
#[derive(Debug, Default)]
pub struct Proxmox {
    /// Instance types.
    pub types: Vec<InstanceType>,
    /// Which hosts the VMs of each NodePool can be created on.
    pub classes: Vec<Arc<ProxmoxNodeClass>>,
    /// The hosts, and what is on them.
    pub estate: Estate,
}

/// When a plan is made, and what was found of NodeOverlays.
struct Seen {
    now: Seconds,
    overlays: Option<EvaluatedOverlays>,
}

impl TypeSource {
    /// Reads the files the arguments name.
    pub fn read(args: &Plan, prices: &PriceFormula) -> anyhow::Result<TypeSource> {
        match (&args.instance_types, &args.cloud_config) {
            (Some(path), _) => {
                let text = text(path, "instance types file", "--instance-types")?;
                let entries = instance_types_file::read_catalog(&text, prices)
                    .with_context(|| format!("cannot use instance types file {}", path.display()))?;
                Ok(TypeSource::File(entries))
            }
            (None, Some(path)) => {
                let types = instance_types(args.instance_types_file.as_deref())?;
                Ok(TypeSource::Controller(cloud(path)?, priced(types.unwrap_or_else(InstanceType::built_in), prices)))
            }
            (None, None) => Ok(TypeSource::BuiltIn(priced(InstanceType::built_in(), prices))),
        }
    }

    /// What is known where there is no cluster.
    pub fn without_cluster(self, notes: &mut Collector) -> anyhow::Result<Supply> {
        match self {
            TypeSource::File(entries) => Ok(Supply::Catalog(entries)),
            TypeSource::BuiltIn(types) => Ok(built_in(&types, notes)),
            TypeSource::Controller(..) => bail!(
                "--cloud-config needs a cluster: its ProxmoxNodeClasses say which hosts a NodePool may use; add \
                 --kubeconfig, or give --instance-types instead of --cloud-config"
            ),
        }
    }

    /// Looks at the cluster and at Proxmox, where that is needed.
    pub async fn look(self, client: &Client, fence: &Fence, notes: &mut Collector) -> anyhow::Result<Supply> {
        let (config, types) = match self {
            TypeSource::File(entries) => return Ok(Supply::Catalog(entries)),
            TypeSource::BuiltIn(types) => return Ok(built_in(&types, notes)),
            TypeSource::Controller(config, types) => (config, types),
        };
        config.notes.iter().for_each(|note| notes.note(format!("cloud config: {note}")));
        let mut regions = BTreeMap::new();
        for region in &config.regions {
            let client = region.client(fence);
            let client =
                client.with_context(|| format!("cannot create the Proxmox client of region {}", region.name))?;
            regions.insert(region.name.clone(), client);
        }
        Ok(Supply::Proxmox(Proxmox::look(client, &regions, types, notes).await?))
    }
}

fn priced(types: Vec<InstanceType>, prices: &PriceFormula) -> Vec<InstanceType> {
    types.into_iter().map(|size| size.priced_by(prices)).collect()
}

/// The controller's built-in instance types. Where no Proxmox is known, each is offered in every zone and region: a node has
/// both labels, with whichever value its pool or its pods require.
fn built_in(types: &[InstanceType], notes: &mut Collector) -> Supply {
    notes.note("--instance-types is not given: using the built-in instance types in any zone, ignoring the capacity of Proxmox hosts");
    Supply::Catalog(types.iter().map(anywhere).collect())
}

fn anywhere(size: &InstanceType) -> CatalogEntry {
    let capacity_type = (names::LABEL_CAPACITY_TYPE.to_owned(), Requirement::is(size.capacity_type.as_str()));
    let mut requirements = size.offered_at(&[]).requirements;
    let mut offered: Requirements = [capacity_type].into_iter().collect();
    for label in [names::LABEL_ZONE, names::LABEL_REGION] {
        let Some(any) = Requirement::new(Operator::Exists, []) else { continue };
        requirements.replace(label.to_owned(), any.clone());
        offered.replace(label.to_owned(), any);
    }
    CatalogEntry {
        name: size.name.clone(),
        capacity: size.capacity.clone(),
        overhead: size.overhead.clone(),
        requirements,
        offerings: vec![OfferingEntry {
            requirements: offered,
            price: size.price().value(),
            available: true,
            reservation_capacity: None,
        }],
        volume_attachment_limits: size.volume_attachment_limits.clone(),
    }
}

impl Proxmox {
    /// Reads ProxmoxNodeClasses and hosts once. A region that does not answer is noted, and its hosts are not used.
    pub async fn look(
        client: &Client,
        regions: &BTreeMap<String, tenon_pve::Client>,
        types: Vec<InstanceType>,
        notes: &mut Collector,
    ) -> anyhow::Result<Proxmox> {
        let classes = Api::<ProxmoxNodeClass>::all(client.clone()).list(&ListParams::default()).await;
        let classes = classes.map_err(|error| live::not_listed("ProxmoxNodeClass", &error))?.items;
        let estate = Estate::look(&regions.clone().into()).await;
        for (region, view) in &estate.regions {
            if let Err(why) = view {
                notes.note(format!("ignored the hosts of region {region}: {why}"));
            }
        }
        Ok(Proxmox { types, classes: classes.into_iter().map(Arc::new).collect(), estate })
    }

    /// The snapshot the controller would take.
    fn to_snapshot(&self, objects: &Objects, options: &PlanOptions, seen: Seen) -> Snapshot {
        let Seen { now, overlays } = seen;
        let gathered = Gathered {
            pods: objects.pods.clone(),
            nodes: objects.nodes.clone(),
            daemons: objects.daemon_sets.clone(),
            pools: objects.node_pools.clone(),
            classes: self.classes.clone(),
            claims: objects.node_claims.clone(),
            related: objects.clone(),
            budgets: objects.disruption_budgets.clone(),
            estate: self.estate.clone(),
            now,
            overlays: overlays.map(Arc::new),
            avoided: Vec::new(),
            options: options.clone(),
            ..Gathered::default()
        };
        provision::to_snapshot(&gathered, &self.types)
    }
}

impl Supply {
    /// Everything as the engine sees it.
    pub fn to_snapshot(&self, objects: &Objects, options: &PlanOptions, now: Seconds) -> Snapshot {
        let overlaid = overlays::evaluated(self, objects, options);
        match self {
            Supply::Catalog(entries) => {
                let catalog = Arc::new(planning::catalog(entries));
                let overlaid = overlays::catalogs(overlaid, &objects.node_pools, &catalog);
                let files = Files { catalog, overlaid };
                planning::to_snapshot(objects, &files, options, now)
            }
            Supply::Proxmox(known) => known.to_snapshot(objects, options, Seen { now, overlays: overlaid }),
        }
    }
}
