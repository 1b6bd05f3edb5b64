//! The plan as plain data, and as JSON and YAML in one exact format.
//!
//! Other programs read it: keys stay, and what is added later is optional.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::disruption_report::DisruptionReport;
use super::{disruption_table, table};

/// The version of the format.
pub const VERSION: u32 = 1;

/// How a plan is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
    /// The same as YAML.
    Yaml,
}

/// What would be created, and what would not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of the format.
    pub version: u32,
    /// Nodes to be created.
    pub new_node_claims: Vec<NewClaim>,
    /// Existing nodes that take pods.
    pub existing_nodes: Vec<ExistingNode>,
    /// Pods that stay pending.
    pub unschedulable: Vec<Unschedulable>,
    /// How much, and how long it took.
    pub stats: Stats,
    /// Which nodes would be disrupted, if that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<DisruptionReport>,
    /// How each workload was planned; only for people.
    #[serde(skip)]
    pub workloads: Vec<String>,
    /// What is wrong with the plan itself; only for people.
    #[serde(skip)]
    pub warnings: Vec<String>,
}

/// A node to be created.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewClaim {
    /// Its pool.
    pub node_pool: String,
    /// Instance types it may have, cheapest first.
    pub instance_types: Vec<String>,
    /// The cheapest offering.
    pub offering: Offering,
    /// Requirements on its labels, without the list of instance types.
    pub requirements: Vec<Demand>,
    /// What its pods need together, daemons included.
    pub requests: BTreeMap<String, String>,
    /// The pods it is created for, as `namespace/name`.
    pub pods: Vec<String>,
}

/// One way to create a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offering {
    /// The instance type.
    pub instance_type: String,
    /// Where; empty where there are no zones.
    pub zone: String,
    /// The capacity type.
    pub capacity_type: String,
    /// What it costs.
    pub price: f64,
}

/// A demand on one label.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Demand {
    /// The label.
    pub key: String,
    /// How its value is compared.
    pub operator: String,
    /// With what, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// How many values must stay possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_values: Option<u32>,
}

/// An existing node that takes pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExistingNode {
    /// The Node, or the NodeClaim of one on its way.
    pub name: String,
    /// Pods that fit there, as `namespace/name`.
    pub pods: Vec<String>,
}

/// A pod that stays pending.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Unschedulable {
    /// The pod, as `namespace/name`.
    pub pod: String,
    /// Why.
    pub reasons: Vec<String>,
    /// Whether it was rejected before planning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,
    /// Whether it waits for reserved capacity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferred: bool,
}

/// How much, and how long it took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Pods that were planned.
    pub pods: usize,
    /// Nodes to be created.
    pub nodes: usize,
    /// What they cost together, each at its cheapest.
    pub cost: f64,
    /// How long solving took.
    pub solve_micros: u64,
    /// How long it took to prepare.
    pub build_micros: u64,
    /// How long reading took.
    pub load_micros: u64,
}

impl Report {
    /// A report in its one order: pods sorted, and the sums in the statistics those of its lists. `pods` is how many were
    /// planned.
    pub fn settled(mut self, pods: usize) -> Report {
        self.version = VERSION;
        self.new_node_claims.iter_mut().for_each(|claim| claim.pods.sort());
        self.existing_nodes.retain(|node| !node.pods.is_empty());
        self.existing_nodes.iter_mut().for_each(|node| node.pods.sort());
        self.existing_nodes.sort_by(|a, b| a.name.cmp(&b.name));
        self.unschedulable.sort_by(|a, b| a.pod.cmp(&b.pod));
        self.stats.pods = pods;
        self.stats.nodes = self.new_node_claims.len();
        // Not `sum`: the sum of no prices at all would be minus nothing.
        self.stats.cost = self.new_node_claims.iter().fold(0.0, |cost, claim| cost + claim.offering.price);
        self
    }

    /// Prints it.
    pub fn print(&self, output: Output, out: &mut dyn Write) -> io::Result<()> {
        match output {
            Output::Table => match &self.disruption {
                Some(disruption) => out.write_all(disruption_table::page(disruption).as_bytes()),
                None => out.write_all(table::page(self).as_bytes()),
            },
            Output::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
            Output::Yaml => {
                let text = serde_saphyr::to_string(self).map_err(io::Error::other)?;
                out.write_all(text.as_bytes())
            }
        }
    }
}

impl Default for Report {
    fn default() -> Report {
        Report {
            version: VERSION,
            new_node_claims: Vec::new(),
            existing_nodes: Vec::new(),
            unschedulable: Vec::new(),
            stats: Stats::default(),
            disruption: None,
            workloads: Vec::new(),
            warnings: Vec::new(),
        }
    }
}
