//! What stands on the pods of ReplicaSets about which of them go first, and who wrote it?

use std::sync::Arc;

use crate::pod::PodKey;

/// The deletion cost of a pod, as its annotations have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenCost {
    /// What Kubernetes reads.
    pub cost: Option<String>,
    /// What Tenon wrote last.
    pub mark: Option<String>,
}

/// What is changed on a pod whose deletion cost Tenon no longer manages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostLeftover {
    /// The cost and the mark: nobody changed the cost since Tenon wrote it.
    CostAndMark,
    /// Only the mark: the cost is somebody else's by now.
    Mark,
}

impl WrittenCost {
    /// Whether this value stands there and Tenon wrote it; without a value, whether nothing stands there.
    pub fn is(&self, value: Option<i32>) -> bool {
        let text = value.map(|value| value.to_string());
        self.cost == text && self.mark == text
    }

    /// What Tenon left there.
    pub fn leftover(&self) -> Option<CostLeftover> {
        let mark = self.mark.as_ref()?;
        Some(if self.cost.as_ref() == Some(mark) { CostLeftover::CostAndMark } else { CostLeftover::Mark })
    }
}

/// A pod that a ReplicaSet may delete when it is scaled down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// Which.
    pub pod: Arc<PodKey>,
    /// What stands on it.
    pub written: WrittenCost,
}

/// The pods of a node, as far as deletion costs go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeReplicas {
    /// Whether a pod on it comes from nobody who would make it anew elsewhere, so that the node cannot be emptied by scaling down.
    pub is_pinned: bool,
    /// Those of ReplicaSets.
    pub replicas: Vec<Replica>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(cost: Option<&str>, mark: Option<&str>) -> WrittenCost {
        WrittenCost { cost: cost.map(str::to_owned), mark: mark.map(str::to_owned) }
    }

    #[test]
    fn a_cost_is_right_only_if_it_is_marked_as_ours() {
        assert!(written(Some("-3"), Some("-3")).is(Some(-3)) && written(None, None).is(None));
        for wrong in [written(Some("-3"), None), written(Some("-4"), Some("-3")), written(None, Some("-3"))] {
            assert!(!wrong.is(Some(-3)) && !wrong.is(None), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_left_is_the_cost_only_if_nobody_changed_it() {
        assert_eq!(written(Some("-3"), Some("-3")).leftover(), Some(CostLeftover::CostAndMark));
        assert_eq!(written(Some("7"), Some("-3")).leftover(), Some(CostLeftover::Mark));
        assert_eq!(written(None, Some("-3")).leftover(), Some(CostLeftover::Mark));
        assert_eq!(written(Some("7"), None).leftover(), None);
    }
}
