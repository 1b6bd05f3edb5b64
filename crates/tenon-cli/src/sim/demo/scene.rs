//! What there is to see at one moment: pods, nodes on their way, hosts and what is on them.

use std::collections::BTreeMap;
use std::time::Duration;
use tenon_api::kube_objects::{Node, WirePod};

use kube::ResourceExt;
use kube::api::{Api, ListParams};
use tenon_api::{Condition, ConditionStatus, NodeClaim, launch_record, names};

use super::site::Site;

/// One moment of the demo.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    /// When, on the demo's clock.
    pub(crate) at: Duration,
    pub(crate) pending: usize,
    pub(crate) running: usize,
    pub(crate) nodes: usize,
    pub(crate) claims: BTreeMap<String, ClaimRow>,
    pub(crate) hosts: Vec<HostRow>,
    pub(crate) vms: usize,
}

/// A node on its way, there, or going.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimRow {
    pub(crate) size: String,
    pub(crate) host: String,
    pub(crate) vmid: u32,
    pub(crate) state: State,
}

/// How far a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Planned,
    Booting,
    Joined,
    Ready,
    Draining,
    Stopping,
}

/// A host and the cores its VMs have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostRow {
    pub(crate) name: String,
    pub(crate) cores: u32,
    pub(crate) used: u32,
    pub(crate) vms: usize,
}

impl Scene {
    /// Looks at everything.
    pub(crate) async fn look(site: &Site) -> anyhow::Result<Scene> {
        let client = site.client();
        let all = ListParams::default();
        let pods = Api::<WirePod>::all(client.clone()).list(&all).await?.items;
        let nodes = Api::<Node>::all(client.clone()).list(&all).await?.items;
        let claims = Api::<NodeClaim>::all(client.clone()).list(&all).await?.items;
        let phase = |pod: &WirePod| pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
        let is_running = |pod: &&WirePod| phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none();
        Ok(Scene {
            at: site.elapsed(),
            pending: pods.iter().filter(|pod| pod.node_name().is_none()).count(),
            running: pods.iter().filter(is_running).count(),
            nodes: nodes.len(),
            claims: claims.iter().map(|claim| (claim.name_any(), row(claim))).collect(),
            hosts: site.hosts(),
            vms: site.vms(),
        })
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending + self.running + self.nodes + self.claims.len() + self.vms == 0
    }
}

fn row(claim: &NodeClaim) -> ClaimRow {
    let record = claim.annotations().get(names::ANNOTATION_LAUNCH).and_then(|text| launch_record::read(text).ok());
    ClaimRow {
        size: claim.labels().get(names::LABEL_INSTANCE_TYPE).cloned().unwrap_or_default(),
        host: record.as_ref().map(|record| record.place.host.to_string()).unwrap_or_default(),
        vmid: record.as_ref().map(|record| record.vmid.get()).unwrap_or_default(),
        state: state(claim),
    }
}

fn state(claim: &NodeClaim) -> State {
    let conditions: Vec<&Condition> =
        claim.status.iter().flat_map(|status| status.conditions.iter().flatten()).collect();
    let holds =
        |type_: &str| conditions.iter().any(|found| found.type_ == type_ && found.status == ConditionStatus::True);
    match claim.metadata.deletion_timestamp.is_some() {
        true if holds("Drained") || !holds("Registered") => State::Stopping,
        true => State::Draining,
        false if holds("Initialized") => State::Ready,
        false if holds("Registered") => State::Joined,
        false if holds("Launched") => State::Booting,
        false => State::Planned,
    }
}
