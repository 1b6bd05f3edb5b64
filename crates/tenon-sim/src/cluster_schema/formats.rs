//! Is a text a date, an address, a name: what its schema calls a format?

use std::net::{Ipv4Addr, Ipv6Addr};

use super::node::Node;
use super::pattern;

/// Formats of text that the server knows and that are checked here.
const TEXTUAL: [&str; 16] = [
    "date",
    "datetime",
    "duration",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "byte",
    "password",
    "hostname",
    "k8sshortname",
    "k8slongname",
];

const SHORT_NAME: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// A format the server knows; others are as good as not written.
#[derive(Clone, Copy)]
pub(super) struct Format<'a>(&'a str);

impl<'a> Format<'a> {
    pub(super) fn of(schema: Node<'a>) -> Option<Self> {
        let name = schema.text("format")?;
        let known = match schema.kinds().as_slice() {
            ["integer"] => matches!(name, "int32" | "int64"),
            ["number"] => matches!(name, "float" | "double"),
            [] | ["string"] | ["integer", "string"] => TEXTUAL.contains(&name.replace('-', "").as_str()),
            _ => false,
        };
        known.then_some(Self(name))
    }

    pub(super) fn name(self) -> &'a str {
        self.0
    }

    pub(super) fn is_textual(self) -> bool {
        !matches!(self.0, "int32" | "int64" | "float" | "double")
    }

    /// Whether the text has the format.
    pub(super) fn accepts(self, text: &str) -> bool {
        let fits = |expression: &str| pattern::matches(expression, text).unwrap_or(false);
        match self.0.replace('-', "").as_str() {
            "date" => is_date(text),
            "datetime" => is_date_time(text),
            "duration" => is_duration(text),
            "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
            "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
            "cidr" => is_cidr(text),
            "mac" => fits("^([0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{4}([.][0-9A-Fa-f]{4}){2})$"),
            "uuid" => fits(&uuid("[0-9a-f]{4}", "[0-9a-f]{4}")),
            "uuid3" => fits(&uuid("3[0-9a-f]{3}", "[0-9a-f]{4}")),
            "uuid4" => fits(&uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
            "uuid5" => fits(&uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}")),
            "byte" => fits("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"),
            "hostname" => is_hostname(text),
            "k8sshortname" => text.len() <= 63 && fits(&format!("^{SHORT_NAME}$")),
            "k8slongname" => text.len() <= 253 && fits(&format!("^{SHORT_NAME}(\\.{SHORT_NAME})*$")),
            _ => true,
        }
    }
}

fn uuid(third: &str, fourth: &str) -> String {
    format!("(?i)^[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{fourth}-?[0-9a-f]{{12}}$")
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match (address.parse::<Ipv4Addr>(), address.parse::<Ipv6Addr>()) {
        (Ok(_), _) => 32,
        (_, Ok(_)) => 128,
        _ => return false,
    };
    bits.bytes().all(|byte| byte.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// One label with at most a dash after its first character, or labels with any dashes and a top-level domain.
fn is_hostname(text: &str) -> bool {
    let inner = "a-zA-Z0-9\\p{S}\\p{L}";
    let single = format!("[{inner}](-?[{inner}]{{0,62}})?");
    let label = format!("[{inner}]([-{inner}]{{0,61}}[{inner}])?");
    let expression = format!("^({single}|({label}\\.)+[a-zA-Z\\p{{L}}]{{2,63}})$");
    text.len() <= 255
        && text.split('.').all(|part| part.len() <= 63)
        && pattern::matches(&expression, text).unwrap_or(false)
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    if !(digits(year, 4) && digits(month, 2) && digits(day, 2)) {
        return false;
    }
    let number = |part: &str| part.parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(year), number(month), number(day));
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=last).contains(&day)
}

/// The server looks at the date, at the digits of the time, and that a zone follows.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let Some((date, time)) = lower.split_once('t') else { return false };
    let time = time.split('t').next().unwrap_or_default();
    let shape = "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$";
    is_date(date) && pattern::matches(shape, time).unwrap_or(false)
}

/// Go's durations, and besides anything that has a number followed by a unit somewhere.
fn is_duration(text: &str) -> bool {
    let of_go = "^[-+]?(0|(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";
    pattern::matches(of_go, text).unwrap_or(false) || loose_duration(text).is_some()
}

/// The nanoseconds of a duration in words: all numbers that a known unit follows, added up.
pub(super) fn loose_duration(text: &str) -> Option<i64> {
    // Each unit with its other names, of which the last may go on: `hour` and `hours`.
    const UNITS: [(&[&str], i64); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], 1_000_000_000),
        (&["m", "min"], 60_000_000_000),
        (&["h", "hr", "hour"], 3_600_000_000_000),
        (&["d", "day"], 86_400_000_000_000),
        (&["w", "wk", "week"], 604_800_000_000_000),
    ];
    let mut total = None;
    for found in pattern::compiled("([0-9]+)\\s*([A-Za-zµ]+)").ok()?.captures_iter(text) {
        let (count, unit) = (found[1].parse::<i64>().ok()?, found[2].to_lowercase());
        let named =
            |names: &[&str]| names.contains(&unit.as_str()) || names.last().is_some_and(|last| unit.starts_with(last));
        if let Some((_, length)) = UNITS.iter().find(|(names, _)| named(names)) {
            total = Some(total.unwrap_or(0_i64).wrapping_add(count.wrapping_mul(*length)));
        }
    }
    total
}
