//! YAML as Kubernetes means it, within bounds: only `true` and `false` are truth values, texts that look like numbers
//! need quotes, and nothing grows far beyond the file it stands in.

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::{Error, Options, Spanned, with_deserializer_from_str_with_options};
use tenon_api::objects::{Kind, Object};
use tenon_api::yaml_words;

use super::head::{Head, HeadOf};
use super::locate::Way;
use super::parse::Broken;
use super::pieces::{Form, Piece, json_words};
use super::yaml_layout::Part;

/// What references may add to a document. A list of alike objects uses a few; a bomb uses millions.
const REPLAYED_EVENTS_MAX: usize = 200_000;

/// Whether a text may look like a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    NeedNoQuotesAsText,
    NeedQuotesAsText,
}

fn options(length: usize, numbers: Numbers) -> Options {
    let mut options = serde_saphyr::options! {
        strict_booleans: true,
        legacy_octal_numbers: true,
        emit_comments: false,
        with_snippet: false,
        no_schema: numbers == Numbers::NeedQuotesAsText,
    };
    options.alias_limits.max_total_replayed_events = REPLAYED_EVENTS_MAX;
    // A node is at least a byte: what is bounded is what references make of it.
    if let Some(budget) = options.budget.as_mut() {
        budget.max_nodes = budget.max_nodes.max(length.saturating_add(REPLAYED_EVENTS_MAX));
        budget.max_events = budget.max_events.max(length.saturating_mul(2).saturating_add(REPLAYED_EVENTS_MAX));
        budget.max_total_scalar_bytes = budget.max_total_scalar_bytes.max(length.saturating_mul(2));
    }
    options
}

/// What a document says it is.
pub(super) fn head(document: Part<'_>) -> Result<Head, (usize, String)> {
    read_head(document.text, false).map_err(|error| located(&error, document.line))
}

/// A member of a list without types, and the line of the file it begins on.
type Member = (usize, Value);

/// A list of which only the members matter.
#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Option<Vec<Spanned<Value>>>,
}

/// The members of a document that is a list.
pub(super) fn members(document: Part<'_>) -> Result<Vec<Member>, (usize, String)> {
    let options = options(document.text.len(), Numbers::NeedNoQuotesAsText);
    let read = serde_saphyr::from_str_with_options::<Vec<Spanned<Value>>>(document.text, options);
    Ok(placed(read.map_err(|error| located(&error, document.line))?, document.line))
}

/// The members of `items`, if there are any.
pub(super) fn items(document: Part<'_>) -> Result<Option<Vec<Member>>, (usize, String)> {
    let options = options(document.text.len(), Numbers::NeedNoQuotesAsText);
    let read = serde_saphyr::from_str_with_options::<List>(document.text, options);
    let list = read.map_err(|error| located(&error, document.line))?;
    Ok(list.items.map(|items| placed(items, document.line)))
}

fn placed(members: Vec<Spanned<Value>>, first: usize) -> Vec<Member> {
    let line = |member: &Spanned<Value>| usize::try_from(member.referenced.line()).unwrap_or(1);
    members.into_iter().map(|member| (first + line(&member).saturating_sub(1), member.value)).collect()
}

/// What a piece says it is.
pub(super) fn head_of(piece: &Piece<'_>) -> Result<Head, Broken> {
    read_head(&piece.text, piece.form == Form::YamlItem).map_err(|error| broken(&error, piece))
}

fn read_head(text: &str, is_in_list: bool) -> Result<Head, Error> {
    let mut head = Head::default();
    let options = options(text.len(), Numbers::NeedNoQuotesAsText);
    let seed = HeadOf { head: &mut head, is_in_list };
    let outcome = with_deserializer_from_str_with_options(text, options, |from| seed.deserialize(from));
    if head.is_complete() { Ok(head) } else { outcome.map(|()| head) }
}

/// A piece as an object of its kind.
pub(super) fn object(piece: &Piece<'_>, kind: Kind) -> Result<Object, Broken> {
    let strict = read_object(piece, kind, Numbers::NeedQuotesAsText);
    let read = match &strict {
        // Most writers do not see a number in `12e4`; as the hash of a template it is a text.
        Err(Error::QuotingRequired { value, .. }) if is_exponent(value) => {
            read_object(piece, kind, Numbers::NeedNoQuotesAsText)
        }
        _ => strict,
    };
    read.map_err(|error| broken(&error, piece))
}

/// Where a field of a piece stands.
pub(super) fn line_of(piece: &Piece<'_>, way: Way<'_>) -> Option<usize> {
    let options = options(piece.text.len(), Numbers::NeedNoQuotesAsText);
    let within = if piece.form == Form::YamlItem { format!("[0].{}", way.0) } else { way.0.to_owned() };
    let outcome = with_deserializer_from_str_with_options(&piece.text, options, |from| Way(&within).deserialize(from));
    outcome.err().map(|error| located(&error, piece.line).0)
}

/// Whether a piece that nobody reads is YAML at all. One that breaks off may have taken others with it.
pub(super) fn check(piece: &Piece<'_>) -> Result<(), Broken> {
    let options = options(piece.text.len(), Numbers::NeedNoQuotesAsText);
    match serde_saphyr::from_str_with_options::<IgnoredAny>(&piece.text, options) {
        Err(
            error @ (Error::ExternalMessage { .. }
            | Error::Eof { .. }
            | Error::UnknownAnchor { .. }
            | Error::DuplicateMappingKey { .. }),
        ) => Err(broken(&error, piece)),
        // What it says does not matter, nor how deep.
        _ => Ok(()),
    }
}

/// A piece without types.
pub(super) fn value_of(piece: &Piece<'_>) -> Option<Value> {
    let options = options(piece.text.len(), Numbers::NeedNoQuotesAsText);
    match serde_saphyr::from_str_with_options(&piece.text, options).ok()? {
        Value::Array(mut list) if piece.form == Form::YamlItem => list.pop(),
        other => Some(other),
    }
}

/// A piece as a type, in whatever form it is written; or the line of the file, and what is wrong there.
pub(super) fn typed<T: DeserializeOwned>(piece: &Piece<'_>) -> Result<T, (usize, String)> {
    let failed = |error: &Error| located(error, piece.line);
    let options = options(piece.text.len(), Numbers::NeedQuotesAsText);
    match piece.form {
        Form::Yaml => serde_saphyr::from_str_with_options(&piece.text, options).map_err(|error| failed(&error)),
        Form::YamlItem => {
            let list: Vec<T> =
                serde_saphyr::from_str_with_options(&piece.text, options).map_err(|error| failed(&error))?;
            list.into_iter().next().ok_or_else(|| (piece.line, "the object is missing".to_owned()))
        }
        Form::Json | Form::JsonOfYaml => serde_json::from_str(&piece.text).map_err(|error| {
            let inside = if piece.form == Form::Json { error.line().saturating_sub(1) } else { 0 };
            (piece.line + inside, json_words(&error))
        }),
    }
}

fn is_exponent(text: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(['e', 'E']).is_some_and(|(mantissa, power)| is_digits(mantissa) && is_digits(power))
}

fn read_object(piece: &Piece<'_>, kind: Kind, numbers: Numbers) -> Result<Object, Error> {
    let options = options(piece.text.len(), numbers);
    let is_item = piece.form == Form::YamlItem;
    with_deserializer_from_str_with_options(&piece.text, options, |from| {
        if is_item { from.deserialize_seq(OnlyOne(kind)) } else { kind.read(from) }
    })
}

/// The only member of a list.
struct OnlyOne(Kind);

impl<'de> DeserializeSeed<'de> for OnlyOne {
    type Value = Object;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Object, D::Error> {
        self.0.read(from)
    }
}

impl<'de> Visitor<'de> for OnlyOne {
    type Value = Object;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of one object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Object, A::Error> {
        let kind = self.0;
        list.next_element_seed(self)?.ok_or_else(|| A::Error::custom(format!("the {} is missing", kind.name())))
    }
}

fn broken(error: &Error, piece: &Piece<'_>) -> Broken {
    let (line, why) = located(error, piece.line);
    let is_stray = matches!(error.without_snippet(), Error::UnknownAnchor { .. });
    Broken { line, why, needs_others: is_stray && piece.form == Form::YamlItem }
}

/// What the YAML reader says, and on which line of the file.
fn located(error: &Error, first: usize) -> (usize, String) {
    (first + yaml_words::line(error).unwrap_or(1).saturating_sub(1), yaml_words::words(error))
}
