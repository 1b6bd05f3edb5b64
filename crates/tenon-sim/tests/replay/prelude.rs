//! What happened between two recorded requests and was not recorded, as far as later answers depend on it.

use std::collections::BTreeMap;

/// One thing to do before a recorded request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Make a call; `wait` also waits for the end of its task.
    Call { root: bool, wait: bool, method: String, path: String, form: String },
    /// The same, but at the same time as the recorded request, just before it.
    Beside { method: String, path: String, form: String },
    /// Upload an ISO file of this name and length.
    Upload { name: String, size: usize },
    /// The last task is the one the recording calls so.
    Bind(String),
    /// The worker of the last task dies.
    Kill,
    /// Let time pass.
    Wait(u64),
    /// The recorded request follows without a pause.
    AtOnce,
}

/// The steps before each request, by its name.
pub(crate) fn steps() -> BTreeMap<String, Vec<Step>> {
    let mut steps: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    let mut id = String::new();
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay/prelude.txt")).unwrap();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match line.strip_prefix(' ') {
            None => id = line.trim().to_string(),
            Some(line) => steps.entry(id.clone()).or_default().push(step(line.trim())),
        }
    }
    steps
}

fn step(line: &str) -> Step {
    let words: Vec<&str> = line.splitn(4, ' ').collect();
    let word = |at: usize| words.get(at).copied().unwrap_or("").to_string();
    let (method, path, form) = (word(1), word(2), word(3));
    match words[0] {
        "call" => Step::Call { root: false, wait: false, method, path, form },
        "run" => Step::Call { root: false, wait: true, method, path, form },
        "root" => Step::Call { root: true, wait: false, method, path, form },
        "beside" => Step::Beside { method, path, form },
        "upload" => Step::Upload { name: method, size: path.parse().unwrap() },
        "bind" => Step::Bind(word(1)),
        "kill" => Step::Kill,
        "wait" => Step::Wait(word(1).parse().unwrap()),
        "at-once" => Step::AtOnce,
        other => panic!("unknown step `{other}`"),
    }
}
