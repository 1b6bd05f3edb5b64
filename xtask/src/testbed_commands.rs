//! `cargo xtask testbed`: a control plane for a person at a terminal.
//!
//! `up` leaves a holder process behind that owns the testbed. Whatever ends the holder ends the testbed, so `down`
//! needs no way of its own to clean up.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use testbed::{Cache, Lookup, Program, Testbed};

use crate::tools;

/// The holder and its keeper need a second or two; this is for a machine under load.
const DOWN_WITHIN: Duration = Duration::from_secs(30);

/// Whoever asks whether a testbed is up holds the lock for a moment.
const LOOK_WITHIN: Duration = Duration::from_secs(2);

/// A control plane starts in five seconds; this is for a machine under load.
const START_WITHIN: Duration = Duration::from_secs(120);

#[derive(Debug, Subcommand)]
pub(crate) enum TestbedVerb {
    /// Build or locate the programs of the control plane, kubectl and helm.
    Build,
    /// Start a control plane and print the path of its kubeconfig. If one is running, print the path of that one.
    Up,
    /// Stop the control plane and remove all its files.
    Down,
    /// Print shell lines that set KUBECONFIG and add kubectl to PATH: `eval "$(cargo xtask testbed env)"`.
    Env,
    /// Run kubectl against the control plane.
    Kubectl {
        /// Arguments for kubectl.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Own a testbed until killed. `up` starts this.
    #[command(hide = true)]
    Hold,
}

/// What the holder writes down for the other commands.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    pid: i32,
    folder: PathBuf,
    kubeconfig: PathBuf,
}

pub(crate) fn run(verb: TestbedVerb) -> anyhow::Result<()> {
    match verb {
        TestbedVerb::Build => tools::obtain_programs(&Program::ALL, &mut io::stdout()),
        TestbedVerb::Up => up(),
        TestbedVerb::Down => down(),
        TestbedVerb::Env => env(),
        TestbedVerb::Kubectl { args } => kubectl(&args),
        TestbedVerb::Hold => hold(),
    }
}

fn up() -> anyhow::Result<()> {
    if let Some(state) = running()? {
        println!("{}", state.kubeconfig.display());
        return Ok(());
    }
    let lookup = Lookup::from_env()?;
    // Only what is missing is worth a word here.
    let missing = [Program::CONTROL_PLANE.as_slice(), &[Program::Kubectl]].concat();
    let missing: Vec<Program> =
        missing.into_iter().filter(|program| !matches!(lookup.locate(*program), Ok(Some(_)))).collect();
    // Standard output is for the kubeconfig alone.
    tools::obtain_programs(&missing, &mut io::stderr())?;

    let log_path = run_folder()?.join("holder.log");
    let log = File::create(&log_path).with_context(|| format!("cannot create {}", log_path.display()))?;
    let mut holder = Command::new(std::env::current_exe().context("cannot find the xtask binary")?)
        .args(["testbed", "hold"])
        .envs(testbed::folder_variables())
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .context("cannot start the process that owns the testbed")?;
    let mut said = String::new();
    let stdout = holder.stdout.take().context("cannot read from the process that owns the testbed")?;
    BufReader::new(stdout).read_line(&mut said).context("cannot read from the process that owns the testbed")?;
    if said.is_empty() {
        let status = holder.wait().context("cannot wait for the process that owns the testbed")?;
        let words = fs::read_to_string(&log_path).unwrap_or_default();
        bail!("the testbed did not start ({status}): {}", words.trim().trim_start_matches("error: "));
    }
    print!("{said}");
    eprintln!(
        "use the control plane with `cargo xtask testbed kubectl …` or `eval \"$(cargo xtask testbed env)\"`; \
         stop it with `cargo xtask testbed down`"
    );
    Ok(())
}

fn hold() -> anyhow::Result<()> {
    let lock_path = run_folder()?.join("holder.lock");
    let lock = File::create(&lock_path).with_context(|| format!("cannot create {}", lock_path.display()))?;
    let deadline = Instant::now() + LOOK_WITHIN;
    // Whoever only looks holds the lock for a moment.
    while lock.try_lock().is_err() {
        if Instant::now() > deadline {
            bail!("another testbed is running; stop it with `cargo xtask testbed down`");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let path = state_path()?;
    // What the last holder wrote down is not ours; that there is nothing is fine too.
    let _ = fs::remove_file(&path);
    let testbed = Testbed::start()?;
    let pid = i32::try_from(std::process::id()).context("cannot record the process id: it is out of range")?;
    let state = State { pid, folder: testbed.dir().to_owned(), kubeconfig: testbed.kubeconfig() };
    let partial = path.with_extension("partial");
    fs::write(&partial, serde_json::to_vec(&state)?).with_context(|| format!("cannot write {}", partial.display()))?;
    fs::rename(&partial, &path).with_context(|| format!("cannot rename {}", partial.display()))?;
    println!("{}", state.kubeconfig.display());
    // Nothing wakes this but a signal, and a signal ends it; the keeper then cleans up.
    loop {
        std::thread::park();
    }
}

fn down() -> anyhow::Result<()> {
    let Some(state) = running()? else {
        eprintln!("no testbed is running");
        return Ok(());
    };
    let pid = Pid::from_raw(state.pid).context("cannot stop the testbed: the recorded process id is not valid")?;
    kill_process(pid, Signal::TERM)
        .with_context(|| format!("cannot stop the testbed: cannot signal process {}", state.pid))?;
    let deadline = Instant::now() + DOWN_WITHIN;
    while state.folder.exists() {
        if Instant::now() > deadline {
            bail!(
                "the testbed did not stop within {} s: folder {} still exists",
                DOWN_WITHIN.as_secs(),
                state.folder.display()
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn env() -> anyhow::Result<()> {
    let state = expect_running()?;
    let kubectl = Lookup::from_env()?.require(Program::Kubectl)?.path;
    let folder = kubectl.parent().context("cannot find the folder of kubectl")?;
    for (name, path) in testbed::environment(&state.folder) {
        println!("export {name}='{}'", path.display());
    }
    println!("export PATH='{}':\"$PATH\"", folder.display());
    Ok(())
}

fn kubectl(args: &[String]) -> anyhow::Result<()> {
    let state = expect_running()?;
    let kubectl = Lookup::from_env()?.require(Program::Kubectl)?.path;
    // On success this process becomes kubectl and never returns.
    let error = Command::new(&kubectl).args(args).envs(testbed::environment(&state.folder)).exec();
    Err(error).with_context(|| format!("cannot run {}", kubectl.display()))
}

fn expect_running() -> anyhow::Result<State> {
    running()?.context("no testbed is running; start one with `cargo xtask testbed up`")
}

/// The testbed that is up. Its holder has the lock; what an ended one wrote down is not believed.
fn running() -> anyhow::Result<Option<State>> {
    let lock_path = run_folder()?.join("holder.lock");
    let lock = File::create(&lock_path).with_context(|| format!("cannot create {}", lock_path.display()))?;
    // Shared: two who look do not take each other for a holder.
    match lock.try_lock_shared() {
        Ok(()) => return Ok(None),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", lock_path.display()));
        }
    }
    let path = state_path()?;
    let deadline = Instant::now() + START_WITHIN;
    // A holder that is still starting writes this when it is ready, and the last one's was removed before.
    while !path.exists() {
        if Instant::now() > deadline {
            bail!(
                "the testbed was not ready within {} s; see holder.log beside {}",
                START_WITHIN.as_secs(),
                path.display()
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Some(serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))?))
}

fn state_path() -> anyhow::Result<PathBuf> {
    Ok(run_folder()?.join("testbed.json"))
}

fn run_folder() -> anyhow::Result<PathBuf> {
    let folder = Cache::from_env()?.root().join("run");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}
