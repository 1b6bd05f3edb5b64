//! A NodeClaim in a list that is read again and again: without `managedFields`, which take more time and memory than the rest.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::kube_objects::metadata;
use crate::{NodeClaim, NodeClaimSpec, NodeClaimStatus};

/// A NodeClaim as a list shows it.
#[derive(Debug, Clone, Deserialize)]
pub struct ListedClaim {
    #[serde(deserialize_with = "metadata")]
    metadata: ObjectMeta,
    spec: NodeClaimSpec,
    status: Option<NodeClaimStatus>,
}

impl From<ListedClaim> for NodeClaim {
    fn from(ListedClaim { metadata, spec, status }: ListedClaim) -> NodeClaim {
        NodeClaim { metadata, spec, status }
    }
}

impl k8s_openapi::Resource for ListedClaim {
    const API_VERSION: &'static str = "karpenter.sh/v1";
    const GROUP: &'static str = "karpenter.sh";
    const KIND: &'static str = "NodeClaim";
    const VERSION: &'static str = "v1";
    const URL_PATH_SEGMENT: &'static str = "nodeclaims";
    type Scope = k8s_openapi::ClusterResourceScope;
}

impl k8s_openapi::Metadata for ListedClaim {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::Resource;
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_the_claim_but_for_managers() {
        let mut sent = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "a", "uid": "u", "labels": { "a": "b" } },
            "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" }, "expireAfter": "Never" },
            "status": { "providerID": "proxmox://lab/7" },
        });
        let expected: NodeClaim = serde_json::from_value(sent.clone()).unwrap();
        sent["metadata"]["managedFields"] = json!([{ "manager": "tenon", "fieldsV1": { "f:spec": {} } }]);
        let listed: ListedClaim = serde_json::from_value(sent).unwrap();
        assert_eq!(serde_json::to_value(NodeClaim::from(listed)).unwrap(), serde_json::to_value(expected).unwrap());
    }

    #[test]
    fn it_is_served_where_claims_are() {
        assert_eq!(ListedClaim::url_path(&(), None), NodeClaim::url_path(&(), None));
    }
}
