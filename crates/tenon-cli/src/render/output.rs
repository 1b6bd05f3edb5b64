//! Prints the files of a seed, and writes its image.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use tenon_cloudinit::{Seed, SeedFileName};

use super::mask::Mask;

/// The image holds secrets: only its owner may read it.
const PRIVATE: u32 = 0o600;

/// Prints every file below a line with its name, or one file as it is.
pub(super) fn print(seed: &Seed, only: Option<&str>, mask: &Mask, out: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(only) = only {
        let found = seed.files().find(|(name, _)| name.key() == only);
        let (_, content) = found.ok_or_else(|| anyhow!("the first-boot data of this node has no file {only}"))?;
        return Ok(out.write_all(&mask.apply(content))?);
    }
    for (index, (name, content)) in seed.files().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        print_file(name, content, mask, out)?;
    }
    Ok(())
}

fn print_file(name: SeedFileName, content: &[u8], mask: &Mask, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "==> {name} <==")?;
    if std::str::from_utf8(content).is_err() {
        return writeln!(out, "({} bytes that are not UTF-8 text; print them with --file {name})", content.len());
    }
    let masked = mask.apply(content);
    out.write_all(&masked)?;
    if masked.ends_with(b"\n") { Ok(()) } else { writeln!(out) }
}

/// Writes the image, secrets and all.
pub(super) fn write_iso(seed: &Seed, path: &Path) -> anyhow::Result<()> {
    let image = seed.iso()?;
    private_file(path, &image).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a file that only its owner may read, also where another one stood.
pub(super) fn private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(PRIVATE))?;
    }
    file.write_all(content)
}
