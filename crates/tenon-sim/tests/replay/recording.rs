//! The recorded exchanges as they lie in the file.

use serde_json::{Map, Value};

/// One line of the recording.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) topic: String,
    pub(crate) note: String,
    pub(crate) request: Option<Map<String, Value>>,
    pub(crate) response: Map<String, Value>,
    /// What was read after the answer.
    pub(crate) after: Map<String, Value>,
}

/// All rows, in the order they were recorded.
pub(crate) fn rows() -> Vec<Row> {
    let lines = include_str!("../../../tenon-pve/tests/wire/recordings/exchanges.jsonl").lines();
    lines.map(|line| read(&serde_json::from_str(line).unwrap())).collect()
}

fn read(row: &Value) -> Row {
    let text = |key: &str| row[key].as_str().unwrap_or("").to_string();
    let object = |key: &str| row[key].as_object().cloned();
    Row {
        id: text("id"),
        topic: text("topic"),
        note: text("note"),
        request: object("request"),
        response: object("response").unwrap_or_default(),
        after: object("after").unwrap_or_default(),
    }
}
