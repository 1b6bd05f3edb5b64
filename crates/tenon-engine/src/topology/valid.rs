//! Which domains does a constraint allow? Whatever node is looked at: the node's own domains are the other half (`choice`).

use super::counts::Count;
use super::groups::{Kind, View};
use crate::index::{Bits, DomainIx};

/// What a constraint allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Valid {
    pub(crate) domains: Bits<DomainIx>,
    /// Whether only one of them may be taken: the first pod of a group that wants to be together settles where that is.
    pub(crate) founds: bool,
}

/// What a constraint allows a pod. Not for host names.
pub(crate) fn valid(kind: Kind, view: &View, count: &Count) -> Valid {
    let mut domains = count.registered.clone();
    match kind {
        Kind::Spread { max_skew, min_domains } => {
            let limit = i64::from(max_skew) + least(view, count, min_domains);
            let own = i64::from(view.selects_self);
            let is_full = |domain: &DomainIx| i64::from(count.of(*domain)) + own > limit;
            let full: Vec<DomainIx> = domains.iter().filter(is_full).collect();
            full.into_iter().for_each(|domain| domains.remove(domain));
        }
        Kind::Affinity => return together(view, count),
        Kind::AntiAffinity | Kind::Inverse => {
            domains.keep(&view.pod_domains);
            domains.drop_all(&count.occupied);
        }
    }
    Valid { domains, founds: false }
}

/// How many pods the emptiest domain has: of those the pod insists on, and of nodes that are there and count. The latter is what
/// kube-scheduler looks at; Karpenter does not, and then its pods stay pending on the nodes it made for them.
fn least(view: &View, count: &Count, min_domains: Option<u32>) -> i64 {
    let mut domains = count.registered.clone();
    domains.keep(&view.pod_domains);
    domains.join(&count.with_nodes);
    let (mut least, mut number) = (None, 0);
    for domain in domains.iter() {
        number += 1;
        let pods = i64::from(count.of(domain));
        least = Some(least.map_or(pods, |least: i64| least.min(pods)));
    }
    if min_domains.is_some_and(|wanted| number < wanted) {
        return 0;
    }
    // Where the pod insists on a domain that does not exist, nothing is uneven; it is refused for its labels.
    least.unwrap_or(i64::from(u32::MAX))
}

/// Domains with pods to be with; if there are none that the pod can go to, and it is one of them itself, any one domain.
fn together(view: &View, count: &Count) -> Valid {
    let mut domains = count.occupied.clone();
    domains.keep(&view.pod_domains);
    if !domains.is_empty() || !view.selects_self {
        return Valid { domains, founds: false };
    }
    let mut domains = count.registered.clone();
    domains.keep(&view.pod_domains);
    Valid { domains, founds: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{DemandIx, GroupIx, Id};

    /// Domains a, b, c with so many pods.
    fn count(kind: Kind, pods: [u32; 3]) -> Count {
        let mut count = Count::new(kind, Bits::all(3), 3);
        for (position, pods) in pods.into_iter().enumerate() {
            (0..pods).for_each(|_| count.add(DomainIx::of(position)));
        }
        count
    }

    fn told(kind: Kind, pods: [u32; 3], allowed: &str, selects_self: bool) -> String {
        let pod_domains = Bits::those(3, |domain: DomainIx| allowed.contains(['a', 'b', 'c'][domain.position()]));
        let view = View { group: GroupIx::of(0), selects_self, strict: DemandIx::of(0), pod_domains };
        let Valid { domains, founds } = valid(kind, &view, &count(kind, pods));
        let names: String = domains.iter().map(|domain| ['a', 'b', 'c'][domain.position()]).collect();
        if founds { format!("one of {names}") } else { names }
    }

    #[test]
    fn spread_allows_domains_within_the_skew_of_the_emptiest_one_the_pod_insists_on() {
        let spread = |min_domains| Kind::Spread { max_skew: 1, min_domains };
        assert_eq!(told(spread(None), [2, 1, 0], "abc", true), "c");
        assert_eq!(told(spread(None), [2, 1, 0], "ab", true), "bc");
        assert_eq!(told(spread(None), [2, 1, 0], "a", true), "abc");
        assert_eq!(told(spread(None), [2, 1, 0], "abc", false), "bc");
        assert_eq!(told(spread(Some(3)), [2, 1, 1], "ab", true), "", "too few domains: the emptiest counts as empty");
        assert_eq!(told(spread(Some(2)), [2, 1, 1], "ab", true), "bc");
        assert_eq!(told(spread(None), [2, 1, 0], "", true), "abc", "nothing is uneven");
    }

    #[test]
    fn affinity_allows_domains_with_pods_and_lets_the_first_pod_found_one() {
        assert_eq!(told(Kind::Affinity, [1, 0, 2], "abc", true), "ac");
        assert_eq!(told(Kind::Affinity, [1, 0, 2], "b", true), "one of b", "the others are out of its reach");
        assert_eq!(told(Kind::Affinity, [0, 0, 0], "bc", true), "one of bc");
        assert_eq!(told(Kind::Affinity, [0, 0, 0], "abc", false), "");
        assert_eq!(told(Kind::Affinity, [1, 0, 0], "bc", false), "");
    }

    #[test]
    fn anti_affinity_allows_empty_domains() {
        for kind in [Kind::AntiAffinity, Kind::Inverse] {
            assert_eq!(told(kind, [1, 0, 0], "abc", true), "bc");
            assert_eq!(told(kind, [1, 0, 0], "ab", false), "b");
        }
    }
}
