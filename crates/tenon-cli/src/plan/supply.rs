//! What new nodes are made of: the sizes of a file, or what the controller itself would choose from.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use kube::Client;
use kube::api::{Api, ListParams};
use tenon_api::instance_types_file::{self, CatalogEntry};
use tenon_api::objects::Objects;
use tenon_api::plan_options::PlanOptions;
use tenon_api::{ProxmoxNodeClass, planning};
use tenon_controllers::election::Fence;
use tenon_controllers::provision::{self, Gathered};
use tenon_controllers::status::Estate;
use tenon_model::{InstanceType, Seconds, Snapshot};

use super::collect::Collector;
use super::solve::Files;
use super::{Plan, live, text};
use crate::cloud_config::CloudConfig;
use crate::controller::{cloud, sizes};

/// What the arguments say about sizes.
#[derive(Debug)]
pub enum Sizes {
    /// Sizes with what is offered of them.
    File(Vec<CatalogEntry>),
    /// Sizes, and the Proxmox clusters to make them in.
    Controller(CloudConfig, Vec<InstanceType>),
}

/// What new nodes are made of.
#[derive(Debug)]
pub enum Supply {
    /// One catalogue for every pool.
    Catalog(Vec<CatalogEntry>),
    /// What the controller would choose from.
    Proxmox(Proxmox),
}

/// What the controller knows besides objects.
#[derive(Debug, Default)]
pub struct Proxmox {
    /// Sizes of VMs.
    pub types: Vec<InstanceType>,
    /// Which hosts each pool's VMs can be made on.
    pub classes: Vec<Arc<ProxmoxNodeClass>>,
    /// The hosts, and what is on them.
    pub estate: Estate,
}

impl Sizes {
    /// Reads the files the arguments name.
    pub fn read(args: &Plan) -> anyhow::Result<Sizes> {
        match (&args.instance_types, &args.cloud_config) {
            (Some(path), _) => {
                let text = text(path, "instance types", "--instance-types")?;
                let entries = instance_types_file::read_catalog(&text)
                    .with_context(|| format!("cannot use the instance types {}", path.display()))?;
                Ok(Sizes::File(entries))
            }
            (None, Some(path)) => {
                let types = sizes(args.instance_types_file.as_deref())?;
                Ok(Sizes::Controller(cloud(path)?, types.unwrap_or_else(InstanceType::built_in)))
            }
            (None, None) => bail!(
                "no instance types are given: name a file with --instance-types, or a cluster and its Proxmox with \
                 --kubeconfig and --cloud-config"
            ),
        }
    }

    /// What is known where there is no cluster.
    pub fn without_cluster(self) -> anyhow::Result<Supply> {
        match self {
            Sizes::File(entries) => Ok(Supply::Catalog(entries)),
            Sizes::Controller(..) => bail!(
                "which hosts a pool may use stands in the cluster: name it with --kubeconfig, or give sizes with \
                 --instance-types instead of --cloud-config"
            ),
        }
    }

    /// Looks at the cluster and at Proxmox, where that is needed.
    pub async fn look(self, client: &Client, fence: &Fence, notes: &mut Collector) -> anyhow::Result<Supply> {
        let (config, types) = match self {
            Sizes::File(entries) => return Ok(Supply::Catalog(entries)),
            Sizes::Controller(config, types) => (config, types),
        };
        config.notes.iter().for_each(|note| notes.note(format!("cloud config: {note}")));
        let mut regions = BTreeMap::new();
        for region in &config.regions {
            let made = region.client(fence);
            let made = made.with_context(|| format!("cannot make a client for region {}", region.name))?;
            regions.insert(region.name.clone(), made);
        }
        Ok(Supply::Proxmox(Proxmox::look(client, &regions, types, notes).await?))
    }
}

impl Proxmox {
    /// Looks at classes and hosts once. A region that does not answer is told, and its hosts are not planned with.
    pub async fn look(
        client: &Client,
        regions: &BTreeMap<String, tenon_pve::Client>,
        types: Vec<InstanceType>,
        notes: &mut Collector,
    ) -> anyhow::Result<Proxmox> {
        let classes = Api::<ProxmoxNodeClass>::all(client.clone()).list(&ListParams::default()).await;
        let classes = classes.map_err(|error| live::not_listed("ProxmoxNodeClass", error))?.items;
        let estate = Estate::look(regions).await;
        for (region, view) in &estate.regions {
            if let Err(why) = view {
                notes.note(format!("region {region} cannot be planned with: {why}"));
            }
        }
        Ok(Proxmox { types, classes: classes.into_iter().map(Arc::new).collect(), estate })
    }

    /// The snapshot the controller would make.
    fn to_snapshot(&self, objects: &Objects, options: &PlanOptions, now: Seconds) -> Snapshot {
        let gathered = Gathered {
            pods: objects.pods.clone(),
            nodes: objects.nodes.clone(),
            daemons: objects.daemon_sets.clone(),
            pools: objects.node_pools.clone(),
            classes: self.classes.clone(),
            claims: objects.node_claims.clone(),
            services: objects.services.clone(),
            budgets: objects.disruption_budgets.clone(),
            estate: self.estate.clone(),
            now,
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
        match self {
            Supply::Catalog(entries) => {
                let files = Files { catalog: Arc::new(planning::catalog(entries)) };
                planning::to_snapshot(objects, &files, options, now)
            }
            Supply::Proxmox(known) => known.to_snapshot(objects, options, now),
        }
    }
}
