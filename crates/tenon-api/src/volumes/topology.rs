//! Which nodes can reach the volumes of a pod: the places of each volume, and what is left of them together.

use k8s_openapi::api::core::v1::{NodeSelectorTerm, TopologySelectorTerm};
use tenon_model::{Operator, Requirement, Requirements};

use super::Source;
use crate::kube_objects::{PersistentVolume, StorageClass};
use crate::names::LABEL_HOSTNAME;
use crate::node_affinity::expressions_of;

/// Combinations of places that are looked at. Real volumes are in one zone each; this keeps ten volumes with ten unrelated
/// places each from becoming ten billion combinations.
const COMBINATIONS_MAX: usize = 256;

impl Source<'_> {
    /// The places it can be used in: any one is enough. Anywhere, if there is none.
    pub(super) fn places(self, key: &str) -> Result<Vec<Requirements>, String> {
        match self {
            Source::Volume(volume) => of_volume(key, volume),
            Source::Class(class) => Ok(of_class(class)),
        }
    }
}

fn of_volume(key: &str, volume: &PersistentVolume) -> Result<Vec<Requirements>, String> {
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let terms = required.map(|required| required.node_selector_terms.as_slice()).unwrap_or_default();
    // Only labels are looked at. A term without any says nothing.
    let terms = terms.iter().filter(|term| term.match_expressions.iter().flatten().next().is_some());
    // The pod moves to another node without this data, and no new node has the name of the old one.
    let is_of_a_node = volume.spec.local.is_some() || volume.spec.host_path.is_some();
    let place = |term: &NodeSelectorTerm| {
        let mut place = expressions_of(term).map_err(|fault| {
            let name = volume.metadata.name.as_deref().unwrap_or_default();
            format!(
                "PersistentVolume {name} of PersistentVolumeClaim {key} has node affinity that cannot be met: {fault}"
            )
        })?;
        if is_of_a_node {
            place.remove(LABEL_HOSTNAME);
        }
        Ok(place)
    };
    terms.map(place).collect()
}

fn of_class(class: &StorageClass) -> Vec<Requirements> {
    let place = |term: &TopologySelectorTerm| -> Requirements {
        let expressions = term.match_label_expressions.iter().flatten();
        let one_of = |values: &Vec<String>| Requirement::new(Operator::In, values.iter().cloned());
        expressions.filter_map(|wanted| Some((wanted.key.clone(), one_of(&wanted.values)?))).collect()
    };
    let places = class.allowed_topologies.iter().flatten().map(place);
    places.filter(|place| !place.is_empty()).collect()
}

/// The places in which all volumes so far can be used together.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<Requirements>);

impl Places {
    /// Another volume has to be usable there as well. Places that exclude each other are dropped; where all do, they stay,
    /// so that the pod is refused with the label in question.
    pub(super) fn narrow(&mut self, others: &[Requirements]) -> Result<(), String> {
        if others.is_empty() {
            return Ok(());
        }
        if self.0.is_empty() {
            self.0.push(Requirements::default());
        }
        let pairs = || self.0.iter().flat_map(|place| others.iter().map(move |other| (place, other)));
        let mut together = merged(pairs().filter(|(place, other)| place.intersects(other)))?;
        if together.is_empty() {
            together = merged(pairs())?;
        }
        self.0 = together;
        Ok(())
    }

    /// Any one of these is enough. Anywhere, if there is none.
    pub(super) fn into_alternatives(self) -> Vec<Requirements> {
        if self.0.iter().all(Requirements::is_empty) { Vec::new() } else { self.0 }
    }
}

fn merged<'a>(pairs: impl Iterator<Item = (&'a Requirements, &'a Requirements)>) -> Result<Vec<Requirements>, String> {
    let mut found: Vec<Requirements> = Vec::new();
    for (place, other) in pairs {
        let mut both = place.clone();
        // What one volume needs is needed still where another leaves no value of it.
        both.join(other);
        if found.contains(&both) {
            continue;
        }
        if found.len() == COMBINATIONS_MAX {
            return Err(format!(
                "the volumes of the pod can be combined in more than {COMBINATIONS_MAX} ways; use fewer volumes, or \
                 volumes with fewer terms in spec.nodeAffinity"
            ));
        }
        found.push(both);
    }
    Ok(found)
}
