//! How are VMs distributed over hosts? What a ProxmoxNodeClass says of it, and what that means for a plan.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{HostStrategy, Resources};

use crate::quantity::{quantity_of, read_amount};

/// The pattern of a quantity in every Kubernetes schema, without a minus.
const NOT_NEGATIVE: &str =
    r"^\+?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// How VMs are distributed over zones and hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.goal) || !has(self.hosts) || (self.goal == 'SpreadHosts' && self.hosts == 'Spread')",
    "message": "goal chooses hosts itself: leave hosts unset, or set Spread with SpreadHosts",
}]))]
#[serde(rename_all = "camelCase")]
pub struct PlacementStrategy {
    /// How a host, which is a zone, is chosen if `hosts` is unset. Balanced: the host of which the smallest share is in
    /// use with the new VM on it; the larger of its shares of CPU and memory counts, and what guests may use at most counts
    /// as used. AvailabilityFirst: the host with the most free memory. Default Balanced.
    #[serde(default)]
    pub zone_balance: ZoneBalance,
    /// Tenon extension: which host is chosen among those with enough free capacity. Spread: the host with the fewest
    /// VMs of the NodePool. MaxMemory: the most free memory. MaxCPU: the most free CPU. BalancedLoad: the lowest measured
    /// load of CPU and memory. RoundRobin: each host in turn, by name. Unset: as `zoneBalance` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HostChoice")]
    pub hosts: Option<HostChoice>,
    /// Tenon extension: what nodes are moved between hosts for, when nothing else is left to disrupt. PackHosts: VMs of Tenon are
    /// on as few hosts as possible; a new VM is created on the host with the most of them. SpreadHosts: the nodes of each
    /// NodePool are evenly distributed over hosts, as with `hosts: Spread`. Each node that moves is replaced first, at no higher
    /// price. Unset: nodes stay on their hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HostGoal")]
    pub goal: Option<HostGoal>,
    /// Tenon extension: CPU and memory that must stay free on a host after a VM of this class is created there. A host on
    /// which less would stay free is not used. Existing VMs stay where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_available: Option<MinAvailable>,
    /// Tenon extension: hosts on which no VM of this class is created, by name, in every region. Existing VMs stay where they
    /// are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(regex(pattern = r"^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$")))]
    pub excluded_hosts: Option<Vec<String>>,
}

/// Which host is chosen among those with enough free capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HostChoice {
    /// The host with the fewest VMs of the NodePool.
    Spread,
    /// The host with the most free memory.
    MaxMemory,
    /// The host with the most free CPU.
    MaxCPU,
    /// The host with the lowest load.
    BalancedLoad,
    /// Each host in turn.
    RoundRobin,
}

/// What nodes are moved between hosts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HostGoal {
    /// As few hosts as possible have VMs.
    PackHosts,
    /// All hosts have as many VMs of each NodePool.
    SpreadHosts,
}

/// How zones are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ZoneBalance {
    /// Evenly.
    #[default]
    Balanced,
    /// Any zone with free capacity.
    AvailabilityFirst,
}

/// What must stay free on a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MinAvailable {
    /// Cores, such as `4` or `500m`, of those that may be given to VMs.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amount")]
    #[schemars(schema_with = "amount")]
    pub cpu: Option<IntOrString>,
    /// Memory, such as `16Gi`, of what may be given to VMs.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amount")]
    #[schemars(schema_with = "amount")]
    pub memory: Option<IntOrString>,
}

/// The schema of an amount that is at least nothing.
fn amount(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "pattern": NOT_NEGATIVE, "minimum": 0, "x-kubernetes-int-or-string": true })
}

impl PlacementStrategy {
    /// Which host a plan prefers: the goal counts before what is said of hosts, and that before what is said of zones.
    pub fn strategy(&self) -> HostStrategy {
        match self.goal() {
            Some(tenon_model::HostGoal::Pack) => return HostStrategy::Pack,
            Some(tenon_model::HostGoal::Spread) => return HostStrategy::Spread,
            None => {}
        }
        match (self.hosts, self.zone_balance) {
            (Some(HostChoice::Spread), _) => HostStrategy::Spread,
            (Some(HostChoice::MaxMemory), _) | (None, ZoneBalance::AvailabilityFirst) => HostStrategy::MaxMemory,
            (Some(HostChoice::MaxCPU), _) => HostStrategy::MaxCpu,
            (Some(HostChoice::BalancedLoad), _) => HostStrategy::BalancedLoad,
            (Some(HostChoice::RoundRobin), _) => HostStrategy::RoundRobin,
            (None, ZoneBalance::Balanced) => HostStrategy::Balanced,
        }
    }

    /// What nodes are moved between hosts for, if they are.
    pub fn goal(&self) -> Option<tenon_model::HostGoal> {
        Some(match self.goal? {
            HostGoal::PackHosts => tenon_model::HostGoal::Pack,
            HostGoal::SpreadHosts => tenon_model::HostGoal::Spread,
        })
    }

    /// Cores and memory that must stay free. What is no amount says nothing: the API server would not have taken it.
    pub fn min_available(&self) -> Resources {
        let written = self.min_available.iter().flat_map(|kept| [(CPU, &kept.cpu), (MEMORY, &kept.memory)]);
        written.filter_map(|(resource, amount)| Some((resource, quantity_of(amount.as_ref()?)?))).collect()
    }

    /// Whether a host is never used. Names of hosts are names in DNS, so upper and lower case are the same.
    pub fn excludes(&self, host: &str) -> bool {
        self.excluded_hosts.iter().flatten().any(|excluded| excluded.eq_ignore_ascii_case(host))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> PlacementStrategy {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_said_of_hosts_counts_before_what_is_said_of_zones() {
        let of = |value| read(value).strategy();
        assert_eq!(of(json!({})), HostStrategy::Balanced);
        assert_eq!(of(json!({ "zoneBalance": "AvailabilityFirst" })), HostStrategy::MaxMemory);
        assert_eq!(of(json!({ "zoneBalance": "AvailabilityFirst", "hosts": "Spread" })), HostStrategy::Spread);
        assert_eq!(of(json!({ "zoneBalance": "Balanced", "hosts": "MaxCPU" })), HostStrategy::MaxCpu);
    }

    #[test]
    fn a_goal_chooses_the_host_of_new_vms_too() {
        let of = |value| read(value).strategy();
        assert_eq!(of(json!({ "goal": "PackHosts", "zoneBalance": "AvailabilityFirst" })), HostStrategy::Pack);
        assert_eq!(of(json!({ "goal": "SpreadHosts" })), HostStrategy::Spread);
        assert_eq!(of(json!({ "goal": "SpreadHosts", "hosts": "Spread" })), HostStrategy::Spread);
        assert_eq!(read(json!({ "hosts": "Spread" })).goal(), None);
    }

    #[test]
    fn amounts_that_stay_free_may_be_numbers_or_quantities() {
        let kept = read(json!({ "minAvailable": { "cpu": 2, "memory": "16Gi" } })).min_available();
        assert_eq!((kept.get(CPU).to_string(), kept.get(MEMORY).to_string()), ("2".to_owned(), "16Gi".to_owned()));
        assert_eq!(read(json!({ "minAvailable": { "cpu": "500m" } })).min_available().get(MEMORY).value(), 0);
        assert_eq!(read(json!({})).min_available(), Resources::default());
    }

    #[test]
    fn a_host_is_excluded_by_its_whole_name() {
        let strategy = read(json!({ "excludedHosts": ["pve1", "PVE-2"] }));
        assert!(strategy.excludes("pve1") && strategy.excludes("pve-2"));
        assert!(!strategy.excludes("pve10") && !strategy.excludes("pve"));
    }
}
