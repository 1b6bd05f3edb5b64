//! How many volumes can a node attach? Only drivers that a pod to be placed needs, and that somebody limits, are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_model::{Attachment, NodeState, Pod};

use crate::index::{
    Bits, CatalogIx, DriverIx, Id, Interner, NodeIx, PodClassIx, PodIx, SlotIx, Table, TypeIx, VolumeIx,
};
use crate::instance_types::CatalogIndex;

/// A volume that takes a place of its driver on a node. Of one driver they stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attached {
    driver: DriverIx,
    volume: VolumeIx,
}

/// How many volumes of a driver a node would attach with a pod.
pub(crate) type VolumeCount = (DriverIx, u32);

/// Volumes of pods and nodes, and how many of each driver can be attached. Empty where no pod needs a driver with a limit.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    drivers: Table<DriverIx, String>,
    of_pod: BTreeMap<PodIx, Vec<Attached>>,
    /// Drivers of which a pod has a volume that nobody else has.
    unshared: BTreeMap<PodIx, Vec<DriverIx>>,
    on_node: Table<NodeIx, Vec<Attached>>,
    of_node: Table<NodeIx, Vec<VolumeCount>>,
    of_type: Table<CatalogIx, Table<TypeIx, Vec<VolumeCount>>>,
}

impl Attachments {
    pub(crate) fn new(
        pods: &Table<PodIx, (Arc<Pod>, PodClassIx)>,
        nodes: &Table<NodeIx, Arc<NodeState>>,
        catalogs: &Table<CatalogIx, Arc<CatalogIndex>>,
    ) -> Attachments {
        let needed: BTreeSet<&str> =
            pods.iter().flat_map(|(pod, _)| volumes(pod)).map(|one| one.driver.as_str()).collect();
        let types = || catalogs.iter().flat_map(|index| index.catalog.types());
        let is_limited = |driver: &&str| {
            types().any(|size| size.volume_attachment_limits.contains_key(*driver))
                || nodes.iter().any(|node| node.attach_limits.contains_key(*driver))
        };
        let drivers: Table<DriverIx, String> = needed.into_iter().filter(is_limited).map(str::to_owned).collect();
        if drivers.is_empty() {
            return Attachments::default();
        }
        let mut known = Known { drivers: &drivers, volumes: Interner::default() };
        let of_pod = pods.pairs().map(|(pod, (found, _))| (pod, known.numbered(volumes(found))));
        let of_pod: BTreeMap<PodIx, Vec<Attached>> = of_pod.filter(|(_, attached)| !attached.is_empty()).collect();
        let on_node: Table<NodeIx, Vec<Attached>> =
            nodes.iter().map(|node| known.numbered(&node.attachments)).collect();
        let unshared = unshared(&of_pod, &on_node, known.volumes.things().len());
        let limits = |limits: &BTreeMap<String, u32>| -> Vec<VolumeCount> {
            drivers.pairs().filter_map(|(number, driver)| Some((number, *limits.get(driver)?))).collect()
        };
        let of_node = nodes.iter().map(|node| limits(&node.attach_limits)).collect();
        let of_types = |index: &Arc<CatalogIndex>| {
            index.catalog.types().iter().map(|size| limits(&size.volume_attachment_limits)).collect()
        };
        let of_type = catalogs.iter().map(of_types).collect();
        Attachments { drivers, of_pod, unshared, on_node, of_node, of_type }
    }

    /// Volumes of a pod that count, in order.
    pub(crate) fn of(&self, pod: PodIx) -> &[Attached] {
        self.of_pod.get(&pod).map(Vec::as_slice).unwrap_or_default()
    }

    /// Drivers of which a pod needs one more place wherever it goes.
    pub(crate) fn needing_a_place(&self, pod: PodIx) -> &[DriverIx] {
        self.unshared.get(&pod).map(Vec::as_slice).unwrap_or_default()
    }

    /// How many drivers there are.
    pub(crate) fn drivers(&self) -> usize {
        self.drivers.len()
    }

    /// Volumes that are attached to a node that is there, in order.
    pub(crate) fn on(&self, node: NodeIx) -> &[Attached] {
        if self.drivers.is_empty() { &[] } else { &self.on_node[node] }
    }

    /// Whether a node that is there attaches so many.
    pub(crate) fn fit_on(&self, node: NodeIx, counts: &[VolumeCount]) -> bool {
        counts.is_empty() || are_within(counts, &self.of_node[node])
    }

    /// Takes slots out whose size does not attach so many. Returns whether there were any.
    pub(crate) fn keep_holding(
        &self,
        (catalog, index): (CatalogIx, &CatalogIndex),
        counts: &[VolumeCount],
        slots: &mut Bits<SlotIx>,
    ) -> bool {
        let limits = &self.of_type[catalog];
        let is_too_small = |slot: &SlotIx| !are_within(counts, &limits[index.slots[*slot].type_ix]);
        let out: Vec<SlotIx> = slots.iter().filter(is_too_small).collect();
        out.iter().for_each(|slot| slots.remove(*slot));
        !out.is_empty()
    }

    /// The first driver of which none of these sizes attaches so many, and the most that any does.
    pub(crate) fn too_many(
        &self,
        catalog: CatalogIx,
        types: &[TypeIx],
        counts: &[VolumeCount],
    ) -> Option<(&str, u32, u32)> {
        counts.iter().find_map(|(driver, wanted)| {
            let limit = |size: &TypeIx| limit_of(*driver, &self.of_type[catalog][*size]);
            let most = types.iter().map(|size| limit(size).unwrap_or(u32::MAX)).max()?;
            (most < *wanted).then(|| (self.drivers[*driver].as_str(), *wanted, most))
        })
    }
}

/// The same volumes and one more of each driver.
pub(crate) fn with_one_more(on_node: &[Attached]) -> Vec<VolumeCount> {
    let of_driver = |there: &[Attached]| {
        let count = u32::try_from(there.len()).unwrap_or(u32::MAX);
        Some((there.first()?.driver, count.saturating_add(1)))
    };
    on_node.chunk_by(|one, other| one.driver == other.driver).filter_map(of_driver).collect()
}

/// How many volumes of each driver of a pod a node has with the pod. What both have counts once.
pub(crate) fn counted(on_node: &[Attached], of_pod: &[Attached]) -> Vec<VolumeCount> {
    let of_driver = |pod: &[Attached]| {
        let driver = pod.first()?.driver;
        let there = on_node.iter().filter(|attached| attached.driver == driver).count();
        let more = pod.iter().filter(|attached| on_node.binary_search(attached).is_err()).count();
        Some((driver, u32::try_from(there + more).unwrap_or(u32::MAX)))
    };
    of_pod.chunk_by(|one, other| one.driver == other.driver).filter_map(of_driver).collect()
}

/// Adds the volumes of a pod to those of its node.
pub(crate) fn attach(on_node: &mut Vec<Attached>, of_pod: &[Attached]) {
    on_node.extend(of_pod);
    on_node.sort_unstable();
    on_node.dedup();
}

fn unshared(
    of_pod: &BTreeMap<PodIx, Vec<Attached>>,
    on_node: &Table<NodeIx, Vec<Attached>>,
    volumes: usize,
) -> BTreeMap<PodIx, Vec<DriverIx>> {
    let mut users: Vec<u32> = vec![0; volumes];
    of_pod.values().chain(on_node.iter()).flatten().for_each(|one| users[one.volume.position()] += 1);
    let drivers = |attached: &[Attached]| -> Vec<DriverIx> {
        let mut drivers: Vec<DriverIx> =
            attached.iter().filter(|one| users[one.volume.position()] == 1).map(|one| one.driver).collect();
        drivers.dedup();
        drivers
    };
    of_pod.iter().map(|(pod, attached)| (*pod, drivers(attached))).collect()
}

fn volumes(pod: &Pod) -> &[Attachment] {
    pod.storage.volumes().map(|known| known.attachments.as_slice()).unwrap_or_default()
}

fn limit_of(driver: DriverIx, limits: &[VolumeCount]) -> Option<u32> {
    limits.iter().find(|(limited, _)| *limited == driver).map(|(_, limit)| *limit)
}

fn are_within(counts: &[VolumeCount], limits: &[VolumeCount]) -> bool {
    counts.iter().all(|(driver, count)| limit_of(*driver, limits).is_none_or(|limit| *count <= limit))
}

/// Volumes that have numbers.
struct Known<'k> {
    drivers: &'k Table<DriverIx, String>,
    volumes: Interner<VolumeIx, &'k Attachment>,
}

impl<'k> Known<'k> {
    fn numbered(&mut self, attachments: &'k [Attachment]) -> Vec<Attached> {
        let mut attached = Vec::new();
        for one in attachments {
            if let Some(driver) = self.drivers.search_by(|known| known.cmp(&one.driver)) {
                attached.push(Attached { driver, volume: self.volumes.number(one) });
            }
        }
        attached.sort_unstable();
        attached.dedup();
        attached
    }
}
