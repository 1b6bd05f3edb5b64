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
    for verb in ["version", "completions", "pve-sim"] {
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
fn pve_sim_answers_over_https_and_ends_when_told() -> io::Result<()> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["pve-sim", "--listen", "127.0.0.1:0", "--hosts", "2"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut first = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().expect("it was piped")), &mut first)?;
    let address = first.trim().strip_prefix("simulated Proxmox VE at https://").and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("no address in `{first}`")).to_owned();
    // A connection is accepted; what is said over it is the simulator's own tests' concern.
    let connected = std::net::TcpStream::connect(&address);
    let told = Command::new("kill").arg(child.id().to_string()).status()?;
    let status = child.wait()?;
    assert!(connected.is_ok() && told.success() && status.success(), "{connected:?} {status:?}");
    Ok(())
}

#[test]
fn pve_sim_refuses_what_it_cannot_make() -> io::Result<()> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let output = tenon(&["pve-sim", "--listen", &address])?;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with(&format!("error: cannot listen on {address}: ")), "{}", stderr(&output));
    let output = tenon(&["pve-sim", "--hosts", "0"])?;
    assert!(stderr(&output).contains("give a number from 1 to 64"), "{}", stderr(&output));
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
