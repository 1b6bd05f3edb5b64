//! Which labels may a kubelet give its own Node?
//!
//! In the domains of Kubernetes a kubelet may set a short list only: the kubelet itself refuses to start with another
//! one, and the API server would refuse the Node. The others are set by the controller once the Node is there.

use std::collections::BTreeMap;

/// Labels in Kubernetes' domains that a kubelet may set.
const ALLOWED: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Domains inside Kubernetes' own in which a kubelet may set any label.
const ALLOWED_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// Kubernetes' domains.
const DOMAINS: [&str; 2] = ["kubernetes.io", "k8s.io"];

/// Names and values of labels are at most this long.
const PART_LENGTH: usize = 63;
/// Node names and the domains of labels are at most this long.
const SUBDOMAIN_LENGTH: usize = 253;

/// A label that was asked for and that the kubelet does not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelLeftOut {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Why it was left out.
    pub reason: LeftOutReason,
}

/// Why a kubelet does not set a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOutReason {
    /// It lies in a domain of Kubernetes and is not one that kubelets may set.
    Reserved,
    /// No object can bear it: key or value break the rules for labels.
    Malformed,
}

/// The labels for a kubelet's command line, and those left out.
#[derive(Debug, Default)]
pub(crate) struct Sorted<'a> {
    pub(crate) set: Vec<(&'a str, &'a str)>,
    pub(crate) left_out: Vec<LabelLeftOut>,
}

/// Tells the labels a kubelet may set from the others.
pub(crate) fn sort(labels: &BTreeMap<String, String>) -> Sorted<'_> {
    let mut sorted = Sorted::default();
    for (key, value) in labels {
        match refusal(key, value) {
            None => sorted.set.push((key, value)),
            Some(reason) => {
                sorted.left_out.push(LabelLeftOut { key: key.clone(), value: value.clone(), reason });
            }
        }
    }
    sorted
}

fn refusal(key: &str, value: &str) -> Option<LeftOutReason> {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let malformed = !is_part(name) || !domain.is_none_or(is_subdomain) || !(value.is_empty() || is_part(value));
    if malformed {
        return Some(LeftOutReason::Malformed);
    }
    let domain = domain.unwrap_or_default();
    let reserved = DOMAINS.iter().any(|reserved| lies_in(domain, reserved));
    let allowed = ALLOWED.contains(&key) || ALLOWED_DOMAINS.iter().any(|allowed| lies_in(domain, allowed));
    (reserved && !allowed).then_some(LeftOutReason::Reserved)
}

fn lies_in(domain: &str, parent: &str) -> bool {
    domain.strip_suffix(parent).is_some_and(|head| head.is_empty() || head.ends_with('.'))
}

/// The rule for the name and the value of a label.
fn is_part(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.len() <= PART_LENGTH && text.bytes().all(inside) && starts_and_ends_alphanumeric(text)
}

/// The rule for node names and for the domain of a label.
pub(crate) fn is_subdomain(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = |label: &str| label.bytes().all(inside) && starts_and_ends_alphanumeric(label);
    text.len() <= SUBDOMAIN_LENGTH && text.split('.').all(is_label)
}

fn starts_and_ends_alphanumeric(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_outside_the_domains_of_kubernetes_are_set() {
        for key in ["team", "karpenter.sh/nodepool", "example.com/a_b.C", "notkubernetes.io/x", "my-k8s.io/x"] {
            assert_eq!(refusal(key, "v"), None, "{key}");
        }
        assert_eq!(refusal("team", ""), None);
    }

    #[test]
    fn in_the_domains_of_kubernetes_only_the_kubelets_own_are_set() {
        for key in ["topology.kubernetes.io/zone", "node.kubernetes.io/anything", "a.kubelet.kubernetes.io/x"] {
            assert_eq!(refusal(key, "v"), None, "{key}");
        }
        let reserved =
            ["node-role.kubernetes.io/worker", "kubernetes.io/x", "k8s.io/x", "node-restriction.kubernetes.io/x"];
        for key in reserved {
            assert_eq!(refusal(key, "v"), Some(LeftOutReason::Reserved), "{key}");
        }
    }

    #[test]
    fn what_is_no_label_never_reaches_a_command_line() {
        let long = "a".repeat(64);
        for (key, value) in [("", "v"), ("a b", "v"), ("a", "x,y=z"), ("a", "x\n"), ("/a", "v"), ("A.b/c", "v")] {
            assert_eq!(refusal(key, value), Some(LeftOutReason::Malformed), "{key:?}={value:?}");
        }
        assert_eq!(refusal("a", &long), Some(LeftOutReason::Malformed));
    }

    #[test]
    fn node_names_are_subdomains() {
        assert!(is_subdomain("default-7f2c") && is_subdomain("a.b-c.d"));
        assert!(!is_subdomain("") && !is_subdomain("a..b") && !is_subdomain("-a") && !is_subdomain("A"));
        assert!(!is_subdomain("a\nExecStart=x"));
    }
}
