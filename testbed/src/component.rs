//! One process of the control plane: start, look, pause, kill, start again.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{Error, Result, file};
use crate::keeper::RECORD_PID_THEN_RUN;
use crate::programs::Program;
use crate::wire::Wire;

/// A component that takes longer than this to answer will not answer; on two busy cores the slowest takes about 10 s.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// How often readiness is asked for.
const PROBE_EVERY: Duration = Duration::from_millis(100);

/// What a log says when the machine is to blame, in lower case.
const KNOWN_CAUSES: [&str; 2] = ["no space left on device", "address already in use"];

/// Lines of the log shown when a component fails.
const TAIL_LINES: usize = 15;

/// How to run one component and how to tell that it is ready.
#[derive(Debug)]
pub(crate) struct Recipe {
    pub(crate) program: Program,
    pub(crate) binary: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) pid_file: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) wire: Wire,
    pub(crate) ready: Ready,
}

/// The question that tells whether a component is ready: the answer is 200 and has this word in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) path: &'static str,
    pub(crate) word: &'static str,
}

/// A component, running or not. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Component {
    recipe: Recipe,
    child: Option<Child>,
}

impl Component {
    /// Starts the process; it is not ready yet.
    pub(crate) fn start(recipe: Recipe) -> Result<Component> {
        let mut component = Component { recipe, child: None };
        component.spawn()?;
        Ok(component)
    }

    /// Waits until it answers that it is ready.
    pub(crate) fn await_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let Ready { path, word } = self.recipe.ready;
            if matches!(self.recipe.wire.get(path), Ok(reply) if reply.status == 200 && reply.body.contains(word)) {
                return Ok(());
            }
            self.expect_running()?;
            if Instant::now() > deadline {
                return Err(Error::NotReady {
                    component: self.recipe.program,
                    seconds: READY_WITHIN.as_secs(),
                    tail: tail(&self.recipe.log),
                });
            }
            std::thread::sleep(PROBE_EVERY);
        }
    }

    /// Stops it from running without ending it: it holds its connections and answers nobody.
    pub(crate) fn pause(&mut self) -> Result<()> {
        self.signal("pause", Signal::STOP)
    }

    /// Lets a paused component run on.
    pub(crate) fn resume(&mut self) -> Result<()> {
        self.signal("resume", Signal::CONT)
    }

    /// Ends it as kill -9 does. Ending what has ended is not an error.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let signalled = child.kill();
        // Collected before the pid file goes: until then the pid cannot be given to a stranger.
        let collected = child.wait();
        // Not an error: without the file there is one pid less to look at.
        let _ = fs::remove_file(&self.recipe.pid_file);
        let component = self.recipe.program;
        signalled.and(collected.map(drop)).map_err(|source| Error::Signal { component, source })
    }

    /// Kills it and starts it again with the same arguments, ports and data.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.kill()?;
        self.spawn()?;
        self.await_ready()
    }

    /// Its process, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Its log file.
    pub(crate) fn log(&self) -> &Path {
        &self.recipe.log
    }

    fn spawn(&mut self) -> Result<()> {
        let recipe = &self.recipe;
        let log = File::options().create(true).append(true).open(&recipe.log).map_err(file("open", &recipe.log))?;
        let errors = log.try_clone().map_err(file("open", &recipe.log))?;
        let child = Command::new("sh")
            .args(["-c", RECORD_PID_THEN_RUN, "sh"])
            .arg(recipe.log.with_extension("pid"))
            .arg(&recipe.pid_file)
            .arg(&recipe.binary)
            .args(&recipe.args)
            // Its own group: a Ctrl-C at the terminal is for the owner, and the keeper does the rest.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(file("run", &recipe.binary))?;
        self.child = Some(child);
        Ok(())
    }

    fn expect_running(&mut self) -> Result<()> {
        let component = self.recipe.program;
        let child = self.child.as_mut().ok_or(Error::NotRunning { action: "await", component })?;
        let status = child.try_wait().map_err(|source| Error::Signal { component, source })?;
        let Some(status) = status else { return Ok(()) };
        self.child = None;
        Err(Error::Ended { component, status: status.to_string(), tail: tail(&self.recipe.log) })
    }

    fn signal(&mut self, action: &'static str, signal: Signal) -> Result<()> {
        let component = self.recipe.program;
        let child = self.child.as_ref().ok_or(Error::NotRunning { action, component })?;
        kill_process(Pid::from_child(child), signal).map_err(|errno| Error::Signal { component, source: errno.into() })
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        // Whatever this cannot end, the keeper does.
        let _ = self.kill();
    }
}

/// The lines that name a known cause, wherever they stand, and the last ones. A Go program that panics ends its log
/// with stack traces.
fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let (early, last) = lines.split_at(lines.len().saturating_sub(TAIL_LINES));
    let is_known = |line: &&&str| KNOWN_CAUSES.iter().any(|cause| line.to_lowercase().contains(cause));
    let known = early.iter().filter(is_known).take(3);
    known.chain(last).copied().collect::<Vec<_>>().join("\n")
}
