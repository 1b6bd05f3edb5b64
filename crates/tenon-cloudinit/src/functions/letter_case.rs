//! What are the capital and small letters of a text?
//!
//! Go changes one character into one: `ß` has no single capital and stays, and the small `i` of `İ` has no dot above.

use tenon_gotemplate::{Failure, Limits, Output, Value};

use super::arguments;
use super::letters::is_known;

/// `upper`.
pub(super) fn upper(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    mapped(limits, arguments, upper_of)
}

/// `lower`.
pub(super) fn lower(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    mapped(limits, arguments, lower_of)
}

fn mapped(limits: &Limits, arguments: &[Value], change: fn(char) -> char) -> Result<Value, Failure> {
    let mut out = Output::new(limits.output);
    for chunk in arguments::string(arguments, 0)?.utf8_chunks() {
        let changed = chunk.valid().chars().map(|c| match change(c) {
            changed if changed != c && is_known(c) && is_known(changed) => changed,
            _ => c,
        });
        out.push(changed.collect::<String>())?;
        for _ in chunk.invalid() {
            out.push("\u{fffd}")?;
        }
    }
    Ok(Value::string(out.into_bytes()))
}

fn upper_of(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(only), None) => only,
        _ => upper_with_iota(c).unwrap_or(c),
    }
}

fn lower_of(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(only), None) => only,
        _ if c == 'İ' => 'i',
        _ => c,
    }
}

/// Greek vowels with an iota below have a capital that keeps it; the longer form in two letters is another one.
fn upper_with_iota(c: char) -> Option<char> {
    let code = u32::from(c);
    let distance = match code {
        0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7 => 8,
        0x1fb3 | 0x1fc3 | 0x1ff3 => 9,
        _ => return None,
    };
    char::from_u32(code + distance)
}
