//! How property strings (`virtio=MAC,bridge=vmbr0`) are taken apart and held to their format.

use std::collections::BTreeMap;

use super::check::check_object;
use super::read::{Kind, Prop, Props, Schema};
use super::{Given, schema};
use crate::params::Raw;

/// The parts of a property string by their proper names, booleans as 0 and 1.
pub(crate) type Parts = BTreeMap<String, String>;

/// Takes a property string apart by the format of this name; what was checked before is not checked again.
pub(crate) fn parse_property(format: &str, text: &str) -> Parts {
    schema().formats.get(format).and_then(|props| split(props, text).ok()).unwrap_or_default()
}

pub(super) fn check_parts(schema: &Schema, props: &Props, path: &str, text: &str) -> Result<(), String> {
    let parts = split(props, text)?;
    let given: Given = parts.into_iter().map(|(name, value)| (name, Raw::Text(value))).collect();
    let Err(errors) = check_object(schema, props, given, &format!("{path}.")) else { return Ok(()) };
    let lines: String = errors.iter().map(|(path, text)| format!("{path}: {text}\n")).collect();
    Err(format!("format error\n{lines}"))
}

fn split(props: &Props, text: &str) -> Result<Parts, String> {
    let mut parts = Parts::new();
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) if !name.is_empty() => (name, value),
            Some(_) => return Err("missing key in comma-separated list property\n".into()),
            None => match props.iter().find(|(_, prop)| prop.is_key) {
                Some((name, _)) => (name.as_str(), part),
                None => return Err("value without key, but schema does not define a default key\n".into()),
            },
        };
        let (name, also) = match props.get(name).and_then(|prop| prop.alias.as_ref()) {
            Some((target, also)) => (target.as_str(), also.as_ref().map(|part| (part.as_str(), name))),
            None => (name, None),
        };
        for (name, value) in [(name, value)].into_iter().chain(also) {
            let value = plain(props.get(name), value);
            if parts.insert(name.to_string(), value).is_some() {
                return Err(format!("duplicate key in comma-separated list property: {name}\n"));
            }
        }
    }
    Ok(parts)
}

/// Inside a property string a boolean may be written out.
fn plain(prop: Option<&Prop>, value: &str) -> String {
    let is_bool = prop.is_some_and(|prop| prop.kind == Kind::Bool);
    match value.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" if is_bool => "1".into(),
        "0" | "off" | "no" | "false" if is_bool => "0".into(),
        _ => value.to_string(),
    }
}
