//! `cargo xtask testbed up`, `kubectl`, `env` and `down`, on a real control plane.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tempfile::TempDir;
use testbed::Program;
use testbed::proof::with_programs;

use crate::fixture::{text, xtask};

/// A keeper ends its processes and removes their folder in well under this.
const PATIENCE: Duration = Duration::from_secs(30);

/// A person with a cache of their own, so that no testbed they have up is touched.
struct Person {
    // Declared first, so dropped first: the folders are still there when it ends what is up.
    _guard: Guard,
    cache: TempDir,
    bin: TempDir,
}

/// Takes the testbed down when this process ends, however it ends: its holder outlives us by design.
struct Guard {
    shell: Child,
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

impl Person {
    /// `None` where there are no programs for a control plane and none are required.
    fn new() -> anyhow::Result<Option<Person>> {
        let programs = [Program::CONTROL_PLANE.as_slice(), &[Program::Kubectl]].concat();
        let Some(found) = with_programs(&programs)? else { return Ok(None) };
        let (cache, bin) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let shell = Command::new("sh")
            .args(["-c", "trap '' HUP INT TERM; cat; exec \"$0\" testbed down", env!("CARGO_BIN_EXE_xtask")])
            .env("XDG_CACHE_HOME", cache.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let person = Person { _guard: Guard { shell }, cache, bin };
        for program in found {
            std::os::unix::fs::symlink(&program.path, person.bin.path().join(program.program.name()))?;
        }
        Ok(Some(person))
    }

    fn testbed(&self, args: &[&str]) -> anyhow::Result<Output> {
        let mut command = xtask();
        command.arg("testbed").args(args);
        command.env("XDG_CACHE_HOME", self.cache.path()).env("TENON_TESTBED_BIN", self.bin.path());
        Ok(command.output()?)
    }

    /// The kubeconfig that `up` prints.
    fn up(&self) -> anyhow::Result<PathBuf> {
        let output = self.testbed(&["up"])?;
        ensure!(output.status.success(), "{}", text(&output));
        Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim_end()))
    }

    /// The process that owns the testbed.
    fn holder(&self) -> anyhow::Result<u64> {
        let state = fs::read(self.cache.path().join("tenon/run/testbed.json"))?;
        let state: serde_json::Value = serde_json::from_slice(&state)?;
        state["pid"].as_u64().context("no pid")
    }
}

/// Whether any process has this folder in its arguments.
fn is_named_by_a_process(folder: &Path) -> bool {
    let needle = folder.display().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .any(|arguments| String::from_utf8_lossy(&arguments).contains(&needle))
}

#[test]
fn a_person_can_bring_a_testbed_up_use_it_and_take_it_down() -> anyhow::Result<()> {
    let Some(person) = Person::new()? else { return Ok(()) };
    let kubeconfig = person.up()?;
    assert_eq!(person.up()?, kubeconfig, "a second `up` should find the first");
    let folder = kubeconfig.parent().context("a kubeconfig lies in a folder")?;

    // Plain kubectl, with nothing but the printed kubeconfig.
    let kubectl = person.bin.path().join("kubectl");
    let output = Command::new(kubectl)
        .args(["get", "namespace", "kube-system", "-o", "name"])
        .env("KUBECONFIG", &kubeconfig)
        .env("KUBECACHEDIR", folder.join("cache"))
        .output()?;
    assert_eq!(text(&output), "namespace/kube-system\n");
    let output = person.testbed(&["kubectl", "get", "--raw", "/readyz"])?;
    assert_eq!(text(&output), "ok");
    let output = person.testbed(&["kubectl", "get", "nothing"])?;
    assert_eq!(output.status.code(), Some(1), "kubectl's exit code is ours");
    let lines = text(&person.testbed(&["env"])?);
    assert!(lines.contains(&format!("export KUBECONFIG='{}'", kubeconfig.display())), "{lines}");

    let output = person.testbed(&["down"])?;
    assert!(output.status.success(), "{}", text(&output));
    // On a busy machine a program that was killed takes a moment to be gone.
    until_gone(folder)?;
    let output = person.testbed(&["kubectl", "get", "nodes"])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("no testbed is running; start one with `cargo xtask testbed up`"),
        "{}",
        text(&output)
    );
    assert!(person.testbed(&["down"])?.status.success(), "what is down can be taken down");
    Ok(())
}

#[test]
fn kill_9_of_the_owner_leaves_no_process_and_no_folder() -> anyhow::Result<()> {
    let Some(person) = Person::new()? else { return Ok(()) };
    let kubeconfig = person.up()?;
    let folder = kubeconfig.parent().context("a kubeconfig lies in a folder")?;
    assert!(is_named_by_a_process(folder));
    let killed = Command::new("kill").args(["-9", &person.holder()?.to_string()]).status()?;
    assert!(killed.success());
    until_gone(folder)?;
    // And nothing is in the way of the next one.
    assert_ne!(person.up()?, kubeconfig);
    Ok(())
}

/// Waits until neither the folder of a testbed nor a process of it is there.
fn until_gone(folder: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while folder.exists() || is_named_by_a_process(folder) {
        ensure!(Instant::now() < deadline, "{} is still there", folder.display());
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
