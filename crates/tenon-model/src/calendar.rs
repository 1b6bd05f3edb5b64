//! Which date is a day since 1970, in UTC?

/// A date in the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day {
    pub(crate) year: i64,
    /// From 1.
    pub(crate) month: u32,
    /// From 1.
    pub(crate) day: u32,
    /// From 0, which is Sunday.
    pub(crate) weekday: u32,
}

/// Days of 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;
/// From 1 March of year 0 to 1 January 1970. A year that begins in March has its leap day at its end.
const EPOCH: i64 = 719_468;

impl Day {
    /// The date of a day since 1970-01-01.
    pub(crate) fn of(days: i64) -> Day {
        let since = days.saturating_add(EPOCH);
        let (era, day) = (since.div_euclid(ERA), since.rem_euclid(ERA));
        // Each leap day that came before makes the year shorter again: every 4 years but every 100, yet every 400.
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year + year / 4 - year / 100);
        // March to July and August to December have 153 days each.
        let month = (5 * day_of_year + 2) / 153;
        let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Day {
            year: year + era * 400 + i64::from(month <= 2),
            month: u32::try_from(month).unwrap_or_default(),
            day: u32::try_from(day_of_month).unwrap_or_default(),
            // 1970-01-01 was a Thursday.
            weekday: u32::try_from(days.saturating_add(4).rem_euclid(7)).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other_through_four_centuries() {
        let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let mut expected = Day { year: 1970, month: 1, day: 1, weekday: 4 };
        for days in 0..=ERA {
            assert_eq!(Day::of(days), expected, "{days}");
            let length = match expected.month {
                2 if is_leap(expected.year) => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected.weekday = (expected.weekday + 1) % 7;
            expected.day += 1;
            if expected.day > length {
                (expected.day, expected.month) = (1, expected.month + 1);
            }
            if expected.month > 12 {
                (expected.month, expected.year) = (1, expected.year + 1);
            }
        }
        assert_eq!(Day::of(-1), Day { year: 1969, month: 12, day: 31, weekday: 3 });
    }
}
