//! Tables of figures, of one measurement or of two next to each other with their ratio.

use std::fmt::Write as _;

/// What a figure counts, which is how it is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Seconds,
    Bytes,
    Count,
    /// A number with a fraction.
    Average,
}

/// One figure, before and after. What one of the two does not have, such as a crate that is gone, is `None`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cell {
    pub(crate) form: Form,
    pub(crate) before: Option<f64>,
    pub(crate) after: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) cells: Vec<Cell>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) title: String,
    /// What the cells of each row are, left to right.
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Row>,
}

/// Whether there is a measurement to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    One,
    BeforeAndAfter,
}

/// Longer names are cut in the middle: both the crate and the method say something.
const NAME_WIDTH: usize = 100;

impl Cell {
    fn add(&mut self, other: &Cell) {
        let sum = |a: Option<f64>, b: Option<f64>| Some(a.or(b)? + a.and(b).unwrap_or_default());
        self.before = sum(self.before, other.before);
        self.after = sum(self.after, other.after);
    }

    fn largest(&self) -> f64 {
        self.before.unwrap_or_default().max(self.after.unwrap_or_default())
    }

    fn words(&self, layout: Layout) -> Vec<String> {
        let after = shown(self.form, self.after);
        match layout {
            Layout::One => vec![after],
            Layout::BeforeAndAfter => {
                let ratio = self.before.zip(self.after).filter(|(before, _)| *before > 0.0);
                let ratio = ratio.map_or("-".to_owned(), |(before, after)| format!("{:.2} x", after / before));
                vec![shown(self.form, self.before), after, ratio]
            }
        }
    }
}

fn shown(form: Form, value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    match form {
        Form::Seconds => format!("{value:.1} s"),
        Form::Bytes => format!("{:.3} MB", value / 1e6),
        Form::Count => format!("{value:.0}"),
        Form::Average => format!("{value:.2}"),
    }
}

impl Table {
    /// Keeps the rows with the largest first cell, largest first, and adds up the others in a last row.
    pub(crate) fn keep_largest(&mut self, count: usize) {
        let size = |row: &Row| row.cells.first().map_or(0.0, Cell::largest);
        self.rows.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.name.cmp(&b.name)));
        if self.rows.len() <= count + 1 {
            return;
        }
        let others = self.rows.split_off(count);
        let name = format!("{} others", others.len());
        let sum = others.into_iter().reduce(|mut sum, row| {
            sum.cells.iter_mut().zip(&row.cells).for_each(|(sum, cell)| sum.add(cell));
            sum
        });
        self.rows.extend(sum.map(|sum| Row { name, ..sum }));
    }

    /// The table as text that ends with a line break.
    pub(crate) fn text(&self, layout: Layout) -> String {
        let mut lines = vec![(self.title.clone(), self.headings(layout))];
        lines.extend(self.rows.iter().map(|row| {
            let words = row.cells.iter().flat_map(|cell| cell.words(layout)).collect();
            (format!("  {}", shortened(&row.name)), words)
        }));
        let name_width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let columns = lines.iter().map(|(_, words)| words.len()).max().unwrap_or_default();
        let width = |column: usize| {
            let words = lines.iter().filter_map(|(_, words)| words.get(column));
            words.map(|word| word.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::from("\n");
        for (name, words) in &lines {
            let mut line = format!("{name:name_width$}");
            for (word, width) in words.iter().zip(&widths) {
                let _ = write!(line, "  {word:>width$}");
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    fn headings(&self, layout: Layout) -> Vec<String> {
        let of = |column: &&str| match layout {
            Layout::One => vec![(*column).to_owned()],
            Layout::BeforeAndAfter if column.is_empty() => ["before", "after", "ratio"].map(str::to_owned).to_vec(),
            Layout::BeforeAndAfter => vec![format!("{column} before"), "after".to_owned(), "ratio".to_owned()],
        };
        self.columns.iter().flat_map(of).collect()
    }
}

fn shortened(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= NAME_WIDTH {
        return name.to_owned();
    }
    let half = NAME_WIDTH / 2 - 1;
    let part = |letters: &[char]| letters.iter().collect::<String>();
    let (head, tail) =
        (letters.get(..half).unwrap_or_default(), letters.get(letters.len() - half..).unwrap_or_default());
    format!("{}…{}", part(head), part(tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, before: Option<f64>, after: Option<f64>) -> Row {
        let cell = |form| Cell { form, before, after };
        Row { name: name.to_owned(), cells: vec![cell(Form::Seconds), cell(Form::Count)] }
    }

    fn table() -> Table {
        let rows = vec![
            row("gone", Some(8.0), None),
            row("new", None, Some(3.0)),
            row("halved", Some(10.0), Some(5.0)),
            row("small", Some(1.0), Some(2.0)),
        ];
        Table { title: "crates".to_owned(), columns: vec!["CPU", "runs"], rows }
    }

    #[test]
    fn two_measurements_stand_next_to_each_other_with_their_ratio() {
        let lines: Vec<String> = table().text(Layout::BeforeAndAfter).lines().map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "",
                "crates    CPU before  after   ratio  runs before  after   ratio",
                "  gone         8.0 s      -       -            8      -       -",
                "  new              -  3.0 s       -            -      3       -",
                "  halved      10.0 s  5.0 s  0.50 x           10      5  0.50 x",
                "  small        1.0 s  2.0 s  2.00 x            1      2  2.00 x",
            ]
        );
    }

    #[test]
    fn one_measurement_has_one_column_for_each_figure() {
        let lines: Vec<String> = table().text(Layout::One).lines().map(str::to_owned).collect();
        assert_eq!(lines.get(1).map(String::as_str), Some("crates      CPU  runs"));
        assert_eq!(lines.get(4).map(String::as_str), Some("  halved  5.0 s     5"));
    }

    #[test]
    fn small_rows_are_added_up_in_a_last_one() {
        let mut table = table();
        table.keep_largest(2);
        let expected =
            [row("halved", Some(10.0), Some(5.0)), row("gone", Some(8.0), None), row("2 others", Some(1.0), Some(5.0))];
        assert_eq!(table.rows, expected);
    }

    #[test]
    fn a_single_row_is_not_replaced_by_a_sum_of_one() {
        let mut table = table();
        table.keep_largest(3);
        assert_eq!(table.rows.len(), 4);
        assert!(table.rows.iter().all(|row| !row.name.contains("others")));
    }

    #[test]
    fn a_long_name_keeps_its_begin_and_its_end() {
        let name = format!("begin{}end", "x".repeat(200));
        let short = shortened(&name);
        assert!(short.starts_with("begin") && short.ends_with("end") && short.chars().count() < NAME_WIDTH, "{short}");
    }
}
