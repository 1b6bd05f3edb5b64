//! Does a text match a pattern, as Go reads patterns?
//!
//! Go and Rust agree on nearly all of the syntax. Where they do not (`\d`, `\w` and `\s` are ASCII in Go, a bracket
//! within a class is a bracket), the pattern is rewritten first.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;

/// Patterns that have been compiled: a definition's patterns are asked for again with every object.
static COMPILED: LazyLock<Mutex<BTreeMap<String, Regex>>> = LazyLock::new(Mutex::default);

/// Whether the pattern is found in the text; an error says what is wrong with the pattern.
pub(super) fn matches(pattern: &str, text: &str) -> Result<bool, String> {
    Ok(compiled(pattern)?.is_match(text))
}

/// The pattern, ready for use.
pub(super) fn compiled(pattern: &str) -> Result<Regex, String> {
    let mut known = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = known.get(pattern) {
        return Ok(regex.clone());
    }
    let regex = Regex::new(&rewritten(pattern)).map_err(|error| error.to_string())?;
    known.insert(pattern.to_owned(), regex.clone());
    Ok(regex)
}

fn rewritten(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(next) = rest.next() {
        match next {
            '\\' => match rest.next() {
                Some(escaped) => out.push_str(&escape(escaped, in_class)),
                None => out.push('\\'),
            },
            '[' if in_class && rest.peek() == Some(&':') => copy_named_class(&mut rest, &mut out),
            '[' if in_class => out.push_str("\\["),
            '[' => {
                in_class = true;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // A closing bracket that comes first is part of the class.
                if rest.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            // Rust reads these, doubled, as operations on classes.
            '&' | '~' if in_class => out.extend(['\\', next]),
            other => out.push(other),
        }
    }
    out
}

/// Copies `[:alpha:]`, whose opening bracket has been read.
fn copy_named_class(rest: &mut impl Iterator<Item = char>, out: &mut String) {
    out.push('[');
    for next in rest {
        out.push(next);
        if next == ']' {
            return;
        }
    }
}

fn escape(escaped: char, in_class: bool) -> String {
    match escaped {
        'd' => "[0-9]".to_owned(),
        'D' => "[^0-9]".to_owned(),
        'w' => "[0-9A-Za-z_]".to_owned(),
        'W' => "[^0-9A-Za-z_]".to_owned(),
        's' => "[\\t\\n\\f\\r ]".to_owned(),
        'S' => "[^\\t\\n\\f\\r ]".to_owned(),
        'b' | 'B' if !in_class => format!("(?-u:\\{escaped})"),
        '<' | '>' => escaped.to_string(),
        other => format!("\\{other}"),
    }
}
