//! Do thousands of generated templates give what Go gives?
//!
//! `TENON_FUZZ_RUNS` and `TENON_FUZZ_SEED` ask for more templates or for others. Known differences, all deliberate:
//!
//! - What our bounds end runs on in Go: deep parentheses and values, much output, many steps.
//! - `slice` refuses an index that comes straight out of a `map[string]any` in Go (`slice .L .N`, but not
//!   `slice .L (.N)`). It takes both here.
//! - An error of the parser names the line of the word that is wrong; Go often names the line it has read up to.
//! - A function whose parameter is a pointer gets the address of a struct in a list in Go. No function here has one.
//! - Addresses of pointers are always the same here.

use serde_json::{Value as Json, json};
use tenon_gotemplate::{Delimiters, Functions, MissingKey, Options, Stage, Template, TemplateError, Value};

use crate::samples::hex;
use crate::seeded::{Seeded, runs, seed};
use crate::template_cases::{Case, case};
use crate::template_data::{dots, for_go};
use crate::{go, typed_functions};

const SEED: u64 = 17;
const CASES: usize = 4_000;
/// Cases that one run of the Go program gets.
const BATCH: usize = 25_000;
/// What our bounds say; Go has none, and may not end at all.
const BOUNDS: [&str; 5] =
    ["steps", "output is larger", "nest deeper", "maximum template depth", "max expression depth"];

/// Errors of Go that are none here; see above.
const LEFT: [&str; 1] = ["cannot index slice/array with type interface {}"];

type Outcome = Result<Vec<u8>, TemplateError>;

fn ours(case: &Case, dots: &[Value]) -> Outcome {
    let missing_key = match case.option {
        "missingkey=zero" => MissingKey::Zero,
        "missingkey=error" => MissingKey::Error,
        _ => MissingKey::Missing,
    };
    let (left, right) = case.delimiters;
    let delimiters = Delimiters { left: left.to_owned(), right: right.to_owned() };
    let functions = Functions::new(typed_functions::functions());
    let options = Options { functions, delimiters, missing_key, ..Options::default() };
    Template::parse("t", &case.source, &options)?.execute(&dots[case.data]).map(|rendered| rendered.bytes)
}

fn is_bounded(outcome: &Outcome) -> bool {
    matches!(outcome, Err(error) if BOUNDS.iter().any(|bound| error.message.contains(bound)))
}

/// What came of a comparison.
#[derive(Default)]
struct Tally {
    wrong: Vec<String>,
    printed: usize,
    errors: usize,
    elsewhere: Vec<String>,
}

impl Tally {
    fn compare(&mut self, case: &Case, ours: &Outcome, go: &Json) {
        let (stage, text) = (go["Stage"].as_str().unwrap(), go["Text"].as_str().unwrap());
        if LEFT.iter().any(|known| text.contains(known)) {
            return;
        }
        let is_same = match ours {
            Ok(bytes) => {
                self.printed += 1;
                stage == "ok" && is_same_text(case, bytes, &unhex(text))
            }
            Err(error) => {
                self.errors += 1;
                if stage != "panic" && place(error) != go_place(stage, text) {
                    self.elsewhere.push(difference(case, ours, go));
                }
                stage == "panic" || stage == if error.stage == Stage::Parse { "parse" } else { "exec" }
            }
        };
        if !is_same {
            self.wrong.push(difference(case, ours, go));
        }
    }
}

/// Whether both print the same, apart from addresses. Where a pointer can be, an address may also have been counted.
fn is_same_text(case: &Case, ours: &[u8], go: &[u8]) -> bool {
    let has_pointer = [b"hp", b"pp", b"sp", b"mp"].iter().any(|name| case.source.windows(2).any(|word| word == *name));
    let without_digits =
        |bytes: &[u8]| bytes.iter().copied().filter(|byte| !byte.is_ascii_hexdigit()).collect::<Vec<u8>>();
    let (ours, go) = (without_addresses(ours), without_addresses(go));
    ours == go || (has_pointer && without_digits(&ours) == without_digits(&go))
}

/// Go's addresses differ from run to run.
fn without_addresses(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let hexadecimal = rest.iter().skip(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
        let decimal = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (is_hexadecimal, is_decimal) =
            ((rest.starts_with(b"0x") || rest.starts_with(b"0X")) && hexadecimal > 8, decimal > 11);
        plain.push(if is_hexadecimal || is_decimal { b'@' } else { *first });
        let length = if is_hexadecimal {
            hexadecimal + 2
        } else if is_decimal {
            decimal
        } else {
            1
        };
        rest = &rest[length..];
    }
    plain
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

/// The line; also the column when the template was run.
fn place(error: &TemplateError) -> String {
    match error.stage {
        Stage::Parse => error.line.to_string(),
        Stage::Execute => format!("{}:{}", error.line, error.column - 1),
    }
}

fn go_place(stage: &str, error: &str) -> String {
    let parts = if stage == "exec" { 2 } else { 1 };
    let place = error.strip_prefix("template: t:").unwrap_or_default();
    place.splitn(3, ':').take(parts).collect::<Vec<_>>().join(":")
}

fn difference(case: &Case, ours: &Outcome, go: &Json) -> String {
    let Case { source, option, delimiters, data } = case;
    let ours = match ours {
        Ok(bytes) => format!("`{}`", bytes.escape_ascii()),
        Err(error) => format!("{:?} {error}", error.stage),
    };
    let text = go["Text"].as_str().unwrap();
    let go = if go["Stage"] == "ok" {
        format!("`{}`", unhex(text).escape_ascii())
    } else {
        format!("{} {text}", go["Stage"])
    };
    format!(
        "{}\n  {option} {delimiters:?} dot {data}\n  ours {ours}\n  Go   {go}",
        String::from_utf8_lossy(source).escape_debug()
    )
}

fn batch(cases: &[Case], tally: &mut Tally) -> Option<()> {
    let usual = dots();
    let changes_data = |case: &Case| case.source.windows(3).any(|word| word == b"set");
    let outcomes: Vec<Outcome> =
        cases.iter().map(|case| if changes_data(case) { ours(case, &dots()) } else { ours(case, &usual) }).collect();
    let compared: Vec<(&Case, &Outcome)> =
        cases.iter().zip(&outcomes).filter(|(_, outcome)| !is_bounded(outcome)).collect();
    let input: Vec<Json> = compared
        .iter()
        .map(|(case, _)| {
            let (left, right) = case.delimiters;
            json!({"Source": hex(&case.source), "Option": case.option, "Left": left, "Right": right, "Data": case.data})
        })
        .collect();
    let data: Vec<Json> = usual.iter().map(for_go).collect();
    let told = go::run("template.go", json!({"Data": data, "Cases": input}).to_string().as_bytes())?;
    assert_eq!(told.lines().count(), compared.len());
    for ((case, ours), line) in compared.iter().zip(told.lines()) {
        tally.compare(case, ours, &serde_json::from_str(line).unwrap());
    }
    Some(())
}

#[test]
fn generated_templates_give_what_go_gives() {
    let (seed, count) = (seed(SEED), runs(CASES));
    let (mut seeded, mut tally) = (Seeded::new(seed), Tally::default());
    let dots = dots().len();
    let cases: Vec<Case> = (0..count).map(|_| case(&mut seeded, dots)).collect();
    for part in cases.chunks(BATCH) {
        if batch(part, &mut tally).is_none() {
            return;
        }
    }
    let Tally { wrong, printed, errors, elsewhere } = tally;
    let shown = |all: &[String]| all[..all.len().min(25)].join("\n");
    assert!(wrong.is_empty(), "seed {seed}: {} of {count} differ:\n{}", wrong.len(), shown(&wrong));
    assert!(printed > count / 5, "seed {seed}: only {printed} of {count} print something");
    let share = elsewhere.len() * 100 / errors.max(1);
    assert!(share < 5, "seed {seed}: {share} % of {errors} errors are elsewhere:\n{}", shown(&elsewhere));
}
