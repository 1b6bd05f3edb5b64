//! How often does a part of a pattern repeat?

use super::Refused;

/// Nothing may be asked for more often, also by repetitions inside each other.
const MOST: u32 = 1000;

/// `{2}`, `{2,}` or `{2,5}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    least: u32,
    most: Option<u32>,
}

impl Count {
    /// Reads one at the start of the text, and says how long it is. Braces that hold anything else are text.
    pub(super) fn read(text: &str) -> Result<Option<(Count, usize)>, Refused> {
        let Some((inside, _)) = text.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return Ok(None) };
        let (least, most) = match inside.split_once(',') {
            None => (number(inside), number(inside).map(Some)),
            Some((least, "")) => (number(least), Some(None)),
            Some((least, most)) => (number(least), number(most).map(Some)),
        };
        let (Some(least), Some(most)) = (least, most) else { return Ok(None) };
        if least > MOST || most.is_some_and(|most| most > MOST || most < least) {
            return Err(Refused("invalid repeat count"));
        }
        Ok(Some((Count { least, most }, inside.len() + 2)))
    }

    /// How often the inside of something is repeated that repeats `inside` times itself.
    pub(super) fn weight(self, inside: u32) -> Result<u32, Refused> {
        let times = self.most.unwrap_or(self.least);
        if self.most == Some(0) {
            return Ok(1);
        }
        let weight = inside.saturating_mul(times.max(1));
        if times >= 2 && weight > MOST {
            return Err(Refused("invalid repeat count"));
        }
        Ok(weight)
    }
}

/// Digits without zeros in front. What is too large for a number is too large for a count.
fn number(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    (is_number && !text.is_empty()).then(|| text.parse().unwrap_or(u32::MAX))
}
