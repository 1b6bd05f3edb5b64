//! What does a node do for the pods bound to it?
//!
//! They become ready after a delay, and when they are deleted they go after their grace. Nothing runs: containers of
//! one-off pods never end, and init containers take no time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::TryStreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, Preconditions, WatchEvent,
    WatchParams,
};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tenon_api::kube_objects::WirePod as Pod;
use tokio::time::Instant;

use super::join::Member;
use super::node;
use super::trouble::Trouble;

/// The server ends a watch after this, and the list is taken anew.
const WATCH_SECONDS: u32 = 240;
/// A watch that is silent for longer has died unnoticed.
const WATCH_SILENCE: Duration = Duration::from_secs(270);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Remove,
}

/// Something to do for a pod.
#[derive(Debug)]
struct Task {
    pod: DynamicObject,
    step: Step,
    due: Instant,
}

/// What is to be done, by the pod's uid.
#[derive(Debug, Default)]
struct Agenda {
    tasks: BTreeMap<String, Task>,
    /// Pods that were reported running. A late event may still show them as they were before.
    started: BTreeSet<String>,
    /// How many those were so far, for their addresses.
    count: u32,
}

/// Looks after the node's pods for as long as the VM runs.
pub(crate) async fn keep(member: &Member, client: &Client) {
    let mut agenda = Agenda::default();
    loop {
        if let Err(trouble) = follow(member, client, &mut agenda).await {
            member.machine.say(trouble.story());
        }
        // Also after a watch that ended in order: a server that ends them all at once is not to be asked at once.
        tokio::time::sleep(member.machine.config.retry_first).await;
    }
}

/// One list and the watch that goes on from it.
async fn follow(member: &Member, client: &Client, agenda: &mut Agenda) -> Result<(), Trouble> {
    let (machine, pods) = (&member.machine, Api::<DynamicObject>::all_with(client.clone(), &kind()));
    let bound = format!("spec.nodeName={}", member.kubelet.node_name);
    let list = machine.ask("list the node's pods", pods.list(&ListParams::default().fields(&bound))).await?;
    let here = |uid: &String| list.items.iter().any(|pod| pod.metadata.uid.as_ref() == Some(uid));
    agenda.tasks.retain(|uid, _| here(uid));
    agenda.started.retain(here);
    let version = list.metadata.resource_version.unwrap_or_default();
    list.items.into_iter().for_each(|pod| agenda.note(member, pod));

    let params = WatchParams::default().fields(&bound).timeout(WATCH_SECONDS);
    let stream = machine.ask("watch the node's pods", pods.watch(&params, &version)).await?;
    let mut stream = std::pin::pin!(stream);
    let mut silent_at = Instant::now() + WATCH_SILENCE;
    loop {
        let due = agenda.tasks.values().map(|task| task.due).min();
        tokio::select! {
            biased;
            event = stream.try_next() => {
                let refused = |source| Trouble::Refused { action: "watch the node's pods", source: Box::new(source) };
                silent_at = Instant::now() + WATCH_SILENCE;
                match event.map_err(refused)? {
                    Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) => agenda.note(member, pod),
                    Some(WatchEvent::Deleted(pod)) => agenda.forget(&pod.uid().unwrap_or_default()),
                    Some(WatchEvent::Bookmark(_)) => {}
                    // The version is too old, or the watch has run its time: list anew.
                    Some(WatchEvent::Error(_)) | None => return Ok(()),
                }
            }
            () = tokio::time::sleep_until(due.unwrap_or(silent_at)), if due.is_some() => {
                agenda.act(member, client).await;
            }
            () = tokio::time::sleep_until(silent_at) => return Ok(()),
            () = machine.fate.network_lost() => return Ok(()),
        }
    }
}

/// Pods are kept as they stand: a kubelet reports on parts of them that nobody else here reads.
fn kind() -> ApiResource {
    ApiResource::erase::<Pod>(&())
}

impl Agenda {
    /// Decides what a pod needs next.
    fn note(&mut self, member: &Member, pod: DynamicObject) {
        let (config, now) = (&member.machine.config, Instant::now());
        let phase = pod.data["status"]["phase"].as_str().unwrap_or("Pending").to_owned();
        let uid = pod.uid().unwrap_or_default();
        let (step, due) = if pod.metadata.deletion_timestamp.is_some() {
            let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
            let grace = Duration::from_secs(u64::try_from(grace).unwrap_or(0)).min(config.max_grace);
            // What does not run needs no time to end.
            (Step::Remove, if phase == "Running" { now + grace } else { now })
        } else if phase == "Pending" && !self.started.contains(&uid) {
            (Step::Start, now + config.pod_start_delay)
        } else {
            self.tasks.remove(&uid);
            return;
        };
        // What was noted before keeps its time, unless the new one is shorter.
        let earlier = self.tasks.get(&uid).filter(|task| task.step == step).map(|task| task.due);
        let due = earlier.map_or(due, |earlier| earlier.min(due));
        self.tasks.insert(uid, Task { pod, step, due });
    }

    fn forget(&mut self, uid: &str) {
        self.tasks.remove(uid);
        self.started.remove(uid);
    }

    /// Does what is due first.
    async fn act(&mut self, member: &Member, client: &Client) {
        let first = self.tasks.iter().min_by_key(|(_, task)| task.due).map(|(uid, _)| uid.clone());
        let Some((uid, mut task)) = first.and_then(|uid| self.tasks.remove_entry(&uid)) else { return };
        let pods = Api::namespaced_with(client.clone(), &task.pod.namespace().unwrap_or_default(), &kind());
        let done = match task.step {
            Step::Start => {
                let number = self.count;
                self.count = self.count.wrapping_add(1);
                start(member, &pods, &task.pod, number).await
            }
            Step::Remove => remove(member, &pods, &task.pod).await,
        };
        match done {
            Err(trouble) if !trouble.is_gone() => {
                member.machine.say(trouble.story());
                task.due = Instant::now() + member.machine.config.retry_first;
                self.tasks.insert(uid, task);
            }
            Ok(()) if task.step == Step::Start => drop(self.started.insert(uid)),
            _ => {}
        }
    }
}

async fn start(member: &Member, pods: &Api<DynamicObject>, pod: &DynamicObject, number: u32) -> Result<(), Trouble> {
    let status = running_status(member, pod, number);
    // The uid keeps a namesake that came in the meantime from being reported.
    let patch = Patch::Merge(json!({ "metadata": { "uid": pod.metadata.uid }, "status": status }));
    let (name, params) = (pod.name_any(), PatchParams::default());
    member.machine.ask("report a pod running", pods.patch_status(&name, &params, &patch)).await.map(drop)
}

async fn remove(member: &Member, pods: &Api<DynamicObject>, pod: &DynamicObject) -> Result<(), Trouble> {
    let preconditions = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
    let params = DeleteParams::default().grace_period(0).preconditions(preconditions);
    member.machine.ask("remove a pod", pods.delete(&pod.name_any(), &params)).await.map(drop)
}

/// What a kubelet says of a pod whose containers all run and are ready.
fn running_status(member: &Member, pod: &DynamicObject, number: u32) -> Value {
    const OWN: [&str; 4] = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];
    let (vmid, now) = (member.machine.vm.vmid, Time(member.machine.journal.now()));
    let own = OWN.map(|kind| json!({ "type": kind, "status": "True", "lastTransitionTime": now }));
    let theirs = pod.data["status"]["conditions"].as_array().into_iter().flatten();
    let is_own = |condition: &Value| condition["type"].as_str().is_some_and(|kind| OWN.contains(&kind));
    let theirs = theirs.filter(|condition| !is_own(condition)).cloned();
    let ip = node::pod_address(vmid, number);
    let containers = pod.data["spec"]["containers"].as_array().into_iter().flatten().map(|container| {
        let image = container["image"].as_str().unwrap_or_default();
        json!({
            "name": container["name"], "image": image, "imageID": image, "ready": true, "started": true,
            "restartCount": 0, "state": { "running": { "startedAt": now } },
        })
    });
    json!({
        "phase": "Running",
        "startTime": now,
        "hostIP": node::address(&member.machine),
        "hostIPs": [{ "ip": node::address(&member.machine) }],
        "podIP": ip,
        "podIPs": [{ "ip": ip }],
        "conditions": own.into_iter().chain(theirs).collect::<Vec<_>>(),
        "containerStatuses": containers.collect::<Vec<_>>(),
    })
}
