//! Which objects would a cluster create together with the pods of a workload? A pod with a claim that does not exist cannot
//! be planned, and pods of a Deployment belong together by their ReplicaSet.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use tenon_api::kube_objects::{
    EphemeralVolumeSource, PersistentVolumeClaim, PersistentVolumeClaimSpec, ReplicaSet, ReplicaSetSpec, WirePod,
};
use tenon_api::objects::{Kind, Object, ObjectFault, ObjectKey, Objects};

/// Objects that are there already, or were just added.
pub(super) struct Companions {
    known: BTreeSet<ObjectKey>,
}

impl Companions {
    pub(super) fn of(objects: &Objects) -> Companions {
        let claims =
            objects.persistent_volume_claims.iter().map(|found| key(Kind::PersistentVolumeClaim, &found.metadata));
        let sets = objects.replica_sets.iter().map(|found| key(Kind::ReplicaSet, &found.metadata));
        Companions { known: claims.chain(sets).collect() }
    }

    /// Adds the claims of a pod: one for each template of its StatefulSet, and one for each of its ephemeral volumes. A
    /// claim of the input stays as it is.
    pub(super) fn add_claims(
        &mut self,
        pod: &WirePod,
        templates: &[PersistentVolumeClaim],
        into: &mut Objects,
    ) -> Result<(), ObjectFault> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let of_set = templates.iter().filter_map(|template| {
            let claim = template.metadata.name.as_deref()?;
            Some((format!("{claim}-{name}"), template.spec.clone()))
        });
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let ephemeral = volumes.filter_map(|volume| {
            let source = volume.ephemeral.as_ref()?;
            Some((format!("{name}-{}", volume.name), claimed(source)))
        });
        for (name, spec) in of_set.chain(ephemeral) {
            let metadata =
                ObjectMeta { name: Some(name), namespace: pod.metadata.namespace.clone(), ..ObjectMeta::default() };
            self.add(PersistentVolumeClaim { metadata, spec, status: None }.into(), into)?;
        }
        Ok(())
    }

    /// Adds the ReplicaSet of a Deployment, under the name that its pods have for it.
    pub(super) fn add_replica_set(
        &mut self,
        deployment: &ObjectKey,
        selector: LabelSelector,
        into: &mut Objects,
    ) -> Result<(), ObjectFault> {
        let (name, namespace) = (Some(deployment.name.clone()), Some(deployment.namespace.clone()));
        let metadata = ObjectMeta { name, namespace, ..ObjectMeta::default() };
        let spec = ReplicaSetSpec { selector: Some(selector), ..ReplicaSetSpec::default() };
        self.add(ReplicaSet { metadata, spec, status: None }.into(), into)
    }

    fn add(&mut self, object: Object, into: &mut Objects) -> Result<(), ObjectFault> {
        if self.known.insert(object.key()) {
            into.add(object.settled()?);
        }
        Ok(())
    }
}

fn claimed(source: &EphemeralVolumeSource) -> Option<PersistentVolumeClaimSpec> {
    source.volume_claim_template.as_ref()?.spec.clone()
}

fn key(kind: Kind, meta: &ObjectMeta) -> ObjectKey {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    ObjectKey { kind, namespace: text(&meta.namespace), name: text(&meta.name) }
}
