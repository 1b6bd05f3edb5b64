//! Do the programs that read a seed in a guest, and others that nobody here wrote, find in the image what was put in?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tempfile::TempDir;
use testbed::{BLKID, CLOUD_INIT, ISOINFO, Runner, XORRISO, proof};

use crate::seed_sample::{Files, K3S, KUBEADM, Sample, bare, example, full};

/// An image in a folder of its own.
struct Disc {
    folder: TempDir,
}

impl Disc {
    fn of(sample: &Sample) -> anyhow::Result<Disc> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("seed.iso"), &sample.image)?;
        Ok(Disc { folder })
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("seed.iso")
    }

    /// The files of the image, taken out by xorriso.
    fn extract(&self, xorriso: &Runner) -> anyhow::Result<PathBuf> {
        let to = self.folder.path().join("extracted");
        let mut command = xorriso.command();
        command.args(["-osirrox", "on", "-indev"]).arg(self.image()).args(["-extract", "/"]).arg(&to);
        told(&mut command)?;
        // It keeps the mode of folders, and a folder without the right to write cannot be removed by everybody.
        told(Command::new("chmod").args(["-R", "u+w"]).arg(&to))?;
        Ok(to)
    }
}

/// What a program prints when it succeeds.
fn told(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let wrong = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{}", String::from_utf8_lossy(&output.stdout), wrong);
    Ok(output.stdout)
}

fn files_in(folder: &Path) -> anyhow::Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?);
    }
    Ok(files)
}

#[test]
fn isoinfo_finds_the_same_files_by_rock_ridge_and_by_joliet() -> anyhow::Result<()> {
    let Some(isoinfo) = proof::with_tool(&ISOINFO)? else { return Ok(()) };
    for sample in [bare()?, full()?] {
        let disc = Disc::of(&sample)?;
        let about = String::from_utf8(told(isoinfo.command().args(["-d", "-i"]).arg(disc.image()))?)?;
        for line in ["Volume id: cidata", "Joliet with UCS level 3 found", "Rock Ridge signatures version 1 found"] {
            assert!(about.contains(line), "{line} is not in {about}");
        }
        for names in ["-R", "-J"] {
            let listed = told(isoinfo.command().args([names, "-f", "-i"]).arg(disc.image()))?;
            let listed: Vec<String> = String::from_utf8(listed)?.lines().map(|line| line[1..].to_owned()).collect();
            assert_eq!(listed, sample.files.keys().cloned().collect::<Vec<_>>(), "{names}");
            for (name, content) in &sample.files {
                let file = format!("/{name}");
                let read = told(isoinfo.command().args([names, "-x", &file, "-i"]).arg(disc.image()))?;
                assert!(read == *content, "{names}: {name} is {}", String::from_utf8_lossy(&read));
            }
        }
    }
    Ok(())
}

#[test]
fn xorriso_extracts_the_bytes_that_were_put_in() -> anyhow::Result<()> {
    let Some(xorriso) = proof::with_tool(&XORRISO)? else { return Ok(()) };
    for sample in [bare()?, full()?] {
        let disc = Disc::of(&sample)?;
        assert!(files_in(&disc.extract(&xorriso)?)? == sample.files);
        let about = told(xorriso.command().arg("-indev").arg(disc.image()).arg("-pvd_info"))?;
        let about = String::from_utf8(about)?;
        assert!(about.lines().any(|line| line.split(':').map(str::trim).eq(["Volume Id", "cidata"])), "{about}");
    }
    Ok(())
}

#[test]
fn blkid_sees_the_label_that_cloud_init_looks_for() -> anyhow::Result<()> {
    let Some(blkid) = proof::with_tool(&BLKID)? else { return Ok(()) };
    let disc = Disc::of(&full()?)?;
    let about = String::from_utf8(told(blkid.command().args(["-p", "-o", "export"]).arg(disc.image()))?)?;
    for line in ["LABEL=cidata", "TYPE=iso9660", "USAGE=filesystem"] {
        assert!(about.lines().any(|told| told == line), "{line} is not in {about}");
    }
    Ok(())
}

#[test]
fn the_nocloud_source_of_cloud_init_reads_the_extracted_seed() -> anyhow::Result<()> {
    let (Some(xorriso), Some(python)) = (proof::with_tool(&XORRISO)?, proof::with_tool(&CLOUD_INIT)?) else {
        return Ok(());
    };
    for sample in [bare()?, full()?] {
        let disc = Disc::of(&sample)?;
        let extracted = disc.extract(&xorriso)?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/outside_clients/seed.py");
        let printed = told(python.command().arg(script).arg(extracted).arg(disc.folder.path()))?;
        let found: Value = serde_json::from_slice(&printed)?;
        assert_eq!(found["instance_id"], "20001");
        assert_eq!(found["hostname"], "default-7f2c");
        assert_eq!(found["user_data"], sample.text("user-data"));
        // Its YAML reader and ours take every text for the same thing.
        let ours = |name: &str| serde_saphyr::from_str::<Value>(sample.text(name));
        assert_eq!(found["parts"][0]["kind"], "text/cloud-config");
        assert_eq!(found["parts"][0]["read"], ours("user-data")?);
        assert_eq!(found["parts"].as_array().map(Vec::len), Some(1));
        for (key, value) in ours("meta-data")?.as_object().context("meta-data is no map")? {
            assert_eq!(&found["meta_data"][key], value, "{key}");
        }
        let network = sample.files.contains_key("network-config").then(|| ours("network-config")).transpose()?;
        assert_eq!(found["network_config"], network.unwrap_or_default());
    }
    Ok(())
}

/// A command of `cloud-init`.
fn cloud_init(python: &Runner, verb: &[&str]) -> Command {
    let mut command = python.command();
    command.args(["-m", "cloudinit.cmd.main"]).args(verb);
    command
}

#[test]
fn user_data_and_network_config_are_valid_by_the_schemas_of_cloud_init() -> anyhow::Result<()> {
    let Some(python) = proof::with_tool(&CLOUD_INIT)? else { return Ok(()) };
    let help = String::from_utf8(told(&mut cloud_init(&python, &["schema", "--help"]))?)?;
    for sample in [bare()?, full()?, example(KUBEADM)?, example(K3S)?] {
        let folder = tempfile::tempdir()?;
        for (name, content) in &sample.files {
            fs::write(folder.path().join(name), content)?;
        }
        let mut checks = vec![("user-data", Vec::new())];
        if sample.files.contains_key("vendor-data") {
            checks.push(("vendor-data", Vec::new()));
        }
        // Schemas of network configurations came with release 24.
        if help.contains("--schema-type") && sample.files.contains_key("network-config") {
            checks.push(("network-config", vec!["--schema-type", "network-config"]));
        }
        for (name, options) in checks {
            let mut schema = cloud_init(&python, &["schema", "--config-file"]);
            let output = schema.arg(folder.path().join(name)).args(options).output()?;
            let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
            // On a machine with netplan it leaves network configurations to netplan, and says so.
            let is_judged = said.contains("Valid") || said.contains("Skipping network-config");
            // A deprecated key is accepted, but with a word of warning.
            assert!(output.status.success() && is_judged && !said.contains("eprecat"), "{name}: {said}");
        }
    }
    Ok(())
}

#[test]
fn cloud_init_sets_up_both_interfaces_as_they_were_asked_for() -> anyhow::Result<()> {
    let Some(python) = proof::with_tool(&CLOUD_INIT)? else { return Ok(()) };
    let (sample, folder) = (full()?, tempfile::tempdir()?);
    let (file, to) = (folder.path().join("network-config"), folder.path().join("out"));
    fs::write(&file, &sample.files["network-config"])?;
    let mut convert = cloud_init(&python, &["devel", "net-convert", "--kind", "yaml", "--distro", "debian"]);
    told(convert.args(["--output-kind", "networkd", "--network-data"]).arg(&file).arg("--directory").arg(&to))?;
    let read = |name: &str| fs::read_to_string(to.join("etc/systemd/network").join(name));
    let (fixed, asking) = (read("10-cloud-init-eth0.network")?, read("10-cloud-init-eth1.network")?);
    for line in [
        "MACAddress=bc:24:11:00:00:01",
        "Address=10.0.0.5/24",
        "Address=fd00:1::5/64",
        "Gateway=10.0.0.254",
        "Gateway=fd00:1::1",
        "DNS=10.0.0.2",
        "Domains=example.com",
        "MTUBytes=1400",
        "DHCP=no",
    ] {
        assert!(fixed.lines().any(|told| told == line), "{line} is not in {fixed}");
    }
    for line in ["MACAddress=bc:24:11:00:00:02", "DHCP=yes"] {
        assert!(asking.lines().any(|told| told == line), "{line} is not in {asking}");
    }
    Ok(())
}
