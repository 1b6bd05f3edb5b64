//! How is text made safe for a page, a script or an address?

use crate::format::printable::is_printable;
use crate::machine::printable;
use crate::scanner::Scanner;
use crate::{Failure, Limits, Output, Value, format};

/// For HTML.
pub(super) fn html(limits: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let text = joined(limits, values)?;
    super::written(limits, |out| {
        for byte in &text {
            match byte {
                b'"' => out.push("&#34;")?,
                b'\'' => out.push("&#39;")?,
                b'&' => out.push("&amp;")?,
                b'<' => out.push("&lt;")?,
                b'>' => out.push("&gt;")?,
                0 => out.push("\u{fffd}")?,
                byte => out.push([*byte])?,
            }
        }
        Ok(())
    })
}

/// For a string in JavaScript.
pub(super) fn js(limits: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let text = joined(limits, values)?;
    super::written(limits, |out| {
        let mut rest = text.as_slice();
        while let Some(first) = rest.first() {
            let length = match first {
                b'\\' | b'\'' | b'"' => {
                    out.push([b'\\', *first])?;
                    1
                }
                b'<' | b'>' | b'&' | b'=' | 0..=0x1f => {
                    out.push(format!("\\u{first:04X}"))?;
                    1
                }
                0x20..=0x7f => {
                    out.push([*first])?;
                    1
                }
                _ => js_wide(out, rest)?,
            };
            rest = &rest[length..];
        }
        Ok(())
    })
}

/// A character beyond ASCII; gives its length.
fn js_wide(out: &mut Output, rest: &[u8]) -> Result<usize, Failure> {
    let mut scanner = Scanner::new(rest);
    let c = scanner.next().unwrap_or(char::REPLACEMENT_CHARACTER);
    let length = scanner.at();
    if is_printable(c) {
        out.push(rest.get(..length).unwrap_or_default())?;
    } else {
        out.push(format!("\\u{:04X}", u32::from(c)))?;
    }
    Ok(length)
}

/// For the query of an address.
pub(super) fn urlquery(limits: &Limits, values: &[Value]) -> Result<Value, Failure> {
    let text = joined(limits, values)?;
    super::written(limits, |out| {
        for byte in &text {
            match byte {
                b' ' => out.push("+")?,
                b'-' | b'_' | b'.' | b'~' => out.push([*byte])?,
                byte if byte.is_ascii_alphanumeric() => out.push([*byte])?,
                byte => out.push(format!("%{byte:02X}"))?,
            }
        }
        Ok(())
    })
}

/// All arguments as one text.
fn joined(limits: &Limits, values: &[Value]) -> Result<Vec<u8>, Failure> {
    let printed: Vec<Value> = values.iter().map(printable).collect();
    let mut out = Output::new(limits.output);
    format::print(&mut out, &printed)?;
    Ok(out.into_bytes())
}
