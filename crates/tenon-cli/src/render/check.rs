//! Whether cloud-init itself accepts the files, asked of the program where it is installed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs, process};

use anyhow::{Context as _, anyhow, bail};
use tenon_cloudinit::{Seed, SeedFileName};

use super::mask::Mask;
use super::output::private_file;
use crate::plan::table_text::plain;

const PROGRAM: &str = "cloud-init";
/// How cloud-init tells a configuration from a script.
const CLOUD_CONFIG: &[u8] = b"#cloud-config";

/// Which schema a file is held to.
enum Schema {
    CloudConfig,
    NetworkConfig,
}

/// Holds every file that cloud-init has a schema for to it.
pub(super) fn check(seed: &Seed, mask: &Mask, notes: &mut dyn Write) -> anyhow::Result<()> {
    // The last word is the release; what comes before is the program's name, however it was started.
    let started = run(&["--version"])?;
    let version = said(&started);
    if !started.status.success() {
        bail!("cannot run cloud-init: {}", plain(version.trim()));
    }
    let version = format!("cloud-init {}", version.split_whitespace().last().unwrap_or("of an unknown release"));
    let knows_networks = said(&run(&["schema", "--help"])?).contains("network-config");
    let mut refused = Vec::new();
    for (name, content) in seed.files() {
        let schema = match schema_of(name, content) {
            Ok(Schema::NetworkConfig) if !knows_networks => Err("this release has no schema for it".to_owned()),
            other => other,
        };
        let schema = match schema {
            Ok(schema) => schema,
            Err(why) => {
                writeln!(notes, "{name}: not checked: {why}")?;
                continue;
            }
        };
        let outcome = validate(name, content, &schema)?;
        let words = said(&outcome);
        if outcome.status.success() {
            writeln!(notes, "{name}: valid ({version})")?;
        } else {
            refused.push(name.key());
            writeln!(notes, "{name}: not valid ({}):\n{}", version, mask.text(words.trim_end()))?;
        }
    }
    if !refused.is_empty() {
        bail!("cloud-init does not accept {}", refused.join(", "));
    }
    Ok(())
}

fn schema_of(name: SeedFileName, content: &[u8]) -> Result<Schema, String> {
    match name {
        SeedFileName::UserData | SeedFileName::VendorData if content.starts_with(CLOUD_CONFIG) => {
            Ok(Schema::CloudConfig)
        }
        SeedFileName::UserData | SeedFileName::VendorData => Err("it does not begin with #cloud-config".to_owned()),
        SeedFileName::MetaData => Err("cloud-init has no schema for it".to_owned()),
        SeedFileName::NetworkConfig => Ok(Schema::NetworkConfig),
    }
}

fn validate(name: SeedFileName, content: &[u8], schema: &Schema) -> anyhow::Result<Output> {
    let file = PrivateFile::write(name, content)?;
    let path = file.0.to_string_lossy().into_owned();
    match schema {
        Schema::CloudConfig => run(&["schema", "--config-file", &path]),
        Schema::NetworkConfig => run(&["schema", "--schema-type", "network-config", "--config-file", &path]),
    }
}

/// A file that only we may read and that is deleted in the end.
struct PrivateFile(PathBuf);

impl PrivateFile {
    fn write(name: SeedFileName, content: &[u8]) -> anyhow::Result<PrivateFile> {
        let folder = env::temp_dir().join(format!("tenon-render-{}", process::id()));
        let failed = || format!("cannot write {} for cloud-init", folder.display());
        // Never into a folder that somebody else made.
        make_private(&folder).with_context(failed)?;
        let file = PrivateFile(folder.join(name.key()));
        private_file(&file.0, content).with_context(failed)?;
        Ok(file)
    }
}

fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().mode(0o700).create(folder)
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // Nobody is left to tell if this fails.
        let _ = fs::remove_file(&self.0);
        let _ = self.0.parent().map(fs::remove_dir);
    }
}

fn run(args: &[&str]) -> anyhow::Result<Output> {
    Command::new(PROGRAM).args(args).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow!(
            "--check needs the program cloud-init, which is not installed; install the package cloud-init, or leave out \
             --check"
        ),
        _ => anyhow!("cannot run cloud-init: {error}"),
    })
}

/// Everything a program printed.
fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}
