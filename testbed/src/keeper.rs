//! The process that outlives the owner of a testbed just long enough to clean up after it.
//!
//! A destructor does not run when its process is killed, so cleaning up cannot be the owner's task alone. The keeper
//! holds the reading end of a pipe; the kernel closes the writing end however the owner ends.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::error::{Error, Result};

/// What the keeper does, as a POSIX shell script: a test binary has no second entry point to start itself with.
const SCRIPT: &str = include_str!("keeper.sh");

/// Records the shell's pid, then becomes the program given. The record is written beside its place and moved there in
/// one step, which fails once the testbed is ending: then the program is not run.
pub(crate) const RECORD_PID_THEN_RUN: &str = r#"echo $$ >"$1" && mv "$1" "$2" && shift 2 && exec "$@""#;

/// The owner's end of the keeper. Dropping it ends the testbed's processes and removes its folder, then returns.
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    pipe: Option<ChildStdin>,
    dir: PathBuf,
}

impl Keeper {
    /// Starts a keeper, which makes `dir`. `dir` must not exist yet.
    pub(crate) fn start(dir: &Path) -> Result<Keeper> {
        let fail = |reason: String| Error::Keeper { reason };
        let mut child = Command::new("sh")
            .args(["-c", SCRIPT, "keeper"])
            .arg(dir)
            // Its own group, so that a Ctrl-C at the terminal does not reach it; a folder nobody will want to remove.
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| fail(format!("cannot run sh: {error}")))?;
        let mut said = String::new();
        let stdout = child.stdout.take().into_iter();
        stdout.for_each(|out| drop(BufReader::new(out).read_line(&mut said)));
        if said.trim() != "ready" {
            let mut reason = String::new();
            let stderr = child.stderr.take().into_iter();
            stderr.for_each(|mut err| drop(err.read_to_string(&mut reason)));
            // It said no, so it ends by itself; waiting only collects it.
            let _ = child.wait();
            return Err(fail(reason.trim().to_owned()));
        }
        child.stderr = None;
        Ok(Keeper { pipe: child.stdin.take(), child, dir: dir.to_owned() })
    }

    /// The folder it keeps.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where a component of this name records its pid.
    pub(crate) fn pid_file(&self, name: &str) -> PathBuf {
        self.dir.join("pids").join(name)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.pipe = None;
        // The script has a bound on every wait, so this ends.
        let _ = self.child.wait();
    }
}
