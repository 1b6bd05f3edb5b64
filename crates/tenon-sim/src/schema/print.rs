//! The table for people and programs: one JSON object a call.

use serde_json::{Map, Value, json};

use super::of;
use super::read::{Format, Kind, Prop, Props, Rights, Schema};
use crate::version::PveVersion;

/// A line for each call: method, path and parameters with type, limits, choices and format.
pub(crate) fn lines(version: PveVersion) -> Vec<String> {
    let schema = of(version);
    schema
        .calls
        .iter()
        .map(|call| {
            let permissions = match &call.rights {
                Rights::World => json!({ "user": "world" }),
                Rights::Everybody => json!({ "user": "all" }),
                Rights::Check(check) => json!({ "check": check }),
            };
            json!({ "method": call.method, "path": call.path, "params": object(schema, &call.props), "permissions": permissions })
                .to_string()
        })
        .collect()
}

fn object(schema: &Schema, props: &Props) -> Value {
    props.iter().map(|(name, prop)| (name.replace('#', "[n]"), shown(schema, prop))).collect::<Map<_, _>>().into()
}

fn shown(schema: &Schema, prop: &Prop) -> Value {
    let mut out = Map::new();
    if let Some((target, also)) = &prop.alias {
        out.insert("alias".into(), target.as_str().into());
        out.extend(also.iter().map(|part| ("keyAlias".to_string(), part.as_str().into())));
        return out.into();
    }
    out.insert("type".into(), prop.kind.name().into());
    if prop.kind == Kind::List {
        out.insert("items".into(), json!({ "type": "string" }));
    }
    if prop.optional {
        out.insert("optional".into(), 1.into());
    }
    if prop.is_key {
        out.insert("default_key".into(), 1.into());
    }
    let limits = [("minimum", prop.min), ("maximum", prop.max)];
    out.extend(limits.into_iter().filter_map(|(name, limit)| Some((name.to_string(), number(limit?)))));
    let lengths = [("minLength", prop.min_length), ("maxLength", prop.max_length)];
    out.extend(lengths.into_iter().filter_map(|(name, length)| Some((name.to_string(), length?.into()))));
    if !prop.choices.is_empty() {
        out.insert("enum".into(), json!(prop.choices));
    }
    if let Some((pattern, _)) = &prop.pattern {
        out.insert("pattern".into(), pattern.as_str().into());
    }
    if let Some(needed) = &prop.needs {
        out.insert("requires".into(), needed.as_str().into());
    }
    match &prop.format {
        // The names of formats are the same in all releases, whatever they accept.
        Some(Format::Named(name)) => drop(out.insert("format".into(), name.replace("-8-4", "").into())),
        Some(Format::Parts(name)) => {
            let parts = schema.formats.get(name).map_or(Value::Null, |props| object(schema, props));
            out.insert("format".into(), parts);
        }
        None => {}
    }
    out.into()
}

/// Whole limits are printed without a fraction.
fn number(limit: f64) -> Value {
    if limit.fract() == 0.0 { json!(limit as i64) } else { json!(limit) }
}
