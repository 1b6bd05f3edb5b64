//! How parameters are read from a query, a form, a JSON object or a multipart upload.

use bytes::Bytes;
use serde_json::Value;

use crate::params::{Raw, UploadedFile};
use crate::schema::Given;
use crate::wire::{Refusal, Shape};

pub(crate) fn read_form(text: &[u8]) -> Given {
    let mut given = Given::new();
    for (name, value) in form_urlencoded::parse(text) {
        let value = value.into_owned();
        let next = match given.remove(name.as_ref()) {
            None => Raw::Text(value),
            Some(Raw::Text(first)) => Raw::Many(vec![first, value]),
            Some(Raw::Many(mut all)) => {
                all.push(value);
                Raw::Many(all)
            }
            Some(Raw::Nested) => Raw::Nested,
        };
        given.insert(name.into_owned(), next);
    }
    given
}

/// The parameters of a body that is no upload.
pub(crate) fn read_body(kind: Option<&str>, body: &[u8]) -> Result<Given, Refusal> {
    let kind = kind.unwrap_or("application/x-www-form-urlencoded");
    if kind.starts_with("application/json") {
        return read_json(body);
    }
    if kind.starts_with("application/x-www-form-urlencoded") {
        return Ok(read_form(body));
    }
    Err(Refusal::new(506, format!("upload 'Content-Type '{kind}' not implemented"), Shape::Plain))
}

fn read_json(body: &[u8]) -> Result<Given, Refusal> {
    const PLACE: &str = "at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line";
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(map)) => Ok(map.iter().map(|(k, v)| (k.clone(), Raw::from_json(v))).collect()),
        Ok(_) => Err(Refusal::new(500, format!("Not a HASH reference {PLACE} 978."), Shape::PlainLine)),
        Err(error) => {
            let (why, at) = perl_complaint(body, &error);
            let rest = String::from_utf8_lossy(body.get(at..).unwrap_or(&[])).into_owned();
            let rest = if rest.is_empty() { "(end of string)" } else { rest.trim_end() };
            let text = format!("{why}, at character offset {at} (before \"{rest}\") {PLACE} 934.");
            Err(Refusal::new(500, text, Shape::PlainLine))
        }
    }
}

/// What Perl's parser says about broken JSON, and where.
fn perl_complaint(body: &[u8], error: &serde_json::Error) -> (&'static str, usize) {
    let start = body.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(0);
    let next = body.iter().skip(start + 1).position(|b| !b.is_ascii_whitespace()).map(|at| start + 1 + at);
    match (body.get(start), next.and_then(|at| body.get(at)), next) {
        (Some(b'{'), Some(other), Some(at)) if !matches!(other, b'"' | b'}') => ("'\"' expected", at),
        (Some(b'{' | b'['), _, _) => (", or } expected while parsing object/hash", error.column().saturating_sub(1)),
        _ => ("malformed JSON string, neither tag, array, object, number, string or atom", start),
    }
}

/// The boundary of a multipart content type.
pub(crate) fn boundary(kind: Option<&str>) -> Option<String> {
    let rest = kind?.strip_prefix("multipart/form-data")?;
    let value = rest.split(';').find_map(|p| p.trim().strip_prefix("boundary="))?;
    Some(value.trim_matches('"').to_string())
}

/// The fields before the file part, and the file.
///
/// `None` when the body breaks off. Fields after the file are not seen, as the upload is over by then.
pub(crate) fn read_multipart(body: &Bytes, boundary: &str) -> Option<(Given, Option<UploadedFile>)> {
    let (opening, delimiter) = (format!("--{boundary}"), format!("\r\n--{boundary}"));
    let mut given = Given::new();
    let mut at = find(body, opening.as_bytes(), 0)? + opening.len();
    loop {
        if body.get(at..at + 2)? == b"--" {
            return Some((given, None));
        }
        let head_end = find(body, b"\r\n\r\n", at)?;
        let head = String::from_utf8_lossy(&body[at..head_end]).into_owned();
        let start = head_end + 4;
        let end = find(body, delimiter.as_bytes(), start)?;
        let name = attribute(&head, "name")?;
        if let Some(file) = attribute(&head, "filename").filter(|_| name == "filename") {
            given.insert(name, Raw::Text(file));
            return Some((given, Some(UploadedFile { bytes: body.slice(start..end) })));
        }
        given.insert(name, Raw::Text(String::from_utf8_lossy(&body[start..end]).into_owned()));
        at = end + delimiter.len();
    }
}

fn attribute(head: &str, name: &str) -> Option<String> {
    let line = head.lines().find(|l| l.to_ascii_lowercase().starts_with("content-disposition:"))?;
    let quoted = line.split(';').map(str::trim).find_map(|p| p.strip_prefix(name)?.strip_prefix('='))?;
    Some(quoted.trim_matches('"').to_string())
}

fn find(body: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    body.get(from..)?.windows(needle.len()).position(|w| w == needle).map(|at| from + at)
}
