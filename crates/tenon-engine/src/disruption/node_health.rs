//! Which broken nodes are deleted at once, as Karpenter did before version 1.15?
//!
//! Nothing comes for such a node first, and nothing holds it: no budget, no annotation, no PodDisruptionBudget. Only where too
//! many nodes are broken, none is deleted. The method that replaces nodes first is in `repair`.

use std::fmt;

use tenon_model::{Timestamp, Unhealthy};

/// More broken nodes than this share have a cause that new nodes would share. At least one may be broken.
const UNHEALTHY_MOST_PERCENT: u32 = 20;

/// A Node as far as its health goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeHealth {
    /// Its name.
    pub name: String,
    /// Its pool, by its own label.
    pub pool: Option<String>,
    /// Its conditions that mean that it is broken.
    pub unhealthy: Vec<Unhealthy>,
    /// Its NodeClaim, if exactly one is its own and Tenon may delete it.
    pub claim: Option<HealthClaim>,
}

/// The NodeClaim of a Node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HealthClaim {
    /// Its pool, by its own label.
    pub pool: Option<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
}

/// What is done with a broken node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthVerdict {
    /// It has time until then.
    Tolerated {
        /// What is wrong with it.
        unhealthy: Unhealthy,
        /// Until when.
        until: Timestamp,
    },
    /// Too many others are broken.
    Blocked(TooManyUnhealthy),
    /// It is deleted.
    Delete {
        /// What is wrong with it.
        unhealthy: Unhealthy,
    },
}

/// Too many nodes are broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooManyUnhealthy {
    /// In this pool; in the whole cluster if there is none.
    pub pool: Option<String>,
    /// How many are.
    pub unhealthy: u32,
    /// Of how many.
    pub total: u32,
    /// How many may be.
    pub most: u32,
}

impl fmt::Display for TooManyUnhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooManyUnhealthy { pool, unhealthy, total, most } = self;
        let of = pool.as_ref().map_or("the cluster".to_owned(), |pool| format!("NodePool {pool}"));
        write!(
            f,
            "{unhealthy} of {total} nodes of {of} are unhealthy, and nodes are repaired only up to {most} \
             ({UNHEALTHY_MOST_PERCENT}%); find the common cause"
        )
    }
}

/// What is done with each broken node that has a NodeClaim, by its name.
pub fn judge_node_health(nodes: &[NodeHealth], now: Timestamp) -> Vec<(String, HealthVerdict)> {
    let broken = nodes.iter().filter_map(|node| {
        let claim = node.claim.as_ref().filter(|claim| !claim.is_deleting)?;
        let (unhealthy, until) = first_due(&node.unhealthy)?;
        let verdict = match (until > now, too_many(nodes, claim.pool.as_deref())) {
            (true, _) => HealthVerdict::Tolerated { unhealthy, until },
            (false, Some(too_many)) => HealthVerdict::Blocked(too_many),
            (false, None) => HealthVerdict::Delete { unhealthy },
        };
        Some((node.name.clone(), verdict))
    });
    broken.collect()
}

/// Of several faults the one whose time is over first. A young node has no more time than an old one.
fn first_due(faults: &[Unhealthy]) -> Option<(Unhealthy, Timestamp)> {
    let faults = faults.iter().map(|fault| (fault, fault.tolerated_until(None)));
    let first = faults.min_by_key(|(fault, until)| (*until, &fault.condition, &fault.status));
    first.map(|(fault, until)| (fault.clone(), until))
}

/// Whether too many nodes of a pool, or of the cluster, are broken, however long each has been.
fn too_many(nodes: &[NodeHealth], pool: Option<&str>) -> Option<TooManyUnhealthy> {
    let (mut total, mut unhealthy) = (0_u32, 0_u32);
    for node in nodes.iter().filter(|node| pool.is_none() || node.pool.as_deref() == pool) {
        total += 1;
        unhealthy += u32::from(!node.unhealthy.is_empty());
    }
    let most = total.saturating_mul(UNHEALTHY_MOST_PERCENT).div_ceil(100);
    (unhealthy > most).then(|| TooManyUnhealthy { pool: pool.map(str::to_owned), unhealthy, total, most })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_model::{RepairPolicies, SaidCondition, Seconds};

    const NOW: i64 = 10_000;

    fn node(name: &str, pool: Option<&str>, sick_s: &[i64]) -> NodeHealth {
        let policies = RepairPolicies::default();
        let fault = |ago: &i64| {
            let since = Timestamp::from(Seconds(NOW - ago));
            let said = SaidCondition { condition: "Ready", status: "Unknown", reason: "", since };
            policies.matches(&said).remove(0)
        };
        let pool = pool.map(str::to_owned);
        let claim = Some(HealthClaim { pool: pool.clone(), is_deleting: false });
        NodeHealth { name: name.to_owned(), pool, unhealthy: sick_s.iter().map(fault).collect(), claim }
    }

    fn healthy(count: usize, pool: Option<&str>) -> Vec<NodeHealth> {
        (0..count).map(|number| node(&format!("h{number}"), pool, &[])).collect()
    }

    fn told(nodes: &[NodeHealth]) -> String {
        let now = Timestamp::from(Seconds(NOW));
        let words = judge_node_health(nodes, now).into_iter().map(|(name, verdict)| match verdict {
            HealthVerdict::Tolerated { until, .. } => format!("{name} until {}", until.seconds().0 - NOW),
            HealthVerdict::Blocked(why) => format!("{name}: {why}"),
            HealthVerdict::Delete { unhealthy } => format!("{name} deleted: {}", unhealthy.condition),
        });
        words.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn i1_a_broken_node_is_deleted_once_its_time_is_over_and_the_nearest_condition_counts() {
        assert_eq!(told(&[node("a", Some("web"), &[899])]), "a until 1");
        assert_eq!(told(&[node("a", Some("web"), &[900])]), "a deleted: Ready");
        assert_eq!(told(&[node("a", Some("web"), &[60, 901])]), "a deleted: Ready");
        assert_eq!(told(&healthy(3, Some("web"))), "");
    }

    #[test]
    fn i1_a_node_without_a_claim_of_its_own_or_whose_claim_goes_is_left_alone() {
        let foreign = NodeHealth { claim: None, ..node("a", Some("web"), &[1000]) };
        let mut going = node("b", Some("web"), &[1000]);
        going.claim = Some(HealthClaim { is_deleting: true, ..HealthClaim::default() });
        assert_eq!(told(&[foreign, going]), "");
    }

    #[test]
    fn i1_up_to_a_fifth_of_a_pool_rounded_up_may_be_broken_for_however_long() {
        // Threshold ceil(20 %): 1→1, 3→1, 5→1, 6→2, 10→2.
        for (total, most) in [(1, 1), (3, 1), (5, 1), (6, 2), (10, 2)] {
            let nodes = |broken: usize| {
                let mut nodes = healthy(total - broken, Some("web"));
                nodes.push(node("a", Some("web"), &[1000]));
                nodes.extend((1..broken).map(|number| node(&format!("b{number}"), Some("web"), &[5])));
                nodes.extend(healthy(50, Some("other")));
                told(&nodes)
            };
            assert!(nodes(most).contains("a deleted"), "{most} of {total}");
            if total > most {
                assert!(nodes(most + 1).contains(&format!("a: {} of {total} nodes of NodePool web", most + 1)));
            }
        }
    }

    #[test]
    fn i1_a_claim_without_a_pool_is_judged_by_all_nodes_of_the_cluster() {
        let mut nodes = healthy(8, Some("web"));
        nodes.push(node("a", None, &[1000]));
        assert_eq!(told(&nodes), "a deleted: Ready");
        nodes.extend([node("b", Some("web"), &[1]), node("c", Some("web"), &[1]), node("d", Some("web"), &[1])]);
        assert!(told(&nodes).starts_with("a: 4 of 12 nodes of the cluster are unhealthy"), "{}", told(&nodes));
    }
}
