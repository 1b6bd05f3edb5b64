//! Text in columns and lines that fit on a narrow screen, and amounts as people say them.

use std::fmt::Write as _;

use tenon_model::Quantity;

/// Lines of words are broken here, as on the narrowest screen in use; a name is never broken.
const WIDTH: usize = 80;
/// A cell is cut before it pushes the rest off a screen.
const CELL_MAX: usize = 40;
/// How far columns stand apart.
const GAP: &str = "  ";

/// Rows as lines, each column as wide as its widest cell.
pub(crate) fn lay_out(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().min(CELL_MAX)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{GAP}{:<width$}", cut(cell));
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Writes words in lines of a width, each so far from the left edge, and what follows the first a little further.
pub(super) fn wrap(words: &str, indent: usize, page: &mut String) {
    let (words, mut column) = (plain(words), 0);
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        if column == 0 {
            let _ = write!(page, "{:indent$}{word}", "");
            column = indent + length;
        } else if column + 1 + length > WIDTH {
            let further = indent + 2;
            let _ = write!(page, "\n{:further$}{word}", "");
            column = further + length;
        } else {
            let _ = write!(page, " {word}");
            column += 1 + length;
        }
    }
    if column > 0 {
        page.push('\n');
    }
}

/// Names in files are whatever their writer likes; a terminal must not obey them.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

fn cut(cell: &str) -> String {
    let cell = plain(cell);
    if cell.chars().count() <= CELL_MAX {
        return cell;
    }
    cell.chars().take(CELL_MAX - 1).chain(['…']).collect()
}

/// How many of something.
pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

pub(super) fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// Four digits are enough to tell prices apart; zeros at the end are not.
pub(crate) fn price(price: f64) -> String {
    let text = format!("{price:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Amounts of a resource, from the least to the most.
pub(super) fn range<'a>(amounts: impl Iterator<Item = &'a str>, resource: &str) -> String {
    let mut amounts: Vec<Quantity> = amounts.filter_map(|text| text.parse().ok()).collect();
    amounts.sort_unstable();
    let shown = |amount: &Quantity| if resource == "cpu" { cores(*amount) } else { bytes(*amount) };
    match amounts.as_slice() {
        [] => "-".to_owned(),
        [least, .., most] if shown(least) != shown(most) => format!("{} – {}", shown(least), shown(most)),
        [one, ..] => shown(one),
    }
}

/// Cores, with decimals where they are not whole.
fn cores(amount: Quantity) -> String {
    let milli = amount.milli_value();
    let text = format!("{}.{:03}", milli / 1_000, milli % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes in GiB or MiB, with one decimal where they are not whole, rounded up: it is what is needed.
fn bytes(amount: Quantity) -> String {
    let bytes = amount.value();
    let (power, unit) = match bytes {
        _ if bytes >= 1 << 30 => (30, "GiB"),
        _ if bytes >= 1 << 20 => (20, "MiB"),
        _ => return amount.to_string(),
    };
    let tenths = ((i128::from(bytes) * 10) + (1 << power) - 1) >> power;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        tenth => format!("{}.{tenth} {unit}", tenths / 10),
    }
}

/// A time that was measured.
pub(super) fn time(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_names_never() {
        let mut page = String::new();
        let name = "x".repeat(100);
        wrap(&format!("{} {name} end", "word ".repeat(20)), 4, &mut page);
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH || line.trim() == name), "{page}");
        assert!(lines[0].starts_with("    word") && lines[1].starts_with("      word"), "{page}");
        assert_eq!(page.split_whitespace().count(), 22);
    }

    #[test]
    fn amounts_read_as_people_say_them() {
        let said = |amounts: &[&str], resource| range(amounts.iter().copied(), resource);
        assert_eq!(said(&["8Gi", "6442450944"], "memory"), "6 GiB – 8 GiB");
        assert_eq!(said(&["8Gi", "8589934592"], "memory"), "8 GiB");
        assert_eq!(said(&["100Mi", "1"], "memory"), "1 – 100 MiB");
        assert_eq!(said(&["3500m", "12"], "cpu"), "3.5 – 12");
        assert_eq!(said(&[], "cpu"), "-");
    }
}
