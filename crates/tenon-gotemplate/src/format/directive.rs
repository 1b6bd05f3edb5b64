//! What does a format string ask for?

use super::printer::Printer;
use super::spec::Spec;
use crate::{Failure, Output, Value};

/// Go takes no larger width or precision from an argument. A number in the format may have one digit more.
const MAX_COUNT: usize = 1_000_000;

/// `fmt.Sprintf`.
pub(super) fn printf(out: &mut Output, format: &[u8], values: &[Value]) -> Result<(), Failure> {
    let mut reader = Reader { rest: format, values, next: 0, is_reordered: false, is_index_good: true };
    while !reader.rest.is_empty() {
        let literal = reader.rest.iter().position(|byte| *byte == b'%').unwrap_or(reader.rest.len());
        out.push(reader.skip(literal))?;
        if reader.skip_if(b'%') {
            reader.directive(out)?;
        }
    }
    if reader.is_reordered {
        return Ok(());
    }
    print_extra(out, values.get(reader.next..).unwrap_or_default())
}

/// Says which arguments no directive asked for.
fn print_extra(out: &mut Output, values: &[Value]) -> Result<(), Failure> {
    for (at, value) in values.iter().enumerate() {
        out.push(if at == 0 { "%!(EXTRA " } else { ", " })?;
        match value.type_() {
            None => out.push("<nil>")?,
            Some(type_) => {
                out.push(format!("{type_}="))?;
                super::plain(value, out)?;
            }
        }
    }
    if values.is_empty() { Ok(()) } else { out.push(")") }
}

/// A format that is read from left to right.
struct Reader<'a> {
    rest: &'a [u8],
    values: &'a [Value],
    /// The argument that the next directive takes.
    next: usize,
    /// Whether any directive so far chose its argument: then nobody asks for arguments that are left over.
    is_reordered: bool,
    /// Whether the arguments that this directive chose are there.
    is_index_good: bool,
}

impl<'a> Reader<'a> {
    /// Prints what one directive asks for; its `%` was read.
    fn directive(&mut self, out: &mut Output) -> Result<(), Failure> {
        self.is_index_good = true;
        let mut spec = Spec::default();
        while self.rest.first().is_some_and(|byte| spec.set_flag(*byte)) {
            self.skip(1);
        }
        let after_index = self.index();
        let after_index = self.width(out, &mut spec, after_index)?;
        let after_index = self.precision(out, &mut spec, after_index)?;
        if !after_index {
            self.index();
        }
        match self.verb() {
            None => out.push("%!(NOVERB)"),
            Some('%') => out.push("%"),
            Some(verb) => self.value(out, spec, verb),
        }
    }

    fn value(&mut self, out: &mut Output, spec: Spec, verb: char) -> Result<(), Failure> {
        if !self.is_index_good {
            return out.push(format!("%!{verb}(BADINDEX)"));
        }
        let Some(value) = self.values.get(self.next) else { return out.push(format!("%!{verb}(MISSING)")) };
        self.next += 1;
        let spec = if matches!(verb, 'v' | 'w') { spec.for_default_verb() } else { spec };
        Printer::new(out, spec).argument(value, verb)
    }

    /// Reads the width; says whether an index still waits for its verb.
    fn width(&mut self, out: &mut Output, spec: &mut Spec, after_index: bool) -> Result<bool, Failure> {
        if !self.skip_if(b'*') {
            spec.width = self.number();
            // As in `%[3]2d`: the index belongs directly before the verb.
            self.is_index_good &= !(after_index && spec.width.is_some());
            return Ok(after_index);
        }
        match self.count_argument() {
            None => out.push("%!(BADWIDTH)")?,
            Some(count) => {
                spec.width = Some(usize::try_from(count.unsigned_abs()).unwrap_or(MAX_COUNT));
                if count < 0 {
                    spec.minus = true;
                    spec.zero = false;
                }
            }
        }
        Ok(false)
    }

    /// Reads the precision; says whether an index still waits for its verb.
    fn precision(&mut self, out: &mut Output, spec: &mut Spec, after_index: bool) -> Result<bool, Failure> {
        if !self.skip_if(b'.') {
            return Ok(after_index);
        }
        self.is_index_good &= !after_index;
        let after_index = self.index();
        if !self.skip_if(b'*') {
            spec.precision = Some(self.number().unwrap_or_default());
            return Ok(after_index);
        }
        spec.precision = self.count_argument().and_then(|count| usize::try_from(count).ok());
        if spec.precision.is_none() {
            out.push("%!(BADPREC)")?;
        }
        Ok(false)
    }

    /// Reads an index such as `[2]`, if one is next; says whether it can stand before a verb.
    fn index(&mut self) -> bool {
        if !self.skip_if(b'[') {
            return false;
        }
        self.is_reordered = true;
        let Some(close) = self.rest.iter().position(|byte| *byte == b']') else {
            self.is_index_good = false;
            return false;
        };
        let mut inside = Reader { rest: self.skip(close), ..*self };
        self.skip(1);
        let number = inside.number().filter(|_| inside.rest.is_empty());
        match number.and_then(|number| number.checked_sub(1)).filter(|at| *at < self.values.len()) {
            Some(at) => self.next = at,
            None => self.is_index_good = false,
        }
        number.is_some()
    }

    /// Reads a number. Nothing of the format is left behind a number that is too large.
    fn number(&mut self) -> Option<usize> {
        let mut number = None;
        while let Some(digit) = self.rest.first().filter(|byte| byte.is_ascii_digit()) {
            let before = number.unwrap_or_default();
            if before > MAX_COUNT {
                self.rest = &[];
                return None;
            }
            number = Some(before * 10 + usize::from(digit - b'0'));
            self.skip(1);
        }
        number
    }

    /// Takes an argument as a width or a precision.
    fn count_argument(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        let count = match value {
            Value::Int(number, _) => *number,
            Value::Uint(number, _) => i64::try_from(*number).ok()?,
            _ => return None,
        };
        Some(count).filter(|count| count.unsigned_abs() <= MAX_COUNT as u64)
    }

    fn verb(&mut self) -> Option<char> {
        let chunk = self.rest.utf8_chunks().next()?;
        let verb = chunk.valid().chars().next();
        self.skip(verb.map_or(1, char::len_utf8));
        Some(verb.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn skip_if(&mut self, byte: u8) -> bool {
        let is_next = self.rest.first() == Some(&byte);
        if is_next {
            self.skip(1);
        }
        is_next
    }

    fn skip(&mut self, count: usize) -> &'a [u8] {
        let (skipped, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        skipped
    }
}
