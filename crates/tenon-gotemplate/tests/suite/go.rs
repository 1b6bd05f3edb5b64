//! What does Go itself say?

use std::io::Write;
use std::process::Stdio;

use testbed::proof;

/// What a program of `tests/go` prints for this input; nothing where Go is not installed and need not be.
#[expect(clippy::disallowed_types, reason = "the crate starts no processes, but its tests ask Go")]
pub(crate) fn run(program: &str, input: &[u8]) -> Option<String> {
    let go = proof::with_go().unwrap_or_else(|error| panic!("{error}"))?;
    let file = |name: &str| format!("{}/tests/go/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut command = std::process::Command::new(go);
    command
        .args(["run", &file(program), &file("values.go")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    // The program reads everything before it prints, so neither side waits for the other.
    let written = process.stdin.take().unwrap().write_all(input);
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "go run {program}: {}", String::from_utf8_lossy(&output.stderr));
    written.unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}
