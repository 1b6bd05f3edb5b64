//! How do samples read? As Prometheus' text format, version 0.0.4, which is what the reference serves.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::catalogue::Metric;

/// What is written of each metric, by name.
pub(crate) struct Exposition<'a> {
    metrics: BTreeMap<&'static str, (&'static Metric, String)>,
    is_left_out: Box<dyn Fn(&Metric) -> bool + 'a>,
}

/// What is written of one metric.
pub(crate) struct Lines<'a> {
    metric: &'static Metric,
    text: &'a mut String,
}

/// How large a share of the observations was up to this value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantile {
    pub(crate) share: f64,
    pub(crate) value: f64,
}

/// A label that is a number, behind those of the metric.
#[derive(Debug, Clone, Copy)]
struct Place {
    label: &'static str,
    at: f64,
}

impl<'a> Exposition<'a> {
    /// A page without some metrics.
    pub(crate) fn without(is_left_out: impl Fn(&Metric) -> bool + 'a) -> Exposition<'a> {
        Exposition { metrics: BTreeMap::new(), is_left_out: Box::new(is_left_out) }
    }

    /// The lines of a metric, unless the page is without it.
    pub(crate) fn of(&mut self, metric: &'static Metric) -> Option<Lines<'_>> {
        if (self.is_left_out)(metric) {
            return None;
        }
        let (_, text) = self.metrics.entry(metric.name).or_insert_with(|| (metric, String::new()));
        Some(Lines { metric, text })
    }

    /// The whole page. A metric without a sample is left out.
    pub(crate) fn text(&self) -> String {
        let mut page = String::new();
        for (metric, lines) in self.metrics.values().filter(|(_, lines)| !lines.is_empty()) {
            let help = metric.help.replace('\\', "\\\\").replace('\n', "\\n");
            // Writing into a text cannot fail.
            let _ = writeln!(page, "# HELP {} {help}\n# TYPE {} {}", metric.name, metric.name, metric.kind.as_str());
            page.push_str(lines);
        }
        page
    }
}

impl Lines<'_> {
    /// A sample that is a number.
    pub(crate) fn number(&mut self, values: &[impl AsRef<str>], value: f64) {
        self.line("", values, None, value);
    }

    /// How many samples are up to each bound; the last of `counts` is beyond all of them.
    pub(crate) fn histogram(&mut self, values: &[impl AsRef<str>], bounds: &[f64], counts: &[u64], sum: f64) {
        let mut total = 0;
        for (bound, count) in bounds.iter().chain([&f64::INFINITY]).zip(counts) {
            total += count;
            self.line("_bucket", values, Some(Place { label: "le", at: *bound }), total as f64);
        }
        self.line("_sum", values, None, sum);
        self.line("_count", values, None, total as f64);
    }

    /// Quantiles of what was observed of late, and all of it together.
    pub(crate) fn summary(&mut self, values: &[impl AsRef<str>], quantiles: &[Quantile], count: u64, sum: f64) {
        for quantile in quantiles {
            self.line("", values, Some(Place { label: "quantile", at: quantile.share }), quantile.value);
        }
        self.line("_sum", values, None, sum);
        self.line("_count", values, None, count as f64);
    }

    fn line(&mut self, suffix: &str, values: &[impl AsRef<str>], place: Option<Place>, value: f64) {
        let Lines { metric, text } = self;
        text.push_str(metric.name);
        text.push_str(suffix);
        let mut divider = '{';
        for (label, value) in metric.labels.iter().zip(values) {
            text.push(divider);
            text.push_str(label.name);
            text.push_str("=\"");
            escape(text, value.as_ref());
            text.push('"');
            divider = ',';
        }
        if let Some(Place { label, at }) = place {
            let _ = write!(text, "{divider}{label}=\"{}\"", number(at));
            divider = ',';
        }
        if divider == ',' {
            text.push('}');
        }
        let _ = writeln!(text, " {}", number(value));
    }
}

fn escape(text: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            letter => text.push(letter),
        }
    }
}

/// Infinity and "not a number" as Prometheus spells them.
fn number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    value.to_string()
}
