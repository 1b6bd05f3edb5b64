//! Does an object keep the rules of its schema: `x-kubernetes-validations`?

use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, Program, Value as Seen};
use serde_json::Value;

use super::correlate::{Pair, aligned, same_item};
use super::error::{FieldError, FieldReason};
use super::exposure::{resource_schema, seen};
use super::expression::{evaluate, library, parsed, trouble, uses_old};
use super::node::Node;

/// Everything the rules of a resource say against it.
pub(super) fn check(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let root = resource_schema(schema);
    let mut walk = Walk { library: library(), errors: Vec::new() };
    let pair = old.map(|old| Pair { new, old, schema: Node(schema) });
    let place = Position { value: new, old, schema: Node(&root), pair, parent: None };
    walk.visit(place, "");
    walk.errors
}

/// A value the rules are asked about.
#[derive(Clone, Copy)]
struct Position<'a> {
    value: &'a Value,
    /// What transition rules see of before.
    old: Option<&'a Value>,
    schema: Node<'a>,
    /// The value and its predecessor, to forgive what did not change.
    pair: Option<Pair<'a>>,
    /// The nearest ancestor that has a predecessor, where the value itself has none.
    parent: Option<Pair<'a>>,
}

impl<'a> Position<'a> {
    fn below(self, value: &'a Value, old: Option<&'a Value>, schema: Node<'a>, pair: Option<Pair<'a>>) -> Self {
        let old = old.filter(|old| !old.is_null());
        Self { value, old, schema, pair, parent: self.pair.or(self.parent) }
    }

    fn unchanged(self) -> bool {
        self.pair.or(self.parent).is_some_and(Pair::unchanged)
    }
}

struct Walk {
    library: Context<'static>,
    errors: Vec<FieldError>,
}

impl Walk {
    fn visit(&mut self, place: Position<'_>, path: &str) {
        if place.value.is_null() {
            return;
        }
        if !place.schema.list("x-kubernetes-validations").is_empty() {
            self.ask(place, path);
        }
        match place.value {
            Value::Array(items) => {
                let Some(schema) = place.schema.items() else { return };
                for (index, item) in items.iter().enumerate() {
                    let old = place.old.and_then(|old| same_item(place.schema, item, old));
                    let pair = place.pair.and_then(|pair| pair.index(index));
                    self.visit(place.below(item, old, schema, pair), &format!("{path}[{index}]"));
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let Some(schema) = place.schema.field(name) else { continue };
                    let old = place.old.and_then(|old| old.get(name));
                    let pair = place.pair.and_then(|pair| pair.key(name));
                    let below = match place.schema.property(name) {
                        Some(_) if path.is_empty() => name.clone(),
                        Some(_) => format!("{path}.{name}"),
                        None => format!("{path}[{name}]"),
                    };
                    self.visit(place.below(field, old, schema, pair), &below);
                }
            }
            _ => {}
        }
    }

    fn ask(&mut self, place: Position<'_>, path: &str) {
        let value = seen(place.schema, place.value, &self.library);
        let old =
            place.old.and_then(|old| seen(place.schema, &aligned(place.schema, place.value, old), &self.library).ok());
        for rule in place.schema.nodes("x-kubernetes-validations").map(Rule) {
            let asked = rule.ask(&self.library, &value, old.as_ref());
            let kind = Value::from(place.schema.kind());
            match asked {
                Ok(Answer::Kept) => {}
                // What did not change may break a rule, unless the rule is about change.
                Ok(Answer::Broken { transition, .. }) if !transition && place.unchanged() => {}
                Ok(Answer::Broken { detail, .. }) => self.errors.push(rule.broken(place, path, &detail)),
                Err(why) => self.errors.push(FieldError::new(path, FieldReason::Invalid, &kind, &rule.unclear(&why))),
            }
        }
    }
}

enum Answer {
    Kept,
    Broken { detail: String, transition: bool },
}

/// One entry of `x-kubernetes-validations`.
#[derive(Clone, Copy)]
struct Rule<'a>(Node<'a>);

impl Rule<'_> {
    fn ask(self, library: &Context<'_>, value: &Result<Seen, String>, old: Option<&Seen>) -> Result<Answer, String> {
        let program = parsed(self.0.text("rule").unwrap_or(""))?;
        let transition = uses_old(&program);
        let optional = self.0.flag("optionalOldSelf");
        if transition && old.is_none() && !optional {
            return Ok(Answer::Kept);
        }
        let value = value.as_ref().map_err(Clone::clone)?;
        let wrapped = optional.then(|| {
            Seen::Opaque(std::sync::Arc::new(match old {
                Some(old) => OptionalValue::of(old.clone()),
                None => OptionalValue::none(),
            }))
        });
        match evaluate(&program, library, value, wrapped.as_ref().or(old)) {
            Ok(Seen::Bool(true)) => Ok(Answer::Kept),
            Ok(Seen::Bool(false)) => {
                let said = self.0.text("messageExpression").and_then(|source| said(source, library, value, old));
                let detail = said.unwrap_or_else(|| match self.0.text("message").filter(|text| !text.is_empty()) {
                    Some(message) => message.trim().to_owned(),
                    None => format!("failed rule: {}", self.words()),
                });
                Ok(Answer::Broken { detail, transition })
            }
            Ok(_) => Err("no such overload".to_owned()),
            Err(error) => Err(trouble(&error)),
        }
    }

    /// What names the rule in an error about the rule itself.
    fn words(self) -> String {
        let message = self.0.text("message").filter(|text| !text.is_empty());
        message.or(self.0.text("rule")).unwrap_or_default().trim().to_owned()
    }

    fn unclear(self, why: &str) -> String {
        if why.starts_with("no such overload") {
            let known = "call arguments did not match a supported operator, function or macro signature";
            return format!("'{why}': {known} for rule: {}", self.words());
        }
        format!("{why} evaluating rule: {}", self.words())
    }

    fn broken(self, place: Position<'_>, path: &str, detail: &str) -> FieldError {
        let reason = match self.0.text("reason") {
            Some("FieldValueForbidden") => FieldReason::Forbidden,
            Some("FieldValueRequired") => FieldReason::Required,
            Some("FieldValueDuplicate") => FieldReason::Duplicate,
            _ => FieldReason::Invalid,
        };
        let path = format!("{path}{}", self.0.text("fieldPath").map(field_path).unwrap_or_default());
        let detail = if reason == FieldReason::Duplicate { "" } else { detail };
        match place.schema.kind() {
            "object" | "array" => FieldError::without_value(&path, reason, detail),
            _ => FieldError::new(&path, reason, place.value, detail),
        }
    }
}

/// What a message expression says, if it comes to a line of text.
fn said(source: &str, library: &Context<'_>, value: &Seen, old: Option<&Seen>) -> Option<String> {
    let program: std::sync::Arc<Program> = parsed(source).ok()?;
    let Ok(Seen::String(text)) = evaluate(&program, library, value, old) else { return None };
    let text = text.trim();
    (!text.is_empty() && !text.contains('\n') && text.len() <= 5 * 1024).then(|| text.to_owned())
}

/// A rule's field path as the server writes it: `['a']` is `.a`.
fn field_path(written: &str) -> String {
    written.replace("['", ".").replace("']", "")
}
