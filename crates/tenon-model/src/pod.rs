//! A pod that needs a node: what it needs, where it may go, which pods it must or must not be with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::launch::Seconds;
use crate::protection::{Owner, Protection};
use crate::requirement::Operator;
use crate::requirements::Requirements;
use crate::resources::Resources;
use crate::taint::Toleration;
use crate::volumes::PodStorage;
use crate::written_requirement::WrittenRequirement;

/// What a pod is found by. There is one for each pod of the cluster: it is kept small.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodKey {
    /// Its namespace, which many pods share.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid: a pod made again under the same name is another one.
    pub uid: Box<str>,
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A pod that needs a node.
#[derive(Debug, Clone, Default)]
pub struct Pod {
    /// Which. Plans speak of many pods, and share their keys.
    pub key: Arc<PodKey>,
    /// When it was made.
    pub created: Option<Seconds>,
    /// Whether nothing of it runs yet, whether or not it has a node.
    pub is_pending: bool,
    /// Claims of storage, by name in its own namespace.
    pub volumes: Vec<Volume>,
    /// Where these are, or why the pod has to wait for them.
    pub storage: PodStorage,
    /// What it shares with other pods of its workload.
    pub shape: Arc<PodShape>,
}

impl Deref for Pod {
    type Target = PodShape;

    fn deref(&self) -> &PodShape {
        &self.shape
    }
}

impl DerefMut for Pod {
    /// What it shares with others until it is changed is its own from then on.
    fn deref_mut(&mut self) -> &mut PodShape {
        Arc::make_mut(&mut self.shape)
    }
}

/// What a pod asks for and is chosen by. Pods of one workload share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodShape {
    /// What it needs, itself counted under `pods`.
    pub requests: Resources,
    /// Demands on the node: any one of these sets is enough, and there is at least one.
    pub alternatives: Vec<Requirements>,
    /// Taints it puts up with.
    pub tolerations: Vec<Toleration>,
    /// Why no node is planned for it, whatever nodes there are: its required node affinity is none that nodes are planned by.
    pub unsupported: Option<String>,
    /// Its labels, by which other pods choose it. Whoever read the pod has the same.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Higher goes first.
    pub priority: i32,
    /// Nodes it would rather have, as they were written.
    pub preferred: Vec<Preferred>,
    /// Ports of the node that it takes for itself.
    pub host_ports: Vec<HostPort>,
    /// How evenly it and its like are spread.
    pub spreads: Vec<Spread>,
    /// Pods it must be with.
    pub pod_affinity: Vec<PodAffinityTerm>,
    /// Pods it must not be with.
    pub pod_anti_affinity: Vec<PodAffinityTerm>,
    /// Pods it would rather be with, as they were written.
    pub preferred_pod_affinity: Vec<WeightedPodAffinityTerm>,
    /// Pods it would rather not be with, as they were written.
    pub preferred_pod_anti_affinity: Vec<WeightedPodAffinityTerm>,
    /// Why nobody may place it yet.
    pub gates: Vec<String>,
    /// Names of devices that are claimed for it or one of its containers.
    pub resource_claims: Vec<String>,
    /// Whoever makes it anew.
    pub owner: Owner,
    /// Whether it asks that its node be left alone.
    pub protection: Protection,
}

impl Default for PodShape {
    /// A pod that asks for nothing and may go anywhere.
    fn default() -> PodShape {
        PodShape {
            requests: Resources::default(),
            alternatives: vec![Requirements::default()],
            tolerations: Vec::new(),
            unsupported: None,
            labels: Arc::default(),
            priority: 0,
            preferred: Vec::new(),
            host_ports: Vec::new(),
            spreads: Vec::new(),
            pod_affinity: Vec::new(),
            pod_anti_affinity: Vec::new(),
            preferred_pod_affinity: Vec::new(),
            preferred_pod_anti_affinity: Vec::new(),
            gates: Vec::new(),
            resource_claims: Vec::new(),
            owner: Owner::default(),
            protection: Protection::default(),
        }
    }
}

/// Nodes a pod would rather have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Preferred {
    /// Heavier wishes are kept longer.
    pub weight: i32,
    /// What the node should be like.
    pub requirements: Requirements,
}

/// A port of the node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The address it is taken on; unspecified is every one.
    pub address: IpAddr,
    /// The number.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
}

impl HostPort {
    /// Whether two pods cannot have both.
    pub fn conflicts_with(&self, other: &HostPort) -> bool {
        let same_address =
            self.address == other.address || self.address.is_unspecified() || other.address.is_unspecified();
        same_address && self.port == other.port && self.protocol == other.protocol
    }
}

/// A claim of storage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Volume {
    /// The name of the PersistentVolumeClaim.
    pub claim: String,
    /// Whether it is made with the pod and goes with it.
    pub is_ephemeral: bool,
}

/// What is done where a spread cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhenUnsatisfiable {
    /// The pod waits.
    DoNotSchedule,
    /// The pod runs all the same.
    ScheduleAnyway,
}

/// Which nodes count where pods are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UseNodes {
    /// Only those the pod's node selector and node affinity allow.
    pub that_are_wanted: bool,
    /// Only those whose taints the pod puts up with.
    pub that_are_tolerated: bool,
}

/// How evenly pods are spread over the values of a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spread {
    /// The label whose values are the domains.
    pub label: String,
    /// How many pods more one domain may have than the emptiest.
    pub max_skew: u32,
    /// With fewer domains than this, the emptiest counts as having none.
    pub min_domains: Option<u32>,
    /// What happens where it cannot be kept.
    pub when_unsatisfiable: WhenUnsatisfiable,
    /// Pods that are counted, in the pod's own namespace; labels of the pod that must be equal are in it already. Nobody
    /// if there is none.
    pub selector: Option<Selector>,
    /// Nodes that count.
    pub nodes: UseNodes,
}

/// Pods to be with, or not to be with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodAffinityTerm {
    /// The label whose equal values mean "together".
    pub label: String,
    /// Which pods; labels of the pod that must be equal or different are in it already. Nobody if there is none.
    pub selector: Option<Selector>,
    /// In which namespaces.
    pub namespaces: NamespaceChoice,
}

/// Namespaces to look for pods in: those that are named, and those with labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespaceChoice {
    /// By name.
    pub names: BTreeSet<String>,
    /// By labels; an empty selector is every namespace.
    pub selector: Option<Selector>,
}

/// Pods a pod would rather be with, or not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WeightedPodAffinityTerm {
    /// Heavier wishes are kept longer.
    pub weight: i32,
    /// Which pods, and where.
    pub term: PodAffinityTerm,
}

/// A choice of things by their labels; all demands must hold. An empty one chooses everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    /// Each a demand on one label, in the order they were written. Several on one label are possible.
    pub requirements: Vec<WrittenRequirement>,
}

impl Selector {
    /// Whether labels are chosen. A demand that says nothing chooses nothing.
    pub fn chooses(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|demand| {
            let value = labels.get(&demand.label);
            match demand.operator {
                // Nearly all selectors are lists of values. Every selector is asked about every kind of pod, so nothing is made of them.
                Operator::In if !demand.values.is_empty() => value.is_some_and(|value| demand.values.contains(value)),
                Operator::NotIn if !demand.values.is_empty() => {
                    value.is_none_or(|value| !demand.values.contains(value))
                }
                _ => is_met(demand, value),
            }
        })
    }
}

/// Whether a label that is there or not is what a demand says.
fn is_met(demand: &WrittenRequirement, value: Option<&String>) -> bool {
    demand.requirement().is_ok_and(|asked| match value {
        Some(value) => asked.has(value),
        None => asked.permits_absence() || (demand.values.is_empty() && demand.operator == Operator::NotIn),
    })
}

impl PodShape {
    /// What it must have, of its first alternative.
    pub fn strict_requirements(&self) -> Requirements {
        self.alternatives.first().cloned().unwrap_or_default()
    }

    /// What it must have, of its first alternative, and the heaviest of its wishes; of equal ones the first.
    pub fn all_requirements(&self) -> Requirements {
        let mut all = self.strict_requirements();
        if let Some(wish) = self.heaviest_wish() {
            all.add_all(&wish.requirements);
        }
        all
    }

    /// The heaviest of its wishes for a node; of equal ones the first.
    pub fn heaviest_wish(&self) -> Option<&Preferred> {
        self.preferred.iter().rev().max_by_key(|wish| wish.weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Requirement;

    #[test]
    fn a_list_of_values_chooses_what_its_requirement_does() {
        let lists: [&[&str]; 4] = [&["a"], &["a", "b"], &["b", "1"], &["", "a"]];
        for operator in [Operator::In, Operator::NotIn] {
            for values in lists {
                let values = values.iter().map(ToString::to_string).collect();
                let demand = WrittenRequirement { label: "app".to_owned(), operator, values, min_values: None };
                let selector = Selector { requirements: vec![demand.clone()] };
                for value in [None, Some("a"), Some("b"), Some("c"), Some(""), Some("1")] {
                    let labels: BTreeMap<String, String> =
                        value.map(|value| ("app".to_owned(), value.to_owned())).into_iter().collect();
                    assert_eq!(selector.chooses(&labels), is_met(&demand, labels.get("app")), "{demand:?} {value:?}");
                }
            }
        }
    }

    fn wish(weight: i32, zone: &str) -> Preferred {
        let requirements = [("zone".to_owned(), Requirement::is(zone))].into_iter().collect();
        Preferred { weight, requirements }
    }

    #[test]
    fn all_requirements_have_the_heaviest_wish_and_strict_ones_none() {
        let team: Requirements = [("team".to_owned(), Requirement::is("red"))].into_iter().collect();
        let preferred = vec![wish(1, "a"), wish(5, "b"), wish(5, "c")];
        let pod =
            PodShape { alternatives: vec![team.clone(), Requirements::default()], preferred, ..PodShape::default() };
        assert_eq!(pod.strict_requirements(), team);
        let all = pod.all_requirements();
        assert_eq!(all.get("zone"), Some(&Requirement::is("b")));
        assert_eq!(all.get("team"), Some(&Requirement::is("red")));
    }

    #[test]
    fn ports_conflict_on_one_address_or_on_all_of_them() {
        let port = |address: &str, port, protocol: &str| HostPort {
            address: address.parse().unwrap(),
            port,
            protocol: protocol.to_owned(),
        };
        let web = port("10.0.0.1", 80, "TCP");
        for other in [port("10.0.0.1", 80, "TCP"), port("0.0.0.0", 80, "TCP"), port("::", 80, "TCP")] {
            assert!(web.conflicts_with(&other) && other.conflicts_with(&web), "{other:?}");
        }
        for other in [port("10.0.0.2", 80, "TCP"), port("10.0.0.1", 81, "TCP"), port("10.0.0.1", 80, "UDP")] {
            assert!(!web.conflicts_with(&other), "{other:?}");
        }
    }

    #[test]
    fn a_selector_chooses_by_all_of_its_demands() {
        let demand = |label: &str, operator, values: &[&str]| WrittenRequirement {
            label: label.to_owned(),
            operator,
            values: values.iter().map(ToString::to_string).collect(),
            min_values: None,
        };
        let labels: BTreeMap<String, String> = [("app".to_owned(), "web".to_owned())].into_iter().collect();
        for (demands, chooses) in [
            (vec![], true),
            (vec![demand("app", Operator::In, &["web", "db"])], true),
            (vec![demand("app", Operator::NotIn, &["web"])], false),
            (vec![demand("tier", Operator::NotIn, &["front"])], true),
            (vec![demand("tier", Operator::NotIn, &[])], true),
            (vec![demand("tier", Operator::DoesNotExist, &[])], true),
            (vec![demand("app", Operator::DoesNotExist, &[])], false),
            (vec![demand("app", Operator::Exists, &[]), demand("tier", Operator::Exists, &[])], false),
            (vec![demand("app", Operator::Gt, &["x"])], false),
        ] {
            assert_eq!(Selector { requirements: demands.clone() }.chooses(&labels), chooses, "{demands:?}");
        }
    }
}
