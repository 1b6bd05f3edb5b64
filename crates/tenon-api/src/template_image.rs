//! What the image of a ProxmoxTemplate is called on a storage, and which UUID a VM made from it gets.

use sha2::{Digest as _, Sha256};
use tenon_model::{Seconds, VmId};

use crate::template::SourceImage;

/// The disk images that Proxmox imports by their extension. An OVA archive has several files, and none is the disk by name.
const EXTENSIONS: [&str; 3] = ["qcow2", "raw", "vmdk"];

/// Why an image cannot be given a file name that Proxmox takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageNameError {
    /// There is none to begin with.
    #[error("the URL {url} ends without a file name; set spec.sourceImage.imageName, such as debian-13.qcow2")]
    Missing {
        /// Where the image is.
        url: String,
    },
    /// Proxmox tells the format of an image by this.
    #[error(
        "image file name {name} has no extension that Proxmox imports (.qcow2, .raw or .vmdk); set \
         spec.sourceImage.imageName to a name with the extension of the format of the image"
    )]
    Extension {
        /// The name.
        name: String,
    },
    /// Proxmox refuses others.
    #[error(
        "image file name {name} has characters that Proxmox refuses; set spec.sourceImage.imageName to a name of letters, \
         digits, `.`, `-` and `_`"
    )]
    Characters {
        /// The name.
        name: String,
    },
}

/// The file name of an image on its storage, which is also `status.imageID`: its name up to the first dot, a hash of where
/// it comes from, and the rest. It is the reference's, so that an image the reference downloaded is found.
pub fn image_id(source: &SourceImage) -> Result<String, ImageNameError> {
    let name = source.image_name.as_deref().filter(|name| !name.is_empty()).unwrap_or_else(|| last_part(&source.url));
    if name.is_empty() {
        return Err(ImageNameError::Missing { url: source.url.clone() });
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let named = || name.to_owned();
    if !name.bytes().all(is_plain) || name.starts_with(['.', '-']) {
        return Err(ImageNameError::Characters { name: named() });
    }
    let (_, extension) = name.rsplit_once('.').ok_or_else(|| ImageNameError::Extension { name: named() })?;
    if !EXTENSIONS.contains(&extension) {
        return Err(ImageNameError::Extension { name: named() });
    }
    let (stem, rest) = name.split_once('.').ok_or_else(|| ImageNameError::Extension { name: named() })?;
    Ok(format!("{stem}-{}.{rest}", fnv1(&source.url)))
}

/// The last part of the path of a URL.
fn last_part(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let rest = path.split_once("://").map_or(path, |(_, rest)| rest);
    rest.split_once('/').map_or("", |(_, path)| path.rsplit('/').next().unwrap_or_default())
}

/// FNV-1 of 64 bits, the hash of texts that the reference uses.
pub fn fnv1(text: &str) -> u64 {
    fnv1_of(text.bytes())
}

/// The same of any bytes.
pub(crate) fn fnv1_of(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte))
}

/// Whose template a VM is.
#[derive(Debug, Clone, Copy)]
pub struct TemplateIdentity<'a> {
    /// The Kubernetes cluster.
    pub cluster: &'a str,
    /// The uid of the ProxmoxTemplate.
    pub template: &'a str,
    /// The id of the VM.
    pub vmid: VmId,
    /// When it was begun: the same id may be used again, much later.
    pub started_at: Seconds,
}

/// The SMBIOS UUID of a template. It is ours to choose, so it proves from the first moment whose the VM is.
pub fn template_uuid(identity: &TemplateIdentity<'_>) -> String {
    let TemplateIdentity { cluster, template, vmid, started_at } = identity;
    let digest = Sha256::digest(format!("{cluster}\n{template}\n{vmid}\n{}", started_at.0));
    let mut number = digest.iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    // Version 8 (made by a rule of one's own) and the usual variant, at the places that RFC 9562 has for them.
    number = number & !(0xf << 76) | 0x8 << 76;
    number = number & !(0b11 << 62) | 0b10 << 62;
    let digits = format!("{number:032x}");
    let cut = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    cut.map(|(from, to)| digits.get(from..to).unwrap_or_default()).join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(url: &str, name: Option<&str>) -> Result<String, ImageNameError> {
        let image_name = name.map(str::to_owned);
        image_id(&SourceImage { url: url.to_owned(), image_name, ..SourceImage::default() })
    }

    #[test]
    fn an_image_is_named_as_the_reference_names_it() {
        let url = "https://images.example/debian/debian-12.5-generic.qcow2?x=a/b.raw";
        assert_eq!(image(url, None), Ok(format!("debian-12-{}.5-generic.qcow2", fnv1(url))));
        assert_eq!(image(url, Some("d.raw")), Ok(format!("d-{}.raw", fnv1(url))));
    }

    #[test]
    fn a_name_without_a_usable_extension_is_told_and_no_panic() {
        for (url, name) in [
            ("https://a.example/noble.img", None),
            ("https://a.example/image", None),
            ("https://a.example/talos.raw.xz", None),
            ("https://a.example/x.qcow2", Some("x")),
            ("https://a.example/x.qcow2", Some("x.ova")),
        ] {
            let why = image(url, name).unwrap_err().to_string();
            assert!(why.contains("set spec.sourceImage.imageName"), "{why}");
        }
        for url in ["https://a.example", "https://a.example/", "https://a.example/?image.qcow2"] {
            assert!(matches!(image(url, None), Err(ImageNameError::Missing { .. })), "{url}");
        }
        for name in ["a b.qcow2", ".qcow2", "a/b.qcow2", "ä.qcow2"] {
            assert!(
                matches!(image("https://a.example/x", Some(name)), Err(ImageNameError::Characters { .. })),
                "{name}"
            );
        }
    }

    #[test]
    fn the_hash_is_fnv_1_of_64_bits() {
        assert_eq!(fnv1(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1("a"), 0xaf63_bd4c_8601_b7be);
        assert_eq!(fnv1("foobar"), 0x340d_8765_a4dd_a9c2);
    }

    #[test]
    fn the_uuid_of_a_template_is_its_own_and_the_same_every_time() {
        let vmid: VmId = "1000".parse().unwrap();
        let identity = TemplateIdentity { cluster: "c", template: "t", vmid, started_at: Seconds(5) };
        let uuid = template_uuid(&identity);
        assert_eq!(uuid, template_uuid(&identity));
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!((lengths, &uuid[14..15]), (vec![8, 4, 4, 4, 12], "8"));
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        for other in [
            TemplateIdentity { cluster: "d", ..identity },
            TemplateIdentity { template: "u", ..identity },
            TemplateIdentity { vmid: "1001".parse().unwrap(), ..identity },
            TemplateIdentity { started_at: Seconds(6), ..identity },
        ] {
            assert_ne!(uuid, template_uuid(&other));
        }
    }
}
