//! How does a node show that it is alive?

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tenon_api::kube_objects::Node;
use tokio::time::{Interval, MissedTickBehavior};

use super::join::Member;
use super::node;
use super::trouble::Trouble;

const LEASE_NAMESPACE: &str = "kube-node-lease";
/// What a kubelet promises in its Lease.
const LEASE_SECONDS: i32 = 40;

/// Renews the node's Lease for as long as the VM runs.
pub(crate) async fn renew_lease(member: &Member, client: &Client) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let nodes: Api<Node> = Api::all(client.clone());
    let mut ticks = ticks(member.machine.config.lease_interval);
    loop {
        ticks.tick().await;
        if let Err(trouble) = renew_once(member, &leases, &nodes).await {
            member.machine.say(trouble.story());
        }
    }
}

async fn renew_once(member: &Member, leases: &Api<Lease>, nodes: &Api<Node>) -> Result<(), Trouble> {
    let (machine, name) = (&member.machine, &member.kubelet.node_name);
    let spec = json!({
        "holderIdentity": name,
        "leaseDurationSeconds": LEASE_SECONDS,
        "renewTime": MicroTime(machine.journal.now()),
    });
    let (patch, params) = (Patch::Merge(json!({ "spec": spec })), PatchParams::default());
    match machine.ask("renew the lease", leases.patch(name, &params, &patch)).await {
        Err(trouble) if trouble.code() == Some(404) => {}
        other => return other.map(drop),
    }
    // A Lease belongs to its Node; without one, kubelets make none either.
    let node = machine.ask("look up the node for its lease", nodes.get(name)).await?;
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid });
    let lease = json!({
        "metadata": { "name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner] },
        "spec": spec,
    });
    let action = "make the lease";
    let lease: Lease = serde_json::from_value(lease).map_err(|source| Trouble::Shape { action, source })?;
    machine.ask(action, leases.create(&PostParams::default(), &lease)).await.map(drop)
}

/// Reports the node's status again and again.
pub(crate) async fn report_status(member: &Member, nodes: &Api<Node>) {
    let mut ticks = ticks(member.machine.config.status_interval);
    // The registration was the first report.
    ticks.reset();
    loop {
        ticks.tick().await;
        if let Err(trouble) = report_once(member, nodes).await {
            member.machine.say(trouble.story());
        }
    }
}

/// Reports the status once; conditions of others stay.
pub(crate) async fn report_once(member: &Member, nodes: &Api<Node>) -> Result<(), Trouble> {
    let (machine, name) = (&member.machine, &member.kubelet.node_name);
    let found = machine.ask("look up the node", nodes.get(name)).await?;
    let theirs = found.status.and_then(|status| status.conditions).unwrap_or_default();
    let theirs = theirs.iter().filter(|condition| !node::is_own_condition(&condition.type_));
    let mut conditions = node::conditions(machine, &member.since);
    if let Value::Array(own) = &mut conditions {
        own.extend(theirs.map(|condition| json!(condition)));
    }
    let mut status = node::status(machine, &member.kubelet);
    status["conditions"] = conditions;
    let (patch, params) = (Patch::Merge(json!({ "status": status })), PatchParams::default());
    machine.ask("report the node's status", nodes.patch_status(name, &params, &patch)).await.map(drop)
}

fn ticks(every: std::time::Duration) -> Interval {
    // An interval of nothing would panic.
    let mut ticks = tokio::time::interval(every.max(std::time::Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
