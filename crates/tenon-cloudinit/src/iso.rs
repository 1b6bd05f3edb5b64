//! How do a few small files become an image that a guest finds as its seed?
//!
//! The one place that knows the image writer. One flat folder, readable as Rock Ridge, as Joliet and, with shortened
//! names, as plain ISO 9660.

use hadris_fs::{Content, NoClock, Node, Tree};
use hadris_iso::{IsoId, IsoOptions, plan, sync};
use hadris_storage::{BlockSize, MemDevice};

use crate::Error;

/// The label by which cloud-init's NoCloud source knows its volume.
const VOLUME: &str = "cidata";
/// The size of a sector of a CD-ROM.
const SECTOR: u32 = 2048;

/// The image that holds `files`: name to content.
pub(crate) fn image(files: &[(&str, &[u8])]) -> Result<Vec<u8>, Error> {
    let mut tree = Tree::new();
    for (name, content) in files {
        tree.insert(name, Node::file(Content::bytes(*content))).map_err(refused)?;
    }
    // One date for all images, so that equal content gives equal bytes.
    let options =
        IsoOptions::default().with_id(IsoId::Volume, VOLUME).with_joliet().with_rock_ridge().with_time(NoClock::TIME);
    let size = usize::try_from(plan(&tree, &options).map_err(refused)?.size()).map_err(refused)?;
    let sector = BlockSize::new(SECTOR).ok_or_else(|| refused("the sector size"))?;
    let mut bytes = vec![0; size];
    sync::write(&mut MemDevice::new(bytes.as_mut_slice(), sector), &tree, &options).map_err(refused)?;
    Ok(bytes)
}

fn refused(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Iso { source: source.into() }
}
