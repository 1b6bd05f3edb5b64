//! What does a seed stand for? A cluster that has nodes already, some of which could go: sizes, NodePools with their rules for
//! disruption, and nodes with their pods.

mod apps;
mod estate;
mod rules;
mod sizes;

use serde_json::{Value, json};

use super::super::dice::Dice;
use super::super::scenario::Scenario;

/// The time all scenarios are planned for.
pub(super) const NOW: &str = "2026-03-01T12:00:00Z";
/// Long before that: what happened then is no reason to wait.
const LONG_AGO: &str = "2026-02-20T08:00:00Z";

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const TYPE: &str = "node.kubernetes.io/instance-type";
const CAPACITY: &str = "karpenter.sh/capacity-type";
const POOL: &str = "karpenter.sh/nodepool";
const DEDICATED: &str = "example.com/dedicated";

/// What all parts of a scenario know of the place.
struct Place {
    sizes: Vec<sizes::Size>,
    pools: Vec<rules::Pool>,
    apps: Vec<apps::App>,
    has_daemon: bool,
}

/// What the seed stands for.
pub(super) fn generate(seed: u64) -> Scenario {
    // Other seeds than those of plans, so that the same number is not the same stream.
    let mut dice = Dice::new(seed ^ 0x0D15_0000);
    let zones = if dice.chance(60) { vec!["a", "b"] } else { vec!["a", "b", "c"] };
    let sizes = sizes::generate(&mut dice, &zones);
    let pools = rules::generate(&mut dice);
    let apps = apps::generate(&mut dice, &zones);
    let has_daemon = dice.chance(35);
    let place = Place { sizes, pools, apps, has_daemon };
    let estate = estate::generate(&mut dice, &place);
    let mut items: Vec<Value> =
        place.pools.iter().enumerate().map(|(index, pool)| pool.to_json(estate.of_pool[&index])).collect();
    items.extend(place.has_daemon.then(apps::daemon));
    items.extend(place.apps.iter().filter_map(apps::App::budget));
    items.extend(estate.objects);
    for app in &place.apps {
        items.extend((0..app.pending).map(|index| app.pod(&format!("{}-new{index}", app.name), None)));
    }
    Scenario {
        objects: json!({"apiVersion": "v1", "kind": "List", "items": items}),
        types: place.sizes.iter().map(sizes::Size::to_json).collect(),
        options: options(&mut dice),
    }
}

fn options(dice: &mut Dice) -> Option<Value> {
    dice.chance(15).then(|| json!({"featureGates": {"SpotToSpotConsolidation": true}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_is_the_same_cluster() {
        for seed in 1..20 {
            assert_eq!(generate(seed).fingerprint(), generate(seed).fingerprint());
        }
        assert_ne!(generate(1).fingerprint(), generate(2).fingerprint());
    }

    #[test]
    fn every_kind_of_rule_comes_up() {
        let all: String =
            (1..=300).map(generate).map(|it| format!("{}{}{:?}", it.objects, it.types, it.options)).collect();
        let words = "WhenEmpty WhenEmptyOrUnderutilized Balanced consolidateAfter Never budgets schedule Drifted Underutilized Empty \
            karpenter.sh/do-not-disrupt PodDisruptionBudget disruptionsAllowed spot on-demand topologySpreadConstraints podAntiAffinity \
            replicas lastPodEventTime Unschedulable DaemonSet StatefulSet terminationGracePeriod deletionTimestamp taints tolerations \
            nodeSelector SpotToSpotConsolidation controller.kubernetes.io/pod-deletion-cost weight limits";
        for word in words.split_whitespace() {
            assert!(all.contains(&format!("{word}\"")), "{word} never comes up");
        }
    }

    #[test]
    fn clusters_have_three_to_twenty_five_nodes() {
        for seed in 1..=300 {
            let scenario = generate(seed);
            let items = scenario.objects["items"].as_array().cloned().unwrap_or_default();
            let nodes = items.iter().filter(|item| item["kind"] == "Node").count();
            assert!((3..=25).contains(&nodes), "seed {seed}: {nodes}");
        }
    }
}
