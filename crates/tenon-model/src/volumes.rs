//! Which nodes can reach the volumes of a pod, and how many volumes a node can attach.
//!
//! PersistentVolumeClaims, PersistentVolumes and StorageClasses are read elsewhere; here is only what a plan needs of them.

use std::collections::BTreeMap;

use crate::requirements::Requirements;

/// What the volumes of a pod ask of its node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PodVolumes {
    /// Where the volumes can be used: any one of these sets is enough. Anywhere, if there is none.
    pub alternatives: Vec<Requirements>,
    /// Volumes that are attached to the node, sorted, each once.
    pub attachments: Vec<Attachment>,
}

/// A volume that takes one of the places a driver has on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attachment {
    /// The CSI driver.
    pub driver: String,
    /// The PersistentVolumeClaim, as `namespace/name`. Pods that share it need one place together.
    pub volume: String,
}

/// What is known of the storage of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PodStorage {
    /// Where its volumes are.
    Known(PodVolumes),
    /// Why no node can be chosen for it yet: what is wrong with one of its volumes, and the next step.
    Refused(String),
}

impl PodVolumes {
    /// Volumes that can be used in any of these places. The order of places is kept: the first that works is used.
    pub fn new(places: impl IntoIterator<Item = Requirements>, mut attachments: Vec<Attachment>) -> PodVolumes {
        let mut alternatives: Vec<Requirements> = Vec::new();
        for place in places {
            if !alternatives.contains(&place) {
                alternatives.push(place);
            }
        }
        attachments.sort();
        attachments.dedup();
        PodVolumes { alternatives, attachments }
    }
}

impl PodStorage {
    /// The volumes, unless one of them stops the pod.
    pub fn volumes(&self) -> Option<&PodVolumes> {
        match self {
            PodStorage::Known(volumes) => Some(volumes),
            PodStorage::Refused(_) => None,
        }
    }

    /// Why the pod has to wait for its volumes, if it has to.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            PodStorage::Known(_) => None,
            PodStorage::Refused(why) => Some(why),
        }
    }
}

impl Default for PodStorage {
    /// A pod without volumes.
    fn default() -> PodStorage {
        PodStorage::Known(PodVolumes::default())
    }
}

/// How many volumes of a driver a node says it can attach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachLimit {
    /// This many.
    Count(u32),
    /// The node has the driver, and the driver knows no limit.
    Unlimited,
}

/// How many volumes of each driver a node can attach; a driver that is not in the map is not limited. What the node says of
/// a driver counts. Of drivers that it does not list (yet), the limits of its instance type count.
pub fn attach_limits(
    reported: &BTreeMap<String, AttachLimit>,
    of_type: &BTreeMap<String, u32>,
) -> BTreeMap<String, u32> {
    let expected = of_type.iter().filter(|(driver, _)| !reported.contains_key(*driver));
    let counted = reported.iter().filter_map(|(driver, limit)| match limit {
        AttachLimit::Count(count) => Some((driver.clone(), *count)),
        AttachLimit::Unlimited => None,
    });
    expected.map(|(driver, count)| (driver.clone(), *count)).chain(counted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Requirement;

    fn attachment(driver: &str, volume: &str) -> Attachment {
        Attachment { driver: driver.to_owned(), volume: volume.to_owned() }
    }

    fn counts(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
        list.iter().map(|(driver, count)| ((*driver).to_owned(), *count)).collect()
    }

    #[test]
    fn a_volume_is_attached_once_and_a_place_is_named_once() {
        let zone =
            |value: &str| -> Requirements { [("zone".to_owned(), Requirement::is(value))].into_iter().collect() };
        let attached = vec![attachment("b", "n/x"), attachment("a", "n/y"), attachment("b", "n/x")];
        let volumes = PodVolumes::new([zone("b"), zone("a"), zone("b")], attached);
        assert_eq!(volumes.alternatives, [zone("b"), zone("a")], "the first that works is used, so the order stays");
        assert_eq!(volumes.attachments, [attachment("a", "n/y"), attachment("b", "n/x")]);
    }

    #[test]
    fn a_node_says_what_it_attaches_and_its_instance_type_says_the_rest() {
        let of_type = counts(&[("listed", 3), ("boundless", 4), ("unlisted", 5)]);
        let reported = BTreeMap::from([
            ("listed".to_owned(), AttachLimit::Count(9)),
            ("boundless".to_owned(), AttachLimit::Unlimited),
            ("only-here".to_owned(), AttachLimit::Count(0)),
        ]);
        let limits = attach_limits(&reported, &of_type);
        assert_eq!(limits, counts(&[("listed", 9), ("only-here", 0), ("unlisted", 5)]));
        assert_eq!(attach_limits(&BTreeMap::new(), &of_type), of_type, "a node that has not reported yet");
        assert!(attach_limits(&BTreeMap::new(), &BTreeMap::new()).is_empty(), "nobody knows a limit");
    }
}
