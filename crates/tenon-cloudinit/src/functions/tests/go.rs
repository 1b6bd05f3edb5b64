//! Every result is compared with real Go's, where Go is installed; a part of its results is kept with the tests.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value as Json, json};
use tenon_gotemplate::{Type, Value};
use testbed::proof;

use super::generate::{Call, Random};
use super::nasty::{BYTES, PATTERNS, STRINGS};
use super::written::{answer, bytes, expected, read};
use super::{FUNCTIONS, call};

/// What Go answered to a part of the calls below.
const RECORDED: &str = include_str!("../../../tests/go/recorded.json");

#[test]
fn recorded_results_of_go_hold() {
    let recorded: Vec<Json> = serde_json::from_str(RECORDED).unwrap();
    assert!(recorded.len() >= 300, "{} results", recorded.len());
    compare(&recorded);
}

#[test]
fn the_recorded_results_are_still_those_of_go() {
    let recorded: Vec<Json> = serde_json::from_str(RECORDED).unwrap();
    let Some(answers) = ask(&recorded) else { return };
    let without_messages = |cases: &[Json]| cases.iter().map(|case| expected(&case["answer"])).collect::<Vec<_>>();
    assert_eq!(without_messages(&answers), without_messages(&recorded));
}

#[test]
fn documents_are_those_of_go_byte_for_byte() {
    let mut random = Random::new(17);
    let every = STRINGS.iter().map(|text| bytes(text.as_bytes())).chain(BYTES.iter().map(|text| bytes(text)));
    let mut values: Vec<Json> = every.collect();
    values.extend((0..2_000).map(|_| bytes(&random.text())));
    values.extend((0..1_500).map(|_| random.value(4)));
    values.extend(STRINGS.iter().map(|text| json!({ "map": [[text, { "list": [text, { "map": [[text, text]] }] }]] })));
    let functions = ["toYaml", "toYamlPretty", "toJson", "toPrettyJson"];
    held_to_go(values.iter().flat_map(|value| functions.map(|function| (function, vec![value.clone()]))).collect());
}

#[test]
fn patterns_match_as_in_go() {
    let mut random = Random::new(18);
    let mut calls: Vec<Call> = Vec::new();
    for pattern in PATTERNS {
        calls.push(("regexReplaceAll", vec![json!(pattern), json!("aab Ab é\u{212a} 1_α\n]-.K"), json!("<$0>")]));
    }
    for _ in 0..3_000 {
        let (pattern, text) = (random.pattern(), random.short());
        let group = json!({ "int": random.below(4).to_string() });
        calls.push(("regexFindString", vec![pattern.clone(), text.clone(), group]));
        let with = ["[$0]", "<${1}$2>", "$1a${x}$$", "$x-$1z", "${", "$", "${x y}", "$é", "${01}"][random.below(9)];
        calls.push(("regexReplaceAll", vec![pattern.clone(), text.clone(), json!(with)]));
        calls.push(("regexFind", vec![pattern, text]));
    }
    held_to_go(calls);
}

#[test]
fn strings_change_as_in_go() {
    let mut random = Random::new(19);
    let mut calls: Vec<Call> = Vec::new();
    for _ in 0..1_000 {
        let text = bytes(&random.text());
        let (short, part) = (random.short(), random.short());
        for function in ["upper", "lower", "trim", "b64enc", "b64dec"] {
            calls.push((function, vec![text.clone()]));
        }
        for function in ["trimSuffix", "trimPrefix", "contains", "hasPrefix", "hasSuffix"] {
            calls.push((function, vec![part.clone(), short.clone()]));
        }
        calls.push(("split", vec![short.clone(), part.clone()]));
        calls.push(("join", vec![json!({ "strings": [text, short, part] }), part.clone()]));
        calls.push(("replace", vec![part.clone(), text.clone(), short.clone()]));
        let spaces = json!({ "int": random.below(9).to_string() });
        calls.extend(["indent", "nindent"].map(|function| (function, vec![spaces.clone(), text.clone()])));
        calls.push(("quote", vec![text]));
    }
    for text in ["YQ==", "YQ", "YR==", "Y\nQ=\r=", "YQ==\n", "YWI=", "Y Q==", "====", "YQ===", "-_8=", "+/8="] {
        calls.push(("b64dec", vec![json!(text)]));
    }
    // Every character at once: one string for each block of 4096.
    for block in 0..=0x10f {
        let text: String = (block << 12..(block + 1) << 12).filter_map(char::from_u32).collect();
        calls.extend(["upper", "lower"].map(|function| (function, vec![json!(text)])));
    }
    held_to_go(calls);
}

#[test]
fn networks_are_counted_as_in_go() {
    let mut random = Random::new(20);
    let mut calls: Vec<Call> = Vec::new();
    for _ in 0..2_000 {
        let network =
            format!("{}/{}", ADDRESSES[random.below(ADDRESSES.len())], PREFIXES[random.below(PREFIXES.len())]);
        let number = json!({ "int": NUMBERS[random.below(NUMBERS.len())].to_string() });
        calls.push(("cidrhost", vec![json!(network)]));
        // The library counts from the wrong end of the bytes of such an address.
        if !network.starts_with("::ffff:") {
            calls.push(("cidrhost", vec![json!(network), number]));
        }
        calls.push(("cidrslaac", vec![json!(MACS[random.below(MACS.len())]), json!(network)]));
    }
    held_to_go(calls);
}

const ADDRESSES: [&str; 24] = [
    "10.12.112.0",
    "10.12.112.7",
    "255.255.255.255",
    "0.0.0.0",
    "1.2.3",
    "1.2.3.04",
    "1.2.3.256",
    "2001:db8:1::",
    "2001:DB8::1",
    "2001:db8:1:2:3:4:5:6",
    "::",
    "::1",
    "fe80::1%eth0",
    "::ffff:1.2.3.4",
    "::ffff:0:0",
    "::1.2.3.4",
    "1:2:3:4:5:6:7::",
    "1:2:3:4:5:6:7:8:9",
    "1::2::3",
    "12345::",
    "",
    "fd00:0:0:1::",
    "1:2:3:4:5:6:1.2.3.4",
    "0:0:1::",
];
const PREFIXES: [&str; 22] = [
    "0", "8", "20", "24", "31", "32", "33", "08", "+8", "", "x", "48", "60", "64", "68", "80", "96", "100", "112",
    "113", "128", "129",
];
const NUMBERS: [i64; 12] = [0, 1, 16, 255, 256, -1, -2, -256, -257, 1 << 40, i64::MAX, i64::MIN];
const MACS: [&str; 14] = [
    "00:1A:2B:3C:4D:5E",
    "00-1a-2b-3c-4d-5e",
    "001a.2b3c.4d5e",
    "001a2b3c4d5e",
    "0:1a:2b:3c:4d:5e",
    "00:1a:2b:3c:4d",
    "00:1a:2b:3c:4d:5e:6f",
    "00:1a:2b:3c:4d:5e:6f:70",
    "00:1a-2b:3c:4d:5e",
    "02:00:ff:00:00:00",
    "",
    "0g:1a:2b:3c:4d:5e",
    "02:00:5e:10:00:00:00:01:00:00:00:00:00:00:00:00:00:00:00:01",
    "001a.2b3c.4d5e.6f70",
];

/// Asks Go, where it is, and compares.
fn held_to_go(calls: Vec<Call>) {
    let cases: Vec<Json> = calls
        .into_iter()
        .map(|(function, arguments)| json!({ "function": function, "arguments": arguments }))
        .collect();
    let Some(answers) = ask(&cases) else { return };
    assert_eq!(answers.len(), cases.len());
    compare(&answers);
}

fn compare(cases: &[Json]) {
    let mut wrong = Vec::new();
    for case in cases {
        let name = case["function"].as_str().unwrap();
        let function = FUNCTIONS.iter().find(|function| function.name == name).unwrap();
        let arguments = case["arguments"].as_array().unwrap().iter().enumerate();
        let place =
            |at: usize| function.parameters.get(at).or(function.parameters.last()).copied().unwrap_or(Type::Any);
        let arguments: Vec<Value> = arguments.map(|(at, json)| read(json, place(at))).collect();
        let (ours, theirs) = (answer(&call(name, &arguments)), expected(&case["answer"]));
        // What JSON cannot say is an empty text here, as in the programs whose templates we run.
        let is_dropped = name.ends_with("Json") && theirs == json!("an error") && ours == json!({ "is": "" });
        if ours != theirs && !is_dropped {
            let arguments = &case["arguments"];
            wrong.push(format!("{name} {arguments:.400}\n  ours: {ours:.400}\n  Go's: {theirs:.400}"));
        }
    }
    let shown = wrong.iter().take(15).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {} differ:\n{shown}", wrong.len(), cases.len());
}

/// The Go program's answers; nothing where Go is not installed and need not be.
#[expect(clippy::disallowed_types, reason = "the crate starts no processes, but its tests ask Go")]
fn ask(cases: &[Json]) -> Option<Vec<Json>> {
    let go = proof::with_go().unwrap()?;
    let mut command = std::process::Command::new(go);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/go")).args(["run", "-mod=readonly", "."]);
    command.env("GOFLAGS", "").env("GOWORK", "off").env("GOTOOLCHAIN", "auto").env("CGO_ENABLED", "0");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    // The program reads everything before it prints, so neither side waits for the other.
    let written = process.stdin.take().unwrap().write_all(&serde_json::to_vec(cases).unwrap());
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    written.unwrap();
    Some(serde_json::from_slice(&output.stdout).unwrap())
}
