//! A file taken apart into objects that can be read one by one, in whatever form they were written down.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;
use tenon_api::objects::Kind;

use super::head::Head;
use super::location::{Fault, Location};
use super::yaml;
use super::yaml_layout::{Part, documents, is_null, layout};

/// How a piece is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON, as it stands in the file.
    Json,
    /// JSON that was made of YAML: its lines are not the file's.
    JsonOfYaml,
    /// One YAML document.
    Yaml,
    /// One member of a YAML list, with its dash.
    YamlItem,
}

/// One object, still as text.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    pub(super) text: Cow<'a, str>,
    /// The line of the file it begins on.
    pub(super) line: usize,
    pub(super) form: Form,
    /// What is known of it already.
    pub(super) head: Head,
}

/// The envelope of a list in JSON, or of a single object.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, rename = "apiVersion")]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default, borrow)]
    items: Option<Vec<&'a RawValue>>,
}

/// How the members of a list in YAML are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// Each for itself, where the lines tell where it begins: much faster.
    Apart,
    /// All at once, for one may refer to another.
    Whole,
}

/// A file taken apart.
#[derive(Debug, Default)]
pub(super) struct Pieces<'a> {
    pub(super) pieces: Vec<Piece<'a>>,
    /// Whether something stands there at all; an empty list is something.
    pub(super) is_something: bool,
}

/// Takes a file apart.
pub(super) fn pieces<'a>(source: &Arc<str>, text: &'a str, lists: Lists) -> Result<Pieces<'a>, Fault> {
    // Some programs begin a file with a mark of its byte order.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let name = source.to_lowercase();
    let is_yaml = [".yaml", ".yml"].iter().any(|ending| name.ends_with(ending));
    let is_json = name.ends_with(".json");
    let mut found = Pieces::default();
    for document in documents(text).into_iter().filter(|document| !is_null(*document)) {
        found.is_something = true;
        let pieces = &mut found.pieces;
        let fail = |(line, why): (usize, String)| fault(source, text, line, why);
        let content = document.text.strip_prefix("---").unwrap_or(document.text).trim_start();
        if !content.starts_with(['{', '[']) && !is_json {
            yaml_pieces(document, lists, pieces).map_err(fail)?;
            continue;
        }
        let before = pieces.len();
        let begin = document.text.len() - content.len();
        let line = document.line + lines(document.text.get(..begin).unwrap_or_default());
        if let Err(fault) = json_pieces(Part { text: content, line }, pieces) {
            // Braces are also a way to write YAML. Which of the two was meant, the name of the file tells.
            pieces.truncate(before);
            let second = if is_json { Err(fault.clone()) } else { yaml_pieces(document, lists, pieces) };
            second.map_err(|other| fail(if is_yaml { other } else { fault }))?;
        }
    }
    Ok(found)
}

/// A fault on a line. What is missing shows behind the last one, and is reported on the last.
pub(super) fn fault(source: &Arc<str>, text: &str, line: usize, why: String) -> Fault {
    let last = text.trim_end_matches(['\n', '\r']).split(['\n', '\r']).count();
    Fault { location: Location::line(source, line.min(last)), why }
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// A fault and its line.
type LineFault = (usize, String);

fn json_pieces<'a>(document: Part<'a>, pieces: &mut Vec<Piece<'a>>) -> Result<(), LineFault> {
    let mut rest = document;
    while !rest.text.is_empty() {
        let used = if rest.text.starts_with('[') {
            let (list, used) = next::<Vec<&RawValue>>(rest)?;
            members(rest, &list, &Head::default(), pieces);
            used
        } else {
            json_object(rest, pieces)?
        };
        let (done, after) = rest.text.split_at(used);
        let trimmed = after.trim_start();
        let blank = after.get(..after.len() - trimmed.len()).unwrap_or_default();
        rest = Part { text: trimmed, line: rest.line + lines(done) + lines(blank) };
    }
    Ok(())
}

/// The next value of a text, and how long it is.
fn next<'a, T: Deserialize<'a>>(from: Part<'a>) -> Result<(T, usize), LineFault> {
    let mut stream = serde_json::Deserializer::from_str(from.text).into_iter::<T>();
    match stream.next() {
        Some(Ok(value)) => Ok((value, stream.byte_offset())),
        Some(Err(error)) => Err((from.line + error.line().saturating_sub(1), json_words(&error))),
        None => Err((from.line, "the file is empty".to_owned())),
    }
}

fn json_object<'a>(from: Part<'a>, pieces: &mut Vec<Piece<'a>>) -> Result<usize, LineFault> {
    let mut stream = serde_json::Deserializer::from_str(from.text).into_iter::<Envelope<'a>>();
    let envelope = match stream.next() {
        Some(Ok(envelope)) => Some((envelope, stream.byte_offset())),
        // `items` of something that is no list, say; whoever reads it by its kind will tell.
        Some(Err(error)) if error.classify() == Category::Data && !is_of_two(&error) => None,
        Some(Err(error)) => return Err((from.line + error.line().saturating_sub(1), json_words(&error))),
        None => None,
    };
    let Some((envelope, used)) = envelope else {
        let (raw, used) = next::<&RawValue>(from)?;
        members(from, &[raw], &Head::default(), pieces);
        return Ok(used);
    };
    let head = Head { api_version: envelope.api_version, kind: envelope.kind };
    match (member_head(&head), envelope.items) {
        (Some(of_members), Some(items)) => members(from, &items, &of_members, pieces),
        (Some(_), None) if is_known_list(&head) => {}
        _ => {
            let text = Cow::Borrowed(from.text.get(..used).unwrap_or_default());
            pieces.push(Piece { text, line: from.line, form: Form::Json, head });
        }
    }
    Ok(used)
}

/// Whether a key is given twice.
fn is_of_two(error: &serde_json::Error) -> bool {
    error.to_string().starts_with("duplicate field")
}

/// Pieces from members of a list, which lie one after the other in the text.
fn members<'a>(within: Part<'a>, list: &[&'a RawValue], head: &Head, pieces: &mut Vec<Piece<'a>>) {
    let (mut line, mut seen) = (within.line, 0);
    for raw in list {
        let begin = (raw.get().as_ptr() as usize).saturating_sub(within.text.as_ptr() as usize);
        line += within.text.get(seen..begin).map_or(0, lines);
        seen = begin;
        pieces.push(Piece { text: Cow::Borrowed(raw.get()), line, form: Form::Json, head: head.clone() });
    }
}

/// What the members of a list are known to be, if this is a list: anything in a `List`, pods in a `PodList`.
fn member_head(list: &Head) -> Option<Head> {
    let kind = list.kind.as_deref()?.strip_suffix("List")?;
    if kind.is_empty() {
        return Some(Head::default());
    }
    Some(Head { api_version: list.api_version.clone(), kind: Some(kind.to_owned()) })
}

/// Whether a list without `items` is an empty list, and not an object whose kind happens to be called so.
fn is_known_list(list: &Head) -> bool {
    list.kind.as_deref().is_some_and(is_list)
}

/// Whether a kind is that of a list of objects a plan looks at.
pub(super) fn is_list(kind: &str) -> bool {
    kind.strip_suffix("List").is_some_and(|kind| kind.is_empty() || Kind::named(kind).is_some())
}

fn yaml_pieces<'a>(document: Part<'a>, lists: Lists, pieces: &mut Vec<Piece<'a>>) -> Result<(), LineFault> {
    let seen = layout(document).filter(|seen| seen.kind.is_some());
    let (head, items) = match seen {
        Some(seen) => {
            let text = |word: Option<&str>| word.map(str::to_owned);
            (Head { api_version: text(seen.api_version), kind: text(seen.kind) }, seen.items)
        }
        None if is_yaml_list(document) => {
            pieces.extend(yaml::members(document)?.into_iter().map(|member| member_piece(member, &Head::default())));
            return Ok(());
        }
        None => (yaml::head(document)?, None),
    };
    let Some(of_members) = member_head(&head) else {
        pieces.push(yaml_piece(document, Form::Yaml, head));
        return Ok(());
    };
    match items.filter(|_| lists == Lists::Apart) {
        Some(items) => {
            pieces.extend(items.into_iter().map(|item| yaml_piece(item, Form::YamlItem, of_members.clone())));
        }
        // A list that cannot be taken apart by its lines is parsed as a whole, and its members become JSON.
        None => match yaml::items(document) {
            Ok(Some(items)) => pieces.extend(items.into_iter().map(|item| member_piece(item, &of_members))),
            Ok(None) if is_known_list(&head) => {}
            Err(fault) if is_known_list(&head) => return Err(fault),
            _ => pieces.push(yaml_piece(document, Form::Yaml, head)),
        },
    }
    Ok(())
}

/// Whether a document is a list itself, and not a map that may have one.
fn is_yaml_list(document: Part<'_>) -> bool {
    let content = document.text.strip_prefix("---").unwrap_or(document.text).trim_start();
    content.starts_with(['[', '-']) && !content.starts_with("--")
}

fn yaml_piece(part: Part<'_>, form: Form, head: Head) -> Piece<'_> {
    Piece { text: Cow::Borrowed(part.text), line: part.line, form, head }
}

fn member_piece<'a>((line, member): (usize, Value), head: &Head) -> Piece<'a> {
    Piece { text: Cow::Owned(member.to_string()), line, form: Form::JsonOfYaml, head: head.clone() }
}

/// What the JSON reader says, without its position: that is given in lines of the file.
pub(super) fn json_words(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    match words.strip_prefix("duplicate field ") {
        _ if error.is_eof() => format!("unexpected end of the JSON: {words}"),
        Some(key) => format!("duplicate key {key}; keep one"),
        None => words.to_owned(),
    }
}
