//! Whether a pod may be on a node at all: taints and labels, before anything is counted.

use tenon_model::{Incompatible, Pod, Requirements, Taint};

/// The first taint that keeps the pod off.
pub(crate) fn barring_taint<'a>(pod: &Pod, taints: &'a [Taint]) -> Option<&'a Taint> {
    taints.iter().find(|taint| taint.is_a_bar() && !taint.is_tolerated_by(&pod.tolerations))
}

/// What a node must be like with the pod on it: its own demands and one of the pod's alternatives, for each alternative in
/// turn, or why that one cannot be met.
///
/// A label of which nothing is known is met only if `may_be_unknown` says that somebody still decides it.
pub(crate) fn joined<'a>(
    labels: &'a Requirements,
    pod: &'a Pod,
    may_be_unknown: fn(&str) -> bool,
) -> impl Iterator<Item = Result<Requirements, Incompatible>> + 'a {
    pod.alternatives.iter().map(move |wanted| {
        labels.meet(wanted, may_be_unknown)?;
        let mut joined = labels.clone();
        joined.add_all(wanted);
        Ok(joined)
    })
}
