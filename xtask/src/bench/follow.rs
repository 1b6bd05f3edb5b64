//! Runs a program to its end and says how much memory it had at most.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// How often the kernel is asked. It keeps the peak itself, so only growth after the last look is missed.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A program that has ended.
pub(super) struct Ended {
    pub(super) output: Vec<u8>,
    /// The most memory it had at once. 0 where the kernel does not say.
    pub(super) peak_mib: f64,
}

/// Runs a program. After `bound` it is killed, and there is nothing to tell.
pub(super) fn follow(command: &mut Command, bound: Duration) -> anyhow::Result<Option<Ended>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let place = || tempfile::tempfile().context("cannot create a temporary file");
    let (mut output, mut errors) = (place()?, place()?);
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(errors.try_clone()?);
    let mut child = command.spawn().with_context(|| format!("cannot run {name}"))?;
    let (status, peak_mib) = watch(&mut child, bound)?;
    let Some(status) = status else { return Ok(None) };
    if !status.success() {
        let said = String::from_utf8_lossy(&content(&mut errors)?).into_owned();
        bail!("{name} ended with {status}: {}", said.lines().last().unwrap_or_default());
    }
    Ok(Some(Ended { output: content(&mut output)?, peak_mib }))
}

/// Waits for the end; without one, kills it.
fn watch(child: &mut Child, bound: Duration) -> anyhow::Result<(Option<ExitStatus>, f64)> {
    let (start, file) = (Instant::now(), format!("/proc/{}/status", child.id()));
    let mut peak_mib = 0.0_f64;
    loop {
        let now = std::fs::read_to_string(&file).ok().and_then(|text| high_water_mib(&text));
        peak_mib = peak_mib.max(now.unwrap_or_default());
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            return Ok((Some(status), peak_mib));
        }
        if start.elapsed() > bound {
            child.kill().and_then(|()| child.wait()).context("cannot kill the program")?;
            return Ok((None, peak_mib));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The peak of resident memory. A process that is ending has none any more.
fn high_water_mib(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

fn content(file: &mut File) -> anyhow::Result<Vec<u8>> {
    let mut all = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut all)).context("cannot read a temporary file")?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, bound: Duration) -> anyhow::Result<Option<Ended>> {
        follow(Command::new("/bin/sh").args(["-c", script]), bound)
    }

    #[test]
    fn output_and_errors_of_a_program_are_told() {
        let ended = shell("echo yes", Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(ended.output, b"yes\n");
        let error = shell("echo no >&2; exit 3", Duration::from_secs(60)).err().unwrap().to_string();
        assert!(error.contains("exit status: 3") && error.ends_with("no"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        assert!(shell("exec sleep 600", Duration::from_millis(20)).unwrap().is_none());
    }

    #[test]
    fn the_peak_is_read_in_kib() {
        assert_eq!(high_water_mib("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t 4 kB\n"), Some(2.0));
        assert_eq!(high_water_mib("Name:\tx\n"), None);
    }
}
