//! Which files lie on a seed image?
//!
//! Just enough of ISO 9660 to find the few files of a NoCloud volume. Only the root folder is read. Bytes that make no
//! sense give fewer files, never a panic: every access is checked.

use std::collections::BTreeMap;

const SECTOR: usize = 2048;
/// Volume descriptors begin here.
const FIRST_DESCRIPTOR: usize = 16;
/// A real image has three or four; the bound keeps a broken one from being read to its end.
const MAX_DESCRIPTORS: usize = 32;
/// Continuation areas followed for one name.
const MAX_CONTINUATIONS: usize = 8;
/// The label cloud-init looks for, in either case.
const LABEL: &str = "cidata";

/// The files of the root folder by name, if this is an image labelled `cidata`.
pub(crate) fn seed_files(image: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let (mut primary, mut joliet) = (None, None);
    for sector in FIRST_DESCRIPTOR..FIRST_DESCRIPTOR + MAX_DESCRIPTORS {
        let descriptor = span(image, sector * SECTOR, SECTOR)?;
        if span(descriptor, 1, 5)? != b"CD001" {
            return None;
        }
        match descriptor.first()? {
            1 if primary.is_none() => primary = Some(descriptor),
            2 if is_joliet(descriptor) => joliet = Some(descriptor),
            255 => break,
            _ => {}
        }
    }
    let primary = primary?;
    let label = String::from_utf8_lossy(span(primary, 40, 32)?).trim_end_matches([' ', '\0']).to_owned();
    if !label.eq_ignore_ascii_case(LABEL) {
        return None;
    }
    let root = Record { bytes: span(joliet.unwrap_or(primary), 156, 34)? };
    let names = if joliet.is_some() { Names::Joliet } else { Names::Plain };
    Some(folder(image, &root, names))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Big-endian UCS-2.
    Joliet,
    /// Rock Ridge where there is some, else the short names.
    Plain,
}

/// Whether the escape sequences of a supplementary descriptor are one of Joliet's three levels.
fn is_joliet(descriptor: &[u8]) -> bool {
    matches!(span(descriptor, 88, 3), Some(b"%/@" | b"%/C" | b"%/E"))
}

/// One entry of a folder.
struct Record<'a> {
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    fn content(&self, image: &'a [u8]) -> Option<&'a [u8]> {
        span(image, number(self.bytes, 2)?.checked_mul(SECTOR)?, number(self.bytes, 10)?)
    }

    fn is_folder(&self) -> bool {
        self.bytes.get(25).is_some_and(|flags| flags & 2 != 0)
    }

    fn raw_name(&self) -> Option<&'a [u8]> {
        span(self.bytes, 33, usize::from(*self.bytes.get(32)?))
    }

    fn name(&self, image: &'a [u8], names: Names) -> Option<String> {
        let raw = self.raw_name()?;
        if names == Names::Joliet {
            let units: Vec<u16> = raw.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
            return Some(without_version(&String::from_utf16_lossy(&units)));
        }
        let short = || without_version(&String::from_utf8_lossy(raw)).to_ascii_lowercase();
        Some(self.rock_ridge_name(image).unwrap_or_else(short))
    }

    /// The name from `NM` entries of the system use area, which may go on elsewhere (`CE`).
    fn rock_ridge_name(&self, image: &'a [u8]) -> Option<String> {
        // The name is padded to an even offset.
        let start = (33 + self.raw_name()?.len()).next_multiple_of(2);
        let mut area = self.bytes.get(start..)?;
        let mut name = Vec::new();
        for _ in 0..MAX_CONTINUATIONS {
            let mut next = None;
            while let Some(entry) = area.get(2).and_then(|length| area.get(..usize::from(*length))) {
                if entry.len() < 4 {
                    break;
                }
                match &entry[..2] {
                    b"NM" => name.extend_from_slice(entry.get(5..)?),
                    b"CE" => next = continuation(image, entry),
                    _ => {}
                }
                area = &area[entry.len()..];
            }
            match next {
                Some(more) => area = more,
                None => break,
            }
        }
        Some(name).filter(|n| !n.is_empty()).and_then(|n| String::from_utf8(n).ok())
    }
}

fn continuation<'a>(image: &'a [u8], entry: &[u8]) -> Option<&'a [u8]> {
    let start = number(entry, 4)?.checked_mul(SECTOR)?.checked_add(number(entry, 12)?)?;
    span(image, start, number(entry, 20)?)
}

fn folder(image: &[u8], root: &Record<'_>, names: Names) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    // No record crosses a sector; what is left of one is zeroes.
    for sector in root.content(image).unwrap_or_default().chunks(SECTOR) {
        let mut at = 0;
        while let Some(length) = sector.get(at).map(|length| usize::from(*length)).filter(|length| *length > 0) {
            let Some(bytes) = span(sector, at, length) else { break };
            let record = Record { bytes };
            at += length;
            if record.is_folder() {
                continue;
            }
            if let Some((name, content)) = record.name(image, names).zip(record.content(image)) {
                files.insert(name, content.to_vec());
            }
        }
    }
    files
}

fn without_version(name: &str) -> String {
    name.split(';').next().unwrap_or_default().trim_end_matches('.').to_owned()
}

/// A little-endian number of four bytes; the big-endian twin behind it is not looked at.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; 4] = span(bytes, at, 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(four)).ok()
}

fn span(bytes: &[u8], start: usize, length: usize) -> Option<&[u8]> {
    bytes.get(start..start.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with a primary descriptor only, one file of that raw name, and a system use area behind the name.
    fn image(label: &str, raw_name: &[u8], system_use: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 20 * SECTOR];
        let record = |extent: u32, size: usize, flags: u8, name: &[u8], area: &[u8]| {
            let mut record = vec![0; (33 + name.len()).next_multiple_of(2)];
            record[2..6].copy_from_slice(&extent.to_le_bytes());
            record[10..14].copy_from_slice(&u32::try_from(size).unwrap().to_le_bytes());
            record[25] = flags;
            record[32] = u8::try_from(name.len()).unwrap();
            record[33..33 + name.len()].copy_from_slice(name);
            record.extend_from_slice(area);
            record[0] = u8::try_from(record.len()).unwrap();
            record
        };
        let primary = &mut bytes[16 * SECTOR..17 * SECTOR];
        primary[..6].copy_from_slice(b"\x01CD001");
        primary[40..72].fill(b' ');
        primary[40..40 + label.len()].copy_from_slice(label.as_bytes());
        primary[156..190].copy_from_slice(&record(18, SECTOR, 2, b"\0", b""));
        bytes[17 * SECTOR..17 * SECTOR + 6].copy_from_slice(b"\xffCD001");
        let file = record(19, 5, 0, raw_name, system_use);
        bytes[18 * SECTOR..18 * SECTOR + file.len()].copy_from_slice(&file);
        bytes[19 * SECTOR..19 * SECTOR + 5].copy_from_slice(b"hello");
        bytes
    }

    #[test]
    fn a_short_name_is_read_without_its_version() {
        let files = seed_files(&image("CIDATA", b"USERDATA.;1", b"")).unwrap();
        assert_eq!(files, BTreeMap::from([("userdata".to_owned(), b"hello".to_vec())]));
    }

    #[test]
    fn a_rock_ridge_name_wins_over_the_short_one() {
        let area = b"NM\x0e\x01\x00user-data";
        let files = seed_files(&image("cidata", b"USER_DAT.;1", area)).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["user-data"]);
    }

    #[test]
    fn another_label_or_no_image_is_no_seed() {
        assert_eq!(seed_files(&image("config-2", b"A", b"")), None);
        assert_eq!(seed_files(b""), None);
        assert_eq!(seed_files(&vec![7; 40 * SECTOR]), None);
    }

    #[test]
    fn a_cut_image_gives_fewer_files_and_no_panic() {
        let whole = image("cidata", b"USERDATA.;1", b"");
        for length in (0..whole.len()).step_by(97) {
            let _ = seed_files(&whole[..length]);
        }
    }
}
