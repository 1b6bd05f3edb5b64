//! The engine's view of what was gathered.

use std::collections::BTreeMap;
use std::sync::Arc;
use tenon_api::kube_objects::Node;

use kube::ResourceExt;
use tenon_api::objects::{Kind, Objects};
use tenon_api::planning::{EvaluatedOverlays, Follower, OverlaidCatalogs, Surroundings, disruption_inputs};
use tenon_api::{ClassSizes, Condition, ConditionStatus, NodeClaim, NodePool, ProxmoxNodeClass};
use tenon_engine::Engine;
use tenon_model::{Catalog, InstanceType, Place, Requirements, Resources, Snapshot};

use super::gather::Gathered;
use super::host_rules::host_rules;
use super::hosts::{hosts, instance_type_of, place_of, pools_of};
use super::launch_site::launch_site;
use super::overlays::{not_evaluated, with_promised};
use super::replacements::with_replacements;
use crate::context::is_our_class;
use crate::status::POOL_CONDITIONS;

/// Looks at the cluster pass by pass. What did not change since the last look is neither read nor made again.
#[derive(Debug, Default)]
pub(crate) struct Lookout {
    follower: Follower,
    /// What can be had of each class.
    catalogs: BTreeMap<String, ClassCatalog>,
    /// What NodeOverlays make of it for each pool.
    overlaid: OverlaidCatalogs,
    /// What was seen last, indexed.
    pub(super) engine: Engine,
}

/// What can be had of a class, and what of the class that depends on.
#[derive(Debug)]
struct ClassCatalog {
    places: Vec<Place>,
    sizes: ClassSizes,
    catalog: Arc<Catalog>,
    /// Changes with the class and with the templates that it found, also where the catalogue is the same.
    revision: String,
}

impl Lookout {
    /// The engine's view of what was gathered. The sizes are the same each time.
    pub(super) fn look(&mut self, gathered: &Gathered, types: &[InstanceType]) -> Snapshot {
        self.look_at(&objects(gathered), gathered, types)
    }

    /// The same with what decides about disruption.
    pub(crate) fn look_for_disruption(&mut self, gathered: &Gathered, types: &[InstanceType]) -> Snapshot {
        let objects = objects(gathered);
        let mut snapshot = self.look_at(&objects, gathered, types);
        snapshot.disruption = disruption_inputs(&objects, &snapshot, &gathered.options);
        snapshot
    }

    fn look_at(&mut self, objects: &Objects, gathered: &Gathered, types: &[InstanceType]) -> Snapshot {
        self.look_at_classes(&gathered.classes, types);
        let catalogs = &self.catalogs;
        if let Some(overlays) = &gathered.overlays {
            self.overlaid.look(overlays, &objects.node_pools, |pool| class_catalog(catalogs, pool));
        }
        let overlaid = gathered.overlays.as_deref().map(|overlays| (overlays, &self.overlaid));
        let estate = Estate { types, catalogs, unreadable: &gathered.unreadable, overlaid };
        let mut snapshot = self.follower.look(objects, &estate, &gathered.options, gathered.now);
        let makers = pools_of(gathered);
        snapshot.hosts = hosts(gathered, types, &makers);
        snapshot.host_rules = host_rules(gathered, &makers);
        snapshot.launch_site = launch_site(gathered);
        snapshot
    }

    /// A class whose places, disk and pods are the same has the same catalogue.
    fn look_at_classes(&mut self, classes: &[Arc<ProxmoxNodeClass>], types: &[InstanceType]) {
        let mut before = std::mem::take(&mut self.catalogs);
        for class in classes {
            let (places, sizes) = (places(class), ClassSizes::of(&class.spec));
            let is_same = |then: &ClassCatalog| then.places == places && then.sizes == sizes;
            let same = before.remove(&class.name_any()).filter(is_same);
            let known = same.map(|known| known.catalog);
            let catalog = known.unwrap_or_else(|| Arc::new(catalog(class, types)));
            let known = ClassCatalog { places, sizes, catalog, revision: revision(class) };
            self.catalogs.insert(class.name_any(), known);
        }
    }
}

/// The objects a plan is made from.
fn objects(gathered: &Gathered) -> Objects {
    let ours = gathered.pools.iter().filter(|pool| is_our_class(&pool.spec.template.spec.node_class_ref));
    Objects {
        pods: gathered.pods.clone(),
        nodes: gathered.nodes.clone(),
        node_pools: ours.cloned().collect(),
        node_claims: with_replacements(&gathered.claims),
        daemon_sets: gathered.daemons.clone(),
        disruption_budgets: gathered.budgets.clone(),
        ..gathered.related.clone()
    }
}

/// The engine's view of what was gathered, looked at once.
pub fn to_snapshot(gathered: &Gathered, types: &[InstanceType]) -> Snapshot {
    Lookout::default().look(gathered, types)
}

/// What can be had where, by class.
struct Estate<'a> {
    types: &'a [InstanceType],
    catalogs: &'a BTreeMap<String, ClassCatalog>,
    unreadable: &'a BTreeMap<Kind, String>,
    /// What was found of NodeOverlays, where they are looked at, and what became of the catalogues.
    overlaid: Option<(&'a EvaluatedOverlays, &'a OverlaidCatalogs)>,
}

fn class_catalog(catalogs: &BTreeMap<String, ClassCatalog>, pool: &NodePool) -> Arc<Catalog> {
    let known = catalogs.get(&pool.spec.template.spec.node_class_ref.name);
    known.map(|known| known.catalog.clone()).unwrap_or_default()
}

impl Surroundings for Estate<'_> {
    fn catalog(&self, pool: &NodePool) -> Arc<Catalog> {
        let overlaid = self.overlaid.and_then(|(_, overlaid)| overlaid.get(&pool.name_any()));
        overlaid.cloned().unwrap_or_else(|| class_catalog(self.catalogs, pool))
    }

    fn not_ready(&self, pool: &NodePool) -> Option<String> {
        let conditions = pool.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let is_unknown = || self.overlaid.is_some_and(|(overlays, _)| !overlays.knows(&pool.name_any()));
        not_ready(conditions, POOL_CONDITIONS).or_else(|| is_unknown().then(|| not_evaluated(&pool.name_any())))
    }

    fn launched_from(&self, pool: &NodePool) -> String {
        let known = self.catalogs.get(&pool.spec.template.spec.node_class_ref.name);
        known.map(|known| known.revision.clone()).unwrap_or_default()
    }

    fn expected(&self, claim: &NodeClaim) -> Option<(Resources, Resources)> {
        let class = self.catalogs.get(&claim.spec.node_class_ref.name);
        let sizes = class.map(|known| known.sizes).unwrap_or_default();
        let size = sizes.of_type(instance_type_of(claim, self.types)?);
        let size = match self.overlaid {
            Some((overlays, _)) => with_promised(size, claim, overlays),
            None => size,
        };
        Some((size.capacity.clone(), size.allocatable()))
    }

    fn unreadable(&self, kind: Kind) -> Option<String> {
        self.unreadable.get(&kind).cloned()
    }

    /// The taint of a cordoned node comes a moment after it was cordoned.
    fn is_fenced(&self, node: &Node) -> bool {
        node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true))
    }
}

/// What of a class decides how its VMs come up: its spec, and the template VM that was found on each host.
fn revision(class: &ProxmoxNodeClass) -> String {
    let zones = class.status.iter().flat_map(|status| status.selected_zones.iter().flatten());
    let templates: Vec<&str> = zones.map(String::as_str).collect();
    format!("{}/{}", class.metadata.generation.unwrap_or_default(), templates.join(" "))
}

/// Every size, as the class has it, on every machine of a class.
pub(crate) fn catalog(class: &ProxmoxNodeClass, types: &[InstanceType]) -> Catalog {
    let (places, sizes) = (places(class), ClassSizes::of(&class.spec));
    Catalog::new(types.iter().map(|size| sizes.of_type(size).offered_at(&places)).collect())
}

/// Where VMs of a class can be made. Its status may still be that of an earlier spec.
pub(crate) fn places(class: &ProxmoxNodeClass) -> Vec<Place> {
    let zones = class.status.iter().flat_map(|status| status.selected_zones.iter().flatten());
    let spec = &class.spec;
    let is_allowed = |place: &Place| {
        spec.region.as_ref().is_none_or(|region| *region == place.region)
            && !spec.placement_strategy.excludes(place.host.as_str())
    };
    let mut places: Vec<Place> = zones.filter_map(|zone| place_of(zone)).filter(is_allowed).collect();
    places.sort();
    places.dedup();
    places
}

/// Why an object cannot be used, if it cannot. The sum names only the condition that fails; what is in the way and the next
/// move stand on that one, which is one of `parts`.
pub(crate) fn not_ready<'a>(conditions: impl Iterator<Item = &'a Condition>, parts: &[&str]) -> Option<String> {
    let found: Vec<&Condition> = conditions.collect();
    let of = |type_: &str| found.iter().find(|condition| condition.type_ == type_);
    let Some(ready) = of("Ready") else { return Some("its conditions are not set yet".to_owned()) };
    if ready.status == ConditionStatus::True {
        return None;
    }
    let fails = |condition: &&&Condition| condition.status != ConditionStatus::True && !condition.message.is_empty();
    let cause = parts.iter().filter_map(|type_| of(type_)).find(fails);
    Some(cause.map_or_else(|| ready.reason.clone(), |cause| cause.message.clone()))
}

/// Demands as the engine knows them.
pub fn requirements(demands: &[tenon_api::Requirement]) -> Requirements {
    // What says nothing is told of by the pool's condition, and such a pool makes no nodes.
    let read = |requirement: &tenon_api::Requirement| {
        let demand = tenon_api::written_requirement(requirement);
        let requirement = demand.requirement().ok()?;
        Some((demand.label, requirement))
    };
    demands.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class(spec: Value) -> Arc<ProxmoxNodeClass> {
        let mut all = json!({ "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "a" } });
        if let (Some(all), Value::Object(spec)) = (all.as_object_mut(), spec) {
            all.extend(spec);
        }
        let status = json!({ "selectedZones": ["lab/pve1/9001"] });
        Arc::new(serde_json::from_value(json!({ "metadata": { "name": "a" }, "spec": all, "status": status })).unwrap())
    }

    #[test]
    fn a_class_with_another_disk_or_other_pods_has_another_catalogue_at_the_next_look() {
        let (types, mut lookout) = (InstanceType::built_in(), Lookout::default());
        let mut look = |spec: Value| {
            lookout.look_at_classes(&[class(spec)], &types);
            lookout.catalogs["a"].catalog.clone()
        };
        let first = look(json!({}));
        assert!(Arc::ptr_eq(&first, &look(json!({ "tags": ["x"] }))), "nothing that matters is different");
        let of =
            |catalog: &Catalog, resource| catalog.find("s1.4VCPU-16GB").unwrap().capacity.get(resource).to_string();
        assert_eq!((of(&first, "ephemeral-storage"), of(&first, "pods")), ("33Gi".to_owned(), "110".to_owned()));
        assert_eq!(of(&look(json!({ "bootDevice": { "size": "100G" } })), "ephemeral-storage"), "100Gi");
        assert_eq!(of(&look(json!({ "kubeletConfiguration": { "maxPods": 30 } })), "pods"), "30");
    }
}
