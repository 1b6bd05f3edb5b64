//! When did a budget's cron line come up last? Lines are read as Karpenter's parser reads them, in UTC.
//!
//! The search through the calendar is `croner`'s. It also knows more than the reference does (`L`, `W`, `#`, weekday 7,
//! a sixth field) and less (`@midnight`, `5/10`), so each field is read here and handed on as plain numbers.

use croner::parser::{CronParser, Seconds};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

const MACROS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];
const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// What a field may hold. Its names stand for the numbers from `first` on.
struct Field {
    what: &'static str,
    first: u32,
    last: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { what: "minute", first: 0, last: 59, names: &[] },
    Field { what: "hour", first: 0, last: 23, names: &[] },
    Field { what: "day of month", first: 1, last: 31, names: &[] },
    Field { what: "month", first: 1, last: 12, names: MONTHS },
    Field { what: "day of week", first: 0, last: 6, names: DAYS },
];

/// Why a cron line cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadSchedule {
    /// A macro nobody knows.
    #[error("{0} is not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly")]
    Macro(String),
    /// Too few or too many fields.
    #[error("a cron line has 5 fields, not {0}; time zones and seconds cannot be given")]
    Fields(usize),
    /// One field that says nothing.
    #[error("{text:?} is no {what} of a cron line")]
    Field { what: &'static str, text: String },
    /// 30 February.
    #[error("it names a time that never comes")]
    Never,
}

/// The last time the line came up, `now` included.
pub(crate) fn last_hit(line: &str, now: Timestamp) -> Result<Timestamp, BadSchedule> {
    let parser = CronParser::builder().seconds(Seconds::Disallowed).build();
    // A plain line always parses; if not, it comes up never as far as anybody can tell.
    let cron = parser.parse(&plain(line)?).map_err(|_| BadSchedule::Never)?;
    let civil: DateTime = Offset::UTC.to_datetime(now);
    // A line has no year, so one that never came up before never will.
    let hit = cron.find_previous_occurrence(&civil, true).map_err(|_| BadSchedule::Never)?;
    Offset::UTC.to_timestamp(hit).map_err(|_| BadSchedule::Never)
}

/// The same line with nothing in it but numbers, commas and stars.
fn plain(line: &str) -> Result<String, BadSchedule> {
    let line = line.trim();
    let line = match MACROS.iter().find(|(name, _)| *name == line) {
        Some((_, meaning)) => meaning,
        None if line.starts_with('@') => return Err(BadSchedule::Macro(line.to_owned())),
        None => line,
    };
    let texts: Vec<&str> = line.split_whitespace().collect();
    if texts.len() != FIELDS.len() {
        return Err(BadSchedule::Fields(texts.len()));
    }
    let fields: Result<Vec<String>, BadSchedule> =
        FIELDS.iter().zip(texts).map(|(field, text)| plain_field(field, text)).collect();
    Ok(fields?.join(" "))
}

fn plain_field(field: &Field, text: &str) -> Result<String, BadSchedule> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    let ranges: Option<Vec<Range>> = parts.map(|part| Range::read(field, part)).collect();
    let ranges = ranges.ok_or_else(|| BadSchedule::Field { what: field.what, text: text.to_owned() })?;
    if ranges.iter().any(|range| range.is_star) {
        // Not the same as all numbers: a starred day leaves the choice to the other day field.
        return Ok("*".to_owned());
    }
    let numbers = ranges.iter().flat_map(|range| (range.first..=range.last).step_by(range.step));
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    // The reference takes a lone comma, too, and never finds a time for it.
    if numbers.is_empty() { Err(BadSchedule::Never) } else { Ok(numbers.join(",")) }
}

/// One part of a field: `*`, `5`, `1-5`, `*/10`, `5/10`, `1-30/10`.
struct Range {
    first: u32,
    last: u32,
    step: usize,
    is_star: bool,
}

impl Range {
    fn read(field: &Field, text: &str) -> Option<Range> {
        let (bounds, step) = text.split_once('/').map_or((text, None), |(bounds, step)| (bounds, Some(step)));
        let (low, high) = bounds.split_once('-').map_or((bounds, None), |(low, high)| (low, Some(high)));
        let step_by = step.map_or(Some(1), whole)?;
        let is_any = low == "*" || low == "?";
        let first = if is_any { field.first } else { field.number(low)? };
        let last = match high {
            // The reference looks no further after a star.
            _ if is_any => field.last,
            Some(high) => field.number(high)?,
            // `5/10` goes on to the end, `5` does not.
            None if step.is_some() => field.last,
            None => first,
        };
        let is_inside = field.first <= first && first <= last && last <= field.last;
        let step = usize::try_from(step_by).ok().filter(|step| *step > 0)?;
        is_inside.then_some(Range { first, last, step, is_star: is_any && step == 1 })
    }
}

impl Field {
    fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| text.eq_ignore_ascii_case(name));
        match named {
            Some(index) => Some(self.first.saturating_add(u32::try_from(index).ok()?)),
            None => whole(text).and_then(|number| u32::try_from(number).ok()),
        }
    }
}

/// A whole number as Go reads one: a plus is allowed, and 64 bits are enough.
fn whole(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| *number >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(line: &str, now: &str) -> String {
        last_hit(line, now.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn a_line_comes_up_when_the_reference_says() {
        // 2026-03-11 is a Wednesday.
        let now = "2026-03-11T10:17:30.5Z";
        for (line, expected) in [
            ("* * * * *", "2026-03-11T10:17:00Z"),
            ("@hourly", "2026-03-11T10:00:00Z"),
            ("@daily", "2026-03-11T00:00:00Z"),
            (" @midnight ", "2026-03-11T00:00:00Z"),
            ("@weekly", "2026-03-08T00:00:00Z"),
            ("@monthly", "2026-03-01T00:00:00Z"),
            ("@yearly", "2026-01-01T00:00:00Z"),
            ("@annually", "2026-01-01T00:00:00Z"),
            ("5/10 * * * *", "2026-03-11T10:15:00Z"),
            ("0-30/7 9 * * ?", "2026-03-11T09:28:00Z"),
            ("0 9 * * Mon-fri", "2026-03-11T09:00:00Z"),
            ("0 9 * FEB sat", "2026-02-28T09:00:00Z"),
            ("0 9 9 * 2", "2026-03-10T09:00:00Z"),
            ("0 9 9 * *,2", "2026-03-09T09:00:00Z"),
            ("0 9 */20 * 6", "2026-03-07T09:00:00Z"),
            ("0,,30 9 ? * *-5", "2026-03-11T09:30:00Z"),
            ("0 0 29 2 *", "2024-02-29T00:00:00Z"),
        ] {
            assert_eq!(hit(line, now), expected, "{line}");
        }
    }

    #[test]
    fn a_hit_this_very_second_is_the_last_one() {
        assert_eq!(hit("0 8 * * *", "2026-03-11T08:00:00Z"), "2026-03-11T08:00:00Z");
        assert_eq!(hit("0 8 * * *", "2026-03-11T07:59:59.999Z"), "2026-03-10T08:00:00Z");
    }

    #[test]
    fn what_the_reference_refuses_is_refused() {
        for line in [
            "",
            "@reboot",
            "@every 1h",
            "@Daily",
            "@dailyish",
            "* * * *",
            "0 * * * * *",
            "* * * * * 2026",
            "CRON_TZ=UTC 0 9 * * *",
            "TZ=UTC 0 9 * * *",
            "CRON_TZ=UTC 9 * * *",
            "0 0 L * *",
            "0 0 15W * *",
            "0 0 * * 5L",
            "0 0 * * 1#2",
            "0 0 * * 7",
            "0 0 0 * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 32 * *",
            "* * * 13 *",
            "5-1 * * * *",
            "1-2-3 * * * *",
            "*/0 * * * *",
            "*/2/2 * * * *",
            "/5 * * * *",
            "1- * * * *",
            "-1 * * * *",
            "mon * * * *",
            "0 0 * mon *",
            "0 0 * * +MON",
            "0 0 * * monday",
            "a b c d e",
            "*,x * * * *",
        ] {
            assert!(plain(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_time_that_never_comes_is_refused() {
        let now = "2026-03-11T08:00:00Z".parse().unwrap();
        for line in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", ", * * * *"] {
            assert_eq!(last_hit(line, now), Err(BadSchedule::Never), "{line}");
        }
    }
}
