//! What Karpenter made of forty fixed seeds, so that a comparison needs no Go.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::outcome::Summary;
use super::scenario::Scenario;

/// The seeds that are recorded: the first forty in a row of which none is void.
pub(super) const SEEDS: std::ops::RangeInclusive<u64> = 52..=91;

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Recording {
    pub(super) seed: u64,
    /// The fingerprint of the input.
    input: String,
    #[serde(flatten)]
    pub(super) summary: Summary,
}

impl Recording {
    pub(super) fn new(seed: u64, scenario: &Scenario, summary: Summary) -> Recording {
        Recording { seed, input: scenario.fingerprint(), summary }
    }

    /// The input it was made from, if the generator still makes the same.
    pub(super) fn scenario(&self) -> anyhow::Result<Scenario> {
        let scenario = Scenario::generate(self.seed);
        if scenario.fingerprint() != self.input {
            bail!(
                "seed {} now generates another scenario than the recorded one: the generator changed; \
                 run `cargo xtask diff record`",
                self.seed
            );
        }
        Ok(scenario)
    }
}

fn file(root: &Path) -> PathBuf {
    root.join("bench/karpenter/recorded/seeds.jsonl")
}

pub(super) fn read(root: &Path) -> anyhow::Result<Vec<Recording>> {
    let path = file(root);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().enumerate();
    let read = |(number, line)| {
        serde_json::from_str(line).with_context(|| format!("cannot read line {} of {}", number + 1, path.display()))
    };
    lines.map(read).collect()
}

pub(super) fn write(root: &Path, recordings: &[Recording]) -> anyhow::Result<()> {
    let path = file(root);
    let folder = path.parent().unwrap_or(root);
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
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
    use crate::diff::void;
    use crate::tree::workspace_root;

    #[test]
    fn every_recorded_seed_still_stands_for_its_input_and_is_not_void() {
        let recordings = read(&workspace_root()).unwrap();
        assert_eq!(recordings.iter().map(|recording| recording.seed).collect::<Vec<_>>(), SEEDS.collect::<Vec<_>>());
        for recording in recordings {
            let scenario = recording.scenario().unwrap();
            assert_eq!(void::reason(&scenario), None, "seed {}", recording.seed);
        }
    }

    #[test]
    fn few_generated_scenarios_are_void() {
        let is_void = |seed: &u64| void::reason(&Scenario::generate(*seed)).is_some();
        let void: Vec<u64> = (1..=300).filter(is_void).collect();
        assert!(void.len() <= 30, "{} of 300 say nothing: {void:?}", void.len());
    }
}
