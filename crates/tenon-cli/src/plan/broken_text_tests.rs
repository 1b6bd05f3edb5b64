//! No text, however broken, ends the process: small files with bytes changed, doubled, lost or put elsewhere.

use std::sync::Arc;

use tenon_api::{instance_types_file, plan_options};

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

#[test]
fn objects_however_broken_do_not_end_the_process() {
    survives(&[PODS, LIST, POOL, JSON], 20_261_115, |round, text| {
        let name = ["x.yaml", "x.json", "standard input"][round % 3];
        read_text(&Arc::from(name), text, &mut Collector::default()).is_ok()
    });
}

#[test]
fn instance_types_however_broken_do_not_end_the_process() {
    survives(&[TYPES], 7, |_, text| instance_types_file::read_catalog(text).is_ok());
    survives(&[TYPES], 8, |_, text| instance_types_file::read(text).is_ok());
}

#[test]
fn options_however_broken_do_not_end_the_process() {
    survives(&[OPTIONS], 9, |_, text| plan_options::read(text).is_ok());
}
