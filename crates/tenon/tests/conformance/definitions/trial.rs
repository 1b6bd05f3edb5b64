//! How is one case tried: the sample of its kind with one value changed?

use serde_json::{Value, json};

use super::Row;
use super::samples::{Kinds, sample};
use super::walk::Constraint;
use crate::ground::Ground;
use crate::reply::Reply;

/// The cases of one server.
pub(crate) struct Trial<'a> {
    ground: &'a Ground,
    kinds: &'a Kinds,
    pub(crate) tried: usize,
    pub(crate) wrong: Vec<String>,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(ground: &'a Ground, kinds: &'a Kinds) -> Trial<'a> {
        Trial { ground, kinds, tried: 0, wrong: Vec::new() }
    }

    /// Tries all values of a row at one place.
    pub(crate) async fn run(&mut self, constraint: &Constraint, row: &Row) -> anyhow::Result<()> {
        for good in &row.good {
            let reply = self.reply(constraint, good, Side::Keeps).await?;
            if !matches!(reply.code, 200 | 201) {
                self.note(constraint, good, &format!("was refused: {}", told(&reply)));
            }
        }
        for bad in &row.bad {
            let reply = self.reply(constraint, bad, Side::Breaks).await?;
            let is_right = if constraint.is_filled { reply.code == 201 } else { is_refused(&reply, constraint) };
            if !is_right {
                self.note(constraint, bad, &format!("{} was answered: {}", constraint.words, told(&reply)));
            }
        }
        Ok(())
    }

    fn note(&mut self, constraint: &Constraint, value: &Value, what: &str) {
        let value: String = value.to_string().chars().take(200).collect();
        self.wrong.push(format!("{} [{}] with {value} {what}", constraint.place(), constraint.name));
    }

    /// What the server says of the sample with a value in its place.
    async fn reply(&mut self, constraint: &Constraint, value: &Value, side: Side) -> anyhow::Result<Reply> {
        self.tried += 1;
        let name = format!("{}-{}", self.ground.name, self.tried);
        let mut object = sample(&constraint.kind, &constraint.path);
        object["metadata"] = json!({ "name": name });
        let status = object.as_object_mut().and_then(|fields| fields.remove("status")).unwrap_or_default();
        let path = self.kinds.path(&constraint.kind, &self.ground.name);
        if constraint.is_transition {
            return self.changed(constraint, (&path, object), value).await;
        }
        if constraint.path.starts_with("status") {
            self.ground.made(&path, object.clone()).await?;
            object["status"] = status;
            place(&mut object, constraint, value, side);
            let change = json!({ "status": object["status"] });
            return self.ground.merge(&format!("{path}/{name}/status"), change).await;
        }
        place(&mut object, constraint, value, side);
        self.ground.post(&path, object).await
    }

    /// A case of a rule that compares: the value has the old one and the new one.
    async fn changed(
        &self,
        constraint: &Constraint,
        (path, mut object): (&str, Value),
        pair: &Value,
    ) -> anyhow::Result<Reply> {
        place(&mut object, constraint, &pair["old"], Side::Keeps);
        let mut stored = self.ground.made(path, object).await?;
        place(&mut stored, constraint, &pair["new"], Side::Keeps);
        let name = stored["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.ground.put(&format!("{path}/{name}"), stored).await
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Keeps,
    Breaks,
}

/// Puts the value in its place. A required field is named by the value, and taken away if it is to be missed.
fn place(object: &mut Value, constraint: &Constraint, value: &Value, side: Side) {
    let mut target = object;
    for step in steps(&constraint.path) {
        target = match step {
            Step::Field(name) => &mut target[name],
            Step::Item => &mut target[0],
            Step::Value => match target.as_object_mut().and_then(|map| map.values_mut().next()) {
                Some(first) => first,
                None => return,
            },
        };
    }
    match (&constraint.below, side) {
        (None, _) => *target = value.clone(),
        (Some(_), Side::Keeps) => {}
        (Some(field), Side::Breaks) => {
            if let Some(fields) = target.as_object_mut() {
                fields.remove(field);
            }
        }
    }
}

enum Step<'a> {
    Field(&'a str),
    Item,
    Value,
}

fn steps(path: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let name = part.trim_end_matches("[]").trim_end_matches("{}");
        steps.push(Step::Field(name));
        let marks = &part[name.len()..];
        steps.extend(marks.matches("[]").map(|_| Step::Item));
        steps.extend(marks.matches("{}").map(|_| Step::Value));
    }
    steps
}

/// Whether the server refuses, at the right field and in the right words.
fn is_refused(reply: &Reply, constraint: &Constraint) -> bool {
    let mut field = constraint.path.replace("[]", "[0]").replace("{}", ".key");
    if let Some(below) = &constraint.below {
        field = if field.is_empty() { below.clone() } else { format!("{field}.{below}") };
    }
    let is_cause = |cause: &Value| {
        let (place, message) =
            (cause["field"].as_str().unwrap_or_default(), cause["message"].as_str().unwrap_or_default());
        let at = if constraint.words.starts_with("Duplicate") {
            // A duplicate is named by its own index, which is not the first.
            place.starts_with(&field)
        } else if constraint.words.contains("with format int32") {
            // This one refusal has its field in the message, and something else where the field belongs.
            field.rsplit('.').next().is_some_and(|name| message.ends_with(name))
        } else {
            place == field
        };
        at && message.contains(&constraint.words)
    };
    reply.code == 422 && reply.body["details"]["causes"].as_array().into_iter().flatten().any(is_cause)
}

fn told(reply: &Reply) -> String {
    format!(
        "{} {}",
        reply.code,
        reply.body["details"]["causes"]
            .as_array()
            .map_or_else(|| reply.body["message"].to_string(), |causes| json!(causes).to_string())
    )
}
