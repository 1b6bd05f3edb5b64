//! `xtask` in the place of the compiler: runs rustc as cargo asks, and notes what each run cost.
//!
//! Cargo starts the program in `RUSTC_WRAPPER` with rustc and its arguments. Several run at once.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;

use super::cpu;
use super::unit::{Product, Unit};

/// The file that runs are noted in. Where it is set, `xtask` is the wrapper and nothing else.
pub(crate) const LOG_VARIABLE: &str = "TENON_SIZE_LOG";

/// Names of this scheme say in which crate a function was written and in which one it was compiled; the older scheme
/// does not.
const MANGLING: [&str; 2] = ["-C", "symbol-mangling-version=v0"];

/// What an exit code is where a signal ended the compiler, as a shell says it.
const SIGNAL_BASE: i32 = 128;

/// Runs the compiler if cargo started this process for that.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    let log = std::env::var_os(LOG_VARIABLE)?;
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    Some(run(Path::new(&log), &words).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    }))
}

fn run(log: &Path, words: &[String]) -> anyhow::Result<ExitCode> {
    let (program, arguments) = words.split_first().with_context(|| {
        format!("cannot run the compiler: {LOG_VARIABLE} is set, but no command was given; unset {LOG_VARIABLE}")
    })?;
    let mut command = Command::new(program);
    command.args(arguments);
    let product = Product::read(arguments, |name| std::env::var(name).ok());
    if product.is_some() {
        command.args(MANGLING);
    }
    let (begin_s, cpu_before) = (now_s()?, cpu::of_children()?);
    let status = command.status().with_context(|| format!("cannot run `{program}`"))?;
    if let Some(what) = product {
        let unit = Unit { what, cpu_s: cpu::of_children()? - cpu_before, begin_s, end_s: now_s()? };
        append(log, &unit).with_context(|| format!("cannot write {}", log.display()))?;
    }
    Ok(code_of(status))
}

/// One write for the line: other wrappers write to the same file.
fn append(log: &Path, unit: &Unit) -> anyhow::Result<()> {
    let line = format!("{}\n", serde_json::to_string(unit)?);
    let mut file = File::options().append(true).create(true).open(log)?;
    Ok(file.write_all(line.as_bytes())?)
}

fn now_s() -> anyhow::Result<f64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).context("cannot read the clock: it is before 1970")?;
    Ok(since.as_secs_f64())
}

fn code_of(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(SIGNAL_BASE + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
