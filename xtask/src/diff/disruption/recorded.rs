//! What Karpenter's rounds came to for some fixed seeds, so that a comparison needs no Go.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use super::report::Run;
use super::scene;
use crate::diff::scenario::Scenario;

/// The seeds that are recorded.
pub(super) const SEEDS: std::ops::RangeInclusive<u64> = 1..=40;

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Recording {
    pub(super) seed: u64,
    /// The fingerprint of the input.
    input: String,
    pub(super) runs: Vec<Run>,
    /// Why our rounds are not held to these, if they are not: the exceptions of the documentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exception: Option<String>,
}

impl Recording {
    pub(super) fn new(seed: u64, runs: Vec<Run>, exception: Option<String>) -> Recording {
        Recording { seed, input: scene::generate(seed).fingerprint(), runs, exception }
    }

    /// The input it was made from, if the generator still makes the same.
    pub(super) fn scenario(&self) -> anyhow::Result<Scenario> {
        let scenario = scene::generate(self.seed);
        ensure!(
            scenario.fingerprint() == self.input,
            "seed {} now generates another cluster than the recorded one: the generator changed; run `cargo xtask diff disruption \
             --record`",
            self.seed
        );
        Ok(scenario)
    }
}

fn file(root: &Path) -> PathBuf {
    root.join("bench/karpenter/recorded/disruption.jsonl")
}

pub(super) fn read(root: &Path) -> anyhow::Result<Vec<Recording>> {
    let path = file(root);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let read = |(number, line)| {
        serde_json::from_str(line).with_context(|| format!("cannot read line {} of {}", number + 1, path.display()))
    };
    text.lines().enumerate().map(read).collect()
}

pub(super) fn write(root: &Path, recordings: &[Recording]) -> anyhow::Result<()> {
    let path = file(root);
    let mut text = String::new();
    for recording in recordings {
        text += &serde_json::to_string(recording)?;
        text.push('\n');
    }
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::workspace_root;

    #[test]
    fn every_recorded_seed_still_stands_for_its_input() {
        let recordings = read(&workspace_root()).unwrap();
        assert_eq!(recordings.iter().map(|recording| recording.seed).collect::<Vec<_>>(), SEEDS.collect::<Vec<_>>());
        for recording in recordings {
            recording.scenario().unwrap();
        }
    }
}
