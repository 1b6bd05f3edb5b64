//! How image files are judged and made: headers of disk images, and the lines `qemu-img` writes about its work.

use crate::keys::human_size;
use crate::state::State;
use crate::storage::VolumeKey;

const QCOW2: &[u8] = b"QFI\xfb";

/// The size of the disk inside an image file, or why it is none; the reason is that of `qemu-img`.
pub(crate) fn virtual_size(format: &str, data: &[u8]) -> Result<u64, String> {
    if format != "qcow2" {
        return Ok(data.len() as u64);
    }
    let number = |at: usize, length: usize| {
        data.get(at..at + length).unwrap_or(&[]).iter().fold(0, |n: u64, b| n << 8 | u64::from(*b))
    };
    if !data.starts_with(QCOW2) {
        return Err("Image is not in qcow2 format".into());
    }
    match number(4, 4) {
        2 | 3 => Ok(number(24, 8)),
        version => Err(format!("Unsupported qcow2 version {version}")),
    }
}

/// What `qemu-img` says when it makes an image of its own.
pub(crate) fn formatting(state: &State, key: &VolumeKey, format: &str, bytes: u64) -> String {
    let path = state.path_of(key);
    let how = match format {
        "qcow2" => format!(
            "fmt=qcow2 cluster_size=65536 extended_l2=off preallocation=metadata compression_type=zlib size={bytes} \
             lazy_refcounts=off refcount_bits=16"
        ),
        _ => format!("fmt={format} size={bytes} preallocation=off"),
    };
    format!("Formatting '{path}', {how}")
}

/// The image that another one stands on.
pub(crate) struct BackingFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) format: &'a str,
}

/// What `qemu-img` says when it makes an image that stands on another.
pub(crate) fn formatting_on(state: &State, key: &VolumeKey, backing: &BackingFile<'_>, bytes: u64) -> String {
    let (path, BackingFile { name, format }) = (state.path_of(key), backing);
    // Metadata is laid out beforehand only where the base has any.
    let layout = if *format == "qcow2" { "metadata" } else { "off" };
    format!(
        "Formatting '{path}', fmt=qcow2 cluster_size=131072 extended_l2=on preallocation={layout} compression_type=zlib \
         size={bytes} backing_file=../{name} backing_fmt={format} lazy_refcounts=off refcount_bits=16"
    )
}

/// First and last word about a copy.
pub(crate) fn progress(bytes: u64) -> [String; 3] {
    let all = human_size(bytes);
    let done = format!("transferred {all} of {all} (100.00%)");
    [format!("transferred 0.0 B of {all} (0.00%)"), done.clone(), done]
}
