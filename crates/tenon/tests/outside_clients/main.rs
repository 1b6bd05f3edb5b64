//! Programs nobody here wrote use what Tenon makes: a client lives a whole life against `tenon pve-sim`, over HTTPS, and
//! readers of CD-ROMs and cloud-init itself read seeds.

#[cfg(test)]
mod seed_readers;
#[cfg(test)]
mod seed_sample;

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use testbed::{PROXMOXER, proof};

/// The simulator as a process of its own; it ends with the test.
struct Simulator {
    process: Child,
    address: String,
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // It may have ended by itself, and then there is nothing to do.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Simulator {
    fn start(arguments: &[&str]) -> io::Result<Simulator> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenon"));
        command.args(["pve-sim", "--listen", "127.0.0.1:0"]).args(arguments).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let mut first = String::new();
        BufReader::new(process.stdout.take().expect("it was piped")).read_line(&mut first)?;
        let address =
            first.trim().strip_prefix("simulated Proxmox VE at https://").and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address in `{first}`")).to_owned();
        Ok(Simulator { process, address })
    }
}

#[test]
fn proxmoxer_lives_a_whole_life() -> anyhow::Result<()> {
    let Some(packages) = proof::with_package(&PROXMOXER)? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let ca = folder.path().join("ca.pem");
    let ca = ca.to_str().expect("a temporary folder has a plain name");
    let simulator = Simulator::start(&["--hosts", "2", "--password", "sesame", "--ca-file", ca])?;
    let (host, port) = simulator.address.split_once(':').expect("an address has a port");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/outside_clients/life.py");
    let mut python = Command::new("python3");
    python.arg(script).args([host, port, ca, "sesame"]).env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = python.output()?;
    let (told, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.ends_with("a whole life\n"), "{told}\n{wrong}");
    Ok(())
}
