//! Why the volumes of a pod keep it from a new node, and how it reads.

use std::fmt;

use crate::requirements::Incompatible;

/// What the volumes of a pod ask for and a pool does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeRefusal {
    /// The volumes can be used on nodes with other labels only.
    Labels(Incompatible),
    /// The pod asks for other labels than its own volumes.
    OfPod(Incompatible),
    /// No instance type attaches as many volumes.
    Limit {
        /// The CSI driver.
        driver: String,
        /// How many volumes of it the pod has.
        wanted: u32,
        /// The most that an instance type attaches.
        limit: u32,
    },
}

impl fmt::Display for VolumeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VolumeRefusal::Labels(why) => {
                write!(f, "incompatible requirements, {why} (required by a volume of the pod)")
            }
            VolumeRefusal::OfPod(Incompatible::Excluded { label, wanted, offered }) => write!(
                f,
                "incompatible requirements, label {label}: a volume of the pod requires {wanted}, the pod itself requires \
                 {offered}; change the node selector or node affinity of the pod"
            ),
            VolumeRefusal::OfPod(why) => write!(f, "incompatible requirements of the pod and its volumes, {why}"),
            VolumeRefusal::Limit { driver, wanted, limit } => write!(
                f,
                "would exceed volume limit for all instance type options, CSI driver {driver}: the pod needs {wanted} {}, \
                 but an instance type attaches at most {limit}; use fewer volumes or add an instance type with a higher limit",
                if *wanted == 1 { "volume" } else { "volumes" }
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Requirement;

    #[test]
    fn a_refusal_says_that_a_volume_asks_for_it() {
        let why = Incompatible::Excluded {
            label: "zone".to_owned(),
            wanted: Box::new(Requirement::is("c")),
            offered: Box::new(Requirement::is("a")),
        };
        assert_eq!(
            VolumeRefusal::Labels(why.clone()).to_string(),
            "incompatible requirements, label zone: required In [c], available In [a] (required by a volume of the pod)"
        );
        assert_eq!(
            VolumeRefusal::OfPod(why).to_string(),
            "incompatible requirements, label zone: a volume of the pod requires In [c], the pod itself requires In [a]; \
             change the node selector or node affinity of the pod"
        );
        let limit = VolumeRefusal::Limit { driver: "csi.example".to_owned(), wanted: 6, limit: 5 };
        assert_eq!(
            limit.to_string(),
            "would exceed volume limit for all instance type options, CSI driver csi.example: the pod needs 6 volumes, but \
             an instance type attaches at most 5; use fewer volumes or add an instance type with a higher limit"
        );
    }
}
