//! Cron lines: when they come up, which ones are refused, and when a budget counts.

use proptest::prelude::*;

use crate::calendar::Day;
use crate::launch::Seconds;
use crate::schedule::{Schedule, ScheduleError};

/// 2026-03-11, a Wednesday, at midnight.
const WEDNESDAY: i64 = 1_773_187_200;
const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

fn schedule(line: &str) -> Schedule {
    line.parse().unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn a_line_comes_up_when_the_reference_says() {
    assert_eq!(Day::of(WEDNESDAY / DAY), Day { year: 2026, month: 3, day: 11, weekday: 3 });
    let now = Seconds(WEDNESDAY + 10 * HOUR + 17 * 60 + 30);
    for (line, expected) in [
        ("* * * * *", WEDNESDAY + 10 * HOUR + 17 * 60),
        ("@hourly", WEDNESDAY + 10 * HOUR),
        ("@daily", WEDNESDAY),
        (" @midnight ", WEDNESDAY),
        ("@weekly", WEDNESDAY - 3 * DAY),
        ("@monthly", WEDNESDAY - 10 * DAY),
        ("@yearly", WEDNESDAY - 69 * DAY),
        ("@annually", WEDNESDAY - 69 * DAY),
        ("5/10 * * * *", WEDNESDAY + 10 * HOUR + 15 * 60),
        ("0-30/7 9 * * ?", WEDNESDAY + 9 * HOUR + 28 * 60),
        ("0 9 * * Mon-fri", WEDNESDAY + 9 * HOUR),
        ("0 9 * FEB sat", WEDNESDAY - 11 * DAY + 9 * HOUR),
        ("0 9 9 * 2", WEDNESDAY - DAY + 9 * HOUR),
        ("0 9 9 * *,2", WEDNESDAY - 2 * DAY + 9 * HOUR),
        ("0 9 */20 * 6", WEDNESDAY - 4 * DAY + 9 * HOUR),
        ("0,,30 9 ? * *-5", WEDNESDAY + 9 * HOUR + 30 * 60),
        ("0 0 29 2 *", WEDNESDAY - 741 * DAY),
        ("59 23 * * *", WEDNESDAY - 60),
        // A day of week besides a day of month widens the choice: Sundays in February count, too.
        ("0 0 29 2 0", WEDNESDAY - 17 * DAY),
        ("0 0 29 2 */1", WEDNESDAY - 741 * DAY),
    ] {
        assert_eq!(schedule(line).last_hit(now), Seconds(expected), "{line}");
        assert_eq!(schedule(line).to_string(), line);
    }
}

#[test]
fn a_hit_this_very_second_is_the_last_one() {
    let eight = WEDNESDAY + 8 * HOUR;
    assert_eq!(schedule("0 8 * * *").last_hit(Seconds(eight)), Seconds(eight));
    assert_eq!(schedule("0 8 * * *").last_hit(Seconds(eight - 1)), Seconds(eight - DAY));
}

#[test]
fn a_budget_counts_until_its_duration_is_over() {
    let daily = schedule("@daily");
    let eight_hours = 8 * HOUR.unsigned_abs();
    assert!(daily.is_active(Seconds(WEDNESDAY), eight_hours));
    assert!(daily.is_active(Seconds(WEDNESDAY + 8 * HOUR - 1), eight_hours));
    assert!(!daily.is_active(Seconds(WEDNESDAY + 8 * HOUR), eight_hours));
    assert!(!daily.is_active(Seconds(WEDNESDAY - 1), eight_hours));
    let longer_than_a_day = 25 * HOUR.unsigned_abs();
    assert!((0..48).all(|hour| daily.is_active(Seconds(WEDNESDAY + hour * HOUR), longer_than_a_day)));
    assert!(!daily.is_active(Seconds(WEDNESDAY), 0), "no time at all is over at once");
}

#[test]
fn what_the_reference_refuses_is_refused() {
    for line in [
        "",
        "@reboot",
        "@every 1h",
        "@Daily",
        "@dailyish",
        "@daily at noon",
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
        "99 99 99 99 99",
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
        assert!(line.parse::<Schedule>().is_err(), "{line}");
    }
}

#[test]
fn a_time_that_never_comes_is_refused() {
    for line in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", ", * * * *", "* , * * *", "* * , * *", "0 0 30 2 ?"] {
        assert_eq!(line.parse::<Schedule>(), Err(ScheduleError::Never), "{line}");
    }
    assert!("0 0 30 2 1".parse::<Schedule>().is_ok(), "a Monday comes");
}

proptest! {
    /// Going back second by second finds the same hit.
    #[test]
    fn the_last_hit_is_the_last_minute_that_matches(
        minute in 0_u32..60, hour in 0_u32..24, day in 1_u32..=28, offset in 0_i64..(400 * DAY),
    ) {
        let now = Seconds(WEDNESDAY + offset);
        let hit = schedule(&format!("{minute} {hour} {day} * *")).last_hit(now);
        prop_assert!(hit <= now && now.0 - hit.0 <= 31 * DAY);
        let date = Day::of(hit.0.div_euclid(DAY));
        let second = hit.0.rem_euclid(DAY);
        prop_assert_eq!((date.day, second), (day, i64::from(hour) * HOUR + i64::from(minute) * 60));
    }

    #[test]
    fn a_line_that_is_active_was_hit_within_its_duration(step in 1_u32..60, offset in 0_i64..DAY, minutes in 1_u64..120) {
        let now = Seconds(WEDNESDAY + offset);
        let line = schedule(&format!("*/{step} * * * *"));
        let hits = (0..minutes * 60).any(|ago| {
            let second = now.0 - i64::try_from(ago).unwrap();
            second % 60 == 0 && (second / 60 % 60) % i64::from(step) == 0
        });
        prop_assert_eq!(line.is_active(now, minutes * 60), hits);
    }
}
