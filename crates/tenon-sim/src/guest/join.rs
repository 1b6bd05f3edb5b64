//! What does a VM do from power on until its power is cut?
//!
//! Everything runs inside one future, so that ending it ends all at once, as cutting the power does.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;
use tenon_api::kube_objects::Node;

use super::boot::{Kubelet, boot};
use super::fault::Ending;
use super::machine::Machine;
use super::trouble::Trouble;
use super::{certificate, heartbeat, node, pods, serving};
use crate::estate::Estate;

/// A kubelet with its certificate.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) machine: Machine,
    pub(crate) kubelet: Kubelet,
    pub(crate) access: super::access::ApiAccess,
    /// Since when the node is ready.
    pub(crate) since: Time,
}

/// Runs until it is dropped.
pub(crate) async fn live(machine: Machine, estate: Estate) {
    let Some((at, ending)) = machine.fate.ending() else { return run(machine, estate).await };
    let weak = estate.weak();
    // A timer that is over ends the future, and with it everything inside the VM.
    let _ = tokio::time::timeout_at(at, run(machine.clone(), estate)).await;
    match ending {
        Ending::Hangs => {
            machine.say("the guest hangs");
            weak.with(|state| state.hang(machine.vm.vmid));
        }
        Ending::Crashes => {
            machine.say("the guest crashes");
            weak.with(|state| state.power_off(machine.vm.vmid));
        }
    }
    std::future::pending::<()>().await;
}

async fn run(machine: Machine, estate: Estate) {
    tokio::time::sleep(machine.config.boot_delay + machine.fate.slower_boot()).await;
    let outcome = boot(&machine, &estate);
    // What runs inside a VM does not keep the estate alive.
    drop(estate);
    match outcome {
        Ok(_) if machine.fate.never_joins() => machine.say("the kubelet does not start"),
        Ok(kubelet) => return work(machine, kubelet).await,
        Err(trouble) => machine.say(trouble.story()),
    }
    // Nothing on the disk will change, so a kubelet that systemd starts again would fail again.
    std::future::pending::<()>().await;
}

async fn work(machine: Machine, mut kubelet: Kubelet) {
    if let Some(name) = machine.fate.wrong_name(machine.vm.vmid) {
        kubelet.node_name = name;
    }
    if let Some(name) = machine.fate.first_name(&kubelet.node_name) {
        join_before_naming(&machine, Kubelet { node_name: name, ..kubelet.clone() }).await;
    }
    let member = join(&machine, kubelet).await;
    let client = member.machine.insist(|| async { member.machine.client(&member.access) }).await;
    let nodes: Api<Node> = Api::all(client.clone());
    member.machine.insist(|| member.register(&client, &nodes)).await;
    member.machine.say(format!("registered node {}", member.kubelet.node_name));
    tokio::join!(
        heartbeat::renew_lease(&member, &client),
        heartbeat::report_status(&member, &nodes),
        pods::keep(&member, &client),
        serving::keep(&member, &client),
    );
}

async fn join(machine: &Machine, kubelet: Kubelet) -> Member {
    let access = machine.insist(|| certificate::obtain(machine, &kubelet)).await;
    let since = Time(machine.journal.now());
    Member { machine: machine.clone(), kubelet, access, since }
}

/// A kubelet that starts before the VM has its name registers a node of its own, and is then started anew without a
/// certificate; so it is when nobody lets it join under that name. On a later boot the certificate is there, and the name.
async fn join_before_naming(machine: &Machine, kubelet: Kubelet) {
    if machine.disk(|disk| disk.file(&kubelet.command.kubeconfig).is_some()) {
        return;
    }
    let joining = async {
        let member = join(machine, kubelet.clone()).await;
        let client = machine.insist(|| async { machine.client(&member.access) }).await;
        let nodes: Api<Node> = Api::all(client.clone());
        machine.insist(|| member.register(&client, &nodes)).await;
    };
    let joined = tokio::time::timeout(machine.config.certificate_wait, joining).await.is_ok();
    let what = if joined { "registered" } else { "could not register" };
    machine.say(format!("{what} node {} before the name was set", kubelet.node_name));
    certificate::forget(machine, &kubelet);
}

impl Member {
    /// Creates the Node; of one that is there already only labels and status are set.
    async fn register(&self, client: &Client, nodes: &Api<Node>) -> Result<(), Trouble> {
        let action = "register the node";
        let object = node::object(&self.machine, &self.kubelet, &self.since);
        let object: DynamicObject =
            serde_json::from_value(object).map_err(|source| Trouble::Shape { action, source })?;
        let all = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::erase::<Node>(&()));
        match self.machine.ask(action, all.create(&PostParams::default(), &object)).await {
            Err(trouble) if trouble.code() == Some(409) => {}
            other => return other.map(drop),
        }
        let labels = Patch::Merge(json!({ "metadata": { "labels": node::usual_labels(&self.kubelet) } }));
        let (name, params) = (&self.kubelet.node_name, PatchParams::default());
        self.machine.ask("label the node", nodes.patch(name, &params, &labels)).await?;
        heartbeat::report_once(self, nodes).await
    }
}
