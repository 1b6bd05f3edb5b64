//! The bans of the pure crates bite: clippy itself is asked.

use std::path::Path;
use std::process::Command;

use crate::fixture::text;

/// One thing a pure crate must not do on each line.
const IMPURE: &[&str] = &[
    "pub fn clock() -> std::time::Instant { std::time::Instant::now() }",
    "pub fn today() { drop(std::time::SystemTime::now()) }",
    "pub fn wait() { std::thread::sleep(std::time::Duration::ZERO) }",
    "pub fn environment() -> Option<String> { std::env::var(\"HOME\").ok() }",
    "pub fn file() { drop(std::fs::File::open(\"x\")) }",
    "pub fn read() { drop(std::fs::read(\"x\")) }",
    "pub fn network() { drop(std::net::TcpStream::connect(\"localhost:1\")) }",
    "pub fn process() { drop(std::process::Command::new(\"x\")) }",
    "pub fn order() { drop(std::collections::HashMap::<u8, u8>::new()) }",
    "pub fn random() { drop(std::hash::RandomState::new()) }",
    "pub fn exit() { std::process::exit(1) }",
    "pub fn since() { drop(std::time::UNIX_EPOCH.elapsed()) }",
    "pub fn folder() { drop(std::fs::read_dir(\".\")) }",
    "pub fn make() { drop(std::fs::create_dir(\"x\")) }",
    "pub fn remove() { drop(std::fs::remove_file(\"x\")) }",
    "pub fn look() -> bool { std::path::Path::new(\"x\").exists() }",
    "pub fn place() { drop(std::env::current_dir()) }",
    "pub fn arguments() { drop(std::env::args_os()) }",
    "pub fn socket() { drop(std::os::unix::net::UnixStream::connect(\"x\")) }",
    "pub fn resolve() { drop(std::net::ToSocketAddrs::to_socket_addrs(\"localhost:1\")) }",
    "pub fn thread() { drop(std::thread::Builder::new()) }",
    "pub fn speak() { println!(\"x\") }",
];

#[test]
fn clippy_refuses_every_impure_line_in_a_pure_crate() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let source = dir.path().join("impure.rs");
    std::fs::write(&source, IMPURE.join("\n"))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = Command::new("clippy-driver")
        .current_dir(&root)
        .env("CLIPPY_CONF_DIR", root.join("crates/tenon-model"))
        .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--out-dir"])
        .arg(dir.path())
        .args(["-W", "clippy::disallowed_methods", "-W", "clippy::disallowed_types", "-W", "clippy::disallowed_macros"])
        .args(["--error-format=short"])
        .arg(&source)
        .output()?;
    let said = text(&output);
    for (number, line) in IMPURE.iter().enumerate() {
        let place = format!("impure.rs:{}:", number + 1);
        let refused = said.lines().any(|said| said.contains(&place) && said.contains("disallowed"));
        assert!(refused, "clippy let this pass: {line}\n{said}");
    }
    Ok(())
}
