//! The benchmarks inside our crates, each time as a multiple of the shortest in its group.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::run::{cargo, run};
use crate::tree::workspace_root;

/// Crates with benchmarks.
const CRATES: [&str; 2] = ["tenon-engine", "tenon-api"];

/// What was measured of one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    group: String,
    pub(super) name: String,
    /// The middle of all samples.
    pub(super) nanos: f64,
}

#[cfg(test)]
impl Measured {
    pub(super) fn of(group: &str, name: &str, nanos: f64) -> Measured {
        Measured { group: group.to_owned(), name: name.to_owned(), nanos }
    }
}

/// Measures, and prints each time as a multiple of the shortest in its group.
pub(super) fn show() -> anyhow::Result<()> {
    print!("{}", table(measure(&CRATES, None)?));
    Ok(())
}

/// Runs the benchmarks of some crates: all, or those with a word in their name.
pub(super) fn measure(crates: &[&str], word: Option<&str>) -> anyhow::Result<Vec<Measured>> {
    let found = tempfile::tempdir().context("cannot create a folder for the measurements")?;
    let mut bench = cargo(&workspace_root());
    bench.arg("bench").env("CRITERION_HOME", found.path());
    bench.args(crates.iter().flat_map(|name| ["-p", name]));
    // Only targets that are benchmarks: test harnesses do not know these flags.
    bench.args(["--bench", "*", "--", "--warm-up-time", "1", "--measurement-time", "3"]).args(word);
    run(&mut bench, "fix the benchmark that failed")?;
    let mut measured = Vec::new();
    collect(found.path(), &mut measured)?;
    Ok(measured)
}

/// Every measurement below a folder. The library keeps one folder for each benchmark, with the last run in `new`.
fn collect(folder: &Path, into: &mut Vec<Measured>) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Name {
        group_id: String,
        function_id: Option<String>,
        value_str: Option<String>,
    }
    #[derive(Deserialize)]
    struct Estimates {
        median: Estimate,
    }
    #[derive(Deserialize)]
    struct Estimate {
        point_estimate: f64,
    }
    if folder.file_name().is_some_and(|name| name == "new") {
        let name: Name = read(&folder.join("benchmark.json"))?;
        let estimates: Estimates = read(&folder.join("estimates.json"))?;
        let parts: Vec<String> = name.function_id.into_iter().chain(name.value_str).collect();
        let nanos = estimates.median.point_estimate;
        into.push(Measured { group: name.group_id, name: parts.join(", "), nanos });
        return Ok(());
    }
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path: PathBuf = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.is_dir() {
            collect(&path, into)?;
        }
    }
    Ok(())
}

fn read<T: DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("cannot read {}", file.display()))
}

/// The measurements of each group, the shortest first, which the others are told in.
fn table(mut measured: Vec<Measured>) -> String {
    measured.sort_by(|a, b| a.group.cmp(&b.group).then(a.nanos.total_cmp(&b.nanos)));
    let width = measured.iter().map(|one| one.name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    let mut shortest: Option<&Measured> = None;
    for one in &measured {
        let base = match shortest.filter(|base| base.group == one.group) {
            Some(base) => base,
            None => {
                let _ = writeln!(text, "\n{}", one.group);
                shortest = Some(one);
                one
            }
        };
        let (millis, ratio) = (one.nanos / 1e6, one.nanos / base.nanos);
        let _ = writeln!(text, "  {:width$}  {millis:10.3} ms  {ratio:8.2} x", one.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_told_as_a_multiple_of_the_shortest_in_its_group() {
        let one = Measured::of;
        let text = table(vec![one("b", "only", 5e5), one("a", "long one", 3e6), one("a", "short", 2e6)]);
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines,
            [
                "a",
                "  short          2.000 ms      1.00 x",
                "  long one       3.000 ms      1.50 x",
                "b",
                "  only           0.500 ms      1.00 x",
            ]
        );
    }

    #[test]
    fn measurements_are_found_wherever_the_library_put_them() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("plan/100 pods/30 kinds/new");
        fs::create_dir_all(&new).unwrap();
        fs::create_dir_all(folder.path().join("report")).unwrap();
        fs::write(new.join("benchmark.json"), r#"{"group_id":"plan","function_id":"100 pods","value_str":"30 kinds"}"#)
            .unwrap();
        fs::write(new.join("estimates.json"), r#"{"median":{"point_estimate":7.0}}"#).unwrap();
        let mut measured = Vec::new();
        collect(folder.path(), &mut measured).unwrap();
        let name = "100 pods, 30 kinds".to_owned();
        assert_eq!(measured, [Measured { group: "plan".to_owned(), name, nanos: 7.0 }]);
    }
}
