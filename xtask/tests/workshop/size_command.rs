//! `cargo xtask size` on a small project of two crates, and its other life in the place of the compiler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::{Fixture, text, xtask};

/// A project with the crates `tenon` (a program with one default feature) and `tenon-engine`, and a cache of its own.
struct Project {
    fixture: Fixture,
    cache: TempDir,
}

impl Project {
    /// Its first commit has no profile `dist`, no feature, and a program with one function less.
    fn new() -> anyhow::Result<Project> {
        let fixture = Fixture::new()?;
        fixture.write(".gitignore", "/target\n")?;
        fixture.add_crate("tenon-engine", "")?;
        fixture.write("crates/tenon-engine/src/lib.rs", "//! Plans.\npub fn plan() -> u8 { 1 }\n")?;
        fixture.add_crate("tenon", "[dependencies]\ntenon-engine = { path = \"../tenon-engine\" }\n")?;
        fs::remove_file(fixture.path().join("crates/tenon/src/lib.rs"))?;
        fixture.write("crates/tenon/src/main.rs", "fn main() { println!(\"{}\", tenon_engine::plan()); }\n")?;
        let project = Project { fixture, cache: tempfile::tempdir()? };
        project.lock()?;
        project.fixture.commit()?;
        Ok(project)
    }

    fn lock(&self) -> anyhow::Result<()> {
        let output =
            Command::new("cargo").args(["generate-lockfile", "--offline"]).current_dir(self.path()).output()?;
        ensure!(output.status.success(), "{}", text(&output));
        Ok(())
    }

    fn path(&self) -> &Path {
        self.fixture.path()
    }

    fn size(&self, args: &[&str]) -> anyhow::Result<Output> {
        let mut command = xtask();
        command.args(["size", "--root"]).arg(self.path()).args(args).env("XDG_CACHE_HOME", self.cache.path());
        Ok(command.output()?)
    }

    /// Makes sure that a measurement left neither its folder in the cache nor a checkout that git knows.
    fn expect_nothing_left(&self) -> anyhow::Result<()> {
        let output = Command::new("git").args(["worktree", "list", "--porcelain"]).current_dir(self.path()).output()?;
        let checkouts = String::from_utf8(output.stdout)?;
        ensure!(checkouts.matches("worktree ").count() == 1, "checkouts are left: {checkouts}");
        ensure!(!self.run_folder().exists(), "{} is left", self.run_folder().display());
        Ok(())
    }

    /// Where a measurement builds.
    fn run_folder(&self) -> PathBuf {
        self.cache.path().join("tenon/size/run")
    }
}

fn number(value: &Value, path: &str) -> anyhow::Result<f64> {
    value.pointer(path).and_then(Value::as_f64).with_context(|| format!("{path} is missing"))
}

#[test]
fn two_revisions_are_measured_and_printed_next_to_each_other() -> anyhow::Result<()> {
    let project = Project::new()?;
    project.fixture.write(
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n[profile.dist]\ninherits = \"release\"\nstrip = true\n",
    )?;
    let main = "fn main() { println!(\"{}\", greeting(std::env::args().count())); }\n\
                #[inline(never)] pub fn greeting(n: usize) -> String { \"hello \".repeat(n) }\n";
    project.fixture.write("crates/tenon/src/main.rs", main)?;
    project
        .fixture
        .write("crates/tenon/Cargo.toml", "[package]\nname = \"tenon\"\nversion = \"0.1.0\"\nedition = \"2024\"\n")?;
    project.lock()?;
    let file = project.cache.path().join("figures.json");
    let save = file.to_str().context("the path is text")?;
    let lean = ["--no-default-features", "--profile", "dist", "--against", "HEAD", "--against-profile", "release"];
    let output = project.size(&[&lean[..], &["--save", save]].concat())?;
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for words in [
        "without default features, profile release\nafter:",
        "with changes, binary tenon without default features, profile dist\n",
        "packages (normal dependencies)  before  after   ratio\n",
        "build from nothing, by crate",
        "build after a change in tenon-engine, by crate",
        "size of the binary without symbols",
        "<_ as core::fmt::Write>::write_str",
    ] {
        assert!(said.contains(words), "`{words}` is missing: {said}");
    }
    let saved: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    let lists = ["/before/packages/ours", "/after/packages/ours", "/before/cold/units", "/after/cold/units"];
    let lengths = lists.map(|list| saved.pointer(list).and_then(Value::as_array).map(Vec::len));
    assert_eq!(lengths, [Some(2), Some(1), Some(2), Some(1)], "the second revision does without one of two crates");
    assert_eq!(saved.pointer("/before/warm/units").and_then(Value::as_array).map(Vec::len), Some(2));
    assert_eq!(number(&saved, "/before/weight/crates/tenon_engine/written_bytes").ok(), None, "it was inlined");
    assert!(number(&saved, "/after/weight/crates/tenon/written_bytes")? > 0.0);
    assert!(number(&saved, "/after/weight/stripped_bytes")? < number(&saved, "/after/weight/file_bytes")?);
    project.expect_nothing_left()
}

#[test]
fn tests_are_told_apart_from_the_library_they_test() -> anyhow::Result<()> {
    let project = Project::new()?;
    project.fixture.write("crates/tenon-engine/tests/laws.rs", "#[test]\nfn it_plans() { tenon_engine::plan(); }\n")?;
    let output = project.size(&["--tests", "--no-rebuild"])?;
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for words in
        ["  tenon-engine lib ", "  tenon-engine test ", "  tenon-engine test laws ", "  tenon test ", "profile dev\n"]
    {
        assert!(said.contains(words), "`{words}` is missing: {said}");
    }
    assert!(!said.contains("without symbols") && !said.contains("after a change"), "{said}");
    Ok(())
}

#[test]
fn a_build_that_fails_leaves_no_checkout_behind() -> anyhow::Result<()> {
    let project = Project::new()?;
    project.fixture.write("crates/tenon/src/main.rs", "fn main() { no_such_function() }\n")?;
    project.fixture.commit()?;
    let output = project.size(&["--against", "HEAD"])?;
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot find function `no_such_function`"), "{said}");
    assert!(said.contains("error: cannot build ") && said.contains("failed; see its output above"), "{said}");
    project.expect_nothing_left()
}

#[test]
fn what_a_revision_lacks_is_said_before_anything_is_built() -> anyhow::Result<()> {
    let project = Project::new()?;
    let cases: [(&[&str], &str); 4] = [
        (&["--against", "nowhere"], "revision `nowhere` does not exist in "),
        (&["--profile", "dist"], "has no profile `dist`; name another one with --profile"),
        (
            &["--against", "HEAD", "--against-profile", "dist"],
            "has no profile `dist`; name another one with --against-profile",
        ),
        (&["--rebuild", "tenon-nothing"], "name another crate with --rebuild, or use --no-rebuild"),
    ];
    for (args, words) in cases {
        let output = project.size(args)?;
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(words) && !text(&output).contains("Compiling"), "{}", text(&output));
    }
    project.expect_nothing_left()
}

#[test]
fn what_a_killed_run_left_does_not_hinder_the_next() -> anyhow::Result<()> {
    let project = Project::new()?;
    let checkout = project.run_folder().join("checkout");
    project.fixture.git(&["worktree", "add", "--detach", checkout.to_str().context("the path is text")?])?;
    // Fails after the revision was checked out, and before anything is built.
    let output = project.size(&["--against", "HEAD", "--against-profile", "dist"])?;
    assert!(text(&output).contains("has no profile `dist`"), "{}", text(&output));
    project.expect_nothing_left()
}

/// Runs a command in the place of the compiler; gives back what it said and the lines that were noted.
fn in_place_of_the_compiler(words: &[&str]) -> anyhow::Result<(Output, String)> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    let mut command = xtask();
    command.args(words).env("TENON_SIZE_LOG", &log);
    command.env("CARGO_CRATE_NAME", "engine").env("CARGO_PKG_NAME", "tenon-engine");
    let output = command.output()?;
    Ok((output, fs::read_to_string(log).unwrap_or_default()))
}

#[test]
fn a_run_of_the_compiler_is_noted_with_its_cost() -> anyhow::Result<()> {
    let (output, log) = in_place_of_the_compiler(&["true", "--crate-name", "engine", "--crate-type", "lib"])?;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert_eq!(log.lines().count(), 1, "{log}");
    let line: Value = serde_json::from_str(&log)?;
    assert_eq!(line.get("package").and_then(Value::as_str), Some("tenon-engine"));
    assert_eq!(line.get("kind").and_then(Value::as_str), Some("lib"));
    assert!(number(&line, "/cpu_s")? >= 0.0 && number(&line, "/end_s")? >= number(&line, "/begin_s")?, "{log}");
    Ok(())
}

#[test]
fn the_exit_code_of_the_compiler_is_passed_on() -> anyhow::Result<()> {
    let (output, log) = in_place_of_the_compiler(&["sh", "-c", "exit 101", "--crate-name", "engine"])?;
    assert_eq!(output.status.code(), Some(101), "{}", text(&output));
    assert_eq!(log.lines().count(), 1, "{log}");
    let (output, _) = in_place_of_the_compiler(&["sh", "-c", "kill -9 $$"])?;
    assert_eq!(output.status.code(), Some(137), "{}", text(&output));
    Ok(())
}

#[test]
fn a_question_to_the_compiler_is_answered_and_not_noted() -> anyhow::Result<()> {
    let (output, log) = in_place_of_the_compiler(&["echo", "-vV"])?;
    assert_eq!((output.stdout.as_slice(), log.as_str()), (b"-vV\n".as_slice(), ""));
    Ok(())
}

#[test]
fn a_compiler_that_is_not_there_is_an_error_that_names_it() -> anyhow::Result<()> {
    let (output, _) = in_place_of_the_compiler(&["no-such-compiler", "-vV"])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).starts_with("error: cannot run `no-such-compiler`: "), "{}", text(&output));
    Ok(())
}
