//! Real Go's results for a few hundred templates, held to the byte.
//!
//! `TENON_GOTEMPLATE_CASES` names another file of the same form.

use serde_json::Value as Json;
use tenon_gotemplate::{Delimiters, List, Map, MissingKey, Options, Stage, Template, Text, Type, Value};

use crate::case_functions::functions;
use crate::seeded::variable;

const CASES: &str = include_str!("go-cases.json");

/// A value as the cases were given to Go: whole numbers are `int`, all others `float64`.
pub(crate) fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::int(number),
            None => Value::Float(number.as_f64().unwrap()),
        },
        Json::String(text) => Value::string(text),
        Json::Array(items) => Value::List(List::new(&Type::Any, items.iter().map(value).collect()).unwrap()),
        Json::Object(entries) => {
            let entries = entries.iter().map(|(key, item)| (Text::from(key), value(item))).collect();
            Value::Map(Map::new(&Type::Any, entries).unwrap())
        }
    }
}

fn options(case: &Json) -> Options {
    let missing_key = match case["opt"].as_str() {
        None | Some("" | "missingkey=default" | "missingkey=invalid") => MissingKey::Missing,
        Some("missingkey=zero") => MissingKey::Zero,
        Some("missingkey=error") => MissingKey::Error,
        Some(other) => panic!("unknown option {other}"),
    };
    let delimiters = case["delims"].as_array().map_or_else(Delimiters::default, |pair| {
        let given = |at: usize, usual: &str| match pair[at].as_str().unwrap() {
            "" => usual.to_owned(),
            given => given.to_owned(),
        };
        Delimiters { left: given(0, "{{"), right: given(1, "}}") }
    });
    Options { functions: functions(), delimiters, missing_key, ..Options::default() }
}

/// `Err` holds the stage and the message, as the cases write them.
fn run(case: &Json, data: &Value) -> Result<Vec<u8>, String> {
    let options = options(case);
    let source = case["tmpl"].as_str().unwrap().as_bytes();
    let outcome = Template::parse("t", source, &options).and_then(|template| template.execute(data));
    outcome.map(|rendered| rendered.bytes).map_err(|error| {
        let stage = if error.stage == Stage::Parse { "parse" } else { "exec" };
        format!("{stage}: {error}")
    })
}

/// Stage and line of an error; also the column when it was run.
fn place(error: &str) -> String {
    let (stage, rest) = error.split_once(": template: t:").unwrap_or((error, ""));
    let parts = if stage == "exec" { 2 } else { 1 };
    format!("{stage}:{}", rest.splitn(3, ':').take(parts).collect::<Vec<_>>().join(":"))
}

/// The cases and their data.
#[expect(clippy::disallowed_methods, reason = "the crate reads no files, but its tests may")]
pub(crate) fn recorded() -> Json {
    let text = match variable("TENON_GOTEMPLATE_CASES") {
        Some(path) => std::fs::read_to_string(path).unwrap(),
        None => CASES.to_owned(),
    };
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_recorded_case_gives_what_go_gives() {
    let all = recorded();
    let cases = all["Cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    let (mut wrong, mut elsewhere) = (Vec::new(), Vec::new());
    for case in cases {
        let data = value(if case["hasdata"] == true { &case["data"] } else { &all["Data"] });
        let ours = run(case, &data);
        let fits = match (&ours, case["out"].as_str(), case["err"].as_str()) {
            (Ok(ours), Some(out), None | Some("")) => String::from_utf8_lossy(ours) == out,
            (Err(ours), _, Some(error)) => {
                if place(ours) != place(error) {
                    elsewhere.push(format!("{}\n  ours: {ours}\n  Go's: {error}", case["tmpl"]));
                }
                ours.split(':').next() == error.split(':').next()
            }
            _ => false,
        };
        if !fits {
            let ours = ours.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            wrong.push(format!("{}\n  ours: {ours:?}\n  Go's: {} {}", case["tmpl"], case["out"], case["err"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let share = elsewhere.len() * 100 / cases.len();
    assert!(share < 3, "{} errors name another place:\n{}", elsewhere.len(), elsewhere.join("\n"));
}
