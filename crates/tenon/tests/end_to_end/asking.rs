//! What can be asked of a world: conditions, events about one object, lines of the log, and what the controller serves.

use std::fmt::Debug;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tenon_api::Condition;

use crate::ground::Ground;
use crate::world::{NAMESPACE, World};

/// In place of a name: whatever object it is.
pub(crate) const ANY: &str = "*";

/// An object of a kind with conditions.
pub(crate) trait Judged: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug {}

impl<K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug> Judged for K {}

impl World {
    /// A condition of an object of the whole cluster.
    pub(crate) async fn condition<K: Judged>(&self, name: &str, type_: &str) -> anyhow::Result<Option<Condition>> {
        let found = Api::<K>::all(self.admin.clone()).get_opt(name).await?;
        let object = serde_json::to_value(found)?;
        let conditions = object.pointer("/status/conditions").cloned().unwrap_or(Value::Array(Vec::new()));
        let conditions: Vec<Condition> = serde_json::from_value(conditions)?;
        Ok(conditions.into_iter().find(|condition| condition.type_ == type_))
    }

    /// Waits until a condition has this status and reason; what it says then.
    pub(crate) async fn until_condition<K: Judged>(
        &self,
        (name, type_): (&str, &str),
        (status, reason): (&str, &str),
    ) -> anyhow::Result<String> {
        let what = format!("{type_} of {} {name} is {status}, {reason}", K::kind(&()));
        self.until(&what, async || {
            let found = self.condition::<K>(name, type_).await?;
            let is_it = |told: &Condition| format!("{:?}", told.status) == status && told.reason == reason;
            Ok(found.filter(is_it).map(|told| told.message))
        })
        .await
    }

    /// Waits for an event about just this object (or any of its kind), with this reason and these words; all it says.
    pub(crate) async fn until_told(
        &self,
        (kind, name): (&str, &str),
        reason: &str,
        words: &str,
    ) -> anyhow::Result<String> {
        let events: Api<Event> = Api::all(self.admin.clone());
        self.until(&format!("an event {reason} of {kind} {name} says `{words}`"), async || {
            let list = events.list(&ListParams::default()).await?.items;
            let is_about = |event: &Event| {
                let about = event.regarding.clone().unwrap_or_default();
                about.kind.as_deref() == Some(kind) && (name == ANY || about.name.as_deref() == Some(name))
            };
            let ours = list.into_iter().filter(|event| event.reason.as_deref() == Some(reason) && is_about(event));
            Ok(ours.filter_map(|event| event.note).find(|note| note.contains(words)))
        })
        .await
    }

    /// Waits for a line of the log that somebody should look at, with these words.
    pub(crate) async fn until_warned(&self, words: &str) -> anyhow::Result<()> {
        self.until(&format!("a warning in the log says `{words}`"), async || {
            let log = self.log();
            let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let is_it = |line: &Value| line["level"] == "WARN" && line["message"].to_string().contains(words);
            Ok(lines.any(|line| is_it(&line)).then_some(()))
        })
        .await
    }

    /// The pods of a deployment.
    pub(crate) async fn pods(&self, app: &str) -> anyhow::Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.admin.clone(), NAMESPACE);
        Ok(pods.list(&ListParams::default().labels(&format!("app={app}"))).await?.items)
    }

    /// The name of the only pod of a deployment.
    pub(crate) async fn pod(&self, app: &str) -> anyhow::Result<String> {
        let what = format!("deployment {app} has a pod");
        self.until(&what, async || Ok(self.pods(app).await?.first().map(ResourceExt::name_any))).await
    }

    /// Waits until the only pod of a deployment hears these words of why it waits; all it hears.
    pub(crate) async fn until_pod_waits(&self, app: &str, words: &str) -> anyhow::Result<String> {
        let pod = self.pod(app).await?;
        self.until_told(("Pod", &pod), "FailedScheduling", words).await
    }

    /// How many changes were asked of the estate whose path ends like this.
    pub(crate) fn changes(&self, path_end: &str) -> usize {
        let ledger = self.estate.ledger();
        ledger.iter().filter(|call| call.method == "POST" && call.path.ends_with(path_end)).count()
    }

    /// Waits until so much time has passed on the estate's clock; something must not happen meanwhile.
    pub(crate) async fn let_pass(&self, time: Duration) -> anyhow::Result<()> {
        let end = self.estate.elapsed() + time;
        self.until("time passes", async || Ok((self.estate.elapsed() >= end).then_some(()))).await
    }

    /// What the controller answers on the port that its log calls `metrics` or `health`.
    pub(crate) fn served(&self, port: &str, path: &str) -> anyhow::Result<String> {
        if let Ground::Embedded(embedded) = self.ground() {
            return embedded.served(port);
        }
        let log = self.log();
        let mut lines = log.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let line =
            lines.find(|line| line["message"] == format!("serving {port}")).context("the log names no such port")?;
        let address: SocketAddr = line["address"].as_str().unwrap_or_default().parse()?;
        let mut stream = TcpStream::connect(("127.0.0.1", address.port()))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}
