//! Where does a regular expression match?
//!
//! Patterns are written for Go's `regexp`. `translate` reads them as Go does and writes them anew for the `regex` crate,
//! whose matching is the same: leftmost, first alternative first, in time linear in the text.

mod class;
mod escape;
mod expand;
mod haystack;
mod repeat;
mod translate;

use regex::bytes::{Captures, Regex, RegexBuilder};
use tenon_gotemplate::{Failure, Limits, Output, Value};

use super::arguments;
use haystack::Haystack;

/// How large a compiled pattern may be: one that repeats a hundred Unicode classes still fits.
const COMPILED_BYTES: usize = 8 << 20;
/// A search may take time that grows with both sizes. This many bytes of a pattern times bytes of a text take a few hundredths
/// of a second at worst, and leave 4 KiB for the pattern where the text is as large as one may be.
const SEARCH_BYTES: usize = 1 << 32;

/// `regexFind`: the first match, or an empty string.
pub(super) fn find(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    first_match(arguments, 0)
}

/// `regexFindString`: a group of the first match, or an empty string.
pub(super) fn find_group(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let group = usize::try_from(arguments::int(arguments, 2)?);
    first_match(arguments, group.map_err(|_| Failure::new("the number of a group cannot be negative"))?)
}

fn first_match(arguments: &[Value], group: usize) -> Result<Value, Failure> {
    let (pattern, text) = arguments::two_strings(arguments)?;
    let haystack = Haystack::new(text);
    let pattern = Pattern::new(pattern, haystack.len())?;
    let found = pattern.matches(&haystack).next();
    let found = found.and_then(|captures| captures.get(group).map(|group| group.range()));
    Ok(Value::string(found.map_or(&[][..], |range| haystack.original(range))))
}

/// `regexReplaceAll`: the text with every match replaced; `${1}` in the replacement is a group.
pub(super) fn replace_all(limits: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (pattern, text) = arguments::two_strings(arguments)?;
    let haystack = Haystack::new(text);
    let pattern = Pattern::new(pattern, haystack.len())?;
    let parts = expand::parts(arguments::string(arguments, 2)?);
    let mut out = Output::new(limits.output);
    let mut copied = 0;
    for captures in pattern.matches(&haystack) {
        let whole = captures.get_match().range();
        out.push(haystack.original(copied..whole.start))?;
        copied = whole.end;
        for part in &parts {
            out.push(part.text(&pattern.names, &captures, &haystack))?;
        }
    }
    out.push(haystack.original(copied..haystack.len()))?;
    Ok(Value::string(out.into_bytes()))
}

struct Pattern {
    regex: Regex,
    /// The names of the groups; the whole match is the first and has none.
    names: Vec<Option<String>>,
}

impl Pattern {
    /// A pattern for a text of that many bytes.
    fn new(pattern: &[u8], text_bytes: usize) -> Result<Pattern, Failure> {
        // The pattern is not shown: it may come from a Secret.
        let wrong = |why: &str| Failure::new(format!("error parsing regexp: {why}"));
        let text = std::str::from_utf8(pattern).map_err(|_| wrong("invalid UTF-8"))?;
        let translated = translate::translate(text).map_err(|problem| wrong(problem.0))?;
        let limit = COMPILED_BYTES.min(SEARCH_BYTES / text_bytes.max(1));
        let mut builder = RegexBuilder::new(&translated.pattern);
        let regex = builder.size_limit(limit).build().map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => wrong("expression too large"),
            _ => wrong("an unsupported expression"),
        })?;
        Ok(Pattern { regex, names: translated.names })
    }

    /// All matches. An empty one that falls inside a character is none: Go looks between characters only.
    fn matches<'a>(&'a self, haystack: &'a Haystack<'_>) -> impl Iterator<Item = Captures<'a>> {
        let all = self.regex.captures_iter(haystack.text().as_bytes());
        all.filter(|captures| haystack.text().is_char_boundary(captures.get_match().start()))
    }
}

/// What Go would refuse in a pattern, in its words.
#[derive(Debug)]
struct Refused(&'static str);
