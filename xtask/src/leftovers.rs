//! A folder for everything a test run makes, and the proof that nothing stays in it.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// A keeper ends its processes and removes their folder in well under this after its owner has ended.
const PATIENCE: Duration = Duration::from_secs(20);

/// The folder of one test run. Removed with all that is in it when dropped.
pub(crate) struct Ground {
    path: PathBuf,
}

impl Ground {
    pub(crate) fn new() -> anyhow::Result<Ground> {
        let random = RandomState::new().hash_one(std::process::id());
        Ground::at(std::env::temp_dir().join(format!("tenon-tests-{random:016x}")))
    }

    fn at(path: PathBuf) -> anyhow::Result<Ground> {
        let ground = Ground { path };
        // Not `create_dir_all`: a folder that is there already is somebody else's.
        for folder in [ground.path.clone(), ground.testbeds(), ground.temp()] {
            fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        Ok(ground)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where testbeds are to be made.
    pub(crate) fn testbeds(&self) -> PathBuf {
        self.path.join("testbeds")
    }

    /// Where everything else is to be made that tests throw away.
    pub(crate) fn temp(&self) -> PathBuf {
        self.path.join("temp")
    }

    /// Waits for the keepers, then says what is still there: folders, or processes that name one.
    pub(crate) fn check_empty(&self) -> anyhow::Result<()> {
        self.check_empty_within(PATIENCE)
    }

    fn check_empty_within(&self, patience: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let folders = [list(&self.testbeds())?, list(&self.temp())?].concat();
            let processes = processes_naming(&self.path);
            if folders.is_empty() && processes.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("folders: {}; processes: {}", listed(&folders), listed(&processes));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What cannot be removed lies in the system's temp folder, which is where it may lie.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn list(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    Ok(entries.filter_map(Result::ok).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// Processes whose arguments name the folder, as `pid name`. Empty where there is no /proc to look at.
fn processes_naming(folder: &Path) -> Vec<String> {
    let needle = folder.display().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let found = entries.filter_map(|entry| {
        let arguments = fs::read(entry.path().join("cmdline")).ok()?;
        let arguments = String::from_utf8_lossy(&arguments);
        let program = arguments.split('\0').next().unwrap_or_default().to_owned();
        arguments.contains(&needle).then(|| format!("{} {program}", entry.file_name().to_string_lossy()))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_folder_or_a_process_that_is_left_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let ground = Ground::at(dir.path().join("ground")).unwrap();
        ground.check_empty_within(Duration::ZERO).unwrap();
        let left = ground.testbeds().join("left");
        fs::create_dir(&left).unwrap();
        let error = ground.check_empty_within(Duration::ZERO).unwrap_err().to_string();
        assert_eq!(error, "folders: left; processes: none");
        fs::remove_dir(&left).unwrap();

        // `cat` waits for input that never comes, with the folder in its arguments. They show a moment after its start.
        let mut process = Command::new("cat").arg("-").arg(&left).stdin(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let seen = loop {
            match ground.check_empty_within(Duration::ZERO) {
                Ok(()) if Instant::now() < deadline => std::thread::yield_now(),
                outcome => break outcome,
            }
        };
        process.kill().unwrap();
        process.wait().unwrap();
        let error = seen.unwrap_err().to_string();
        assert!(error.contains(&format!("{} cat", process.id())), "{error}");
    }
}
