//! Are values printed as Go prints them?

use serde_json::json;
use tenon_gotemplate::{Output, Value, format};

use crate::format_cases::{Case, case};
use crate::go;
use crate::samples::hex;
use crate::seeded::Seeded;

const SEED: u64 = 17;
const CASES: usize = 12_000;
/// More than any case prints.
const LIMIT: usize = 1 << 20;

fn ours(case: &Case) -> Vec<u8> {
    let values: Vec<Value> = case.values.iter().map(|sample| sample.value.clone()).collect();
    let mut out = Output::new(LIMIT);
    match (case.call, values.as_slice()) {
        ("print", values) => format::print(&mut out, values).unwrap(),
        ("println", values) => format::println(&mut out, values).unwrap(),
        ("quote", _) => return format::quote(&case.format),
        ("float", [Value::Float(number)]) => return format::float(*number).into_bytes(),
        _ => format::printf(&mut out, &case.format, &values).unwrap(),
    }
    out.into_bytes()
}

#[test]
fn thousands_of_formats_and_values_print_as_in_go() {
    let mut seeded = Seeded::new(SEED);
    let cases: Vec<Case> = (0..CASES).map(|_| case(&mut seeded)).collect();
    let printed: Vec<Vec<u8>> = cases.iter().map(ours).collect();
    let input = cases.iter().map(|case| {
        let values: Vec<_> = case.values.iter().map(|sample| &sample.json).collect();
        json!({"Call": case.call, "Format": hex(&case.format), "Values": values})
    });
    let Some(expected) = go::run("format.go", &serde_json::to_vec(&input.collect::<Vec<_>>()).unwrap()) else { return };
    assert_eq!(expected.lines().count(), CASES);
    let different = cases.iter().zip(&printed).zip(expected.lines()).filter(|((_, ours), go)| hex(ours) != **go);
    let shown: Vec<String> = different.map(|((case, ours), go)| difference(case, ours, go)).collect();
    let count = shown.len();
    assert!(count == 0, "seed {SEED}: {count} of {CASES} differ:\n{}", shown[..count.min(20)].join("\n"));
}

fn difference(case: &Case, ours: &[u8], go: &str) -> String {
    let go: Vec<u8> = (0..go.len()).step_by(2).map(|at| u8::from_str_radix(&go[at..at + 2], 16).unwrap()).collect();
    let values: Vec<_> = case.values.iter().map(|sample| sample.json.to_string()).collect();
    let [format, ours, go] = [&case.format, ours, &go].map(<[u8]>::escape_ascii);
    format!("{} `{format}` of {}\n  ours {ours}\n  Go   {go}", case.call, values.join(" "))
}

#[test]
fn every_character_is_escaped_or_not_as_in_go() {
    let input = json!([{"Call": "unicode"}, {"Call": "printable"}]);
    let Some(told) = go::run("format.go", input.to_string().as_bytes()) else { return };
    let lines: Vec<&str> = told.lines().collect();
    if lines[0] != hex(b"15.0.0") {
        // Another release of Go knows more characters; the table is Go 1.26's.
        return;
    }
    let is_as_it_is = |char: char| format::quote(char.to_string().as_bytes()).len() == char.len_utf8() + 2;
    let mut changes = Vec::new();
    let mut is_inside = false;
    for number in 0..=0x11_0000_u32 {
        let is_printed = char::from_u32(number).is_some_and(|char| char == '"' || char == '\\' || is_as_it_is(char));
        if is_printed != is_inside {
            is_inside = is_printed;
            changes.push(number.to_string());
        }
    }
    assert_eq!(hex(changes.join(" ").as_bytes()), lines[1]);
}
