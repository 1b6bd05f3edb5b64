//! How does a pattern of Go read for the `regex` crate?
//!
//! Groups lose their names, which Go allows more of; everything that either side could read in two ways is written out.

use super::repeat::Count;
use super::{Refused, class, escape};

/// A pattern for the crate.
pub(super) struct Translated {
    pub(super) pattern: String,
    /// The names of the groups; the whole match is the first and has none.
    pub(super) names: Vec<Option<String>>,
}

/// Reads a pattern as Go does.
pub(super) fn translate(pattern: &str) -> Result<Translated, Refused> {
    let mut translator = Translator { names: vec![None], ..Translator::default() };
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let length = translator.step(first, rest)?;
        rest = rest.get(length..).unwrap_or_default();
    }
    if !translator.open.is_empty() {
        return Err(Refused("missing closing )"));
    }
    translator.flush_flags();
    Ok(Translated { pattern: translator.out, names: translator.names })
}

#[derive(Default)]
struct Translator {
    out: String,
    names: Vec<Option<String>>,
    /// The groups that are open, each with where it begins.
    open: Vec<Level>,
    level: Level,
    /// Flags that were set since the last thing that can repeat.
    flags: String,
    /// Whether the step before was a repetition.
    after_repeat: bool,
}

/// What is known of a group, or of the whole.
#[derive(Default)]
struct Level {
    start: usize,
    /// What a repetition would repeat.
    last: Option<Atom>,
    /// How often its parts repeat at most.
    weight: u32,
    /// Whether repetitions are as short as possible unless a `?` follows.
    swapped: bool,
    /// The same as far as it has been written.
    written_swapped: bool,
}

#[derive(Clone, Copy)]
struct Atom {
    start: usize,
    weight: u32,
    repeated: bool,
}

impl Translator {
    /// Reads what the rest begins with, and says how long that was.
    fn step(&mut self, first: char, rest: &str) -> Result<usize, Refused> {
        if let Some(length) = self.repetition(first, rest)? {
            self.after_repeat = true;
            return Ok(length);
        }
        self.after_repeat = false;
        match first {
            '(' => self.open_group(rest),
            ')' => self.close_group(),
            '|' => {
                self.flush_flags();
                self.out.push('|');
                self.level.last = None;
                Ok(1)
            }
            '[' => {
                let (class, length) = class::read(rest)?;
                self.atom(&class);
                Ok(length)
            }
            '\\' => self.escape(rest),
            '.' | '^' | '$' => {
                self.atom(first.encode_utf8(&mut [0; 4]));
                Ok(1)
            }
            _ => {
                self.atom(&class::number(first));
                Ok(first.len_utf8())
            }
        }
    }

    fn atom(&mut self, text: &str) {
        self.flush_flags();
        let start = self.out.len();
        self.out.push_str(text);
        self.level.last = Some(Atom { start, weight: 1, repeated: false });
    }

    fn flush_flags(&mut self) {
        self.level.written_swapped = self.level.swapped;
        self.out.push_str(&std::mem::take(&mut self.flags));
    }

    fn repetition(&mut self, first: char, rest: &str) -> Result<Option<usize>, Refused> {
        let (count, length) = match first {
            '*' | '+' | '?' => (None, 1),
            '{' => match Count::read(rest)? {
                Some((count, length)) => (Some(count), length),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let lazy = rest.get(length..).is_some_and(|rest| rest.starts_with('?'));
        if self.after_repeat {
            return Err(Refused("invalid nested repetition operator"));
        }
        let Some(mut atom) = self.level.last else {
            return Err(Refused("missing argument to repetition operator"));
        };
        if atom.repeated {
            self.out.insert_str(atom.start, "(?:");
            self.out.push(')');
        }
        self.out.push_str(rest.get(..length).unwrap_or_default());
        // Flags between the two count for the repetition but are written after it.
        if lazy != (self.level.swapped != self.level.written_swapped) {
            self.out.push('?');
        }
        let length = length + usize::from(lazy);
        atom.repeated = true;
        if let Some(count) = count {
            atom.weight = count.weight(atom.weight)?;
        }
        self.level.weight = self.level.weight.max(atom.weight);
        self.level.last = Some(atom);
        Ok(Some(length))
    }

    fn open_group(&mut self, rest: &str) -> Result<usize, Refused> {
        let named = rest.strip_prefix("(?P<").map(|name| (name, 4)).or(rest.strip_prefix("(?<").map(|name| (name, 3)));
        if let Some((name, start)) = named {
            let (name, _) = name.split_once('>').ok_or(Refused("invalid named capture"))?;
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !is_name {
                return Err(Refused("invalid named capture"));
            }
            self.enter("(");
            self.names.push(Some(name.to_owned()));
            return Ok(start + name.len() + 1);
        }
        if rest.starts_with("(?") {
            return self.flagged(rest);
        }
        self.enter("(");
        self.names.push(None);
        Ok(1)
    }

    fn enter(&mut self, bracket: &str) {
        self.flush_flags();
        let swapped = self.level.swapped;
        let level = Level { start: self.out.len(), last: None, weight: 1, swapped, written_swapped: swapped };
        self.open.push(std::mem::replace(&mut self.level, level));
        self.out.push_str(bracket);
    }

    fn close_group(&mut self) -> Result<usize, Refused> {
        let outer = self.open.pop().ok_or(Refused("unexpected )"))?;
        self.flush_flags();
        self.out.push(')');
        let inner = std::mem::replace(&mut self.level, outer);
        self.level.weight = self.level.weight.max(inner.weight);
        self.level.last = Some(Atom { start: inner.start, weight: inner.weight, repeated: false });
        Ok(1)
    }

    /// `(?i)`, `(?i:` and the like.
    fn flagged(&mut self, rest: &str) -> Result<usize, Refused> {
        let refused = Refused("invalid or unsupported Perl syntax");
        let inside = rest.get(2..).unwrap_or_default();
        let Some(end) = inside.find([')', ':']) else { return Err(refused) };
        let (flags, ends) = inside.split_at(end);
        let (on, off) = flags.split_once('-').map_or((flags, None), |(on, off)| (on, Some(off)));
        let known = |flags: &str| flags.chars().all(|flag| "imsU".contains(flag));
        if !known(on) || off.is_some_and(|off| off.is_empty() || !known(off)) {
            return Err(refused);
        }
        let off: String = "imsU".chars().filter(|flag| off.is_some_and(|off| off.contains(*flag))).collect();
        let on: String = "imsU".chars().filter(|flag| on.contains(*flag) && !off.contains(*flag)).collect();
        let minus = if off.is_empty() { "" } else { "-" };
        let flags = format!("{on}{minus}{off}");
        let is_group = ends.starts_with(':');
        if is_group {
            self.enter(&format!("(?{flags}:"));
        } else if !flags.is_empty() {
            self.flags.push_str(&format!("(?{flags})"));
        }
        if on.contains('U') || off.contains('U') {
            self.level.swapped = on.contains('U');
        }
        if is_group {
            self.level.written_swapped = self.level.swapped;
        }
        Ok(2 + end + 1)
    }

    fn escape(&mut self, rest: &str) -> Result<usize, Refused> {
        if let Some(property) = escape::property(rest) {
            let (property, length) = property?;
            self.atom(&property);
            return Ok(length);
        }
        let letter = rest.chars().nth(1);
        if let Some(class) = letter.and_then(escape::class) {
            self.atom(class);
            return Ok(2);
        }
        match letter {
            Some('A') => self.atom(r"\A"),
            Some('z') => self.atom(r"\z"),
            Some('b') => self.atom(r"(?-u:\b)"),
            Some('B') => self.atom(r"(?-u:\B)"),
            Some('Q') => {
                let quoted = rest.get(2..).unwrap_or_default();
                let (quoted, end) = quoted.split_once(r"\E").map_or((quoted, 0), |(quoted, _)| (quoted, 2));
                quoted.chars().for_each(|c| self.atom(&class::number(c)));
                return Ok(2 + quoted.len() + end);
            }
            _ => {
                let (character, length) = escape::character(rest)?;
                self.atom(&class::number(character));
                return Ok(length);
            }
        }
        Ok(2)
    }
}
