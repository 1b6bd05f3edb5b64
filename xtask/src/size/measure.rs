//! Measures one checkout: a build from nothing, the program it makes, and a build after a change.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use serde::Serialize;

use super::build::Builder;
use super::dependencies::{self, Packages};
use super::goal::Goal;
use super::ground::{self, Ground};
use super::image;
use super::timeline::Build;
use super::weight::{self, Weight};

/// Everything known of one checkout.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Measurement {
    pub(crate) revision: String,
    #[serde(flatten)]
    pub(crate) goal: Goal,
    pub(crate) packages: Packages,
    /// The build from nothing.
    pub(crate) cold: Build,
    /// The build after a change in one crate.
    pub(crate) warm: Option<Build>,
    /// None for tests.
    pub(crate) weight: Option<Weight>,
}

/// A checkout and what is measured of it.
pub(crate) struct Sample<'a> {
    pub(crate) root: &'a Path,
    pub(crate) goal: &'a Goal,
}

impl Sample<'_> {
    pub(crate) fn measure(&self, ground: &Ground) -> anyhow::Result<Measurement> {
        let (root, goal) = (self.root, self.goal);
        let revision = ground::revision(root)?;
        let packages = dependencies::packages(root, goal)?;
        let builder = Builder { ground, root, goal };
        builder.start_over()?;
        eprintln!("== building {revision} from nothing");
        let cold = builder.build()?;
        let read = |program: PathBuf| image::read(&program, &ground.place("stripped"));
        let weight = cold.program.map(read).transpose()?.map(|image| weight::weigh(&image, &cold.build.crates()));
        let mut warm = None;
        if let (Some(name), Some(file)) = (&goal.rebuild, goal.changed_file(root)) {
            eprintln!("== building {revision} after a change in {name}");
            let _touched = Touched::now(file)?;
            warm = Some(builder.build()?.build);
        }
        builder.start_over()?;
        Ok(Measurement { revision, goal: goal.clone(), packages, cold: cold.build, warm, weight })
    }
}

/// A file that looks as if it had just been changed, until this value is gone: builds of the user should not notice.
///
/// Its content stays, so where the compiler reuses earlier work (profile `dev`), it does less than after a real change.
struct Touched {
    file: PathBuf,
    modified: SystemTime,
}

impl Touched {
    fn now(file: PathBuf) -> anyhow::Result<Touched> {
        let modified = fs::metadata(&file).and_then(|data| data.modified());
        let modified = modified.with_context(|| format!("cannot read {}", file.display()))?;
        set_modified(&file, SystemTime::now())?;
        Ok(Touched { file, modified })
    }
}

impl Drop for Touched {
    fn drop(&mut self) {
        if let Err(error) = set_modified(&self.file, self.modified) {
            eprintln!("warning: {error:#}");
        }
    }
}

fn set_modified(file: &Path, time: SystemTime) -> anyhow::Result<()> {
    let change = || File::options().write(true).open(file)?.set_modified(time);
    change().with_context(|| format!("cannot set the modification time of {}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_touched_file_gets_its_time_back_and_keeps_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lib.rs");
        fs::write(&file, "//! Nothing.\n").unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        set_modified(&file, old).unwrap();
        let modified = || fs::metadata(&file).unwrap().modified().unwrap();
        let touched = Touched::now(file.clone()).unwrap();
        assert!(modified() > old);
        drop(touched);
        assert_eq!(modified(), old);
        assert_eq!(fs::read_to_string(&file).unwrap(), "//! Nothing.\n");
    }
}
