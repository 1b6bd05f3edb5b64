//! Where does a pod go, and what is said of one that goes nowhere?

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Binding;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tenon_api::kube_objects::{Node, WirePod as Pod};
use tenon_api::pod;
use tenon_model::{Effect, HostPort, Pod as Wanted, Preferred, Quantity, Requirements, Resources, Taint};

use super::board::{Board, has_ended};
use super::neighbours::{Neighbours, Rules};
use super::owner::read;
use super::volume_binding::{Storage, Volumes};

/// What a node has left.
#[derive(Default)]
struct Room {
    left: Resources,
    ports: Vec<HostPort>,
}

impl Room {
    fn take(&mut self, pod: &Wanted) {
        self.left = self.left.without(&pod.requests);
        self.ports.extend(pod.host_ports.iter().cloned());
    }

    fn has_ports_for(&self, pod: &Wanted) -> bool {
        !pod.host_ports.iter().any(|wanted| self.ports.iter().any(|used| used.conflicts_with(wanted)))
    }
}

/// What decides about a node, besides the node.
struct Look<'b> {
    board: &'b Board,
    room: BTreeMap<String, Room>,
    neighbours: Neighbours<'b>,
    storage: Storage<'b>,
}

/// A pod, and what others and its volumes demand of its node.
struct Asked<'b> {
    pod: Wanted,
    rules: Rules,
    volumes: Volumes<'b>,
}

/// Binds every pod that fits somewhere, the oldest first; the others hear why not.
pub(crate) async fn schedule(board: &Board) -> Result<(), kube::Error> {
    let mut look = Look { board, room: rooms(board), neighbours: Neighbours::new(board), storage: Storage::new(board) };
    let mut waiting: Vec<&Pod> = board.pods.iter().filter(|pod| is_waiting(pod)).collect();
    waiting.sort_by_key(|pod| (pod.creation_timestamp().map(|time| time.0), pod.name_any()));
    for found in waiting {
        match look.choose(found) {
            Ok((node, asked)) => look.put(found, node, asked).await?,
            Err(why) => refuse(board, found, &why).await?,
        }
    }
    Ok(())
}

impl<'b> Look<'b> {
    /// Binds the pod, or lets it wait on this node for its volumes.
    async fn put(&mut self, found: &Pod, node: &Node, asked: Asked<'b>) -> Result<(), kube::Error> {
        let name = node.name_any();
        if self.storage.bind(&asked.volumes, node).await? {
            bind(self.board, found, &name).await?;
        }
        if let Some(room) = self.room.get_mut(&name) {
            room.take(&asked.pod);
        }
        self.storage.attach(&name, found);
        self.neighbours.add(&name, asked.pod);
        Ok(())
    }

    /// The node that suits a pod best: by its wishes, then by memory that is left; by name where they are alike.
    fn choose(&self, found: &Pod) -> Result<(&'b Node, Asked<'b>), String> {
        let nodes = self.board.nodes.len();
        let volumes = self.storage.of(found).map_err(|why| format!("0/{nodes} nodes are available: {why}."))?;
        let pod = pod::to_model(&found.clone().into());
        let asked = Asked { rules: self.neighbours.rules(&pod), pod, volumes };
        let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
        let mut fits = Vec::new();
        for node in &self.board.nodes {
            match self.refusal(node, &asked) {
                None => fits.push(node),
                Some(why) => *refusals.entry(why).or_default() += 1,
            }
        }
        let memory = |node: &Node| self.room.get(&node.name_any()).map(|room| room.left.get("memory"));
        let worth = |node: &Node| (asked.worth(node), memory(node).unwrap_or_default());
        let best =
            fits.into_iter().max_by(|a, b| worth(a).cmp(&worth(b)).then_with(|| b.name_any().cmp(&a.name_any())));
        match best {
            Some(node) => Ok((node, asked)),
            None => {
                let told: Vec<String> = refusals.iter().map(|(why, count)| format!("{count} {why}")).collect();
                let told = if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) };
                Err(format!("0/{nodes} nodes are available{told}."))
            }
        }
    }

    /// Why a node does not take a pod, in few words.
    fn refusal(&self, node: &Node, Asked { pod, rules, volumes }: &Asked<'_>) -> Option<String> {
        let is_cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
        if is_cordoned {
            return Some("node(s) were unschedulable".to_owned());
        }
        if let Some(taint) = barring(pod, node) {
            return Some(format!("node(s) had untolerated taint {{{}: {}}}", taint.key, taint.value));
        }
        if !matches(pod, node) {
            return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
        }
        let nothing = Room::default();
        let room = self.room.get(&node.name_any()).unwrap_or(&nothing);
        if !room.has_ports_for(pod) {
            return Some("node(s) didn't have free ports for the requested pod ports".to_owned());
        }
        if let Some(short) = pod.requests.shortage_in(&room.left) {
            return Some(match short.resource.as_str() {
                "pods" => "Too many pods".to_owned(),
                resource => format!("Insufficient {resource}"),
            });
        }
        let of_volumes = self.storage.refusal(volumes, node);
        of_volumes.or_else(|| rules.refusal(node.labels())).map(str::to_owned)
    }
}

impl Asked<'_> {
    /// How much the pod would rather have a node.
    fn worth(&self, node: &Node) -> i64 {
        let labels = Requirements::from_labels(node.labels());
        let is_met = |wish: &&Preferred| labels.meet(&wish.requirements, |_| false).is_ok();
        let own: i64 = self.pod.preferred.iter().filter(is_met).map(|wish| i64::from(wish.weight)).sum();
        own + self.rules.worth(node.labels())
    }
}

fn is_waiting(pod: &Pod) -> bool {
    let is_gated = pod.spec.as_ref().is_some_and(|spec| spec.scheduling_gates.iter().flatten().next().is_some());
    pod.node_name().is_none() && !is_gated && pod.metadata.deletion_timestamp.is_none() && !has_ended(pod)
}

/// What each node has left.
fn rooms(board: &Board) -> BTreeMap<String, Room> {
    let whole = |node: &Node| Room { left: offers(node), ports: Vec::new() };
    let mut rooms: BTreeMap<String, Room> = board.nodes.iter().map(|node| (node.name_any(), whole(node))).collect();
    for found in board.pods.iter().filter(|pod| !has_ended(pod)) {
        let node = found.node_name().unwrap_or_default().to_owned();
        if let Some(room) = rooms.get_mut(&node) {
            room.take(&pod::to_model(&found.clone().into()));
        }
    }
    rooms
}

fn offers(node: &Node) -> Resources {
    let amounts = node.status.iter().flat_map(|status| status.allocatable.iter().flatten());
    amounts.filter_map(|(name, amount)| Some((name.clone(), amount.0.parse::<Quantity>().ok()?))).collect()
}

/// The first taint of a node that keeps a pod off.
pub(crate) fn barring(wanted: &Wanted, node: &Node) -> Option<Taint> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let read = |taint: &k8s_openapi::api::core::v1::Taint| {
        let effect = match taint.effect.as_str() {
            "NoSchedule" => Effect::NoSchedule,
            "NoExecute" => Effect::NoExecute,
            _ => return None,
        };
        Some(Taint { key: taint.key.clone(), value: taint.value.clone().unwrap_or_default(), effect })
    };
    taints.filter_map(read).find(|taint| !taint.is_tolerated_by(&wanted.tolerations))
}

/// Whether a node has the labels a pod asks for.
pub(crate) fn matches(wanted: &Wanted, node: &Node) -> bool {
    let labels = Requirements::from_labels(node.labels());
    wanted.alternatives.iter().any(|alternative| labels.meet(alternative, |_| false).is_ok())
}

async fn bind(board: &Board, pod: &Pod, node: &str) -> Result<(), kube::Error> {
    let binding: Binding = read(json!({
        "metadata": { "name": pod.name_any(), "namespace": pod.namespace(), "uid": pod.uid() },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    }))?;
    let api: Api<Pod> = Api::namespaced(board.client.clone(), &pod.namespace().unwrap_or_default());
    // The answer is a Status, which nobody needs.
    let bound: Result<serde_json::Value, _> =
        api.create_subresource("binding", &pod.name_any(), &PostParams::default(), &binding).await;
    bound.map(drop)
}

async fn refuse(board: &Board, pod: &Pod, why: &str) -> Result<(), kube::Error> {
    let conditions: Vec<_> = pod.status.iter().flat_map(|status| status.conditions.iter().flatten()).cloned().collect();
    let known = conditions.iter().find(|told| told.type_ == "PodScheduled");
    if known.is_some_and(|told| told.reason.as_deref() == Some("Unschedulable") && told.message.as_deref() == Some(why))
    {
        return Ok(());
    }
    let since = known.and_then(|told| told.last_transition_time.clone()).unwrap_or_else(|| board.time());
    let mut next: Vec<_> =
        conditions.into_iter().filter(|told| told.type_ != "PodScheduled").map(|told| json!(told)).collect();
    next.push(json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why, "lastTransitionTime": since,
    }));
    let api: Api<Pod> = Api::namespaced(board.client.clone(), &pod.namespace().unwrap_or_default());
    let patch = json!({ "status": { "conditions": next } });
    match api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => Ok(()),
        outcome => outcome.map(drop),
    }
}
