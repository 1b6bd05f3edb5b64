//! Finding and building the testbed's programs, with everything that can be wrong about it.
//!
//! `go` is a script here, so that a build takes no time and fails in the way a test wants.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;
use testbed::{Cache, Program};

use crate::fixture::{script, text, xtask};

/// A machine with an empty cache, and nothing on PATH but what a test puts there and a shell's own tools.
struct Machine {
    dir: TempDir,
}

impl Machine {
    fn new() -> anyhow::Result<Machine> {
        let machine = Machine { dir: tempfile::tempdir()? };
        for folder in ["cache", "path", "bin"] {
            fs::create_dir(machine.folder(folder))?;
        }
        Ok(machine)
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Puts a `go` on PATH that lists two packages and runs `build` to build, with the output file in `$out`.
    fn with_go(self, build: &str) -> anyhow::Result<Machine> {
        let calls = self.folder("calls");
        let body = format!(
            "[ \"$1\" = list ] && {{ echo one; echo two; exit 0; }}\n\
             echo \"$@\" >>'{}'\n\
             while [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n\
             {build}",
            calls.display()
        );
        script(&self.folder("path").join("go"), &body)?;
        Ok(self)
    }

    /// How often something was built.
    fn builds(&self) -> usize {
        fs::read_to_string(self.folder("calls")).unwrap_or_default().lines().count()
    }

    fn build(&self, variables: &[(&str, &Path)]) -> anyhow::Result<Output> {
        // The fake `go` and the fake programs are shell scripts: they need the shell's tools, never a real `go`.
        let mut path = OsString::from(self.folder("path"));
        path.push(":/bin");
        let mut command = xtask();
        command.args(["testbed", "build"]).env_remove("TENON_TESTBED_BIN").env_remove("KUBEBUILDER_ASSETS");
        command.env("XDG_CACHE_HOME", self.folder("cache")).env("PATH", path);
        Ok(command.envs(variables.iter().copied()).output()?)
    }

    fn cached(&self, program: Program) -> PathBuf {
        Cache::at(self.folder("cache").join("tenon")).program(program)
    }

    /// Every file in the cache but its locks.
    fn cached_files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        let mut folders = vec![self.folder("cache")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.file_name().is_some_and(|name| name != ".lock") {
                    files.push(path);
                }
            }
        }
        Ok(files)
    }
}

/// A script that answers as a program of this version does.
fn answer(version: &str) -> String {
    format!("echo 'Version: v{version}'")
}

/// A `go build` that writes a program of the version its linker flags name, or of the version in `go.mod`.
fn good_build() -> String {
    let versions: Vec<String> =
        Program::ALL.iter().map(|program| format!("{program}) version={};;", program.version())).collect();
    format!(
        "case \"${{out##*partial-}}\" in {} esac\n\
         printf '#!/bin/sh\\necho Version: v%s\\n' \"$version\" >\"$out\" && chmod +x \"$out\"",
        versions.join(" ")
    )
}

#[test]
fn what_is_built_once_is_found_the_second_time() -> anyhow::Result<()> {
    let machine = Machine::new()?.with_go(&good_build())?;
    let output = machine.build(&[])?;
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(machine.builds(), Program::ALL.len());
    let output = machine.build(&[])?;
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(machine.builds(), Program::ALL.len(), "the second run built again");
    assert_eq!(machine.cached_files()?.len(), Program::ALL.len());
    Ok(())
}

#[test]
fn without_go_the_error_says_what_to_install() -> anyhow::Result<()> {
    let machine = Machine::new()?;
    // Not even /bin: some systems keep a `go` there.
    let output = machine.build(&[("PATH", &machine.folder("path"))])?;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    assert!(
        said.contains("cannot build etcd") && said.contains("install Go") && said.contains("TENON_TESTBED_BIN"),
        "{said}"
    );
    assert!(machine.cached_files()?.is_empty());
    Ok(())
}

#[test]
fn a_folder_with_everything_needs_no_go() -> anyhow::Result<()> {
    let machine = Machine::new()?;
    for program in Program::ALL {
        script(&machine.folder("bin").join(program.name()), &answer(&program.version().to_string()))?;
    }
    let output = machine.build(&[("TENON_TESTBED_BIN", &machine.folder("bin"))])?;
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(text(&output).matches("from TENON_TESTBED_BIN").count(), Program::ALL.len());
    assert!(machine.cached_files()?.is_empty());
    Ok(())
}

#[test]
fn each_program_is_looked_up_on_its_own() -> anyhow::Result<()> {
    let machine = Machine::new()?.with_go(&good_build())?;
    script(&machine.folder("bin").join("etcd"), &answer(&Program::Etcd.version().to_string()))?;
    let output = machine.build(&[("KUBEBUILDER_ASSETS", &machine.folder("bin"))])?;
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(text(&output).matches("from KUBEBUILDER_ASSETS").count(), 1);
    assert_eq!(machine.builds(), Program::ALL.len() - 1);
    Ok(())
}

#[test]
fn a_program_of_another_minor_version_is_an_error_that_names_file_and_versions() -> anyhow::Result<()> {
    let machine = Machine::new()?.with_go(&good_build())?;
    let file = machine.folder("bin").join("etcd");
    script(&file, &answer("3.4.23"))?;
    let output = machine.build(&[("TENON_TESTBED_BIN", &machine.folder("bin"))])?;
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    let wanted = Program::Etcd.version().to_string();
    for word in [file.to_str().unwrap_or_default(), "3.4.23", &wanted, "TENON_TESTBED_BIN"] {
        assert!(said.contains(word), "`{word}` is missing: {said}");
    }
    assert_eq!(machine.builds(), 0);
    Ok(())
}

#[test]
fn a_named_program_that_does_not_run_is_an_error_not_passed_over() -> anyhow::Result<()> {
    let machine = Machine::new()?.with_go(&good_build())?;
    let file = machine.folder("bin").join("etcd");
    fs::write(&file, "not a program")?;
    let output = machine.build(&[("TENON_TESTBED_BIN", &machine.folder("bin"))])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains(&format!("{} does not run as etcd", file.display())), "{}", text(&output));
    Ok(())
}

#[test]
fn a_broken_file_in_the_cache_is_built_anew() -> anyhow::Result<()> {
    let machine = Machine::new()?.with_go(&good_build())?;
    assert!(machine.build(&[])?.status.success());
    fs::write(machine.cached(Program::Etcd), "cut short")?;
    let output = machine.build(&[])?;
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("building etcd again"), "{}", text(&output));
    assert_eq!(machine.builds(), Program::ALL.len() + 1);
    Ok(())
}

#[test]
fn a_full_disk_leaves_nothing_half_written() -> anyhow::Result<()> {
    let machine = Machine::new()?
        .with_go("echo half >\"$out\"; echo \"link: write $out: no space left on device\" >&2; exit 1")?;
    let output = machine.build(&[])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("cannot build etcd: the disk is full"), "{}", text(&output));
    assert!(machine.cached_files()?.is_empty(), "{:?}", machine.cached_files()?);
    Ok(())
}

#[test]
fn a_build_that_gives_no_program_leaves_nothing() -> anyhow::Result<()> {
    let machine = Machine::new()?.with_go("echo 'exit 3' >\"$out\"; chmod +x \"$out\"")?;
    let output = machine.build(&[])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("does not run as etcd"), "{}", text(&output));
    assert!(machine.cached_files()?.is_empty(), "{:?}", machine.cached_files()?);
    Ok(())
}

#[test]
fn a_build_error_shows_what_go_said() -> anyhow::Result<()> {
    let machine = Machine::new()?.with_go("echo 'main.go:1: undefined: x' >&2; exit 1")?;
    let output = machine.build(&[])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("undefined: x"), "{}", text(&output));
    Ok(())
}

#[test]
fn what_a_killed_build_left_does_not_hinder_the_next() -> anyhow::Result<()> {
    let machine = Machine::new()?.with_go(&good_build())?;
    let target = machine.cached(Program::Etcd);
    let folder = target.parent().unwrap_or(&target);
    fs::create_dir_all(folder)?;
    fs::write(folder.join(".partial-etcd"), "half")?;
    let output = machine.build(&[])?;
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(machine.cached_files()?.len(), Program::ALL.len());
    Ok(())
}

#[test]
fn a_cache_that_cannot_be_written_is_an_error_that_names_it() -> anyhow::Result<()> {
    let machine = Machine::new()?.with_go(&good_build())?;
    fs::write(machine.folder("cache").join("tenon"), "a file where a folder should be")?;
    let output = machine.build(&[])?;
    assert_eq!(output.status.code(), Some(1));
    let place = machine.folder("cache").join("tenon").display().to_string();
    assert!(text(&output).contains("error: cannot create") && text(&output).contains(&place), "{}", text(&output));
    Ok(())
}
