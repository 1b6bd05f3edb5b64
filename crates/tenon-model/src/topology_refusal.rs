//! Which constraint on other pods keeps a pod from a new node, and how it reads.

use std::fmt;

use crate::labels::HOSTNAME;

/// So many domains are named, and the rest is counted.
const NAMED: usize = 10;

/// A constraint that leaves a pool no domain to make a node in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyRefusal {
    /// What is asked for.
    pub constraint: TopologyConstraint,
    /// The label whose values are the domains.
    pub label: String,
    /// Domains that new nodes of the pool can be in, and how many pods count in each.
    pub domains: Vec<(String, u32)>,
    /// Whether it allows these domains, and something else that the pod asks for excludes them.
    pub is_allowed: bool,
}

/// What a pod, or another pod, asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopologyConstraint {
    /// The pod and its like are spread evenly.
    Spread {
        /// How many pods more one domain may have than the emptiest.
        max_skew: u32,
    },
    /// The pod wants to be with others.
    Affinity,
    /// The same, and the others have to match several required terms at once.
    AffinityOfSeveralTerms,
    /// The pod must not be with others.
    AntiAffinity,
    /// Others must not be with the pod.
    Inverse,
}

impl fmt::Display for TopologyRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.constraint {
            TopologyConstraint::Spread { .. } => "topology spread",
            TopologyConstraint::Affinity | TopologyConstraint::AffinityOfSeveralTerms => "pod affinity",
            TopologyConstraint::AntiAffinity => "pod anti-affinity",
            TopologyConstraint::Inverse => "pod anti-affinity of another pod",
        };
        write!(f, "unsatisfiable topology constraint for {what}, key={}: ", self.label)?;
        if self.domains.is_empty() && self.label == HOSTNAME {
            if self.constraint == TopologyConstraint::AffinityOfSeveralTerms {
                return f.write_str("a new node has no pod that matches all required terms");
            }
            return f.write_str("a new node has no pod to be with");
        }
        if self.domains.is_empty() {
            return write!(f, "new nodes have no value of label {}; add it to the NodePool", self.label);
        }
        match self.constraint {
            TopologyConstraint::Spread { max_skew } if self.is_allowed => write!(f, "maxSkew {max_skew} allows only ")?,
            _ if self.is_allowed => f.write_str("it allows only ")?,
            TopologyConstraint::Spread { max_skew } => write!(f, "maxSkew {max_skew} allows no more pods in ")?,
            TopologyConstraint::Affinity => f.write_str("no pod to be with runs in ")?,
            TopologyConstraint::AffinityOfSeveralTerms => {
                f.write_str("no pod that matches all required terms runs in ")?;
            }
            TopologyConstraint::AntiAffinity => f.write_str("pods to stay away from run in ")?,
            TopologyConstraint::Inverse => f.write_str("pods that must not run beside it run in ")?,
        }
        for (position, (domain, pods)) in self.domains.iter().take(NAMED).enumerate() {
            let divide = if position == 0 { "" } else { ", " };
            write!(f, "{divide}{domain} ({pods} {})", if *pods == 1 { "pod" } else { "pods" })?;
        }
        match self.domains.len().saturating_sub(NAMED) {
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        if self.is_allowed {
            f.write_str(", and the other requirements of the pod exclude that")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_constraint_label_and_counts() {
        let told = |constraint, domains: &[(&str, u32)]| {
            let domains = domains.iter().map(|(domain, pods)| ((*domain).to_owned(), *pods)).collect();
            TopologyRefusal { constraint, label: "zone".to_owned(), domains, is_allowed: false }.to_string()
        };
        assert_eq!(
            told(TopologyConstraint::Spread { max_skew: 1 }, &[("a", 2), ("b", 1)]),
            "unsatisfiable topology constraint for topology spread, key=zone: maxSkew 1 allows no more pods in a (2 pods), b (1 pod)"
        );
        assert_eq!(
            told(TopologyConstraint::Affinity, &[]),
            "unsatisfiable topology constraint for pod affinity, key=zone: new nodes have no value of label zone; add it to the NodePool"
        );
        let many: Vec<(String, u32)> = (0..12).map(|number| (number.to_string(), 1)).collect();
        let many: Vec<(&str, u32)> = many.iter().map(|(name, pods)| (name.as_str(), *pods)).collect();
        assert!(told(TopologyConstraint::AntiAffinity, &many).ends_with("9 (1 pod) and 2 more"));
    }

    #[test]
    fn of_several_required_terms_it_is_said_that_a_pod_has_to_match_all() {
        let told = |label: &str, domains: &[(&str, u32)]| {
            let domains = domains.iter().map(|(domain, pods)| ((*domain).to_owned(), *pods)).collect();
            let (constraint, label) = (TopologyConstraint::AffinityOfSeveralTerms, label.to_owned());
            TopologyRefusal { constraint, label, domains, is_allowed: false }.to_string()
        };
        assert_eq!(
            told("zone", &[("a", 0)]),
            "unsatisfiable topology constraint for pod affinity, key=zone: no pod that matches all required terms runs in a (0 pods)"
        );
        assert!(told(HOSTNAME, &[]).ends_with("a new node has no pod that matches all required terms"));
    }

    #[test]
    fn what_only_something_else_excludes_is_named_as_allowed() {
        let domains = vec![("b".to_owned(), 0)];
        let told = |constraint| {
            let (label, domains) = ("zone".to_owned(), domains.clone());
            TopologyRefusal { constraint, label, domains, is_allowed: true }.to_string()
        };
        assert_eq!(
            told(TopologyConstraint::Spread { max_skew: 2 }),
            "unsatisfiable topology constraint for topology spread, key=zone: maxSkew 2 allows only b (0 pods), and the other requirements of the pod exclude that"
        );
        assert!(told(TopologyConstraint::Affinity).contains("key=zone: it allows only b (0 pods), and"));
    }

    #[test]
    fn who_must_not_be_alone_hears_that_a_new_node_has_no_pods() {
        let label = HOSTNAME.to_owned();
        let refusal =
            TopologyRefusal { constraint: TopologyConstraint::Affinity, label, domains: Vec::new(), is_allowed: false };
        assert!(refusal.to_string().ends_with("key=kubernetes.io/hostname: a new node has no pod to be with"));
    }
}
