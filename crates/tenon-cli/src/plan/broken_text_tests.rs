//! No text, however broken, ends the process: small files with bytes changed, doubled, lost or put elsewhere.

use std::sync::Arc;

use tenon_api::{instance_types_file, plan_options};
use tenon_model::PriceFormula;

use super::collect::Collector;
use super::load::read_text;

/// How often each kind of file is broken.
const ROUNDS: usize = 10_000;

const PODS: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n\
                    spec: {containers: [{name: c, resources: {limits: {cpu: 1}}}]}\n";
const LIST: &str =
    "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n- kind: Secret\nkind: List\n";
const POOL: &str = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec:\n  template: {spec: {requirements: \
                    null, nodeClassRef: {group: g, kind: k, name: n}}}\n";
const JSON: &str = r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}},
 {"apiVersion":"v1","kind":"Node","metadata":{"name":"b"},"status":{"capacity":{"cpu":4}}}]}"#;
const ANCHORS: &str = "apiVersion: v1\nkind: List\nitems:\n- &a\n  apiVersion: v1\n  kind: Pod\n  metadata: &m {name: a}\n- <<: *a\n  \
                       metadata:\n    <<: *m\n    name: b\n";
const TYPES: &str = r#"[{"name":"m4","capacity":{"cpu":"4","memory":"16Gi"},"overhead":{"KubeReserved":{"cpu":"100m"}},
 "requirements":[{"key":"a","operator":"Gt","values":["1"]}],"offerings":[{"requirements":[],"price":0.05}]}]"#;
const OPTIONS: &str = "preferencePolicy: Ignore\nfeatureGates: A=true,B=false\ncpuRequests: 3\nschedulerConfig: \
                       {podTopologySpread: {defaultConstraints: []}}\n";

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % below.max(1)
    }
}

/// The text with a few bytes changed, doubled, lost or put elsewhere.
fn mutated(text: &str, dice: &mut Dice) -> String {
    const MARKS: &[u8] = b"{}[]:,-\"'\n #&*!|>%@`0e.\t\r~?\xff\x00";
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(bytes.len());
        let mark = MARKS[dice.roll(MARKS.len())];
        match dice.roll(6) {
            0 => bytes.insert(at, mark),
            1 if !bytes.is_empty() => bytes[at] = mark,
            2 => bytes.truncate(at),
            3 => {
                let piece: Vec<u8> = bytes.iter().skip(at).take(dice.roll(12)).copied().collect();
                let to = dice.roll(bytes.len());
                bytes.splice(to..to, piece);
            }
            4 => drop(bytes.drain(at..(at + dice.roll(8)).min(bytes.len()))),
            _ => bytes.extend_from_slice(b"\n---\n"),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Breaks a text again and again. Some of the results must still be good, or the breaking would prove nothing.
fn survives(texts: &[&str], seed: u64, is_good: impl Fn(usize, &str) -> bool) {
    let mut dice = Dice(seed);
    let good = (0..ROUNDS).filter(|round| is_good(*round, &mutated(texts[round % texts.len()], &mut dice))).count();
    assert!((ROUNDS / 50..ROUNDS / 10 * 9).contains(&good), "{good} of {ROUNDS} are good");
}

/// Whether a text is good. If not, what is said of it is one line that names the file and a line of it.
fn is_good(name: &str, text: &str) -> bool {
    let Err(fault) = read_text(&Arc::from(name), text, &mut Collector::default()) else { return true };
    let said = fault.to_string();
    let rest = said.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')).unwrap_or_default();
    let (line, why) = rest.split_once(": ").unwrap_or_default();
    let lines = text.trim_end_matches(['\n', '\r']).split(['\n', '\r']).count();
    assert!(line.parse().is_ok_and(|line: usize| (1..=lines).contains(&line)), "{text}\n{said}");
    assert!(!why.is_empty() && !said.contains('\n') && !why.contains(" at line "), "{text}\n{said}");
    false
}

#[test]
fn objects_however_broken_do_not_end_the_process() {
    survives(&[PODS, LIST, POOL, JSON, ANCHORS], 20_261_115, |round, text| {
        is_good(["x.yaml", "x.json", "standard input"][round % 3], text)
    });
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_read_or_refused_with_its_line() {
    for text in [PODS, LIST, POOL, ANCHORS] {
        for end in 0..text.len() {
            is_good("x.yaml", &text[..end]);
        }
    }
    for end in 1..JSON.len() {
        assert!(!is_good("x.json", &JSON[..end]), "{end}");
    }
}

#[test]
fn instance_types_however_broken_do_not_end_the_process() {
    survives(&[TYPES], 7, |_, text| has_line(text, instance_types_file::read_catalog(text, &PriceFormula::default())));
    survives(&[TYPES], 8, |_, text| has_line(text, instance_types_file::read(text)));
}

#[test]
fn options_however_broken_do_not_end_the_process() {
    survives(&[OPTIONS], 9, |_, text| has_line(text, plan_options::read(text)));
}

/// Whether a text is good. If not, what is said of it is one line that begins with a line of the text.
fn has_line<T, E: std::fmt::Display>(text: &str, read: Result<T, E>) -> bool {
    let Err(error) = read else { return true };
    let said = error.to_string();
    let line =
        said.strip_prefix("line ").and_then(|rest| rest.split_once(": ")).and_then(|(line, _)| line.parse().ok());
    assert!(line.is_some_and(|line: usize| line > 0) && !said.contains(" at line "), "{text}\n{said}");
    false
}
