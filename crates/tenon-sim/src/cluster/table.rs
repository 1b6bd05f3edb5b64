//! How do people see objects: as rows, the way `kubectl get` shows them?

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::jsonpath;
use super::kinds::Kind;
use super::object::{self, list, number, text};

/// Objects as a `Table`.
pub(crate) fn render(kind: &Kind, objects: &[Arc<Value>], now: Timestamp) -> Value {
    let columns = columns(kind);
    let rows = objects.iter().map(|object| {
        let cells: Vec<Value> = columns.iter().map(|column| (column.cell)(object, column, now)).collect();
        let metadata = object.get("metadata");
        let partial = json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata });
        json!({ "cells": cells, "object": partial })
    });
    let rows: Vec<Value> = rows.collect();
    let definitions: Vec<Value> = columns.iter().map(Column::definition).collect();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": definitions, "rows": rows,
    })
}

/// One column: what it is called and how its cells are read.
struct Column {
    name: String,
    kind: String,
    format: String,
    priority: i64,
    description: String,
    path: String,
    cell: Cell,
}

type Cell = fn(&Value, &Column, Timestamp) -> Value;

impl Column {
    fn definition(&self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format, "priority": self.priority,
            "description": self.description,
        })
    }
}

fn column(name: &str, cell: Cell) -> Column {
    let format = if name == "Name" { "name" } else { "" };
    Column {
        name: name.into(),
        kind: "string".into(),
        format: format.into(),
        priority: 0,
        description: String::new(),
        path: String::new(),
        cell,
    }
}

fn wide(name: &str, path: &str) -> Column {
    Column { priority: 1, path: path.into(), ..column(name, pointed) }
}

fn columns(kind: &Kind) -> Vec<Column> {
    let (name, age) = (column("Name", named), column("Age", aged));
    if let Some(custom) = kind.custom.as_ref().filter(|custom| !custom.columns.is_empty()) {
        return [name].into_iter().chain(custom.columns.iter().map(custom_column)).collect();
    }
    match (kind.group.as_str(), kind.resource.as_str()) {
        ("", "pods") => vec![
            name,
            column("Ready", ready_containers),
            column("Status", pod_status),
            column("Restarts", restarts),
            age,
            wide("IP", "/status/podIP"),
            wide("Node", "/spec/nodeName"),
            wide("Nominated Node", "/status/nominatedNodeName"),
        ],
        ("", "nodes") => vec![
            name,
            column("Status", node_status),
            column("Roles", roles),
            age,
            Column { priority: 0, ..wide("Version", "/status/nodeInfo/kubeletVersion") },
            wide("Internal-IP", "/status/addresses/0/address"),
            wide("OS-Image", "/status/nodeInfo/osImage"),
            wide("Kernel-Version", "/status/nodeInfo/kernelVersion"),
            wide("Container-Runtime", "/status/nodeInfo/containerRuntimeVersion"),
        ],
        ("apps", "deployments") => vec![
            name,
            column("Ready", ready_replicas),
            counted("Up-to-date", "/status/updatedReplicas"),
            counted("Available", "/status/availableReplicas"),
            age,
        ],
        ("", "events") => vec![
            Column { priority: 0, ..wide("Last Seen", "/lastTimestamp") },
            Column { priority: 0, ..wide("Type", "/type") },
            Column { priority: 0, ..wide("Reason", "/reason") },
            column("Object", |event, _, _| {
                let kind = text(event, "/involvedObject/kind").to_ascii_lowercase();
                format!("{kind}/{}", text(event, "/involvedObject/name")).into()
            }),
            Column { priority: 0, ..wide("Message", "/message") },
        ],
        _ => vec![name, age],
    }
}

fn custom_column(told: &Value) -> Column {
    let path = text(told, "/jsonPath");
    let usual = format!("Custom resource definition column (in JSONPath format): {path}");
    let description = Some(text(told, "/description")).filter(|words| !words.is_empty()).map(String::from);
    Column {
        description: description.unwrap_or(usual),
        name: text(told, "/name").into(),
        kind: text(told, "/type").into(),
        format: text(told, "/format").into(),
        priority: number(told, "/priority").unwrap_or(0),
        path: path.into(),
        cell: |object, column, now| match (jsonpath::first(object, &column.path), column.kind.as_str()) {
            (None, _) => Value::Null,
            (Some(value), "date") => age(value.as_str().unwrap_or_default(), now).into(),
            (Some(value), "string") if !value.is_string() => value.to_string().into(),
            (Some(value), _) => value.clone(),
        },
    }
}

fn counted(name: &str, path: &str) -> Column {
    let cell: Cell = |object, column, _| number(object, &column.path).unwrap_or(0).into();
    Column { kind: "string".into(), path: path.into(), ..column(name, cell) }
}

fn named(object: &Value, _: &Column, _: Timestamp) -> Value {
    object::name(object).into()
}

fn aged(object: &Value, _: &Column, now: Timestamp) -> Value {
    age(text(object, "/metadata/creationTimestamp"), now).into()
}

fn pointed(object: &Value, column: &Column, _: Timestamp) -> Value {
    let told = text(object, &column.path);
    if told.is_empty() { "<none>".into() } else { told.into() }
}

fn ready_containers(pod: &Value, _: &Column, _: Timestamp) -> Value {
    let ready = list(pod, "/status/containerStatuses").iter().filter(|told| told["ready"] == true).count();
    format!("{ready}/{}", list(pod, "/spec/containers").len()).into()
}

fn pod_status(pod: &Value, _: &Column, _: Timestamp) -> Value {
    let mut waiting = list(pod, "/status/containerStatuses").iter().map(|told| text(told, "/state/waiting/reason"));
    let waiting = waiting.rfind(|reason| !reason.is_empty());
    let told = [text(pod, "/status/reason"), text(pod, "/status/phase")].into_iter().find(|told| !told.is_empty());
    let told = waiting.or(told).unwrap_or("Unknown");
    if object::is_deleting(pod) { "Terminating".into() } else { told.into() }
}

fn restarts(pod: &Value, _: &Column, _: Timestamp) -> Value {
    let count: i64 =
        list(pod, "/status/containerStatuses").iter().filter_map(|told| number(told, "/restartCount")).sum();
    count.to_string().into()
}

fn node_status(node: &Value, _: &Column, _: Timestamp) -> Value {
    let ready = list(node, "/status/conditions").iter().find(|told| text(told, "/type") == "Ready");
    let status = match ready.map(|told| text(told, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let fenced =
        if node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) { ",SchedulingDisabled" } else { "" };
    format!("{status}{fenced}").into()
}

fn roles(node: &Value, _: &Column, _: Timestamp) -> Value {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let roles = labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"));
    let roles = roles.collect::<Vec<_>>().join(",");
    if roles.is_empty() { "<none>".into() } else { roles.into() }
}

fn ready_replicas(object: &Value, _: &Column, _: Timestamp) -> Value {
    let count = |path: &str| number(object, path).unwrap_or(0);
    format!("{}/{}", count("/status/readyReplicas"), count("/spec/replicas")).into()
}

/// How long ago, in the one or two units people read.
fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else { return "<unknown>".into() };
    let s = (now.as_second() - since.as_second()).max(0);
    let (m, h, d) = (s / 60, s / 3600, s / 86400);
    let two = |first: String, rest: i64, unit: &str| if rest == 0 { first } else { format!("{first}{rest}{unit}") };
    match s {
        0..120 => format!("{s}s"),
        120..600 => two(format!("{m}m"), s % 60, "s"),
        600..10_800 => format!("{m}m"),
        10_800..28_800 => two(format!("{h}h"), m % 60, "m"),
        28_800..172_800 => format!("{h}h"),
        172_800..691_200 => two(format!("{d}d"), h % 24, "h"),
        691_200..63_072_000 => format!("{d}d"),
        _ => two(format!("{}y", d / 365), d % 365, "d"),
    }
}
