//! Why first-boot data cannot be rendered, with the lines at fault.

use std::fmt::Write as _;

use tenon_cloudinit::{Error, Seed};
use tenon_controllers::first_boot::Sources;

use super::mask::Mask;

/// Lines that are shown before and after the one at fault, where the fault may lie in them.
const AROUND: usize = 2;
/// A longer line is cut, so that the place stays on the screen.
const WIDTH: usize = 120;

/// The sentence, and below it what it points at. `unchecked` is what was rendered, if only its form is wrong.
pub(super) fn explain(error: &Error, sources: &Sources, unchecked: Option<&Seed>, mask: &Mask) -> String {
    let mut text = format!("cannot render first-boot data: {}", mask.text(&sources.explain(error)));
    match error {
        Error::Template { file, error } => {
            let source = sources.templates.get(*file).unwrap_or_default();
            let place = Place { line: error.line, column: error.column, around: 0 };
            text.push_str(&excerpt(source, &place, mask));
            let _ = write!(text, "\nIn Go's form: {}", mask.text(&error.to_string()));
        }
        Error::Unreadable { file, line, column, .. } => {
            let rendered = unchecked.and_then(|seed| seed.files().find(|(name, _)| name == file));
            let rendered = rendered.map(|(_, content)| content).unwrap_or_default();
            // The YAML reader counts letters.
            let whole = String::from_utf8_lossy(rendered);
            let at = whole.lines().nth(line.saturating_sub(1)).unwrap_or_default();
            let bytes = at.char_indices().nth(column.saturating_sub(1)).map_or(at.len(), |(index, _)| index);
            let place = Place { line: *line, column: bytes + 1, around: AROUND };
            let _ = write!(text, "\nThe rendered {file}:");
            text.push_str(&excerpt(whole.as_bytes(), &place, mask));
        }
        _ => {}
    }
    text
}

/// A place in a text: line, byte of the line, both counted from one, and how many lines around it are shown.
struct Place {
    line: usize,
    column: usize,
    around: usize,
}

/// The lines at a place, with a caret below its column.
fn excerpt(source: &[u8], place: &Place, mask: &Mask) -> String {
    let lines: Vec<&[u8]> = source.split(|byte| *byte == b'\n').collect();
    let (first, last) = (place.line.saturating_sub(place.around).max(1), place.line + place.around);
    // An empty line at the end is none.
    let end = lines.len() - usize::from(lines.len() > 1 && lines.last().is_some_and(|line| line.is_empty()));
    let last = last.min(end.max(place.line));
    let width = last.to_string().len();
    let mut text = String::new();
    for number in first..=last {
        let line = lines.get(number - 1).copied().unwrap_or_default();
        if number != place.line {
            let _ = write!(text, "\n{number:>width$} | {}", cut(&shown(line, mask), 0).0);
            continue;
        }
        let before = line.get(..place.column.saturating_sub(1).min(line.len())).unwrap_or_default();
        let (line, at) = cut(&shown(line, mask), shown(before, mask).chars().count());
        let _ = write!(text, "\n{number:>width$} | {line}\n{:width$} | {:at$}^", "", "");
    }
    text
}

/// A line as a terminal may show it.
fn shown(line: &[u8], mask: &Mask) -> String {
    let masked = mask.apply(line.strip_suffix(b"\r").unwrap_or(line));
    let text = String::from_utf8_lossy(&masked).replace('\t', " ");
    crate::plan::table_text::plain(&text)
}

/// A long line is cut on both sides of a letter; hands back where that letter is then.
fn cut(line: &str, at: usize) -> (String, usize) {
    let letters: Vec<char> = line.chars().collect();
    if letters.len() <= WIDTH {
        return (line.trim_end().to_owned(), at);
    }
    let from = at.saturating_sub(WIDTH / 2).min(letters.len() - WIDTH);
    let piece: String = letters.iter().skip(from).take(WIDTH).collect();
    let (left, right) = (if from > 0 { "…" } else { "" }, if from + WIDTH < letters.len() { "…" } else { "" });
    (format!("{left}{piece}{right}"), at - from + left.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(source: &str, line: usize, column: usize, around: usize) -> String {
        excerpt(source.as_bytes(), &Place { line, column, around }, &Mask::nothing())
    }

    #[test]
    fn the_caret_stands_below_the_column() {
        assert_eq!(at("one\ntwo {{ x }}\nthree\n", 2, 8, 0), "\n2 | two {{ x }}\n  |        ^");
        assert_eq!(at("\tä{{ x }}\n", 1, 6, 0), "\n1 |  ä{{ x }}\n  |     ^");
        assert_eq!(at("a: b\n", 3, 1, 0), "\n3 | \n  | ^");
    }

    #[test]
    fn lines_around_are_shown_as_far_as_there_are_any() {
        assert_eq!(at("a\nb\nc\n", 3, 1, 2), "\n1 | a\n2 | b\n3 | c\n  | ^");
        assert_eq!(at("a\nb\n", 1, 1, 2), "\n1 | a\n  | ^\n2 | b");
    }

    #[test]
    fn a_long_line_is_cut_around_its_column() {
        let line = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let text = at(&line, 1, 501, 0);
        let (line, caret) = text.trim_start().split_once('\n').unwrap();
        assert!(line.chars().count() < 130, "{line}");
        let caret = caret.chars().count() - 1;
        assert_eq!(line.chars().nth(caret), Some('X'), "{text}");
    }
}
