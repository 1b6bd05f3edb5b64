//! `cargo xtask package`: everything a release is, in one folder: tarball, Debian package, image, bill of materials.
//!
//! All of them hold the same static program, so that it runs on any Linux and in an empty image.

mod archives;
mod contents;
mod image;
mod materials;
mod name_server;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::artifacts;
use crate::tree::workspace_root;
use contents::Contents;

/// Debian's and container registries' name of the machines we build for.
const ARCHITECTURE: &str = "amd64";

/// Make the tarball, the Debian package, the image and the bill of materials of a release.
#[derive(Debug, Args)]
pub(crate) struct PackageArgs {
    /// The folder that they are written to.
    #[arg(long, value_name = "FOLDER", default_value = "target/package")]
    out: PathBuf,
    /// The tenon binary to package, instead of one built for production. It must be static.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Try out what was made: unpack, install into a folder, start.
    #[arg(long)]
    check: bool,
}

/// What a package says of itself.
struct Release {
    version: &'static str,
    /// The static program.
    binary: PathBuf,
    /// The checkout.
    root: PathBuf,
}

pub(crate) fn run(args: &PackageArgs) -> anyhow::Result<()> {
    let root = workspace_root();
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => artifacts::build_static_tenon(&root, &["--profile", "dist"])?,
    };
    let release = Release { version: env!("CARGO_PKG_VERSION"), binary, root };
    let out = std::path::absolute(&args.out).context("cannot find the current folder")?;
    let made = make(&release, &out)?;
    if args.check { made.try_out(&release, &out) } else { Ok(()) }
}

/// The same in a folder of its own, with the binary that `lean` built, and everything is tried out.
pub(crate) fn check(binary: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir().context("cannot create a folder for packages")?;
    let release = Release { version: env!("CARGO_PKG_VERSION"), binary: binary.to_owned(), root: workspace_root() };
    make(&release, folder.path())?.try_out(&release, folder.path())
}

/// What was made.
struct Made {
    has_image: bool,
}

impl Made {
    fn try_out(&self, release: &Release, out: &Path) -> anyhow::Result<()> {
        trial::run(release, out)?;
        if self.has_image { trial::image(release, out) } else { Ok(()) }
    }
}

/// Writes everything that the tools of this machine can make, and says what it is.
fn make(release: &Release, out: &Path) -> anyhow::Result<Made> {
    if !is_static(&release.binary)? {
        bail!("{} needs shared libraries: build it with `-C target-feature=+crt-static`", release.binary.display());
    }
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let contents = Contents::write(release, &out.join("contents"))?;
    let materials = out.join(format!("tenon-{}.cdx.json", release.version));
    fs::write(&materials, materials::document(release)?)
        .with_context(|| format!("cannot write {}", materials.display()))?;
    let mut made = vec![format!("wrote {}", materials.display())];
    made.push(archives::tarball(release, &contents, out)?);
    made.push(archives::debian_package(release, &contents, out)?);
    let (has_image, line) = image::build(release, &contents, out)?;
    made.push(line);
    made.iter().for_each(|line| eprintln!("   {line}"));
    Ok(Made { has_image })
}

/// Whether a program needs no loader.
fn is_static(binary: &Path) -> anyhow::Result<bool> {
    use object::read::elf::{FileHeader as _, ProgramHeader as _};
    let data = fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
    let header =
        object::elf::FileHeader64::<object::Endianness>::parse(&*data).context("it is no program for Linux")?;
    let endian = header.endian()?;
    let segments = header.program_headers(endian, &*data)?;
    Ok(segments.iter().all(|segment| segment.p_type(endian) != object::elf::PT_INTERP))
}
