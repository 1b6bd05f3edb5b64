//! When does a budget's cron line come up? Lines are read as Karpenter's parser reads them, in UTC.
//!
//! Five fields or a macro; `*`, `?`, ranges, steps, lists and names; a day matches if its day of month or its day of week
//! does, and both must where one of them is a star. The moments themselves are found in `calendar.rs`.

use std::fmt;
use std::str::FromStr;

use crate::calendar::Day;
use crate::launch::Seconds;

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

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// The calendar repeats after 400 years, but 29 February comes back within eight at the latest, on a given weekday within
/// forty.
const DAYS_SEARCHED: i64 = 41 * 366;

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
pub enum ScheduleError {
    /// A macro nobody knows.
    #[error(
        "`{0}` is not a known schedule; use one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly"
    )]
    Macro(String),
    /// Too few or too many fields.
    #[error("a cron schedule has 5 fields, not {0}; time zones and seconds are not supported")]
    Fields(usize),
    /// One field that says nothing.
    #[error("{text:?} is not a valid {what} in a cron schedule")]
    Field {
        /// Which field.
        what: &'static str,
        /// What stands there.
        text: String,
    },
    /// 30 February.
    #[error("the cron schedule never matches a date")]
    Never,
}

/// The numbers of a field, a bit for each, and whether it was written with a star.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbers {
    bits: u64,
    is_star: bool,
}

/// A cron line. The text stays what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    text: String,
    fields: [Numbers; 5],
}

impl Schedule {
    /// The last time the line came up, `now` included.
    pub fn last_hit(&self, now: Seconds) -> Seconds {
        let (today, second) = (now.0.div_euclid(DAY_SECONDS), now.0.rem_euclid(DAY_SECONDS));
        let until = self.last_minute_of_day(second / 60).filter(|_| self.has_day(today));
        let earlier = || {
            let day = (1..=DAYS_SEARCHED).map(|back| today.saturating_sub(back)).find(|day| self.has_day(*day))?;
            Some((day, self.last_minute_of_day(24 * 60 - 1)?))
        };
        let hit = until.map(|minute| (today, minute)).or_else(earlier);
        // A schedule that never comes up is refused when it is read, so there always is a hit.
        let (day, minute) = hit.unwrap_or((i64::MIN / DAY_SECONDS + 1, 0));
        Seconds(day.saturating_mul(DAY_SECONDS).saturating_add(minute * 60))
    }

    /// Whether the line came up less than so many seconds ago. A hit exactly that long ago is over.
    pub fn is_active(&self, now: Seconds, duration_seconds: u64) -> bool {
        u64::try_from(now.since(self.last_hit(now))).unwrap_or(u64::MAX) < duration_seconds
    }

    fn has_day(&self, days: i64) -> bool {
        let day = Day::of(days);
        let [_, _, of_month, month, of_week] = &self.fields;
        let (by_date, by_weekday) = (of_month.has(day.day), of_week.has(day.weekday));
        let is_day = if of_month.is_star || of_week.is_star { by_date && by_weekday } else { by_date || by_weekday };
        month.has(day.month) && is_day
    }

    /// The last minute of a day that the line names, up to this one.
    fn last_minute_of_day(&self, up_to: i64) -> Option<i64> {
        let [minutes, hours, ..] = &self.fields;
        let is_named = |minute: &i64| hours.has_at(minute / 60) && minutes.has_at(minute % 60);
        (0..=up_to).rev().find(is_named)
    }

    fn comes_up(&self) -> bool {
        let [minutes, hours, ..] = &self.fields;
        // From 2024-01-01 on, a leap year.
        minutes.bits != 0 && hours.bits != 0 && (0..DAYS_SEARCHED).any(|day| self.has_day(19_723 + day))
    }
}

impl Numbers {
    fn has(self, number: u32) -> bool {
        self.bits >> number & 1 == 1
    }

    fn has_at(self, number: i64) -> bool {
        u32::try_from(number).is_ok_and(|number| self.has(number))
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        let line = text.trim();
        let line = match MACROS.iter().find(|(name, _)| *name == line) {
            Some((_, meaning)) => meaning,
            None if line.starts_with('@') => return Err(ScheduleError::Macro(line.to_owned())),
            None => line,
        };
        let texts: Vec<&str> = line.split_whitespace().collect();
        let texts: [&str; 5] = texts.try_into().map_err(|texts: Vec<&str>| ScheduleError::Fields(texts.len()))?;
        let mut fields = [Numbers { bits: 0, is_star: false }; 5];
        for ((numbers, field), text) in fields.iter_mut().zip(&FIELDS).zip(texts) {
            *numbers = field.read(text)?;
        }
        let schedule = Schedule { text: text.to_owned(), fields };
        if schedule.comes_up() { Ok(schedule) } else { Err(ScheduleError::Never) }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Field {
    /// The numbers of a list of ranges. Empty parts say nothing; the reference takes even a lone comma, and never finds
    /// a time for it.
    fn read(&self, text: &str) -> Result<Numbers, ScheduleError> {
        let mut numbers = Numbers { bits: 0, is_star: false };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let refused = || ScheduleError::Field { what: self.what, text: text.to_owned() };
            let range = self.range(part).ok_or_else(refused)?;
            numbers.bits |= range.bits;
            numbers.is_star |= range.is_star;
        }
        Ok(numbers)
    }

    /// One part of a field: `*`, `5`, `1-5`, `*/10`, `5/10`, `1-30/10`.
    fn range(&self, text: &str) -> Option<Numbers> {
        let (bounds, step) = text.split_once('/').map_or((text, None), |(bounds, step)| (bounds, Some(step)));
        let (low, high) = bounds.split_once('-').map_or((bounds, None), |(low, high)| (low, Some(high)));
        let step_by = step.map_or(Some(1), whole).filter(|step| *step > 0)?;
        let is_any = low == "*" || low == "?";
        let first = if is_any { self.first } else { self.number(low)? };
        let last = match high {
            // The reference looks no further after a star.
            _ if is_any => self.last,
            Some(high) => self.number(high)?,
            // `5/10` goes on to the end, `5` does not.
            None if step.is_some() => self.last,
            None => first,
        };
        let is_inside = self.first <= first && first <= last && last <= self.last;
        let step = usize::try_from(step_by).unwrap_or(usize::MAX);
        let bits = || (first..=last).step_by(step).fold(0, |bits, number| bits | 1 << number);
        is_inside.then(|| Numbers { bits: bits(), is_star: is_any && step == 1 })
    }

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
