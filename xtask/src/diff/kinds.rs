//! Comparing plans of pods that care where other pods are. Ties decide which of equal pods is placed, so that pods are compared by
//! kind: by how many of them have a place.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::judge::{EPSILON, Verdict};
use super::outcome::{Outcome, Run, Summary};
use super::scenario::{Scenario, sorted};
use super::topology_void;

/// The kind of each pod: pods of one kind differ only in name and age.
struct Kinds(BTreeMap<String, String>);

/// How many pods of each kind have a place.
type Placed<'k> = BTreeMap<&'k str, usize>;

/// Whether some pod that waits cares where others are, or may be kept away by a pod that runs.
pub(super) fn are_needed(scenario: &Scenario) -> bool {
    let mut pods = items(scenario).filter(|item| item["kind"] == "Pod").map(|pod| &pod["spec"]);
    pods.any(|spec| {
        let affinity = &spec["affinity"];
        !spec["topologySpreadConstraints"].is_null()
            || !affinity["podAffinity"].is_null()
            || !affinity["podAntiAffinity"].is_null()
    })
}

fn items(scenario: &Scenario) -> impl Iterator<Item = &Value> {
    scenario.objects["items"].as_array().into_iter().flatten()
}

impl Kinds {
    /// The name of a kind is its first pod by name.
    fn of(scenario: &Scenario) -> Kinds {
        let mut named = BTreeMap::new();
        for pod in items(scenario).filter(|item| item["kind"] == "Pod") {
            let (metadata, text) = (&pod["metadata"], |value: &Value| value.as_str().unwrap_or("default").to_owned());
            let name = format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"]));
            named.insert(name, [&sorted(&pod["spec"]), &sorted(&metadata["labels"])].map(ToString::to_string));
        }
        let mut first: BTreeMap<(String, [String; 2]), String> = BTreeMap::new();
        let kinds = named.into_iter().map(|(name, content)| {
            let namespace = name.split('/').next().unwrap_or_default().to_owned();
            let kind = first.entry((namespace, content)).or_insert_with(|| name.clone()).clone();
            (name, kind)
        });
        Kinds(kinds.collect())
    }

    fn placed<'k>(&'k self, pods: &BTreeSet<String>) -> Placed<'k> {
        let mut placed = Placed::new();
        for kind in pods.iter().filter_map(|pod| self.0.get(pod)) {
            *placed.entry(kind).or_default() += 1;
        }
        placed
    }
}

/// What is known about our plan, and the runs of Karpenter that it is held to.
///
/// Of every kind we place at least as many pods as some run does. If we place just as many, our nodes and cost are at most the
/// largest of the runs that do so.
pub(super) fn judge(ours: &Outcome, theirs: &Summary, scenario: &Scenario) -> (Verdict, Summary) {
    let kinds = Kinds::of(scenario);
    let own = kinds.placed(&ours.schedulable());
    if let Some(equal) = theirs.only(|run| kinds.placed(&run.placed) == own) {
        let faults = beyond(ours, &equal);
        // The few runs that happen to leave such pods out are no sample of what Karpenter does with the others.
        let misplaces = |run: &&Run| {
            let placed = kinds.placed(&run.placed);
            let mut beyond_own = placed.iter().filter(|(kind, count)| own.get(*kind).is_none_or(|own| own < *count));
            beyond_own.any(|(kind, _)| has_terms_to_match_together(scenario, kind))
        };
        let are_most = theirs.each.iter().filter(misplaces).count() * 2 > theirs.runs;
        let verdict = if !faults.is_empty() && are_most {
            Verdict::Void(topology_void::EACH_TERM_ALONE)
        } else {
            Verdict::Judged { nodes: ours.nodes(), cost: ours.cost(), faults }
        };
        return (verdict, equal);
    }
    let least = |placed: &Placed<'_>| placed.iter().all(|(kind, count)| own.get(kind).is_some_and(|own| own >= count));
    let distance = |run: &&Run| {
        let placed = kinds.placed(&run.placed);
        let names: BTreeSet<&str> = placed.keys().chain(own.keys()).copied().collect();
        let of = |all: &Placed<'_>, name: &str| all.get(name).copied().unwrap_or(0);
        let apart: usize = names.iter().map(|name| of(&placed, name).abs_diff(of(&own, name))).sum();
        (!least(&placed), apart)
    };
    let Some(nearest) = theirs.each.iter().min_by_key(distance) else {
        return (Verdict::Failed("Karpenter made no plan".to_owned()), theirs.clone());
    };
    let placed = kinds.placed(&nearest.placed);
    let said = format!("kinds of which Karpenter places more: {}; Tenon: {}", more(&placed, &own), more(&own, &placed));
    let mut fewer = placed.iter().filter(|(kind, count)| own.get(*kind).is_none_or(|own| own < *count));
    let verdict = if least(&placed) {
        Verdict::More(said)
    } else if fewer.any(|(kind, _)| has_terms_to_match_together(scenario, kind)) {
        Verdict::Void(topology_void::EACH_TERM_ALONE)
    } else {
        Verdict::Judged { nodes: ours.nodes(), cost: ours.cost(), faults: vec![said] }
    };
    (verdict, theirs.clone())
}

/// Whether the pod that a kind is named for has several required terms of pod affinity that choose different pods.
fn has_terms_to_match_together(scenario: &Scenario, kind: &str) -> bool {
    let (namespace, name) = kind.split_once('/').unwrap_or(("default", kind));
    let is_it = |pod: &&Value| {
        let metadata = &pod["metadata"];
        metadata["name"] == name && metadata["namespace"].as_str().unwrap_or("default") == namespace
    };
    let pod = items(scenario).filter(|item| item["kind"] == "Pod").find(is_it);
    pod.is_some_and(|pod| topology_void::has_terms_to_match_together(&pod["spec"]))
}

fn beyond(ours: &Outcome, equal: &Summary) -> Vec<String> {
    let mut faults = Vec::new();
    let runs = format!("in {} of the runs, which place the same", equal.runs);
    if ours.nodes() > equal.nodes.max {
        faults.push(format!("Tenon needs {} nodes; Karpenter needs at most {} {runs}", ours.nodes(), equal.nodes.max));
    }
    if ours.cost() > equal.cost.max + EPSILON {
        let (cost, most) = (ours.cost(), equal.cost.max);
        faults.push(format!("Tenon's plan costs {cost:.4}; Karpenter's costs at most {most:.4} {runs}"));
    }
    faults
}

/// Kinds of which one plan places more than the other, and how many more.
fn more(one: &Placed<'_>, other: &Placed<'_>) -> String {
    let all: Vec<String> = one
        .iter()
        .map(|(kind, count)| (kind, count.saturating_sub(other.get(kind).copied().unwrap_or(0))))
        .filter(|(_, more)| *more > 0)
        .map(|(kind, more)| format!("{kind} ({more})"))
        .collect();
    if all.is_empty() { "none".to_owned() } else { all.join(" ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Two kinds of two pods each.
    fn scenario() -> Scenario {
        let pod = |name: &str, app: &str| json!({"kind": "Pod", "metadata": {"name": name, "labels": {"app": app}}, "spec": {"topologySpreadConstraints": []}});
        let items = [pod("a-1", "a"), pod("a-2", "a"), pod("b-1", "b"), pod("b-2", "b")];
        Scenario { objects: json!({"items": items}), types: json!([]), options: None }
    }

    fn plan(pods: &[&str], cost: f64) -> Outcome {
        let pods: Vec<String> = pods.iter().map(|pod| format!("default/{pod}")).collect();
        let claims = json!([{"pods": pods}]);
        serde_json::from_value(json!({"newNodeClaims": claims, "existingNodes": [], "stats": {"cost": cost}})).unwrap()
    }

    fn told(ours: &Outcome, theirs: &[Outcome]) -> String {
        match judge(ours, &Summary::of(theirs).unwrap(), &scenario()).0 {
            Verdict::Judged { faults, .. } => faults.join("; "),
            Verdict::More(said) => format!("more: {said}"),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn another_pod_of_the_same_kind_is_the_same() {
        assert!(are_needed(&scenario()));
        assert_eq!(told(&plan(&["a-1", "b-2"], 1.0), &[plan(&["a-2", "b-1"], 1.0)]), "");
    }

    #[test]
    fn fewer_pods_of_a_kind_are_wrong_whatever_else_is_placed() {
        let said = told(&plan(&["a-1", "a-2"], 1.0), &[plan(&["a-2", "b-1"], 1.0)]);
        let (theirs, ours) = ("default/b-1 (1)", "default/a-1 (1)");
        assert_eq!(said, format!("kinds of which Karpenter places more: {theirs}; Tenon: {ours}"));
    }

    #[test]
    fn more_pods_are_told_and_their_cost_is_not_compared() {
        let said = told(&plan(&["a-1", "a-2", "b-1"], 9.0), &[plan(&["a-2", "b-1"], 1.0)]);
        assert!(said.starts_with("more: "), "{said}");
    }

    #[test]
    fn fewer_pods_say_nothing_if_several_terms_of_pod_affinity_have_to_be_matched_together() {
        let judged = |terms: Value| {
            let mut scenario = scenario();
            let affinity = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
            for pod in [2, 3] {
                scenario.objects["items"][pod]["spec"]["affinity"] = affinity.clone();
            }
            judge(&plan(&["a-1"], 1.0), &Summary::of(&[plan(&["a-1", "b-1"], 2.0)]).unwrap(), &scenario).0
        };
        let term = |app: &str| json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"});
        assert!(matches!(judged(json!([term("a"), term("b")])), Verdict::Void(_)));
        assert!(matches!(judged(json!([term("a"), term("a")])), Verdict::Judged { .. }));
        assert!(matches!(judged(json!([term("a")])), Verdict::Judged { .. }));
    }

    #[test]
    fn the_few_runs_that_leave_such_pods_out_say_nothing_of_cost() {
        let mut scenario = scenario();
        let term = |app: &str| json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"});
        let terms = json!([term("a"), term("b")]);
        for pod in [2, 3] {
            scenario.objects["items"][pod]["spec"]["affinity"] =
                json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
        }
        let judged = |misplacing: usize| {
            let mut theirs = vec![plan(&["a-1"], 1.0)];
            theirs.extend(vec![plan(&["a-1", "b-1"], 2.0); misplacing]);
            judge(&plan(&["a-1"], 1.5), &Summary::of(&theirs).unwrap(), &scenario).0
        };
        assert!(matches!(judged(2), Verdict::Void(_)));
        assert!(matches!(judged(1), Verdict::Judged { .. }), "half of the runs are enough");
    }

    #[test]
    fn cost_is_compared_with_runs_that_place_the_same() {
        let theirs = [plan(&["a-1"], 1.0), plan(&["a-1", "a-2"], 3.0)];
        assert_eq!(told(&plan(&["a-1", "a-2"], 3.0), &theirs), "");
        assert!(told(&plan(&["a-2"], 2.0), &theirs).contains("costs at most 1.0000"), "the other run places more");
    }
}
