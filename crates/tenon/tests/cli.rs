//! The command line as a person meets it: what it prints, and how it ends.

use std::fs::File;
use std::io;
use std::process::{Command, Output, Stdio};

fn tenon(args: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_tenon")).args(args).output()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn version_prints_one_line() -> io::Result<()> {
    let output = tenon(&["version"])?;
    assert!(output.status.success());
    let text = stdout(&output);
    assert!(text.starts_with(&format!("tenon {}", env!("CARGO_PKG_VERSION"))), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    Ok(())
}

#[test]
fn version_as_json_is_one_object() -> io::Result<()> {
    let output = tenon(&["version", "-o", "json"])?;
    let value: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
    Ok(())
}

#[test]
fn help_names_every_verb_a_person_may_use() -> io::Result<()> {
    let output = tenon(&["--help"])?;
    assert!(output.status.success());
    let text = stdout(&output);
    for verb in ["version", "completions"] {
        assert!(text.contains(verb), "{text}");
    }
    Ok(())
}

#[test]
fn a_wrong_command_line_ends_with_2_and_the_right_one() -> io::Result<()> {
    for args in [&["versions"][..], &["version", "--format", "json"], &["version", "-o", "yaml"], &["completions"], &[]]
    {
        let output = tenon(args)?;
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains("--help"), "{args:?}: {}", stderr(&output));
    }
    Ok(())
}

#[test]
fn completions_are_a_script_bash_understands() -> io::Result<()> {
    let output = tenon(&["completions", "bash"])?;
    assert!(output.status.success());
    let path = std::env::temp_dir().join(format!("tenon-completions-{}.bash", std::process::id()));
    std::fs::write(&path, &output.stdout)?;
    let syntax = Command::new("bash").arg("-n").arg(&path).output();
    std::fs::remove_file(&path)?;
    assert!(syntax?.status.success());
    assert!(stdout(&output).contains("completions"));
    Ok(())
}

#[test]
fn output_that_cannot_be_written_is_an_error_on_one_line() -> io::Result<()> {
    let full = File::options().write(true).open("/dev/full")?;
    let output = Command::new(env!("CARGO_BIN_EXE_tenon")).arg("version").stdout(full).output()?;
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.starts_with("error: cannot print the version: "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    Ok(())
}

#[test]
fn a_reader_that_has_seen_enough_is_not_an_error() -> io::Result<()> {
    let (reader, writer) = io::pipe()?;
    drop(reader);
    let child = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["completions", "zsh"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()?;
    let output = child.wait_with_output()?;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    Ok(())
}
