//! How parameters are read from a query, a form, a JSON object or a multipart upload.

use bytes::Bytes;
use serde_json::Value;

use crate::params::{Raw, UploadedFile};
use crate::schema::Given;
use crate::wire::{Refusal, Shape};

/// Parts an upload may have beside its file.
const UPLOAD_FIELDS: [&str; 3] = ["checksum", "checksum-algorithm", "content"];

/// A form as PVE reads it, which is not as others do: `;` parts pairs as well as `&`, a value ends at its second `=`, and an
/// empty pair is a parameter without a name, unless nothing follows it.
pub(crate) fn read_form(text: &[u8]) -> Given {
    let mut given = Given::new();
    let mut pairs: Vec<&[u8]> = text.split(|byte| matches!(byte, b'&' | b';')).collect();
    let end = pairs.iter().rposition(|pair| !pair.is_empty()).map_or(0, |last| last + 1);
    pairs.truncate(end);
    for pair in pairs {
        let mut parts = pair.split(|byte| *byte == b'=').map(unescape);
        let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let next = match given.remove(&name) {
            None => Raw::Text(value),
            Some(Raw::Text(first)) => Raw::Many(vec![first, value]),
            Some(Raw::Many(mut all)) => {
                all.push(value);
                Raw::Many(all)
            }
            Some(Raw::Nested) => Raw::Nested,
        };
        given.insert(name, next);
    }
    given
}

fn unescape(text: &[u8]) -> String {
    let blanks: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    percent_encoding::percent_decode(&blanks).decode_utf8_lossy().into_owned()
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
        Ok(Value::Object(map)) => {
            // Tags were seen to take it for an empty text. Of the others only the status is known, not the words.
            if map.iter().any(|(key, value)| value.is_null() && key != "tags") {
                return Err(Refusal::failed("unable to parse a value that is not defined"));
            }
            Ok(map.iter().map(|(k, v)| (k.clone(), Raw::from_json(v))).collect())
        }
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
/// Fields after the file are not seen, as the upload is over by then.
pub(crate) fn read_multipart(body: &Bytes, boundary: &str) -> Result<(Given, Option<UploadedFile>), Refusal> {
    let broken = "upload failed at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 1370.";
    let (given, file) = read_parts(body, boundary).ok_or_else(|| Refusal::new(500, broken, Shape::PlainLine))?;
    if given.keys().any(|name| name != "filename" && !UPLOAD_FIELDS.contains(&name.as_str())) {
        return Err(Refusal::new(400, "Bad Request", Shape::Empty));
    }
    match file {
        Some((name, _)) if name != "filename" => Err(Refusal::new(500, "wrong field name", Shape::PlainLine)),
        file => Ok((given, file.map(|(_, file)| file))),
    }
}

/// The file comes with the name of its part. `None` when the body breaks off.
fn read_parts(body: &Bytes, boundary: &str) -> Option<(Given, Option<(String, UploadedFile)>)> {
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
        if let Some(file) = attribute(&head, "filename") {
            given.insert("filename".into(), Raw::Text(file));
            return Some((given, Some((name, UploadedFile { bytes: body.slice(start..end) }))));
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
