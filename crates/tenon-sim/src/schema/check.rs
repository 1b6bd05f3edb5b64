//! How parameters are held to their declarations, and the words for what they do wrong.
//!
//! All bad parameters are reported at once, and then nothing was executed.

use std::collections::BTreeMap;

use super::formats::check_named;
use super::property::check_parts;
use super::read::{Format, Kind, Prop, Props, Schema};
use super::{Given, find};
use crate::params::Raw;

pub(super) const UNKNOWN: &str =
    "property is not defined in schema and the schema does not allow additional properties";
const MISSING: &str = "property is missing and it is not optional";

/// What was wrong, by name.
pub(crate) type Errors = BTreeMap<String, String>;

/// Checks all parameters; the result holds only good ones.
pub(crate) fn check(schema: &Schema, props: &Props, given: Given) -> Result<BTreeMap<String, String>, Errors> {
    check_object(schema, props, given, "")
}

/// The same for the parts of a property string, whose names begin with the key they stand under.
pub(super) fn check_object(
    schema: &Schema,
    props: &Props,
    given: Given,
    prefix: &str,
) -> Result<BTreeMap<String, String>, Errors> {
    let mut errors = Errors::new();
    let mut good = BTreeMap::new();
    // What has no name is a fault of the whole.
    let path = |name: &str| if name.is_empty() { "_root".into() } else { format!("{prefix}{name}") };
    for (name, prop) in props.iter().filter(|(name, prop)| !prop.optional && !given.contains_key(*name)) {
        if prop.count.is_none() {
            errors.insert(path(name), MISSING.into());
        }
    }
    for name in given.keys() {
        let needed = find(props, name).and_then(|prop| prop.needs.as_ref());
        if let Some(needed) = needed.filter(|needed| !given.contains_key(*needed)) {
            errors.insert(path(needed), format!("missing property required by '{}'", path(name)));
        }
    }
    for (name, raw) in given {
        let checked = match find(props, &name) {
            Some(prop) => check_value(schema, prop, &path(&name), raw),
            None => Err(UNKNOWN.to_string()),
        };
        match checked {
            Ok(text) => drop(good.insert(name, text)),
            Err(text) => drop(errors.insert(path(&name), text)),
        }
    }
    if errors.is_empty() { Ok(good) } else { Err(errors) }
}

/// One value: type, format, pattern, length, limits, choices, in this order.
pub(super) fn check_value(schema: &Schema, prop: &Prop, path: &str, raw: Raw) -> Result<String, String> {
    let text = check_type(prop, raw)?;
    match &prop.format {
        Some(Format::Parts(name)) => {
            check_format_parts(schema, name, path, &text).map_err(|e| format!("invalid format - {e}"))?;
        }
        Some(Format::Named(name)) => {
            let checked = if schema.formats.contains_key(name) {
                check_format_parts(schema, name, path, &text)
            } else {
                check_named(name, &text)
            };
            checked.map_err(|e| format!("invalid format - {e}"))?;
        }
        None => {}
    }
    if prop.pattern.as_ref().is_some_and(|(_, pattern)| !pattern.is_match(&text)) {
        return Err("value does not match the regex pattern".into());
    }
    check_limits(prop, &text)?;
    if !prop.choices.is_empty() && !prop.choices.contains(&text) {
        let all = prop.choices.join(", ");
        return Err(format!("value '{text}' does not have a value in the enumeration '{all}'"));
    }
    Ok(text)
}

fn check_format_parts(schema: &Schema, name: &str, path: &str, text: &str) -> Result<(), String> {
    let Some(parts) = schema.formats.get(name) else { return Ok(()) };
    check_parts(schema, parts, path, text)?;
    if name == "pve-vm-cpu-conf" { super::formats::check_cpu(text) } else { Ok(()) }
}

fn check_type(prop: &Prop, raw: Raw) -> Result<String, String> {
    let kind = prop.kind.name();
    let refused = |got: &str| format!("type check ('{kind}') failed - got {got}");
    let text = match raw {
        Raw::Text(text) => text,
        Raw::Many(items) if prop.kind == Kind::List => items.join("\0"),
        Raw::Many(items) if is_list(prop) => items.join(","),
        Raw::Many(_) => return Err(refused("ARRAY")),
        Raw::Nested => return Err(refused("HASH")),
    };
    let fits = match prop.kind {
        Kind::Text | Kind::List => true,
        Kind::Bool => text == "0" || text == "1",
        Kind::Int => is_integer(&text),
        Kind::Num => is_number(&text),
    };
    if fits { Ok(text) } else { Err(refused(&format!("'{text}'"))) }
}

fn is_list(prop: &Prop) -> bool {
    matches!(&prop.format, Some(Format::Named(name)) if name.ends_with("-list"))
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.parse::<f64>().is_ok_and(f64::is_finite) && !text.starts_with('.')
}

fn check_limits(prop: &Prop, text: &str) -> Result<(), String> {
    let length = text.chars().count();
    if let Some(max) = prop.max_length.filter(|max| length > *max) {
        return Err(format!("value may only be {max} characters long"));
    }
    if let Some(min) = prop.min_length.filter(|min| length < *min) {
        return Err(format!("value must be at least {min} characters long"));
    }
    let Ok(number) = text.parse::<f64>() else { return Ok(()) };
    if let Some(max) = prop.max.filter(|max| number > *max) {
        return Err(format!("value must have a maximum value of {max}"));
    }
    if let Some(min) = prop.min.filter(|min| number < *min) {
        return Err(format!("value must have a minimum value of {min}"));
    }
    Ok(())
}
