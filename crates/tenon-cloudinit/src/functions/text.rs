//! What can be done with a string?

use tenon_gotemplate::{Failure, Limits, List, Output, Type, UintKind, Value, format};

use super::{arguments, json, search};

/// `indent`: spaces before every line.
pub(super) fn indent(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    indented(Output::new(limits.output), arguments)
}

/// `nindent`: the same, after a line end.
pub(super) fn indent_on_new_line(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let mut out = Output::new(limits.output);
    out.push("\n")?;
    indented(out, arguments)
}

fn indented(mut out: Output, arguments: &[Value]) -> Result<Value, Failure> {
    let spaces = usize::try_from(arguments::int(arguments, 0)?);
    let spaces = spaces.map_err(|_| Failure::new("a text cannot be indented by a negative number of spaces"))?;
    for (at, line) in arguments::string(arguments, 1)?.split(|byte| *byte == b'\n').enumerate() {
        if at > 0 {
            out.push("\n")?;
        }
        out.fill(b' ', spaces)?;
        out.push(line)?;
    }
    Ok(Value::string(out.into_bytes()))
}

/// `quote`: each argument that is not nil as a Go string, divided by spaces.
pub(super) fn quote(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let mut out = Output::new(limits.output);
    let there = arguments.iter().filter(|argument| !matches!(argument, Value::Missing | Value::Nil));
    for (at, argument) in there.enumerate() {
        if at > 0 {
            out.push(" ")?;
        }
        format::printf(&mut out, b"%q", &[Value::string(shown(limits, argument)?)])?;
    }
    Ok(Value::string(out.into_bytes()))
}

/// A value as text: strings and bytes as they are, others as they print.
pub(super) fn shown(limits: &Limits, value: &Value) -> Result<Vec<u8>, Failure> {
    match value {
        Value::String(text) => Ok(text.as_bytes().to_vec()),
        Value::List(list) if *list.item_type() == Type::Uint(UintKind::Uint8) => Ok(json::bytes_of(list)),
        other => {
            let mut out = Output::new(limits.output);
            format::print(&mut out, std::slice::from_ref(other))?;
            Ok(out.into_bytes())
        }
    }
}

/// `trim`: without white space at both ends.
pub(super) fn trim(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let text = arguments::string(arguments, 0)?;
    let is_space = |character: &&[u8]| std::str::from_utf8(character).is_ok_and(|text| text.trim().is_empty());
    let ahead: usize = search::characters(text).take_while(is_space).map(<[u8]>::len).sum();
    let mut text = text.get(ahead..).unwrap_or_default();
    // White space has no character of more than three bytes.
    while let Some(length) = (1..=3).find(|length| {
        let end = text.len().checked_sub(*length).and_then(|start| text.get(start..));
        end.is_some_and(|end| is_space(&end))
    }) {
        text = text.get(..text.len() - length).unwrap_or_default();
    }
    Ok(Value::string(text))
}

/// `trimSuffix`.
pub(super) fn trim_suffix(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (suffix, text) = arguments::two_strings(arguments)?;
    Ok(Value::string(text.strip_suffix(suffix).unwrap_or(text)))
}

/// `trimPrefix`.
pub(super) fn trim_prefix(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (prefix, text) = arguments::two_strings(arguments)?;
    Ok(Value::string(text.strip_prefix(prefix).unwrap_or(text)))
}

/// `contains`: whether the second argument has the first in it.
pub(super) fn contains(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (part, text) = arguments::two_strings(arguments)?;
    Ok(Value::Bool(search::contains(text, part)))
}

/// `hasPrefix`: whether the second argument begins with the first.
pub(super) fn has_prefix(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (prefix, text) = arguments::two_strings(arguments)?;
    Ok(Value::Bool(text.starts_with(prefix)))
}

/// `hasSuffix`: whether the second argument ends with the first.
pub(super) fn has_suffix(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (suffix, text) = arguments::two_strings(arguments)?;
    Ok(Value::Bool(text.ends_with(suffix)))
}

/// `split`: the parts between separators; without a separator the characters.
pub(super) fn split(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (text, separator) = arguments::two_strings(arguments)?;
    if separator.is_empty() {
        return Ok(Value::List(List::of_strings(search::characters(text))));
    }
    let ends = search::occurrences(text, separator).chain([text.len()]);
    let parts = ends.scan(0, |start, end| {
        let part = text.get(*start..end);
        *start = end + separator.len();
        part
    });
    Ok(Value::List(List::of_strings(parts)))
}

/// `join`.
pub(super) fn join(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (items, separator) = (arguments::strings(arguments, 0)?, arguments::string(arguments, 1)?);
    let mut out = Output::new(limits.output);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(separator)?;
        }
        out.push(item)?;
    }
    Ok(Value::string(out.into_bytes()))
}

/// `replace`: the third argument with the second for each of the first; nothing is between all characters.
pub(super) fn replace(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (old, new) = arguments::two_strings(arguments)?;
    let text = arguments::string(arguments, 2)?;
    let mut out = Output::new(limits.output);
    if old.is_empty() {
        out.push(new)?;
        for character in search::characters(text) {
            out.push(character)?;
            out.push(new)?;
        }
        return Ok(Value::string(out.into_bytes()));
    }
    let mut copied = 0;
    for at in search::occurrences(text, old) {
        out.push(text.get(copied..at).unwrap_or_default())?;
        out.push(new)?;
        copied = at + old.len();
    }
    out.push(text.get(copied..).unwrap_or_default())?;
    Ok(Value::string(out.into_bytes()))
}
