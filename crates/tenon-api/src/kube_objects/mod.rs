//! Kubernetes' own objects, each with only the fields that Tenon reads.
//!
//! Field names and types are those of `k8s-openapi`, whose small types are used as they are. Its large ones (a pod has
//! three hundred types below it) cost time to read, memory to keep, and most of the binary. None of these can be
//! written: a field that was not read would be lost. Changes are patches.

mod lean;
mod meta;
mod node;
mod pod;
mod pod_sharing;
mod pod_spec;
mod pod_status;
mod status_fields;
mod storage;
mod workload;

pub use lean::Lean;
pub(crate) use meta::metadata;
pub use node::{Node, NodeSpec, NodeStatus, NodeSystemInfo};
pub(crate) use pod::is_read_annotation;
pub use pod::{Pod, PodMeta, WirePod};
pub use pod_sharing::PodSharing;
pub(crate) use pod_sharing::Recent;
pub use pod_spec::{Container, PersistentVolumeClaimVolumeSource, PodSchedulingGate, PodSpec, PodTemplateSpec, Volume};
pub use pod_status::{ContainerStatus, PodStatus};
pub use status_fields::StatusFields;
pub use storage::{
    CSINode, CSINodeDriver, CSINodeSpec, CSIPersistentVolumeSource, EphemeralVolumeSource, PersistentVolume,
    PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimStatus, PersistentVolumeClaimTemplate,
    PersistentVolumeSpec, StorageClass, VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec,
    VolumeNodeResources,
};
pub use workload::{
    CronJob, CronJobSpec, DaemonSet, DaemonSetSpec, Deployment, DeploymentSpec, Job, JobSpec, JobTemplateSpec,
    Namespace, PodDisruptionBudget, PodDisruptionBudgetSpec, ReplicaSet, ReplicaSetSpec, ReplicationController,
    ReplicationControllerSpec, Service, ServiceSpec, StatefulSet, StatefulSetOrdinals, StatefulSetSpec,
};

#[cfg(test)]
mod tests {
    use k8s_openapi::Resource;
    use k8s_openapi::api::storage::v1 as storage;
    use k8s_openapi::api::{apps::v1 as apps, batch::v1 as batch, core::v1 as core, policy::v1 as policy};
    use serde_json::json;

    use super::*;

    /// How the API server serves a kind.
    fn served<K: Resource>() -> [&'static str; 5] {
        [K::API_VERSION, K::GROUP, K::VERSION, K::KIND, K::URL_PATH_SEGMENT]
    }

    #[test]
    fn every_kind_is_served_where_the_library_finds_it() {
        assert_eq!(served::<WirePod>(), served::<core::Pod>());
        assert_eq!(served::<Node>(), served::<core::Node>());
        assert_eq!(served::<Namespace>(), served::<core::Namespace>());
        assert_eq!(served::<Service>(), served::<core::Service>());
        assert_eq!(served::<PersistentVolume>(), served::<core::PersistentVolume>());
        assert_eq!(served::<PersistentVolumeClaim>(), served::<core::PersistentVolumeClaim>());
        assert_eq!(served::<ReplicationController>(), served::<core::ReplicationController>());
        assert_eq!(served::<DaemonSet>(), served::<apps::DaemonSet>());
        assert_eq!(served::<Deployment>(), served::<apps::Deployment>());
        assert_eq!(served::<ReplicaSet>(), served::<apps::ReplicaSet>());
        assert_eq!(served::<StatefulSet>(), served::<apps::StatefulSet>());
        assert_eq!(served::<Job>(), served::<batch::Job>());
        assert_eq!(served::<CronJob>(), served::<batch::CronJob>());
        assert_eq!(served::<PodDisruptionBudget>(), served::<policy::PodDisruptionBudget>());
        assert_eq!(served::<StorageClass>(), served::<storage::StorageClass>());
        assert_eq!(served::<CSINode>(), served::<storage::CSINode>());
        assert_eq!(served::<VolumeAttachment>(), served::<storage::VolumeAttachment>());
    }

    #[test]
    fn null_means_what_a_missing_field_means() {
        let pod =
            json!({"metadata": null, "spec": {"containers": null, "volumes": [{"name": null, "ephemeral": null}]}});
        let pod: WirePod = serde_json::from_value(pod).unwrap();
        let spec = pod.spec.unwrap();
        assert_eq!((pod.metadata.name, spec.containers.len(), pod.status), (None, 0, None));
        assert_eq!(spec.volumes, Some(vec![Volume::default()]));
        let set: Deployment = serde_json::from_value(json!({"spec": {"template": null}, "status": null})).unwrap();
        assert_eq!(set, Deployment::default());
    }

    #[test]
    fn fields_spelled_unusually_are_read() {
        let node = json!({"spec": {"providerID": "p"}, "status": {"nodeInfo": {"systemUUID": "u"}}});
        let node: Node = serde_json::from_value(node).unwrap();
        assert_eq!(node.spec.unwrap().provider_id.as_deref(), Some("p"));
        assert_eq!(node.status.unwrap().node_info.unwrap().system_uuid, "u");
        let pod: WirePod = serde_json::from_value(json!({"status": {"hostIP": "h", "podIP": "p"}})).unwrap();
        let status = pod.status.unwrap();
        assert!(status.host_ip.is_some() && status.pod_ip.is_some() && status != PodStatus::default());
    }
}
