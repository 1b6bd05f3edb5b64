//! Which objects does a list or a watch mean?

use serde_json::Value;

use super::failure::{ApiResult, Failure};
use super::kinds::Kind;
use super::object;

/// Labels and fields together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<(String, bool, String)>,
}

#[derive(Clone, Debug)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
}

impl Selector {
    pub(crate) fn parse(kind: &Kind, labels: &str, fields: &str) -> ApiResult<Self> {
        Ok(Self { labels: parse_labels(labels)?, fields: parse_fields(kind, fields)? })
    }

    /// Of a `LabelSelector` object. One that is empty matches everything, as in `policy/v1`.
    pub(crate) fn of_object(selector: &Value) -> Option<Self> {
        let texts =
            |value: &Value| object::list(value, "/values").iter().filter_map(Value::as_str).map(String::from).collect();
        let mut labels = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            labels.push(Requirement { key: key.clone(), test: Test::In(vec![value.as_str()?.to_owned()]) });
        }
        for expression in object::list(selector, "/matchExpressions") {
            let test = match object::text(expression, "/operator") {
                "In" => Test::In(texts(expression)),
                "NotIn" => Test::NotIn(texts(expression)),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::Missing,
                _ => return None,
            };
            labels.push(Requirement { key: object::text(expression, "/key").to_owned(), test });
        }
        Some(Self { labels, fields: Vec::new() })
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.labels.iter().all(|requirement| requirement.holds(label(&requirement.key)))
            && self.fields.iter().all(|(path, is_equal, wanted)| (field(object, path) == *wanted) == *is_equal)
    }
}

impl Requirement {
    fn holds(&self, label: Option<&str>) -> bool {
        let is_among = |values: &[String]| label.is_some_and(|label| values.iter().any(|value| value == label));
        match &self.test {
            Test::Exists => label.is_some(),
            Test::Missing => label.is_none(),
            Test::In(values) => is_among(values),
            Test::NotIn(values) => !is_among(values),
        }
    }
}

fn field(object: &Value, path: &str) -> String {
    let pointer = format!("/{}", path.replace('.', "/"));
    match object.pointer(&pointer) {
        Some(Value::String(text)) => text.clone(),
        None | Some(Value::Null) if path == "spec.unschedulable" => "false".into(),
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

fn parse_fields(kind: &Kind, text: &str) -> ApiResult<Vec<(String, bool, String)>> {
    let mut fields = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let split = part.split_once("!=").map(|(path, value)| (path, false, value));
        let split = split.or_else(|| part.split_once("==").map(|(path, value)| (path, true, value)));
        let split = split.or_else(|| part.split_once('=').map(|(path, value)| (path, true, value)));
        let Some((path, is_equal, value)) = split else {
            let told = format!("invalid selector: '{part}'; can't understand '{part}'");
            return Err(Failure::bad_request(told));
        };
        if !is_selectable(kind, path) {
            return Err(Failure::bad_request(format!("field label not supported: {path}")));
        }
        // The newer events are stored under the older names.
        let path = if kind.is_new_event() { path.replace("regarding.", "involvedObject.") } else { path.to_owned() };
        fields.push((path, is_equal, value.to_owned()));
    }
    Ok(fields)
}

fn is_selectable(kind: &Kind, path: &str) -> bool {
    const EVENT: [&str; 10] = [
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "type",
    ];
    match (kind.group.as_str(), kind.resource.as_str(), path) {
        (_, _, "metadata.name") => true,
        (_, _, "metadata.namespace") => kind.is_namespaced,
        ("", "pods", path) => matches!(
            path,
            "spec.nodeName"
                | "spec.restartPolicy"
                | "spec.schedulerName"
                | "spec.serviceAccountName"
                | "status.phase"
                | "status.podIP"
                | "status.nominatedNodeName"
                | "spec.hostNetwork"
        ),
        ("", "nodes", path) => path == "spec.unschedulable",
        ("", "namespaces", path) => path == "status.phase",
        ("", "secrets", path) => path == "type",
        ("certificates.k8s.io", _, path) => path == "spec.signerName",
        ("", "events", path) => EVENT.contains(&path),
        ("events.k8s.io", "events", path) => {
            path.starts_with("regarding.") || matches!(path, "reason" | "type" | "reportingController")
        }
        _ => false,
    }
}

fn parse_labels(text: &str) -> ApiResult<Vec<Requirement>> {
    let mut requirements = Vec::new();
    for part in split_outside_parentheses(text) {
        let part = part.trim();
        if !part.is_empty() {
            requirements.push(parse_label(part)?);
        }
    }
    Ok(requirements)
}

/// Commas inside `in (a, b)` do not separate requirements.
fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

fn parse_label(part: &str) -> ApiResult<Requirement> {
    let made = |key: &str, test| Ok(Requirement { key: key.trim().to_owned(), test });
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some(key) = part.strip_prefix('!') {
        return made(key, Test::Missing);
    }
    if let Some((key, value)) = part.split_once("!=") {
        return made(key, Test::NotIn(one(value)));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return made(key, Test::In(one(value)));
    }
    let Some((key, rest)) = part.split_once(char::is_whitespace) else { return made(part, Test::Exists) };
    let (operator, values) = rest.trim().split_once('(').unwrap_or((rest.trim(), ""));
    let is_in = match operator.trim() {
        "in" => true,
        "notin" => false,
        other => {
            let expected = "in, notin, =, ==, !=, gt, lt";
            let told = format!("unable to parse requirement: found '{other}', expected: {expected}");
            return Err(Failure::bad_request(told));
        }
    };
    let Some(values) = values.trim().strip_suffix(')') else {
        return Err(Failure::bad_request("unable to parse requirement: found '' expected: '('"));
    };
    let values = values.split(',').map(|value| value.trim().to_owned()).collect();
    made(key, if is_in { Test::In(values) } else { Test::NotIn(values) })
}
