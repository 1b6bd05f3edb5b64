//! Is a number within the bounds of its schema, as the server reckons?
//!
//! The server keeps whole numbers and floats apart, by how the object writes them and not by what the schema says: a
//! whole number is compared with bounds whose fraction is cut off.

use serde_json::{Number, Value};

use super::check::SchemaErrors;
use super::error::{FieldError, FieldReason, go_number};
use super::node::Node;

/// The largest whole number up to which a float has them all.
const LARGEST_EXACT: f64 = 9_007_199_254_740_991.0;

/// Whether a float counts as a whole number; nearly whole is enough.
pub(super) fn is_whole(float: f64) -> bool {
    let whole = float.trunc();
    if float.abs() > LARGEST_EXACT {
        return false;
    }
    float == whole || (whole != 0.0 && (float - whole).abs() / (float.abs() + whole.abs()) < 1e-9)
}

/// Whether two numbers are the same once the second is written like the first.
pub(super) fn is_option(option: &Number, number: &Number) -> bool {
    let number = if option.is_f64() { number.as_f64().and_then(Number::from_f64) } else { Some(cut(number)) };
    number.as_ref() == Some(option)
}

/// Checks range, multiples and bounds.
pub(super) fn check(schema: Node<'_>, path: &str, number: &Number, outcome: &mut SchemaErrors) {
    let range = Range::of(schema);
    range.check(number, "Checked", path, outcome);
    for (keyword, title) in
        [("multipleOf", "MultipleOf"), ("minimum", "Minimum boundary"), ("maximum", "Maximum boundary")]
    {
        let Some(bound) = schema.get(keyword).and_then(Value::as_number) else { continue };
        range.check(bound, title, path, outcome);
        let bound = if number.is_f64() { bound.clone() } else { cut(bound) };
        if keyword == "multipleOf" && bound.as_f64().is_some_and(|factor| factor <= 0.0) {
            let detail = format!("factor MultipleOf declared for {path} must be positive: {}", go_number(&bound));
            outcome.add(FieldError::new(path, FieldReason::Invalid, &Value::Number(bound), &detail));
        } else if let Some(words) = trouble(schema, keyword, number, &bound) {
            let detail = format!("{path} in body should be {words} {}", go_number(&bound));
            outcome.add(FieldError::new(path, FieldReason::Invalid, &Value::Number(number.clone()), &detail));
        }
    }
}

/// What is wrong with a number, in the words before the bound.
fn trouble(schema: Node<'_>, keyword: &str, number: &Number, bound: &Number) -> Option<&'static str> {
    let exclusive = schema.flag(if keyword == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" });
    let (below, above) = (is_below(number, bound), is_below(bound, number));
    let equal = !below && !above;
    match (keyword, exclusive) {
        ("multipleOf", _) => (!is_multiple(number, bound)).then_some("a multiple of"),
        ("minimum", false) => below.then_some("greater than or equal to"),
        ("minimum", true) => (below || equal).then_some("greater than"),
        (_, false) => above.then_some("less than or equal to"),
        (_, true) => (above || equal).then_some("less than"),
    }
}

/// The number without its fraction, and within 64 bits.
fn cut(number: &Number) -> Number {
    let whole = number.as_f64().map_or(0.0, f64::trunc);
    number.as_i64().or_else(|| format!("{whole:.0}").parse().ok()).unwrap_or(i64::MIN).into()
}

/// Whole numbers are compared as such, since a float does not hold all of them.
fn is_below(left: &Number, right: &Number) -> bool {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left < right,
        _ => left.as_f64() < right.as_f64(),
    }
}

fn is_multiple(number: &Number, factor: &Number) -> bool {
    if let (Some(number), Some(factor)) = (number.as_i64(), factor.as_i64()) {
        return number % factor == 0;
    }
    let (number, factor) = (number.as_f64().unwrap_or(0.0), factor.as_f64().unwrap_or(1.0));
    is_whole(if factor < 1.0 { 1.0 / factor * number } else { number / factor })
}

/// The numbers a schema of one type has room for.
struct Range<'a> {
    kind: &'a str,
    format: Option<&'a str>,
}

impl<'a> Range<'a> {
    fn of(schema: Node<'a>) -> Self {
        let kinds = schema.kinds();
        let kind = if let [kind] = kinds.as_slice() { *kind } else { "" };
        let known: &[&str] = match kind {
            "integer" => &["int32", "int64"],
            "number" => &["float", "double"],
            _ => &[],
        };
        Self { kind, format: schema.text("format").filter(|format| known.contains(format)) }
    }

    fn holds(&self, number: &Number) -> bool {
        let float = number.as_f64().unwrap_or(0.0);
        match (self.kind, self.format) {
            ("integer", Some("int32")) => float == float.trunc() && float.abs() <= f64::from(i32::MAX),
            ("integer", _) => number.is_i64() || (float == float.trunc() && float.abs() < 9.2e18),
            (_, Some("float")) => float.abs() <= f64::from(f32::MAX),
            _ => true,
        }
    }

    /// The server does not say which field it means, except in words.
    fn check(&self, number: &Number, title: &str, path: &str, outcome: &mut SchemaErrors) {
        if self.holds(number) {
            return;
        }
        let format =
            self.format.map_or_else(|| "(default format)".to_owned(), |format| format!("with format {format}"));
        outcome.add(FieldError::nowhere(&format!("{title} value must be of type {} {format} in {path}", self.kind)));
    }
}
