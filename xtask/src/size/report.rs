//! Which tables a measurement is printed as, alone or next to an earlier one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::goal::Subject;
use super::measure::Measurement;
use super::table::{Cell, Form, Layout, Row, Table};
use super::timeline::{Build, Cost};
use super::weight::{Code, Instances, Weight};

/// One measurement, or two.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) before: Option<Measurement>,
    pub(crate) after: Measurement,
}

/// What one side of a table is made from: the earlier measurement if there is one, and the later.
struct Sides<'a, T> {
    before: Option<&'a T>,
    after: &'a T,
}

impl Report {
    /// Every table, with at most `most` rows of crates or functions each.
    pub(crate) fn text(&self, most: usize) -> String {
        let layout = if self.before.is_some() { Layout::BeforeAndAfter } else { Layout::One };
        let mut text = String::new();
        if let Some(before) = &self.before {
            text.push_str(&format!("before: {}\nafter:  ", headline(before)));
        }
        text.push_str(&headline(&self.after));
        text.push('\n');
        for table in self.tables(most) {
            text.push_str(&table.text(layout));
        }
        text
    }

    /// The same without functions and methods smaller than this, of which there are tens of thousands.
    pub(crate) fn without_small_functions(mut self, bytes: u64) -> Report {
        let weights = self.before.iter_mut().chain([&mut self.after]).filter_map(|one| one.weight.as_mut());
        for weight in weights {
            weight.functions.retain(|_, instances| instances.bytes >= bytes);
            weight.methods.retain(|_, instances| instances.bytes >= bytes);
        }
        self
    }

    fn tables(&self, most: usize) -> Vec<Table> {
        let sides = Sides { before: self.before.as_ref(), after: &self.after };
        let mut tables = vec![packages(&sides)];
        if let Some(builds) = sides.part(|one| Some(&one.cold)) {
            tables.extend(of_builds("build from nothing", &builds, most));
        }
        if let Some(builds) = sides.part(|one| one.warm.as_ref()) {
            let name = self.after.goal.rebuild.as_deref().unwrap_or_default();
            tables.extend(of_builds(&format!("build after a change in {name}"), &builds, most));
        }
        if let Some(weights) = sides.part(|one| one.weight.as_ref()) {
            tables.extend(of_weights(&weights, most));
        }
        tables
    }
}

impl<T> Sides<'_, T> {
    fn part<'b, P>(&'b self, part: impl Fn(&'b T) -> Option<&'b P>) -> Option<Sides<'b, P>> {
        Some(Sides { before: self.before.and_then(&part), after: part(self.after)? })
    }

    fn row(&self, name: &str, form: Form, figure: impl Fn(&T) -> f64) -> Row {
        let cell = Cell { form, before: self.before.map(&figure), after: Some(figure(self.after)) };
        Row { name: name.to_owned(), cells: vec![cell] }
    }

    /// A row for each name that a side has, with a cell for each figure.
    fn rows<P>(&self, parts: impl Fn(&T) -> BTreeMap<String, P>, figures: &[Figure<P>]) -> Vec<Row> {
        let (before, after) = (self.before.map(&parts).unwrap_or_default(), parts(self.after));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let cell = |name: &String, figure: &Figure<P>| Cell {
            form: figure.form,
            before: before.get(name).map(figure.of),
            after: after.get(name).map(figure.of),
        };
        let row =
            |name: &String| Row { name: name.clone(), cells: figures.iter().map(|one| cell(name, one)).collect() };
        names.into_iter().map(row).collect()
    }
}

/// One column of a table of crates or functions.
struct Figure<P> {
    form: Form,
    of: fn(&P) -> f64,
}

fn headline(one: &Measurement) -> String {
    let what = match one.goal.subject {
        Subject::Binary => "binary tenon",
        Subject::LeanBinary => "binary tenon without default features",
        Subject::Tests => "all test binaries",
    };
    format!("{}, {what}, profile {}", one.revision, one.goal.profile)
}

fn packages(sides: &Sides<'_, Measurement>) -> Table {
    let title = match sides.after.goal.subject {
        Subject::Tests => "packages (all dependencies)",
        _ => "packages (normal dependencies)",
    };
    let rows = vec![
        sides.row("of this workspace", Form::Count, |one| one.packages.ours.len() as f64),
        sides.row("others", Form::Count, |one| one.packages.others.len() as f64),
    ];
    Table { title: title.to_owned(), columns: vec![""], rows }
}

fn of_builds(title: &str, builds: &Sides<'_, Build>, most: usize) -> [Table; 2] {
    let rows = vec![
        builds.row("CPU time", Form::Seconds, |build| build.cpu_s),
        builds.row("wall time", Form::Seconds, |build| build.wall_s),
        builds.row("busy cores on average", Form::Average, Build::busy_cores),
        builds.row("CPU time of build scripts, cargo and the rest", Form::Seconds, Build::rest_s),
        builds.row("packages compiled", Form::Count, |build| build.packages() as f64),
        builds.row("runs of the compiler", Form::Count, |build| build.units.len() as f64),
    ];
    let total = Table { title: title.to_owned(), columns: vec![""], rows };
    let figures = [
        Figure { form: Form::Seconds, of: |cost: &Cost| cost.cpu_s },
        Figure { form: Form::Seconds, of: |cost: &Cost| cost.wall_s },
        Figure { form: Form::Seconds, of: |cost: &Cost| cost.alone_s },
    ];
    let rows = builds.rows(Build::costs, &figures);
    let title = format!("{title}, by crate");
    let mut by_crate = Table { title, columns: vec!["CPU", "wall", "alone"], rows };
    by_crate.keep_largest(most);
    [total, by_crate]
}

fn of_weights(weights: &Sides<'_, Weight>, most: usize) -> [Table; 5] {
    let figures = [Figure { form: Form::Bytes, of: |bytes: &u64| *bytes as f64 }];
    let mut rows = weights.rows(|weight| weight.contents.clone(), &figures);
    rows.push(weights.row("the whole file", Form::Bytes, |weight| weight.stripped_bytes as f64));
    let written = [Figure { form: Form::Bytes, of: |code: &Code| code.written_bytes as f64 }];
    let compiled = [Figure { form: Form::Bytes, of: |code: &Code| code.compiled_bytes as f64 }];
    let written = weights.rows(|weight| weight.crates.clone(), &written);
    let compiled = weights.rows(|weight| weight.crates.clone(), &compiled);
    let functions = weights.rows(|weight| weight.functions.clone(), &INSTANCES);
    let methods = weights.rows(|weight| weight.methods.clone(), &INSTANCES);
    let table = |title: &str, columns: &[&'static str], rows: Vec<Row>| {
        let mut table = Table { title: title.to_owned(), columns: columns.to_vec(), rows };
        table.keep_largest(most);
        table
    };
    [
        table("size of the binary without symbols", &[""], rows),
        table("code by the crate it was written in", &[""], written),
        table("code by the crate it was compiled in", &[""], compiled),
        table("code by function, all instances together", &["code", "instances"], functions),
        table("code by trait method, all implementations together", &["code", "instances"], methods),
    ]
}

/// What is told of functions and methods.
const INSTANCES: [Figure<Instances>; 2] = [
    Figure { form: Form::Bytes, of: |instances| instances.bytes as f64 },
    Figure { form: Form::Count, of: |instances| instances.count as f64 },
];
